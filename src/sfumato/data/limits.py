"""Limits on what sfumato reads: generous for real data, small enough to keep a hostile file harmless."""

from __future__ import annotations

MAX_CELL_BYTES = 64 * 2**20
"""Largest encoded image or recording, in bytes."""

MAX_PIXELS = 2**24
"""Most pixels in one image, checked before it is decoded."""

MAX_RECORD_NUMBERS = 2**24
"""Most numbers in one record."""

MAX_ROWS = 2**31
"""Most records in one file."""

MAX_CATEGORIES = 1000
"""Most distinct values in one categorical column."""

MAX_CLASSES = 20_000
"""Most classes of one label."""

MAX_SAMPLE_RATE = 384_000
"""Highest sample rate of a recording, in Hz."""

MAX_WHOLE_ARRAY_BYTES = 2**30
"""Largest array, in bytes, that is read into memory at once because it is not stored row by row."""
