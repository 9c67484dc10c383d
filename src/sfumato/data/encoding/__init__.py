"""Encoders that turn each kind of record into float32 in [0, 1], and back."""
