"""How `synth` learns a data set from noisy answers: one file a method."""
