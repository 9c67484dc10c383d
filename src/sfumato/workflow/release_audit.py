"""The audit of a release whose rows belong to nobody in particular, from files or tables to a run folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import sfumato
from sfumato.auditing import CPU, Audit, Controls, Effort
from sfumato.auditing.coded_parts import coded_release
from sfumato.auditing.result import Say
from sfumato.auditing.rows_audit import Attacked, audit_rows, unguarded
from sfumato.core.dataset import Dataset, IntArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import derive_seed
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.core.schema import Column, Schema
from sfumato.core.score import Score
from sfumato.data.plain_tables import Given
from sfumato.data.pooled_records import PooledRecords
from sfumato.data.reconciled_tables import Reconciled, reconcile
from sfumato.workflow.audited_folder import store
from sfumato.workflow.payload_audit import Pipeline, audit_payloads
from sfumato.workflow.pipeline_command import SECONDS, PipelineCommand
from sfumato.workflow.release_maker import ReleaseMaker

_KEPT, _SHADOWS = "checkpoint/attacks", "checkpoint/shadows"
_QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter", "(missing)")


def audit_release(
    release: Given,
    *,
    owner: Given | None = None,
    holdout: Given | None = None,
    records: Given | Dataset | None = None,
    utility: Sequence[str] = (),
    private: Sequence[str] = (),
    id: str | None = None,
    pipeline: Pipeline | None = None,
    public: Given | None = None,
    pipeline_seconds: float = SECONDS,
    name: str | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    controls: Controls | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Ask of a release that somebody else made what it tells about the owner's people.

    Args:
        release: Rows that belong to nobody in particular, or with ``records`` one payload for each record: a path, a
            DataFrame, columns by name, or an array; of payloads also a list of two releases.
        owner: The records it was made of.
        holdout: Records of people of the same kind that were not used. A random part of what was there before the
            release was made; half of them serve as the attacker's own knowledge.
        records: In place of owner and holdout: the records that the payloads were made of, one by one.
        utility: Labels of ``records`` that others may use.
        private: The columns that nobody may infer; without any, all columns are asked for (of payloads, none).
        id: The column that names people in owner and holdout, or in records and release: all rows of one person count
            once.
        pipeline: What made the release: a command with ``{in}`` and ``{out}``, or a function from records, in the form
            of the owner's, to a release. With it membership is also tested by releases of other people, made by it.
        pipeline_seconds: Time limit of one run of the command.
        public: With ``records``: these in an embedding that anybody can compute, see ``audit_payloads``.
        name: What a report calls the release.
        effort: How hard the attackers try.
        seed: Repeatable randomness.
        out: A run folder; None to keep nothing. An interrupted audit goes on there.
        controls: Undefended figures, shared by audits of the same records.
        say: Called with a line of progress before each attack.

    Returns:
        The scores, as ``sfumato audit RUN --json`` prints them.

    Raises:
        UsageError: Neither ``records`` nor both of ``owner`` and ``holdout`` are given.
        DataError: A file cannot be read or used; the message says which and why.
    """
    if records is not None:
        if owner is not None or holdout is not None or name is not None:
            raise UsageError("owner, holdout and name have no meaning with records: leave them out.")
        return audit_payloads(
            release,
            records,
            utility=utility or None,
            private=private or None,
            id=id,
            pipeline=pipeline,
            public=public,
            pipeline_seconds=pipeline_seconds,
            effort=effort,
            seed=seed,
            out=out,
            say=say,
        )
    if owner is None or holdout is None or utility or public is not None:
        raise UsageError(
            "give records= for a release of one payload a record, or owner= and holdout= alone for rows that belong to "
            "nobody in particular."
        )
    called = name or (Path(release).stem if isinstance(release, (str, PathLike)) else "release")
    data = Path(owner).stem if isinstance(owner, (str, PathLike)) else "the owner's records"
    folder = None if out is None else Path(out)
    if folder is not None and (folder / "scores.json").exists():
        raise DataError(f"{folder} holds a finished audit: choose another --out.")
    if folder is not None and not (folder / "config.toml").exists():
        RunFolder.refuse_used(folder)
    command = PipelineCommand.parse(pipeline, pipeline_seconds) if isinstance(pipeline, str) else pipeline
    tables = reconcile(release, owner, holdout, private=private, id=id, seed=seed)
    for note in tables.notes:
        say(note)
    asked: dict[str, Any] = {
        "effort": effort,
        "seed": seed,
        "data": data,
        "skipped": tables.skipped,
        "notes": tables.notes,
        "controls": controls,
        "say": say,
    }
    coded, splits, rows = _parts(tables, called, seed)
    if command is not None:
        asked["make"] = ReleaseMaker(
            command, _pool(owner, holdout, tables, command), tables, rows, _suffix(release, owner), seed,
            effort.shadow_releases, called, say, None if folder is None else folder / _SHADOWS,
        )  # fmt: skip
    if folder is None:
        return {"run": None, **audit_rows(coded, splits, tables.columns, **asked).to_json(), "effort": asdict(effort)}
    config = _config(called, release, owner, holdout, private, id, effort, seed, pipeline is not None)
    run = RunFolder.create(folder, config, resume=True)
    run.write_json("schema.json", _schema(tables).to_json())

    def remembered(attack: str) -> Attacked | None:
        file = folder / _KEPT / f"{attack}.json"
        if not file.is_file():
            return None
        stored = read_json(file)
        each = {about: np.array(values, dtype=np.float64) for about, values in stored["of_each"]}  # None becomes NaN
        return Attacked([_restored(value) for value in stored["scores"]], each)

    def remember(attack: str, found: Attacked) -> None:
        each = [
            (about, [None if np.isnan(value) else float(value) for value in values])
            for about, values in found.of_each.items()
        ]
        kept = {"scores": [_whole(score) for score in found.scores], "of_each": each}
        run.write_json(f"{_KEPT}/{attack}.json", kept)

    try:
        found = audit_rows(coded, splits, tables.columns, **asked, remembered=remembered, remember=remember)
    except (UsageError, DataError):
        if not (folder / "checkpoint").exists():
            shutil.rmtree(folder)  # nothing was found yet that a right command could go on with
        raise
    return _stored(run, found, effort)


def audit_release_files(release: Path, owner: str, holdout: str, **options: Any) -> dict[str, Any]:
    """``sfumato audit --release``: as ``audit_release``, for paths."""
    return audit_release(release, owner=Path(owner), holdout=Path(holdout), **options)


def _stored(run: RunFolder, found: Audit, effort: Effort) -> dict[str, Any]:
    scores = store(run, found, effort)
    for kept in (_KEPT, _SHADOWS):
        shutil.rmtree(run.path / kept, ignore_errors=True)
    run.finish()
    return scores


def _config(
    name: str,
    release: Given,
    owner: Given,
    holdout: Given,
    private: Sequence[str],
    id: str | None,
    effort: Effort,
    seed: int,
    piped: bool,
) -> dict[str, Any]:
    told = {"release": [_path(release)], "owner": _path(owner), "holdout": _path(holdout)}
    run = {"command": "audit", "mechanism": name, "seed": seed, "version": sfumato.__version__, **told}
    run |= {"pipeline": "run"} if piped else {}
    return {
        "run": run,
        "data": {"source": _path(owner), "private": list(private), "id": id},
        "params": {},
        "effort": asdict(effort),
    }


def _path(given: Given) -> str:
    return str(given) if isinstance(given, (str, PathLike)) else "given in memory"


def _schema(tables: Reconciled) -> Schema:
    """What a report shows of the columns: those that are compared, however each release writes them."""
    columns = [one for one in tables.columns if not one.companion]
    shown = tuple(Column(one.name, "numeric" if one.number else "categorical") for one in columns)
    return Schema("table", (len(columns),), columns=shown)


def _pool(
    owner: Given, holdout: Given, tables: Reconciled, pipeline: PipelineCommand | Callable[[Any], Any]
) -> PooledRecords:
    pool = PooledRecords.of(owner, holdout)
    if isinstance(pipeline, PipelineCommand) and not pool.in_file:
        raise UsageError("a command works on files, and the records are none: give files, or a function.")
    if len(pool) != len(tables.owner) + len(tables.holdout):
        raise DataError(f"{_path(owner)} or {_path(holdout)} has changed while it was read: try again.")
    return pool


def _suffix(release: Given, owner: Given) -> str:
    """Of the files that the maker writes: that of the release, else that of the owner's file."""
    return next((Path(one).suffix for one in (release, owner) if isinstance(one, (str, PathLike))), "")


def _parts(tables: Reconciled, name: str, seed: int) -> tuple[Any, Splits, IntArray]:
    """Half of the held-out people are the attacker's own, the others strangers; and where the rows of the owner, the
    strangers and the attacker stand, the owner's file before the held-out one."""
    classes, *codes = _grouped_by(tables)
    schema = Schema("table", (len(tables.columns),), private=classes)
    sides = (tables.owner, tables.holdout)
    named = ("owner", "held out")
    people = tables.people or tuple(_row_names(len(rows), part) for rows, part in zip(sides, named, strict=True))
    owner, holdout = (
        Dataset(rows, schema, private=labels, ids=np.asarray(who).astype(np.str_), name=part)
        for rows, labels, who, part in zip(sides, codes, people, named, strict=True)
    )
    _, first, person = np.unique(holdout.ids, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[person]  # people by their first row
    order = np.random.default_rng(derive_seed(seed, "held out")).permutation(len(first))
    mine = np.isin(place, order[: len(order) // 2])
    own, strange = np.flatnonzero(mine), np.flatnonzero(~mine)
    rows = np.concatenate([np.arange(len(owner)), len(owner) + strange, len(owner) + own])
    coded = coded_release(name, tables.release, unguarded(name))
    return coded, Splits(owner, holdout.take(own), holdout.take(strange)), rows


def _row_names(count: int, part: str) -> npt.NDArray[Any]:
    """By which the owner finds a record: its place in the file, the first after the header is 1."""
    return np.array([f"{part}, row {row}" for row in range(1, count + 1)])


def _grouped_by(tables: Reconciled) -> tuple[dict[str, tuple[str, ...]], dict[str, IntArray], dict[str, IntArray]]:
    """By private column the names of its groups, and the group of each of the owner's and of the held-out people: the
    values of a category, quarters of a number."""
    names: dict[str, tuple[str, ...]] = {}
    of: tuple[dict[str, IntArray], dict[str, IntArray]] = ({}, {})
    parts = (tables.owner, tables.holdout)
    missing = {one.name: place for place, one in enumerate(tables.columns) if one.companion}
    for place, column in enumerate(tables.columns):
        if not column.private or column.companion:
            continue
        names[column.name] = _QUARTERS if column.number else column.values
        ends = np.quantile(np.concatenate([part[:, place] for part in parts]), (0.25, 0.5, 0.75))
        for groups, part in zip(of, parts, strict=True):
            if not column.number:
                groups[column.name] = part[:, place].astype(np.int64)
                continue
            quarters = np.searchsorted(ends, part[:, place]).astype(np.int64)
            if column.name in missing:
                quarters[part[:, missing[column.name]] == 1] = len(_QUARTERS) - 1
            groups[column.name] = quarters
    return names, *of


def _whole(score: Score) -> dict[str, Any]:
    """With the values of each record, which the JSON of a score leaves out."""
    each = None if score.each is None else score.each.tolist()
    return {"score": score.to_json(), "limits": list(score.limits), "each": each}


def _restored(value: dict[str, Any]) -> Score:
    each = None if value["each"] is None else np.array(value["each"])
    low, high = value["limits"]
    return replace(Score.from_json(value["score"]), limits=(low, high), each=each)
