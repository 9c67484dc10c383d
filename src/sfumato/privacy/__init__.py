"""What a release costs and gives away, by formula: divergences, mutual information, the Gaussian mechanism."""
