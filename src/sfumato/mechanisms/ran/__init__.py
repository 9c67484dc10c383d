"""``ran``: the reconstructive adversarial network."""
