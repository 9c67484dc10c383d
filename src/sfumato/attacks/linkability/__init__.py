"""Linkability: two sets of columns of one person, joined through the release."""
