"""NumPy ``.npz`` files, read row by row without unpickling anything or extracting to disk."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_RECORD_NUMBERS, MAX_ROWS, MAX_WHOLE_ARRAY_BYTES
from sfumato.data.readers.source import Batch, Source

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True)
class _Member:
    """The header of one array."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_column: bool

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


class NpzSource(Source):
    """An ``.npz`` file whose arrays, all of the same length, are the columns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members = {member.name: member for member in self._headers()}
        lengths = {member.shape[0] for member in self._members.values()}
        if len(lengths) > 1:
            sizes = ", ".join(f"'{m.name}' {m.shape[0]}" for m in self._members.values())
            what = f"the arrays differ in length ({sizes})"
            raise Place(str(path)).fault(what, "save arrays with one entry per record")
        super().__init__(
            str(path),
            path.stem,
            _arrow_schema({name: _to_arrow(np.empty((0, *m.shape[1:]), m.dtype)) for name, m in self._members.items()}),
            rows=lengths.pop(),
            cell_shapes={name: m.shape[1:] for name, m in self._members.items() if len(m.shape) > 1},
        )

    def _headers(self) -> list[_Member]:
        try:
            with zipfile.ZipFile(self._path) as archive:
                found = [self._header(archive, info) for info in archive.infolist() if info.filename.endswith(".npy")]
        except (zipfile.BadZipFile, OSError) as error:
            what = f"not a readable .npz file ({error})"
            raise Place(str(self._path)).fault(what, "write it with numpy.savez") from error
        if not found:
            remedy = "write it with numpy.savez(path, x=..., y=...)"
            raise Place(str(self._path)).fault("contains no arrays", remedy)
        return found

    def _header(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
        name = info.filename.removesuffix(".npy")
        where = Place(str(self._path), name)
        with archive.open(info) as stream:
            shape, by_column, dtype, header_bytes = _read_header(stream, where)
        member = _Member(name, shape, dtype, by_column)
        if dtype.hasobject or dtype.kind not in "biufUS":
            what = f"contains {dtype} values, which are never loaded"
            raise where.fault(what, "save numbers, booleans or fixed-length text")
        if not shape:
            raise where.fault("is a single value", "save one entry per record")
        if shape[0] > MAX_ROWS or math.prod(shape[1:]) > MAX_RECORD_NUMBERS:
            raise where.fault(f"shape {shape} is too large", "save smaller records")
        if info.file_size - header_bytes != shape[0] * member.row_bytes:
            raise where.fault(f"does not contain the {shape} values its header promises", "write the file again")
        return member

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        import pyarrow as pa

        members = [self._members[name] for name in columns]
        with zipfile.ZipFile(self._path) as archive:
            streams = [archive.open(f"{member.name}.npy") for member in members]
            for member, stream in zip(members, streams, strict=True):
                _read_header(stream, Place(self.label, member.name))
            whole = [self._whole(m, s) if m.by_column else None for m, s in zip(members, streams, strict=True)]
            for first in range(0, self.rows or 0, batch_rows):
                count = min(batch_rows, (self.rows or 0) - first)
                arrays = [
                    _to_arrow(self._rows(m, s, count) if w is None else w[first : first + count])
                    for m, s, w in zip(members, streams, whole, strict=True)
                ]
                yield first, pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _rows(self, member: _Member, stream: IO[bytes], count: int) -> AnyArray:
        wanted = count * member.row_bytes
        data = stream.read(wanted)
        if len(data) != wanted:
            raise Place(self.label, member.name).fault("ends too early", "write the file again")
        return np.frombuffer(data, member.dtype).reshape(count, *member.shape[1:])

    def _whole(self, member: _Member, stream: IO[bytes]) -> AnyArray:
        if member.shape[0] * member.row_bytes > MAX_WHOLE_ARRAY_BYTES:
            what = "is stored column by column and too large to read at once"
            raise Place(self.label, member.name).fault(what, "save numpy.ascontiguousarray(array) instead")
        flat = np.frombuffer(stream.read(member.shape[0] * member.row_bytes), member.dtype)
        return np.ascontiguousarray(flat.reshape(member.shape, order="F"))


def _read_header(stream: IO[bytes], where: Place) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, column order, dtype and header length, leaving the stream at the first value."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if reader is None:
            raise ValueError(f"format version {version}")
        shape, by_column, dtype = reader(stream)
    except (ValueError, EOFError, SyntaxError) as error:
        raise where.fault(f"is not a NumPy array ({error})", "write it with numpy.savez") from error
    return tuple(shape), bool(by_column) and len(shape) > 1, dtype, stream.tell()


def _to_arrow(values: AnyArray) -> Any:
    """Convert to an arrow array, without a copy where arrow allows it."""
    import pyarrow as pa

    if values.dtype.kind in "US":
        texts = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
        flat = pa.array(texts.ravel().tolist(), pa.string())
    else:
        little = values.astype(values.dtype.newbyteorder("="), copy=False)
        flat = pa.array(np.ascontiguousarray(little).ravel())
    width = math.prod(values.shape[1:])
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, width)


def _arrow_schema(arrays: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.schema([(name, array.type) for name, array in arrays.items()])
