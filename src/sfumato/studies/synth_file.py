"""``synth-file``: what canaries show between two neighbouring files, through loading, domain, split and fit.

Beside it, as a check of the audit: the same with a cut by permutation, in which one row more or less moves all others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sfumato import load, load_splits
from sfumato.auditing.canaries import canary_scores
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import Dataset
from sfumato.core.errors import unknown
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.studies.base import Measurement
from sfumato.studies.rows import Row, bound_row

EPSILON = 1.0
SEEDS = {"smoke": 2, "cpu": 20, "full": 100}
PEOPLE = 600
_SHARE = 0.9
_EFFORT = Effort(draws=40_000, canaries=40)
_HEADER = ("who", "age", "job", "y")
_DOMAIN = """
columns.age = {kind = "numeric", low = 0, high = 9, integer = true}
columns.job = {kind = "categorical", categories = ["a", "b", "c"]}
columns.y = {kind = "categorical", categories = ["n", "y"]}
"""
_CUTS = {
    "record": "one record more or less",
    "person": "one person more or less, of one to twelve records",
    "record, pairs": "one record more or less, method marginals",
    "person, pairs": "one person more or less, of one to twelve records, method marginals",
    "permutation": "one record more or less, cut by permutation",
}

Line = tuple[int, int, str, str]


def rows(*, scale: str = "cpu", seed: int = 0, say: Callable[[str], None] = lambda _: None, **_: Any) -> list[Row]:
    """The highest lower bound over all seeds; of the cut by permutation, which has to fail, the lowest."""
    if scale not in SEEDS:
        raise unknown("scale", scale, SEEDS)
    found: dict[str, list[float]] = {cut: [] for cut in _CUTS}
    for number in range(SEEDS[scale]):
        for cut, bounds in found.items():
            bounds.append(bound(cut, derive_seed(seed, STUDY.name, number)))
        shown = ", ".join(f"{cut} {bounds[-1]:.2f}" for cut, bounds in found.items())
        say(f"seed {number + 1} of {SEEDS[scale]}: {shown}")
    return [_row(cut, bounds) for cut, bounds in found.items()]


def bound(cut: str, seed: int) -> float:
    """The highest lower bound of ε that canaries show for one table and the same table without a record or person."""
    rng = np.random.default_rng(seed)
    lines = made_up(rng)
    gone = lines[int(rng.integers(len(lines)))]
    others = [line for line in lines if line is not gone and (not cut.startswith("person") or line[0] != gone[0])]
    with TemporaryDirectory() as folder:
        owner, neighbour = (_owner(Path(folder), each, cut, seed) for each in (lines, others))
        method = "marginals" if cut.endswith("pairs") else "tree"
        mechanism = Synth(method=method, epsilon=EPSILON, steps=2, seed=seed).fit(owner)
        return max(score.value for score in canary_scores(mechanism, owner, _EFFORT, seed, neighbour))


def made_up(rng: np.random.Generator) -> list[Line]:
    """Some hundred people with one to twelve rows each, in any order."""
    whose = np.repeat(np.arange(PEOPLE), np.minimum(rng.geometric(0.5, PEOPLE), 12))
    lines = [(int(who), int(rng.integers(10)), "abc"[rng.integers(3)], "ny"[rng.integers(2)]) for who in whose]
    return [lines[place] for place in rng.permutation(len(lines))]


def _owner(folder: Path, lines: Sequence[Line], cut: str, seed: int) -> Dataset:
    """The owner's records of a file with these lines."""
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([_HEADER, *lines])
    (folder / "domain.toml").write_text(_DOMAIN)
    options: dict[str, Any] = {"x": ["age", "job"], "utility": ["y"], "domain": folder / "domain.toml"}
    if cut == "permutation":
        every = load(folder / "people.csv", **options)
        return every.take(np.random.default_rng(seed).permutation(len(every))[: round(_SHARE * len(every))])
    id = "who" if cut.startswith("person") else None
    return load_splits(folder / "people.csv", **options, id=id, seed=seed, shares=(_SHARE,)).owner


def _row(cut: str, bounds: Sequence[float]) -> Row:
    flawed = cut == "permutation"
    which = "lowest" if flawed else "highest"
    name = f"{_CUTS[cut]}, claimed ε = {EPSILON:g}: {which} lower bound of {len(bounds)} runs"
    return bound_row(name, min(bounds) if flawed else max(bounds))


STUDY = Measurement(
    name="synth-file",
    family="synth",
    title="ε from the file",
    about=(
        "The ε that canaries show between two neighbouring files, through loading, domain, split and fit, with the "
        "run's own noise. As a check of the audit, the same with a cut by permutation, in which one row more or less "
        "moves all others: there the bound has to be above the claimed ε."
    ),
    data=("made-up",),
    run=rows,
)
