"""Privacy accounting and auditing: divergences, mutual information, the Gaussian mechanism and lower bounds of ε."""
