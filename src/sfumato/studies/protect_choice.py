"""What a search is worth: the optimism of its figures, its winner beside a full grid, and a fresh audit of a winner.

All small: a few hundred digits and weak attackers, because every figure takes a whole search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing import SMOKE, Effort, audit
from sfumato.core import compute
from sfumato.core.intervals import mean_interval
from sfumato.core.policy import Policy, policy_of
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms import load_mechanism
from sfumato.studies.base import Measurement
from sfumato.studies.rows import Row, plain_row
from sfumato.workflow import resolve
from sfumato.workflow.fitting import splits_of
from sfumato.workflow.protect.attempts import Trying, attempt
from sfumato.workflow.protect.candidate_search import Attempted, CandidateSearch, ranked
from sfumato.workflow.protect.candidate_ways import Candidate, Way, ways_for
from sfumato.workflow.protect.goal import Goal, goal_of
from sfumato.workflow.protect.judgement import judged, moved_to_judgement
from sfumato.workflow.protect.margins import standing
from sfumato.workflow.protect.outcome import counted
from sfumato.workflow.protect.protecting import SearchTerms, protect, surveyed
from sfumato.workflow.protect.study_journal import StudyJournal
from sfumato.workflow.protect.time_limit import TimeLimit

Say = Callable[[str], None]
WEAK = replace(SMOKE, attack_epochs=1, attack_steps=20, inverted=8, inversion_steps=10, task_steps=120, averages=())
"""For many small searches, which ask how figures of a choice differ from figures of others, not how much leaks."""
_LIMIT = 600
_TRIED = 8
_BIAS_RUNS = {"smoke": 2, "cpu": 20, "full": 20}
_GRID = {"smoke": 2, "cpu": 3, "full": 4}
_ANOTHER_SEED = 1_000


@dataclass(frozen=True)
class _Small:
    """A goal on a few digits, and the ways that are searched."""

    goal: Goal
    ways: tuple[Way, ...]


def _small(source: str, policy: Policy, leaves: str, seed: int, limit: int | None, mechanism: str) -> _Small:
    data = {"source": source, "utility": ["odd"], "private": ["ge5"], "limit": limit or _LIMIT}
    goal = goal_of(policy, data, leaves, seed=seed)
    ways, _ = ways_for(goal, surveyed(goal).splits.owner)
    return _Small(goal, tuple(way for way in ways if way.mechanism == mechanism))


def _searched(small: _Small, out: Path, most: int, effort: Effort, say: Say) -> list[Attempted]:
    journal = StudyJournal(_folder(out) / "search.journal", small.ways, small.goal.seed)
    limit, watch = TimeLimit(None), lambda _: None
    return CandidateSearch(small.goal, out, journal, limit, effort, effort, most, 1, say, watch).run()


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _judged(best: Attempted, small: _Small, out: Path, effort: Effort, say: Say) -> Mapping[str, Any]:
    """The scores of the chosen one on people whom the search never saw, by the threats that are limited."""
    winner = moved_to_judgement(best.folder, out / "winner")
    return judged(winner, replace(effort, threats=small.goal.attacked), say)


def bias(*, data: str, scale: str, limit: int | None, seed: int, out: Path, say: Say) -> list[Row]:
    """Searches over seeds of everything: what the chosen one got in the search, less what it gets in the judgement."""
    policy = policy_of(["reconstruction=100%"], ["accuracy=0.5"])
    useful, hidden = [], []
    for run in range(_BIAS_RUNS.get(scale, 20)):
        kept = out / f"run-{run:02d}" / "bias.json"
        if not kept.is_file():
            small = _small(data, policy, "records", seed + run, limit, "noisy")
            attempted = _searched(small, kept.parent, _TRIED, WEAK, lambda _: None)
            best = max((one for one in attempted if one.standing), key=lambda one: one.standing.utility)  # type: ignore[union-attr]
            final = standing(_judged(best, small, kept.parent, WEAK, lambda _: None), small.goal.asked)
            assert best.standing is not None
            write_json(
                kept,
                {"useful": [best.standing.utility, final.utility], "hidden": [best.standing.excess, final.excess]},
            )
        found = read_json(kept)
        useful.append(found["useful"][0] - found["useful"][1])
        hidden.append(found["hidden"][1] - found["hidden"][0])
        say(f"run {run + 1}: utility {found['useful'][0]:.3f} in the search, {found['useful'][1]:.3f} in the judgement")
    return [
        _mean_row("utility: search less judgement", "accuracy", useful),
        _mean_row("leakage: judgement less search", "leakage", hidden),
    ]


def _mean_row(name: str, metric: str, values: Sequence[float]) -> Row:
    found = np.asarray(values, dtype=np.float64)
    return Row(name, metric, "lower", None, float(found.mean()), mean_interval(found), n=len(found))


def grid(*, data: str, scale: str, limit: int | None, seed: int, out: Path, say: Say) -> list[Row]:
    """A quarter of the fits of a grid over the same settings; both choices are judged on the same people."""
    policy = policy_of(["attribute=60%", "reconstruction=40%"], ["accuracy=0.6"])
    small = _small(data, policy, "features", seed, limit, "ars")
    (way,) = small.ways
    settings = way.grid(_GRID.get(scale, 3))
    attempted = _searched(small, out / "search", max(2, len(settings) // 4), SMOKE, say)
    every = [_tried(small, Candidate(way, one), number, out / "grid", say) for number, one in enumerate(settings)]
    rows = []
    for name, tried in (("search", attempted), ("grid", every)):
        best = ranked(tried)[0]
        placed = standing(_judged(best, small, out / f"judged-{name}", SMOKE, lambda _: None), small.goal.asked)
        say(f"{name}: {best.candidate}, utility {placed.utility:.3f}")
        cost = counted(tried)
        rows += [
            plain_row(f"{name}: utility of the winner", "accuracy", "higher", placed.utility),
            plain_row(f"{name}: largest excess over a limit", "points", "lower", placed.excess),
            plain_row(f"{name}: fits", "fits", "lower", float(cost["fits"])),
            plain_row(f"{name}: steps of attacks", "steps", "lower", float(cost["attack_steps"])),
        ]
    return rows


def _tried(small: _Small, candidate: Candidate, number: int, out: Path, say: Say) -> Attempted:
    folder = out / "candidates" / f"{number:03d}"
    data = {"shares": None, **small.goal.data, "held_out": "search"}
    order = Trying(
        folder,
        resolve(candidate.way.mechanism, data, candidate.params, seed=small.goal.seed),
        small.goal.asked,
        replace(SMOKE, threats=small.goal.attacked, averages=()),
        _folder(out) / "controls",
        compute.one_of(1),
        title=f"grid {number}, {candidate}",
    )
    return Attempted(number, candidate, folder, attempt(say, lambda *_: None, order=order))


def fresh(
    *,
    data: str,
    scale: str,  # noqa: ARG001
    limit: int | None,
    seed: int,
    out: Path,
    say: Say,
) -> list[Row]:
    """A gated release, and its figures by an audit with another seed: attackers, order and intervals are drawn anew."""
    labels = {"digits": (["odd"], ["ge5"]), "adult": (["income"], ["sex"])}[data]
    policy = policy_of(["attribute=85%", "reconstruction=40%"], ["accuracy=0.6"])
    terms = SearchTerms(seconds=900.0, most=4, effort=SMOKE)
    found = protect(
        data,
        out / "protect",
        policy,
        seed=seed,
        terms=terms,
        say=say,
        utility=labels[0],
        private=labels[1],
        limit=limit,
    )
    if found.run is None:
        return [plain_row("released", "share", "higher", 0.0)]
    then = read_json(found.run / "scores.json")
    config = _config(found.run)
    again = audit(load_mechanism(found.run), splits_of(config), effort=SMOKE, seed=seed + _ANOTHER_SEED)
    now = again.to_json()
    rows = [plain_row("released", "share", "higher", float(found.passed))]
    for key in (name for name in then["worst"] if name.partition(":")[0] in ("attribute", "reconstruction")):
        old, new = then["worst"][key], now["worst"][key]
        rows += [
            Row(f"{key}: leakage in the judgement", "leakage", "lower", None, old["leakage"], tuple(old["leakage_ci"])),
            Row(f"{key}: leakage in a fresh audit", "leakage", "lower", None, new["leakage"], tuple(new["leakage_ci"])),
        ]
    return rows


def _config(run: Path) -> dict[str, Any]:
    from sfumato.core.run_folder import RunFolder

    return RunFolder.open(run).config()


def _measurement(
    name: str, title: str, about: str, data: tuple[str, ...], run: Callable[..., list[Row]]
) -> Measurement:
    limits = {"smoke": 400, "cpu": 3000, "full": 3000} if run is fresh else {"smoke": 400, "cpu": 600, "full": 1500}
    return Measurement(name=name, family=name, title=title, about=about, data=data, run=run, limits=limits)


STUDIES = (
    _measurement(
        "protect-bias",
        "sfumato protect: figures of the search beside figures of the judgement",
        "The best of several candidates on the victims it was chosen by, and on others, over 20 searches.",
        ("digits",),
        bias,
    ),
    _measurement(
        "protect-grid",
        "sfumato protect: the search beside a full grid",
        "The winner of a search with a quarter of the fits of a grid over the same settings, beside the grid's.",
        ("digits",),
        grid,
    ),
    _measurement(
        "protect-fresh",
        "sfumato protect: a fresh audit of what was released",
        "The figures of a gated release beside those of an audit with another seed.",
        ("digits", "adult"),
        fresh,
    ),
)
