"""Copies: people whose records stand in the release."""
