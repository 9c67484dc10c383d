"""Several releases of the same records by different makers, audited alike in one folder for one report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.auditing import CPU, Effort
from sfumato.auditing.result import Say
from sfumato.core import compute
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.data.reconciled_tables import reconcile
from sfumato.workflow.compare import claim, same_attacks
from sfumato.workflow.processes import Job, places, side_by_side
from sfumato.workflow.release_audit import audit_release

TABLES = (".csv", ".tsv", ".tab", ".parquet")


def releases_named(given: Sequence[Path], owner: str, holdout: str) -> list[Path]:
    """The releases that were named: files, the tables in a folder, or what a pattern such as ``made/*.csv`` matches.

    The owner's and the held-out records are no releases, though they may lie in the same folder. A folder without
    tables is one release: it may hold pictures.
    """
    known = {Path(owner).resolve(), Path(holdout).resolve()}
    found: list[Path] = []
    for path in given:
        inside = _tables_in(path)
        if inside is None:
            found.append(path)
            continue
        kept = [one for one in inside if one.resolve() not in known]
        if not kept:
            raise DataError(f"{path} names no release: no table is there but the owner's and the held-out records.")
        found += kept
    return list(dict.fromkeys(found))


def _tables_in(path: Path) -> list[Path] | None:
    """The tables that a folder or a pattern stands for; None for what is one release."""
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.suffix.lower() in TABLES) or None
    if path.exists() or not any(sign in str(path) for sign in "*?["):
        return None
    start = Path(path.anchor or ".")
    return sorted(start.glob(str(path.relative_to(path.anchor))))


def audit_releases(
    releases: Sequence[Path],
    owner: Path,
    holdout: Path,
    *,
    out: Path,
    private: Sequence[str] = (),
    id: str | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    say: Say = lambda _: None,
) -> list[dict[str, Any]]:
    """Audit each release below ``out/points``, as many side by side as the machine may take; ``sfumato report`` and
    ``sfumato gate`` read ``out``. Finished audits are not done again, interrupted ones go on.

    Raises:
        UsageError: Two files have the same name, so that a report could not tell them apart.
        DataError: A file cannot be used, or ``out`` holds something else.
    """
    names = [path.stem for path in releases]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"two releases are called '{twice}': give files with different names.")
    missing = next((path for path in (*releases, owner, holdout) if not path.exists()), None)
    if missing is not None:
        raise DataError(f"{missing} does not exist.")
    of = {"owner": str(owner), "holdout": str(holdout), "private": list(private), "id": id, "seed": seed}
    folders = [out / "points" / name for name in names]
    open_ones = [
        (path, folder) for path, folder in zip(releases, folders, strict=True) if not (folder / "scores.json").exists()
    ]
    for path, _ in open_ones:  # before hours of work: a file that cannot be audited, or a column that is not there
        reconcile(path, owner, holdout, private=private, id=id, seed=seed)
    claim(out, {"points": [f"points/{name}" for name in names], "releases": [str(path) for path in releases], **of})
    asked = {"owner": owner, "holdout": holdout, "private": tuple(private), "id": id, "effort": effort, "seed": seed}
    beside = min(max(1, len(open_ones)), places(compute.MOST_JOBS))
    machine = compute.one_of(beside)
    jobs = [
        Job(path.stem, _audited, {"release": path, "folder": folder, "machine": machine, "asked": asked})
        for path, folder in open_ones
    ]
    side_by_side(jobs, beside, say, lambda *_: None)
    results = [_result(name, folder, effort) for name, folder in zip(names, folders, strict=True)]
    same_attacks(results, out)
    return results


def _audited(say: Say, _: Any, *, release: Path, folder: Path, machine: compute.Compute, asked: dict[str, Any]) -> None:
    started = time.perf_counter()
    with compute.using(machine):
        audit_release(release, **asked, out=folder, say=say)
    write_json(folder / "seconds.json", round(time.perf_counter() - started, 1))


def _result(name: str, folder: Path, effort: Effort) -> dict[str, Any]:
    scores = read_json(folder / "scores.json")
    if Effort(**scores["effort"]) != effort:
        raise DataError(f"{folder} was audited with another effort: choose another --out.")
    return {"point": name, "folder": str(folder), **scores}
