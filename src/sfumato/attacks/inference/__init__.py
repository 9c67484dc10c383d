"""Inference: what the release tells of a column that the attacker does not know."""
