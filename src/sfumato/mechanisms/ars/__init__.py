"""``ars``: adversarial representation sharing among several parties."""
