"""What sfumato accepts from outside: generous for real data, small enough to keep a hostile file harmless."""

from __future__ import annotations

MAX_CELL_BYTES = 64 * 2**20
"""Bytes of one encoded image or recording."""

MAX_PIXELS = 2**24
"""Pixels of one image, checked before it is decoded."""

MAX_RECORD_NUMBERS = 2**24
"""Numbers in one record."""

MAX_ROWS = 2**31
"""Records in one file."""

MAX_CATEGORIES = 1000
"""Different values of one categorical column."""

MAX_CLASSES = 20_000
"""Classes of one label."""

MAX_SAMPLE_RATE = 384_000
"""Samples a second in a recording."""

MAX_WHOLE_ARRAY_BYTES = 2**30
"""Bytes of an array that has to be held whole since it is not stored row by row."""
