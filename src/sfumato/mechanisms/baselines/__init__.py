"""The papers' baselines, under the same interface."""
