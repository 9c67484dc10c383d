"""The ways in which ``synth`` learns a data set from noisy answers, one file each."""
