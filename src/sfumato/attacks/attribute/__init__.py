"""Attribute inference: a private label read from the release."""
