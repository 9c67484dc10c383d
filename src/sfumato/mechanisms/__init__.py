"""Mechanisms: one package a paper, and the papers' baselines, under one interface (``base``)."""

from sfumato.mechanisms.registry import load_mechanism, mechanism_class, names

__all__ = ["load_mechanism", "mechanism_class", "names"]
