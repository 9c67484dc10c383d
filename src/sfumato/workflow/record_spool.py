"""The records of a whole file at once, on disk instead of in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.origin import Origin
from sfumato.core.schema import Schema
from sfumato.mechanisms.record_checks import check_records


@contextmanager
def spooled(batches: Iterable[Dataset], schema: Schema, folder: Path) -> Iterator[tuple[FloatArray, Origin]]:
    """All records (N, …), checked, and where they come from.

    The records lie in a file in ``folder`` that has no name, so that none is left behind however the process ends;
    memory holds a hash of each, and its subject if subjects are named.
    """
    contents, subjects = [], []
    with tempfile.TemporaryFile(dir=folder) as file:
        for batch in batches:
            check_records(batch.x, schema, batch.name)
            file.write(np.ascontiguousarray(batch.x).data)
            contents.append(batch.origin.contents)
            subjects.append(batch.ids if batch.named else None)
        file.flush()
        if not contents:
            yield np.empty((0, *schema.shape), np.float32), Origin(np.empty(0))
            return
        whole = np.concatenate(contents)
        named = [each for each in subjects if each is not None]
        x = np.memmap(file, np.float32, "r+", shape=(len(whole), *schema.shape))
        yield x, Origin(x, contents=whole, subjects=np.concatenate(named) if len(named) == len(subjects) else None)
