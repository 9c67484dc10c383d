"""The records of one part, batch by batch: in memory while they are few, else on disk and mapped into memory.

What lies on disk are the records and the names of their subjects, in files without a name in the folder for temporary
files (``TMPDIR``): nobody else can open them, and none is left behind however the process ends. Labels and a hash of
each record stay in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from sfumato.core import memory
from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError

Array = npt.NDArray[Any]


class _Stack:
    """Arrays with the same shape of a row, one after the other."""

    def __init__(self) -> None:
        self._held: list[Array] = []
        self._file: IO[bytes] | None = None
        self._written: list[tuple[int, np.dtype[Any]]] = []
        self._shape: tuple[int, ...] = ()
        self.bytes = 0

    def add(self, rows: Array) -> None:
        self._shape = rows.shape[1:]
        self.bytes += rows.nbytes
        if self._file is None:
            self._held.append(rows)
        else:
            self._write(rows)

    def to_disk(self) -> None:
        """From now on in a file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 — it lives as long as its map
            for rows in self._held:
                self._write(rows)
            self._held.clear()

    def _write(self, rows: Array) -> None:
        assert self._file is not None  # to_disk has been called
        self._file.write(np.ascontiguousarray(rows).data.cast("B") if rows.dtype.kind != "U" else rows.tobytes())
        self._written.append((len(rows), rows.dtype))

    def whole(self) -> Array:
        """All rows; of texts, each as wide as the widest."""
        if self._file is None:
            return np.concatenate(self._held)
        self._file.flush()
        kind = np.result_type(*{kind for _, kind in self._written})
        if any(each != kind for _, each in self._written):
            self._widen(kind)
        count = sum(rows for rows, _ in self._written)
        return np.asarray(np.memmap(self._file, kind, "r", shape=(count, *self._shape)))

    def _widen(self, kind: np.dtype[Any]) -> None:
        narrow, written = self._file, self._written
        assert narrow is not None
        narrow.seek(0)
        self._file, self._written = tempfile.TemporaryFile(), []  # noqa: SIM115
        for rows, own in written:
            self._write(np.frombuffer(narrow.read(rows * own.itemsize), own).astype(kind))
        narrow.close()
        self._file.flush()


class Spool:
    """Takes pieces of one schema and with the same labels, and gives them back as one data set."""

    def __init__(self) -> None:
        self._most = memory.held()
        self._first: Dataset | None = None
        self._x, self._ids = _Stack(), _Stack()
        self._small: dict[tuple[str, str], list[Array]] = {}

    def add(self, piece: Dataset) -> None:
        """The next records."""
        if len(piece) == 0:
            return
        self._first = self._first or piece.take(slice(0, 0))
        with _room():
            self._x.add(piece.x)
            self._ids.add(piece.ids)
            if self._x.bytes > self._most:
                self._x.to_disk()
                self._ids.to_disk()
        for name, values in piece.utility.items():
            self._small.setdefault(("utility", name), []).append(values)
        for name, values in piece.private.items():
            self._small.setdefault(("private", name), []).append(values)
        if piece.contents is not None:
            self._small.setdefault(("", "contents"), []).append(piece.contents)

    def dataset(self) -> Dataset | None:
        """All records in the order in which they came; None if none came."""
        if self._first is None:
            return None
        first = self._first
        whole = {key: np.concatenate(parts) for key, parts in self._small.items()}
        with _room():
            x, ids = self._x.whole(), self._ids.whole()
        return Dataset(
            x=x,
            schema=first.schema,
            utility={name: whole["utility", name] for name in first.utility},
            private={name: whole["private", name] for name in first.private},
            ids=ids,
            name=first.name,
            named=first.named,
            contents=whole.get(("", "contents")),
        )


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot keep the records in {tempfile.gettempdir()} ({error.strerror or error}): set TMPDIR to a folder "
            "with more room, or use --limit."
        ) from None
