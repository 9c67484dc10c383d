"""Audit plans, one file a capability: what is attacked, with what knowledge, against what control."""
