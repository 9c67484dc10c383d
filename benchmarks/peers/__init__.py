"""Synthetic tables of other makers on Adult, each in its own environment: ``python -m benchmarks.peers``."""
