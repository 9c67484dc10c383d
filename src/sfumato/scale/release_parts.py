"""The parts of a large release: which rows of which file each one holds, and what a worker does with one.

A part begins and ends where a release on one machine begins and ends a batch, so the payloads are the same to the bit.
It lies where row groups lie, so that no worker reads what it does not need.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.release import row_digests
from sfumato.core.run_folder import atomic, read_json, write_json
from sfumato.data.column_roles import of_schema
from sfumato.data.encoding.records import encode_batch
from sfumato.data.readers.addresses import is_address, parquet_at
from sfumato.data.readers.locate import LocatedSource
from sfumato.data.readers.parquet import ParquetSource
from sfumato.data.readers.parquet_folder import ParquetFolder
from sfumato.data.registry import REGISTRY
from sfumato.scale.ray_cluster import settle
from sfumato.workflow.releasing import BATCH_ROWS, ReleaseTerms, WholeFile, as_table, terms_of, written_to
from sfumato.workflow.repeated_records import content_words

FEWEST_ROWS = 16 * BATCH_ROWS
"""Smaller row groups are taken together."""


@dataclass(frozen=True)
class RowRange:
    """The rows from ``first`` to before ``last`` of a file; ``number`` says where they stand in the release."""

    number: int
    file: str
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"part-{self.number:06d}"


def parts_of(opened: LocatedSource) -> list[RowRange]:
    """All rows of the source, in their order."""
    parts: list[RowRange] = []
    for file in _files(opened):
        first, row = 0, 0
        for group in file.groups:
            row += group
            end = min(-(-row // BATCH_ROWS) * BATCH_ROWS, file.rows or 0)  # up to the end of a batch
            if end - first >= FEWEST_ROWS or (row == file.rows and end > first):
                parts.append(RowRange(len(parts), file.label, first, end))
                first = end
    return parts


def _files(opened: LocatedSource) -> list[ParquetSource]:
    files: list[ParquetSource] = []
    for one in opened.parts.values():
        if isinstance(one, ParquetFolder):
            files += one.files
        elif isinstance(one, ParquetSource):
            files.append(one)
        else:
            raise UsageError(f"--engine ray releases Parquet, and {one.label} is none: leave out --engine ray.")
    return files


class PartReleaser:
    """In a worker: releases one part after the other into files of ``folder``, each whole or absent.

    part-….parquet   what leaves
    part-….seen      8 bytes a record that tell whether two have the same content, 32 bytes of its payload's digest, and
                     8 bytes of its subject's name where the promise is about rows of people
    part-….json      how many rows, their shape, what they break: last, as the mark that the part is done
    """

    def __init__(
        self, run: str, folder: str, named: str | None, labels: bool, unprotected: bool, asked: Mapping[str, str]
    ) -> None:
        import torch

        settle(asked)
        torch.set_num_threads(1)
        self._folder, self._entry = Path(folder), None if named is None else REGISTRY[named]
        self._trouble: SfumatoError | None = None
        try:
            self._terms: ReleaseTerms = terms_of(Path(run), labels=labels, unprotected=unprotected)
        except SfumatoError as error:
            self._trouble = error

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """One part, as columns of one row: an error of ours is told, so that nobody tries again what cannot work."""
        (number,), (file,), (first,), (last,) = (batch[name].tolist() for name in ("number", "file", "first", "last"))
        part, said, code = RowRange(number, file, first, last), "", 0
        try:
            if self._trouble is not None:
                raise self._trouble
            self._release(part)
        except SfumatoError as error:
            said, code = str(error), error.exit_code
        except OSError as error:
            where = f"{platform.node()} cannot write to {self._folder} ({error.strerror or error})"
            said, code = f"{where}: put --out where all machines see it.", DataError.exit_code
        return {"number": [number], "said": [said], "code": [code]}

    def _release(self, part: RowRange) -> None:
        mechanism, traits = self._terms.mechanism, self._terms.mechanism.traits
        seen, rows, shape, writer = WholeFile(self._terms.promised), 0, (), None
        words: list[npt.NDArray[Any]] = []
        with (
            atomic(self._folder / f"{part.name}.seen") as notes,
            atomic(self._folder / f"{part.name}.parquet") as out,
            notes.open("wb") as told,
        ):
            for batch in seen.watched(self._batches(part)):
                release = mechanism.release(batch, labels=self._terms.labels)
                seen.broken |= release.guarantee.broken()
                table = as_table(release.payload, release.utility, mechanism.schema_, records=traits.gives_records)
                writer = writer or written_to(out, table.schema)
                writer.write_table(table)
                words = [content_words(batch), np.frombuffer(row_digests(release.payload), np.uint64).reshape(-1, 4)]
                words += [_people(batch)] if seen.one_row and batch.named else []
                told.write(np.column_stack(words).tobytes())
                rows, shape = rows + len(release), release.payload.shape[1:]
            if writer is not None:
                writer.close()
        width = 5 + (len(words) > 2)
        facts = {"rows": rows, "shape": list(shape), "broken": seen.broken, "width": width}
        write_json(self._folder / f"{part.name}.json", facts)

    def _batches(self, part: RowRange) -> Iterator[Dataset]:
        mechanism, entry = self._terms.mechanism, self._entry
        source = parquet_at(part.file) if is_address(part.file) else ParquetSource(Path(part.file))
        private = mechanism.traits.reads_private
        roles = of_schema(source, mechanism.schema_, entry, utility=self._terms.labels, private=private)
        side = entry.side if entry else None
        for row, batch in source.between(part.first, part.last, roles.columns(), BATCH_ROWS):
            yield encode_batch(source, batch, row, mechanism.schema_, roles, name=source.stem, side=side)


def _people(batch: Dataset) -> npt.NDArray[np.uint64]:
    """(N,): 8 bytes of a hash of each record's subject."""
    names = (str(name).encode() for name in batch.ids.tolist())
    return np.frombuffer(b"".join(hashlib.blake2b(name, digest_size=8).digest() for name in names), np.uint64)


def facts_of(folder: Path, parts: Sequence[RowRange]) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.uint64]]]:
    """What each finished part tells, in order: its facts and (rows, width) words."""
    for part in parts:
        facts = read_json(folder / f"{part.name}.json")
        yield facts, np.fromfile(folder / f"{part.name}.seen", np.uint64).reshape(facts["rows"], facts["width"])
