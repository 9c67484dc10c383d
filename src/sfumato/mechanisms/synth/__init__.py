"""``synth``: differentially private synthetic data sets."""
