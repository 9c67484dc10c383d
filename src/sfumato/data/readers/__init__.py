"""Readers that present files and folders as named columns."""
