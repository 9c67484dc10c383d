"""How much memory there is, and what of large data is held in it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError

HELD = 2**27
"""Most bytes of one part's records in memory (of a machine with 4 GB or more): what is larger lies on disk."""
DRAWN = 2**29
"""Most bytes of one part's records that an audit looks at (of a machine with 16 GB or more)."""
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def limit() -> int:
    """Bytes that this process may use: the machine's, its container's, or its own limit, whichever is least."""
    found = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in map(Path, _CGROUPS):
        text = file.read_text().strip() if file.is_file() else "max"
        found += [int(text)] if text.isdigit() else []
    try:
        import resource
    except ImportError:  # not on Windows
        pass
    else:
        own = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
        found += [each for each in own if each != resource.RLIM_INFINITY]
    return min(found, default=2**33)


def held() -> int:
    """Bytes of one part's records that are kept in memory."""
    return min(HELD, limit() // 32)


def drawn(record: int) -> int:
    """How many records of so many bytes an audit looks at in each part."""
    return max(1_000, min(DRAWN, limit() // 32) // record)


def refuse_copies(copies: int, x: npt.NDArray[Any], owner: str, name: str) -> None:
    """Raise unless so many copies of records ``x`` have room in memory."""
    if not copies or len(x) == 0 or copies * x.nbytes <= (most := limit()) // 2:
        return
    fit = max(1, most // 2 // (copies * (x.nbytes // len(x))))
    raise DataError(
        f"{owner} holds all records in memory at once, and {len(x):,} records of {name} do not fit: about {fit:,} do, "
        "so use --limit, or a mechanism that trains on batches alone (docs/scale.md)."
    )


@contextmanager
def at_random(x: npt.NDArray[Any]) -> Iterator[None]:
    """Records that lie on disk are read here and there inside: the system should not read ahead."""
    file = _mapped(x)
    advise = file is not None and hasattr(mmap, "MADV_RANDOM")
    if advise:
        file.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        if advise:
            file.madvise(mmap.MADV_NORMAL)


def _mapped(x: Any) -> Any:
    """The memory map that an array lies in, or None."""
    while isinstance(x, np.ndarray):
        x = x.base
    return x if isinstance(x, mmap.mmap) else None
