"""A mechanism with a secret and a threat of its own, and the attack that finds the secret."""
