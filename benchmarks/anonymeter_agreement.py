"""Linkability beside Anonymeter on other people's releases, and what makes the difference where they differ.

Three things differ: how the columns are cut in two, how a number's distance is scaled (its range there, ranks here),
and whether a whole number with few values is a number or a category. Each is turned by itself, on both sides as far as
Anonymeter can be turned.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.environments import environment
from sfumato import audit_release
from sfumato.attacks.coded_rows import in_order, nearest
from sfumato.auditing import CPU
from sfumato.core.coded_columns import CodedColumn, common_ranks
from sfumato.core.intervals import difference_interval
from sfumato.data.column_codes import numbers_in
from sfumato.data.plain_tables import plain_table
from sfumato.data.reconciled_tables import Reconciled, reconcile
from sfumato.studies.peers import run_apart

RUNNER = Path(__file__).parent / "peers" / "anonymeter_runner.py"
RELEASES = ("smote_baseline", "daib_baseline", "sampling_baseline")
SECRET = "ALT 12"
_NEIGHBOURS = (1, 10)
_CUTS = 3
_MOST_SECONDS = 900.0

Doubles = npt.NDArray[np.float64]
Cut = tuple[list[str], list[str]]


def run(small: bool = False) -> dict[str, Any]:
    """On the hepatitis tables in ``SFUMATO_DATA``/foreign/hepatitis (small: one release)."""
    claim = "on the same cut, distances and kinds of columns both find the same"
    folder = Path(os.environ.get("SFUMATO_DATA", "data")) / "foreign" / "hepatitis"
    if not folder.is_dir():
        return {"claim": claim, "holds": None, "skipped": f"{folder} is not there"}
    names = RELEASES[1:2] if small else RELEASES
    files = {"owner": folder / "train.csv", "holdout": folder / "test.csv", **{n: folder / f"{n}.csv" for n in names}}
    tables = {name: reconcile(files[name], files["owner"], files["holdout"]) for name in names}
    first = tables[names[0]]
    columns = [one.name for one in first.columns]
    numeric = _numeric(files["owner"])
    codes = [one.name for one in first.columns if not one.number and one.name in numeric]
    cuts = [(columns[::2], columns[1::2]), *_random_cuts(columns)]
    questions = [
        {"kind": "linkability", "release": name, "k": k, "cut": cut, "categories": kinds}
        for name in names for k in _NEIGHBOURS for cut in cuts for kinds in ([], codes)
    ]  # fmt: skip
    questions += [{"kind": "inference", "release": name, "secret": SECRET, "categories": []} for name in names]
    try:
        theirs = _asked(questions, files)
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        return {"claim": claim, "holds": None, "skipped": str(error)}
    figures: dict[str, Any] = {}
    agree = []
    for name in names:
        for k in _NEIGHBOURS:
            row = figures[f"{name}, {k} nearest of both"] = {}
            for label, used in (("one cut", cuts[:1]), ("three cuts", cuts[1:])):
                for kinds in ("numbers", "categories"):
                    wanted = codes if kinds == "categories" else []
                    of = [
                        found for asked, found in zip(questions, theirs, strict=True)
                        if asked["release"] == name and asked.get("k") == k and asked["cut"] in used
                        and asked["categories"] == wanted
                    ]  # fmt: skip
                    row[f"Anonymeter, {label}, {kinds}"] = _summed(of)
                    for scale in ("range", "ranks"):
                        here = _ours(tables[name], files, name, used, k, wanted, scale)
                        row[f"here, {label}, {kinds}, {scale}"] = here
                same = row[f"here, {label}, numbers, range"], row[f"Anonymeter, {label}, numbers"]
                agree.append(_overlap(*(one["ci"] for one in same)))
    for asked, found in zip(questions, theirs, strict=True):
        if asked["kind"] == "inference":
            name = asked["release"]
            figures[f"{name}, inference of {SECRET}"] = {"Anonymeter": _summed([found]), "here": _inferred(files, name)}
    return {"claim": claim, "holds": all(agree), "figures": figures}


def _numeric(file: Path) -> set[str]:
    """The columns whose texts are all numbers."""
    columns = plain_table(file, str(file)).columns
    return {name for name, values in columns.items() if not np.isnan(numbers_in(values)).any()}


def _random_cuts(columns: Sequence[str]) -> list[Cut]:
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(columns)) for _ in range(_CUTS)]
    half = len(columns) // 2
    return [tuple([columns[at] for at in sorted(part)] for part in (one[:half], one[half:])) for one in orders]  # type: ignore[misc]


def _asked(questions: Sequence[dict[str, Any]], files: dict[str, Path]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        job = {
            "seed": 0, "tables": {key: str(file.resolve()) for key, file in files.items()}, "questions": questions,
            "report": str(work / "report.json"),
        }  # fmt: skip
        (work / "job.json").write_text(json.dumps(job))
        failed = run_apart([str(environment("anonymeter")), str(RUNNER), str(work / "job.json")], work, _MOST_SECONDS)
        if failed is not None:
            raise RuntimeError(f"Anonymeter: {failed}")
        found: list[dict[str, Any]] = json.loads((work / "report.json").read_text())
        return found


def _summed(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over several cuts, with their mean interval: it is wider than that of the mean."""
    mean = {name: round(float(np.mean([one[name] for one in found])), 3) for name in ("members", "held out", "risk")}
    return {**mean, "ci": [round(float(np.mean([one["ci"][end] for one in found])), 3) for end in (0, 1)]}


def _ours(
    tables: Reconciled,
    files: dict[str, Path],
    name: str,
    cuts: Sequence[Cut],
    k: int,
    categories: Sequence[str],
    scale: str,
) -> dict[str, Any]:
    """Excess over held-out people, as a share of what is left to find: (members − held out) / (1 − held out)."""
    columns, (release, owner, holdout) = _coded(tables, files, name, categories, scale)
    place = {one.name: at for at, one in enumerate(columns)}
    found = []
    for part in (owner, holdout):
        joined = []
        for cut in cuts:
            sides = [nearest(part, release, columns, k, [place[one] for one in half])[0] for half in cut]
            joined.append((sides[0][:, :, None] == sides[1][:, None, :]).any(axis=(1, 2)))
        found.append(np.mean(joined, axis=0))
    inside, outside = found
    room = 1.0 - float(outside.mean())
    ends = difference_interval(inside, outside)
    return {
        "members": round(float(inside.mean()), 3), "held out": round(float(outside.mean()), 3),
        "risk": round(max(0.0, float(inside.mean() - outside.mean())) / room, 3),
        "ci": [round(max(0.0, end) / room, 3) for end in ends],
    }  # fmt: skip


def _inferred(files: dict[str, Path], name: str) -> dict[str, Any]:
    """By the nearest row; a value counts within 5 % of the population there and of the value itself in Anonymeter."""
    effort = replace(CPU, threats=("inference",))
    found = audit_release(files[name], owner=files["owner"], holdout=files["holdout"], private=[SECRET], effort=effort)
    nearest = [one for one in found["attacks"] if one["attack"] == "infer-nearest-1" and one["target"] == SECRET]
    of = {one["metric"]: one for one in nearest}
    room = 1.0 - of["rate-held-out"]["value"]
    ends = [round(max(0.0, end) / room, 3) for end in of["excess"]["ci"]]
    rates = {"members": round(of["rate"]["value"], 3), "held out": round(of["rate-held-out"]["value"], 3)}
    return {**rates, "risk": round(max(0.0, of["excess"]["value"]) / room, 3), "ci": ends}


def _coded(
    tables: Reconciled, files: dict[str, Path], name: str, categories: Sequence[str], scale: str
) -> tuple[list[CodedColumn], list[Any]]:
    """Rows with numbers by ranks or by their range; ``categories`` are none, though their texts are numbers."""
    parts = [part.astype(np.float64) for part in (tables.release, tables.owner, tables.holdout)]
    raw = [plain_table(files[one], one).columns for one in (name, "owner", "holdout")]
    columns = list(tables.columns)
    for at, one in enumerate(columns):
        numbers = [numbers_in(part[one.name]) for part in raw]
        if any(np.isnan(values).any() for values in numbers):
            continue
        every = np.concatenate(numbers)
        count = 0
        if one.name in categories:
            known = np.unique(every)
            coded, count = [np.searchsorted(known, values) for values in numbers], len(known)
        elif scale == "ranks":
            coded = common_ranks(numbers)
        else:
            spread = float(every.max() - every.min()) or 1.0
            coded = [(values - every.min()) / spread for values in numbers]
        columns[at] = replace(one, categories=count)
        for part, values in zip(parts, coded, strict=True):
            part[:, at] = values
    return columns, [in_order(parts[0]), *parts[1:]]


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
