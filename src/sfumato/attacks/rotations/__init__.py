"""Attacks on messages under secret rotations (``phase``)."""
