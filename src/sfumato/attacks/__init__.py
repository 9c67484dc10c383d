"""Attacks, one package a threat; each one trains afresh for every release."""
