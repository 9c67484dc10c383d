"""A release of Parquet of any size by the workers of a cluster: the rows of a release on one machine, in its order."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.guarantee import ONE_ROW, SEVERAL_ROWS, Guarantee
from sfumato.core.run_folder import read_json, write_json
from sfumato.data.readers.locate import open_data
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import ReleasesWhole
from sfumato.scale.ray_cluster import RayCluster, own_error, surroundings
from sfumato.scale.release_parts import PartReleaser, RowRange, facts_of, parts_of
from sfumato.workflow.release_folder import close_release
from sfumato.workflow.releasing import RELEASED, ReleaseTerms, WholeFile, charge, charged, terms_of
from sfumato.workflow.repeated_records import Warn
from sfumato.workflow.secret_marks import keep_mark
from sfumato.workflow.warrant import NO_POLICY, Warrant

_PLAN = "plan.json"


def release_over(
    cluster: RayCluster,
    path: Path,
    source: str,
    out: Path,
    *,
    labels: bool = False,
    unprotected: bool = False,
    ledger: Path | None = None,
    warrant: Warrant = NO_POLICY,
    say: Callable[[int], None] = lambda _: None,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Release ``source`` through the mechanism in ``path`` as ``out/release.parquet`` (a folder of files whose names
    sort in the order of the rows) and ``out/release.json``.

    Options, labels, promise, warrant and papers are those of ``workflow.release_run``; ``source`` is Parquet: a file, a
    folder, a named set or an address. Workers write finished parts into a hidden folder beside ``out``; the same
    command goes on where it was stopped, and ``out`` appears when all is done. This process holds 8 or 16 bytes a
    record.

    Raises:
        UsageError: The mechanism must know all records before the first one leaves, or ties a secret to where a record
            stands in the file.
    """
    terms = terms_of(path, labels=labels, unprotected=unprotected)
    _releases_apart(terms.mechanism)
    evidence = terms.cleared(path, warrant)
    if out.exists():
        raise DataError(f"{out} already exists: choose another folder.")
    opened = open_data(source)
    parts = parts_of(opened)
    if not parts:
        raise DataError(f"{source} holds no records.")
    staging = out.absolute().with_name(f".{out.name}.parts")
    plan = {
        "parts": [asdict(part) for part in parts],
        "run": hashlib.sha256((path / "mechanism.json").read_bytes() + _weights(path)).hexdigest(),
        "labels": terms.labels,
    }
    try:
        _begin(staging, plan)
        done = {part.number for part in parts if (staging / f"{part.name}.json").exists()}
        rows = sum(part.last - part.first for part in parts if part.number in done)
        say(rows)
        entry = None if opened.entry is None else opened.entry.name
        arguments = (str(path.absolute()), str(staging), entry, labels, unprotected, surroundings())
        for part in _carried_out([part for part in parts if part.number not in done], arguments, cluster):
            rows += part.last - part.first
            say(rows)
        kept, facts = _facts(terms, staging, parts, warn)
        whole = _gathered(staging, parts)
        account = charged(kept, source, out, ledger)
        record = close_release(whole, facts, terms.mechanism, kept, evidence, warrant, account)
        charge(kept, source, out, ledger, warn)
        whole.replace(out)
        shutil.rmtree(staging)
    except OSError as error:
        raise DataError(f"cannot write {out} ({error.strerror or error}): choose another --out.") from None
    keep_mark(path, terms.mark)
    return {"release": str(out), **record}


def _releases_apart(mechanism: Mechanism) -> None:
    """Raise unless a record's release is the same whoever else is in the file."""
    if isinstance(mechanism, ReleasesWhole) or mechanism.traits.smallest_batch > 1:
        raise UsageError(
            f"{mechanism.name} hides records among one another and must know all of them before the first one leaves: "
            "release them on one machine, without --engine ray."
        )
    if type(mechanism)._release_from is not Mechanism._release_from:
        raise UsageError(
            f"{mechanism.name} ties its noise to each record and to how often the file had it before, which workers do "
            "not know of one another: release them on one machine, without --engine ray."
        )


def _weights(path: Path) -> bytes:
    return b"".join(hashlib.sha256(file.read_bytes()).digest() for file in sorted(path.rglob("*.safetensors")))


def _begin(staging: Path, plan: dict[str, Any]) -> None:
    """Make the folder for parts, or take up what an interrupted release of the same left there."""
    staging.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (staging / _PLAN).exists():
        write_json(staging / _PLAN, plan)
    elif read_json(staging / _PLAN) != plan:
        raise DataError(f"{staging} holds parts of another release: remove it, or choose another --out.")
    for left in staging.glob(".*.part*"):  # half a file, from a worker that was killed while it wrote
        left.unlink(missing_ok=True)


def _carried_out(parts: list[RowRange], arguments: tuple[Any, ...], cluster: RayCluster) -> Any:
    """Release these parts, and give each back when it is done, in any order; lost workers' parts are done again."""
    if not parts:
        return
    import logging

    import ray.data
    from ray.exceptions import RayError

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    by_number = {part.number: part for part in parts}
    wanted = ray.data.from_items([asdict(part) for part in parts], override_num_blocks=len(parts))
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=min(cluster.workers, len(parts)))
    done = wanted.map_batches(
        PartReleaser, fn_constructor_args=arguments, batch_size=1, batch_format="numpy", compute=pool, num_cpus=1
    )
    try:
        for row in done.iter_rows():
            if row["code"]:
                raise _ours(row["code"], row["said"])
            yield by_number[row["number"]]
    except RayError as error:
        raise own_error(error) from None


def _ours(code: int, said: str) -> SfumatoError:
    kinds = {kind.exit_code: kind for kind in (UsageError, DataError)}
    return kinds.get(code, DataError)(said)


def _facts(terms: ReleaseTerms, staging: Path, parts: list[RowRange], warn: Warn) -> tuple[Guarantee, dict[str, Any]]:
    """What all parts say together, as if they had been one."""
    seen, digest, rows = WholeFile(terms.promised), hashlib.sha256(), 0
    people: list[npt.NDArray[np.uint64]] = []
    shape: tuple[int, ...] = ()
    for facts, words in facts_of(staging, parts):
        seen.repeated.add_words(words[:, 0].copy())
        digest.update(np.ascontiguousarray(words[:, 1:5]).data)
        people += [words[:, 5].copy()] if facts["width"] > 5 else []
        seen.broken |= facts["broken"]
        rows, shape = rows + facts["rows"], tuple(facts["shape"])
    if people and len(np.unique(np.concatenate(people))) < rows:
        seen.broken |= {ONE_ROW.name: SEVERAL_ROWS}
    if rows != (wanted := sum(part.last - part.first for part in parts)):
        raise DataError(f"{staging} has {rows:,} rows for {wanted:,} records: remove it and release again.")
    kept = terms.kept(seen, warn)
    return kept, terms.facts(kept, rows, shape, digest.hexdigest())


def _gathered(staging: Path, parts: list[RowRange]) -> Path:
    """A folder with the released files alone, to become the release in one move."""
    whole = staging / "out"
    shutil.rmtree(whole, ignore_errors=True)
    (whole / RELEASED).mkdir(parents=True)
    for part in parts:
        (whole / RELEASED / f"{part.name}.parquet").hardlink_to(staging / f"{part.name}.parquet")
    return whole
