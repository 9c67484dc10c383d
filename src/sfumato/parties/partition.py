"""``sfumato share split``: split a data set into one folder per party, to try things out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Hashes
from sfumato.core.randomness import derive_seed
from sfumato.core.run_folder import write_json
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Names, Roles, of_schema
from sfumato.data.domain import DomainName
from sfumato.data.labels import encode_labels
from sfumato.data.loading import schema_of
from sfumato.data.placement import fractions, placed, rows_of, subjects_of, within_limit
from sfumato.data.readers.locate import LocatedSource, open_data
from sfumato.data.readers.source import Source
from sfumato.mechanisms.device_secret import make_secret
from sfumato.parties.class_labels import refuse_numbers
from sfumato.parties.skew import EVEN, Skew, one_class_each
from sfumato.workflow.releasing import writable

ROWS = 4096
HELD_OUT = 0.2
"""Fraction of the records held out if the data set has no test part."""
MOST_PARTIES = 1000
ALIGNED = "record"
"""The column that identifies a record across the parties of a vertical split."""


def split_parties(
    source: str,
    out: Path,
    *,
    parties: int,
    vertical: bool = False,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
    limit: int | None = None,
    each: int | None = None,
    partition: str = EVEN,
    seed: int = 0,
    repeatable: bool = False,
) -> list[Path]:
    """Split a data set into ``out/party-0`` …, with train.parquet, test.parquet, schema.json, party.toml and secret.

    The parties get about the same number of records, unless ``partition`` says otherwise, and no subject is in two
    parties or in two parts. Where a record goes depends on its subject (without named subjects: on its row), on the
    subject's class if the partition is by label, and on the seed, never on the records of others.

    Args:
        source: A named data set, a file or a folder.
        out: The folder to create; it appears only when it is complete.
        parties: Number of parties, 2 to 1,000.
        vertical: Give every party all records but only its own columns; the first party gets the labels.
        x, utility, private, id, domain: The columns, as for ``sfumato.load``. A utility label is required.
        limit: Number of records in all, about (as for ``sfumato.load``); by default every record is used.
        each: Number of records that each party shares; by default all it has. One record more may replace another.
        partition: How the records to share differ between the parties (``parties.skew``): ``even``, ``classes=2``,
            ``dirichlet=0.3``, ``power=1`` or ``lognormal=1``. Labels are those of the first utility label. Held-out
            records are dealt evenly: every party is tested on what all of them see.
        seed: Seed of the split.
        repeatable: For experiments: the parties' noise follows from ``seed``, and they accept every mode and setting.

    Returns:
        The folders of the parties.

    Raises:
        UsageError: The number of parties is out of range, or a vertical split is impossible.
        DataError: The data cannot be used, or there are too few records or subjects.
    """
    if not 2 <= parties <= MOST_PARTIES:
        raise UsageError(f"parties must be 2 to {MOST_PARTIES:,}, got {parties:,}.")
    skew = Skew.parse(partition)
    if vertical and skew.kind != EVEN:
        raise UsageError(f"partition {partition}: parties that hold columns all have the same records.")
    if each is not None and skew.by_quantity:
        raise UsageError(f"partition {partition} gives the parties different numbers of records: drop --each.")
    opened = open_data(source)
    schema = schema_of(opened, x=x, utility=utility, private=private, id=id, domain=domain)
    if not schema.utility:
        raise DataError(f"{opened.name} has no utility label, so there is nothing to learn: name one with --utility.")
    refuse_numbers(schema)
    parts = _parts(opened, schema, limit, seed)
    with writable(out) as part:
        if vertical:
            _cut_columns(opened, schema, parts, part, parties, each, seed)
        else:
            _cut_rows(opened, schema, parts, part, parties, each, skew, seed)
        for number in range(parties):
            choices = _choices(number, opened, derive_seed(seed, "party", number) if repeatable else None)
            (part / f"party-{number}" / "party.toml").write_text(choices)
            if not repeatable:
                make_secret(part / f"party-{number}" / "secret")
    return [out / f"party-{number}" for number in range(parties)]


Places = list[tuple[Source, Roles, npt.NDArray[np.intp]]]
"""Each source with its roles and the rows to use."""


def _parts(opened: LocatedSource, schema: Schema, limit: int | None, seed: int) -> dict[str, Places]:
    """Choose the rows to share and to hold out: the set's own parts, or a split by subject."""
    plans = [(one, of_schema(one, schema, opened.entry)) for one in opened.parts.values()]
    keys = [subjects_of(one, roles) for one, roles in plans]
    rows = [np.arange(len(part)) for part in keys] if limit is None else within_limit(opened, plans, limit, seed)
    if set(opened.parts) == {"train", "test"} and (schema.id_column is None or not _shared(*keys)):
        return {part: [(one, roles, kept)] for part, (one, roles), kept in zip(opened.parts, plans, rows, strict=True)}
    if len(plans) != 1:
        raise DataError(
            f"{opened.name} has subjects in both parts: merge them into one file, which is split by subject."
        )
    ((one, roles),), ((subjects,), (kept,)) = plans, (keys, rows)
    place = placed(subjects[kept], (1 - HELD_OUT, HELD_OUT), seed, "held out")
    return {part: [(one, roles, kept[place == number])] for number, part in enumerate(("train", "test"))}


def _shared(train: Hashes, test: Hashes) -> bool:
    return bool({key.tobytes() for key in train} & {key.tobytes() for key in test})


def _cut_rows(
    opened: LocatedSource,
    schema: Schema,
    parts: dict[str, Places],
    out: Path,
    parties: int,
    each: int | None,
    skew: Skew,
    seed: int,
) -> None:
    """Give every party its share of the records, with all columns."""
    for number in range(parties):
        _lay(out / f"party-{number}", schema)
    for part, places in parts.items():
        for one, roles, rows in places:
            keys = subjects_of(one, roles)[rows]
            whose = _whose(skew if part == "train" else Skew(), one, roles, schema, rows, keys, parties, seed, part)
            if part == "train" and each is not None:
                order = fractions(rows_of(one, roles)[rows], seed, "each")
                whose = _lowest(whose, order, each, parties, opened.name)
            if any(not (whose == number).any() for number in range(parties)):
                lack = f"{opened.name} has too few records or subjects for {parties} parties"
                even = "" if skew.kind == EVEN else ", a partition that is more even"
                raise DataError(f"{lack}: use fewer parties{even} or another seed.")
            files = [out / f"party-{number}" / f"{part}.parquet" for number in range(parties)]
            targets = [(file, rows[whose == number]) for number, file in enumerate(files)]
            _write(one, roles.columns(), targets)


def _whose(
    skew: Skew,
    source: Source,
    roles: Roles,
    schema: Schema,
    rows: npt.NDArray[np.intp],
    keys: Hashes,
    parties: int,
    seed: int,
    part: str,
) -> IntArray:
    """The party of each of ``rows``."""
    label = roles.utility[0]
    classes = schema.classes(label.name)
    codes = np.zeros(len(rows), dtype=np.int64)
    if skew.by_label:
        read = [
            encode_labels(label, batch.column(label.column), classes, source.label, first)
            for first, batch in source.batches([label.column], ROWS)
        ]
        codes = one_class_each(keys, np.concatenate(read)[rows])
    return skew.place(keys, codes, len(classes), parties, seed, f"deal {part}")


def _lowest(whose: IntArray, order: npt.NDArray[np.float64], each: int, parties: int, name: str) -> IntArray:
    """Keep ``each`` rows of every party, those that are first by ``order``: one row more replaces at most one."""
    kept = np.full_like(whose, -1)
    for number in range(parties):
        rows = np.flatnonzero(whose == number)
        if len(rows) < each:
            raise DataError(f"{name}: one of {parties} parties has {len(rows)} records, not {each}: lower --each.")
        kept[rows[np.argsort(order[rows], kind="stable")[:each]]] = number
    return kept


def _cut_columns(
    opened: LocatedSource,
    schema: Schema,
    parts: dict[str, Places],
    out: Path,
    parties: int,
    each: int | None,
    seed: int,
) -> None:
    """Give every party all records and a share of the columns of about equal width; the first gets the labels."""
    widths: dict[str, int] = {}
    for column in schema.columns:
        widths[column.source] = widths.get(column.source, 0) + column.width
    if schema.kind != "table" or len(widths) < parties or schema.is_vectors:
        raise UsageError(f"a vertical split needs a table with at least {parties} columns, which {opened.name} is not.")
    bins: list[list[str]] = [[] for _ in range(parties)]
    for name in sorted(widths, key=lambda one: -widths[one]):
        min(bins, key=lambda names: sum(widths[name] for name in names)).append(name)
    for number, chosen in enumerate(bins):
        columns = tuple(column for column in schema.columns if column.source in chosen)
        own = replace(
            schema,
            shape=(sum(column.width for column in columns),),
            columns=columns,
            x_columns=tuple(column.name for column in columns if not column.cycle),
            left_out={},
            utility=schema.utility if number == 0 else {},
            private=schema.private if number == 0 else {},
            id_column=ALIGNED,
            sums=(),
        )
        folder = out / f"party-{number}"
        _lay(folder, own)
        for part, places in parts.items():
            for one, roles, rows in places:
                labels = [label.column for label in roles.labels] if number == 0 else []
                order = fractions(rows_of(one, roles)[rows], seed, "each")
                kept = rows if part == "test" or each is None else rows[np.argsort(order, kind="stable")[:each]]
                _write(one, [*own.x_columns, *labels], [(folder / f"{part}.parquet", kept)], named=True)


def _lay(folder: Path, schema: Schema) -> None:
    folder.mkdir(parents=True)
    write_json(folder / "schema.json", schema.to_json())


def _choices(number: int, opened: LocatedSource, seed: int | None) -> str:
    """Return a party's ``party.toml``; a seed makes it one for experiments."""
    lines = [f'name = "party-{number}"']
    if opened.entry is not None:
        lines.append(f'like = "{opened.entry.name}"')
    if number == 0:
        lines.append("initiator = true")
    if seed is not None:
        lines += [
            'modes = ["horizontal", "vertical", "filter", "fedavg"]',
            "# Repeatable noise, for experiments only. Without this line, mask and noise follow from ./secret.",
            f"seed = {seed}",
        ]
    return "\n".join(lines) + "\n"


def _write(
    source: Source,
    columns: Sequence[str],
    targets: Sequence[tuple[Path, npt.NDArray[np.intp]]],
    *,
    named: bool = False,
) -> None:
    """Write the wanted rows, in file order, to one file per target; ``named`` adds the record's name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as open_files:
        writers: dict[Path, Any] = {}
        for first, batch in source.batches(list(dict.fromkeys(columns)), ROWS):
            for path, rows in targets:
                inside = np.sort(rows[(rows >= first) & (rows < first + batch.num_rows)]) - first
                table = pa.Table.from_batches([batch]).take(pa.array(inside))
                if named:
                    table = table.append_column(ALIGNED, pa.array([f"{source.stem}:{row}" for row in inside + first]))
                if path not in writers:
                    writers[path] = open_files.enter_context(pq.ParquetWriter(path, table.schema))
                writers[path].write_table(table)
