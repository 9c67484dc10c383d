"""Singling out: predicates that isolate exactly one person."""
