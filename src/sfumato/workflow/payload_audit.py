"""The audit of a release of payloads, one for each record, that somebody else made."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.auditing import CPU, Audit, Controls, Effort
from sfumato.auditing.foreign_payloads import HandedOver
from sfumato.auditing.foreign_payloads import audit_payloads as attack_payloads
from sfumato.auditing.foreign_pipeline import Rerun
from sfumato.auditing.result import Say
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder
from sfumato.data.column_roles import Names
from sfumato.data.domain import DomainName
from sfumato.data.given_tables import Given, open_given
from sfumato.data.loading import read, schema_of
from sfumato.data.pairing import Paired, paired
from sfumato.data.payload_columns import PayloadTable, centred, read_payloads
from sfumato.data.readers.locate import LocatedSource
from sfumato.data.splits import NAMES, part_rows
from sfumato.workflow.audited_folder import store
from sfumato.workflow.pipeline_command import SECONDS, PipelineCommand

Pipeline = str | Callable[[Any], Any]
"""A command with ``{in}`` and ``{out}``, or a function from records, in the form they were given in, to payloads."""

SHARES = (0.2, 0.5, 0.3)
"""Owner, attacker, victims. The attacker has half of the pairs, as after a leak; from the owner's a receiver learns."""
_MOST_RELEASES = 2


def audit_payloads(
    release: Given | Sequence[Given],
    records: Given | Dataset,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
    pipeline: Pipeline | None = None,
    pipeline_seconds: float = SECONDS,
    public: Given | None = None,
    shares: Sequence[float] = SHARES,
    effort: Effort = CPU,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Ask what payloads that somebody else made give away about the records they were made of.

    Args:
        release: Payloads, one for each record: a path, an array (N, …), arrays by name or a DataFrame; two of them in
            a list are two releases of the same records.
        records: The records: likewise, or a ``Dataset``.
        x, utility, private, id, domain: As for ``load``, about the records. ``id`` is looked for in the release, too.
        pipeline: What made the release: a command, or a function that gets ``records`` as they were given. Without it
            the attacker has the pairs of his own records and nothing else.
        pipeline_seconds: Time limit of one run of the command.
        public: The records once more, in an embedding that anybody can compute, lined up as the release is: the
            attacker aligns payloads with it and looks for the nearest candidate there.
        shares: Fractions of the people for owner, attacker and victims.
        effort: How hard the attackers try.
        seed: Repeatable randomness of parts, attackers and intervals.
        out: A run folder for scores, gallery and card; None to keep nothing.
        say: Called with a line of progress before each step.

    Returns:
        The scores, as ``sfumato audit RUN --json`` prints them.

    Raises:
        UsageError: The pipeline cannot be run, or a name is unknown.
        DataError: Records and payloads cannot be lined up, or one of them cannot be read.
    """
    releases = list(release) if isinstance(release, (list, tuple)) else [release]
    if not 1 <= len(releases) <= _MOST_RELEASES:
        raise UsageError(f"one release or two of the same records can be audited, got {len(releases)}.")
    folder = None if out is None else Path(out)
    if folder is not None:
        RunFolder.refuse_used(folder)
    command = PipelineCommand.parse(pipeline, pipeline_seconds) if isinstance(pipeline, str) else None
    data = _records(records, x, utility, private, id, domain)
    name = _name(releases[0], "release")
    tables = [_table(one, data, id, _name(one, f"release {number}")) for number, one in enumerate(releases, 1)]
    first, second = _lined_up(data, tables, [_name(one, "release") for one in releases])
    view = None if public is None else _public_view(public, data, id, first)
    parts = dict(zip(NAMES, part_rows(first.records, seed=seed, shares=shares), strict=True))
    if first.missing:
        say(f"{first.missing:,} records have no payload and are left out")
    with _rerun(pipeline, command, records, releases[0], data, first, tables[0], id) as rerun:
        handed = HandedOver(
            name=name,
            data=first.records,
            payload=first.payload,
            parts=parts,
            leave=first.leave,
            alike=first.in_record_units,
            rerun=rerun,
            second=None if second is None else second.payload,
            public=view,
        )
        found = attack_payloads(handed, effort=effort, seed=seed, controls=Controls(), say=say)
    if folder is None:
        return {"run": None, **found.to_json(), "effort": asdict(effort)}
    asked = {"x": x, "utility": utility, "private": private, "id": id, "shares": list(shares)}
    return _kept(folder, found, releases, records, asked, pipeline, seed, effort, first, public)


def _kept(
    folder: Path,
    found: Audit,
    releases: Sequence[Given],
    records: Given,
    asked: dict[str, Any],
    pipeline: Pipeline | None,
    seed: int,
    effort: Effort,
    pairs: Paired,
    public: Given | None,
) -> dict[str, Any]:
    """The run folder: what was asked, and what was found. The command that was run may hold a secret: it stays out."""
    run = {"command": "audit", "mechanism": found.mechanism, "seed": seed, "version": sfumato.__version__}
    told = {
        "release": [_name(one, "release", whole=True) for one in releases],
        "pipeline": "run" if pipeline is not None else "not given",
        "public": "not given" if public is None else _name(public, "public", whole=True),
    }
    data = {"source": _name(records, "records", whole=True), **asked}
    made = RunFolder.create(folder, {"run": {**run, **told}, "data": data, "params": {}})
    try:
        made.write_json("schema.json", pairs.records.schema.to_json())
        scores = store(made, found, effort)
        made.finish()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # it was empty before
        raise
    return scores


def _records(
    records: Given | Dataset, x: Names, utility: Names, private: Names, id: str | None, domain: DomainName
) -> Dataset:
    if isinstance(records, Dataset):
        if any(one is not None for one in (x, utility, private, id, domain)):
            raise UsageError("x, utility, private, id and domain are part of a Dataset: leave them out.")
        return records
    opened = open_given(records, "records")
    schema = schema_of(opened, x=x, utility=utility, private=private, id=id, domain=domain)
    data = read(opened, opened.chosen("all"), schema, required=True)
    if not data.complete.all():
        raise DataError(
            f"{data.name}: record {int(np.argmin(data.complete))} has no number in {', '.join(schema.numbers)}: leave "
            "such rows out of the records and of the release, or name the label as classes ('label:class')."
        )
    return data


def _table(release: Given, data: Dataset, id: str | None, name: str) -> PayloadTable:
    labels = [label for label in data.utility if data.schema.sources.get(label, label) == label]
    return read_payloads(open_given(release, name), data.schema, id=id, labels=labels)


def _lined_up(data: Dataset, tables: Sequence[PayloadTable], names: Sequence[str]) -> tuple[Paired, Paired | None]:
    """Each release with the records, and two of them with the same records."""
    first = paired(data, tables[0], names[0])
    if len(tables) == 1:
        return first, None
    second = paired(data, tables[1], names[1])
    if not np.array_equal(first.records.ids, second.records.ids):
        raise DataError(f"{names[0]} and {names[1]} hold payloads of different records: give two releases of the same.")
    return first, second


def _public_view(public: Given, data: Dataset, id: str | None, pairs: Paired) -> FloatArray:
    """The public embedding of the records that have a payload, (N, E)."""
    name = _name(public, "public")
    table = read_payloads(open_given(public, name), data.schema, id=id, labels=())
    seen = paired(data, table, name)
    if seen.missing:
        raise DataError(f"{name} lacks {seen.missing} records of {data.name}: give a vector for each of them.")
    flat = seen.raw.reshape(len(seen.raw), -1)
    if not pairs.missing:
        return flat
    place = {one: row for row, one in enumerate(data.ids.tolist())}  # some have no payload: then ids name each once
    return flat[[place[one] for one in pairs.records.ids.tolist()]]


@contextmanager
def _rerun(
    pipeline: Pipeline | None,
    command: PipelineCommand | None,
    records: Given | Dataset,
    release: Given,
    data: Dataset,
    pairs: Paired,
    table: PayloadTable,
    id: str | None,
) -> Iterator[Rerun | None]:
    """A way to run the pipeline on all records once more, for as long as the audit takes."""
    if pipeline is None:
        yield None
        return

    def read_again(answered: LocatedSource) -> PayloadTable:
        return read_payloads(answered, data.schema, id=id, labels=tuple(table.labels), form=table.columns)

    if command is None:
        assert callable(pipeline)
        given = records.x if isinstance(records, Dataset) else records
        called = pipeline

        def by_call() -> FloatArray:
            answered = open_given(called(given), "what the pipeline returned")
            return _again(read_again(answered), data, pairs, table)

        yield by_call
        return
    source, shape = _path(records, "records"), _path(release, "release")
    with tempfile.TemporaryDirectory(prefix="sfumato-") as place:
        asked = Path(place) / f"in{source.suffix if source.is_file() else ''}"
        (shutil.copyfile if source.is_file() else shutil.copytree)(source, asked)
        target = Path(place) / f"out{shape.suffix if shape.is_file() else ''}"

        def by_command() -> FloatArray:
            command.run(asked, target)
            try:
                answered = replace(open_given(target, "out"), name="the pipeline's output")
                return _again(read_again(answered), data, pairs, table)
            finally:
                (shutil.rmtree if target.is_dir() else Path.unlink)(target)

        yield by_command


def _again(found: PayloadTable, data: Dataset, pairs: Paired, table: PayloadTable) -> FloatArray:
    """What a run of the pipeline made, in the order of the records and in the numbers of the release."""
    what = "what the pipeline made"
    if found.payload.shape[1:] != table.payload.shape[1:]:
        raise DataError(
            f"{what} has payloads of shape {found.payload.shape[1:]}, the release of {table.payload.shape[1:]}: give "
            "the command that made the release."
        )
    if len(found.payload) != len(table.payload):
        raise DataError(
            f"{what} has {len(found.payload)} payloads, the release {len(table.payload)}: it must give one for each "
            "record."
        )
    again = paired(data, found, what)
    if again.payload.shape != pairs.payload.shape or again.in_record_units != pairs.in_record_units:
        raise DataError(f"{what} has another form than the release: give the command that made it.")
    return again.payload if pairs.in_record_units else centred(again.raw, pairs.raw)


def _path(given: Given, what: str) -> Path:
    if isinstance(given, (str, PathLike)) and Path(given).exists():
        return Path(given)
    raise UsageError(f"--pipeline works on files, and the {what} are none: give a file or folder, or a function.")


def _name(given: Given, otherwise: str, *, whole: bool = False) -> str:
    if isinstance(given, Dataset):
        return given.name
    if not isinstance(given, (str, PathLike)):
        return otherwise
    return str(given) if whole else Path(given).stem
