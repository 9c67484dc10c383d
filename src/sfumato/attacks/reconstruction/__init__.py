"""Reconstruction: the record itself, rebuilt from the release."""
