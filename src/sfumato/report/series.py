"""Runs that differ in one parameter, and which few of many runs are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.report.audited_runs import Group, Run
from sfumato.report.wording import parameter_name


@dataclass(frozen=True)
class Series:
    """Runs of one method by rising values of one parameter, alike in all else."""

    method: str
    name: str
    values: tuple[float, ...]
    runs: tuple[Run, ...]


def knobs(group: Group) -> tuple[str, ...]:
    """The parameters of which a defended method has at least two settings, alike in all else."""
    names = dict.fromkeys(name for run in group.runs if run.defended for name in run.params)
    return tuple(name for name in names if any(len(runs) > 1 for runs in _alike(group, name).values()))


def series(group: Group, knob: str) -> tuple[Series, ...]:
    """Every series over ``knob``; a method without such a parameter has none, a single run is a series of its own."""
    alike = _alike(group, knob)
    methods = [runs[0].mechanism for runs in alike.values()]
    found = []
    for runs in alike.values():
        ordered = sorted(runs, key=lambda run: float(run.params[knob]))
        method = ordered[0].mechanism
        name = method if methods.count(method) == 1 else f"{method}, {_others(ordered[0], knob)}"
        found.append(Series(method, name, tuple(float(run.params[knob]) for run in ordered), tuple(ordered)))
    return tuple(found)


def spread(runs: Sequence[Run], most: int) -> tuple[Run, ...]:
    """At most ``most`` of the runs, evenly spaced; the last one is always among them, the first if there is room."""
    if len(runs) <= most:
        return tuple(runs)
    if most == 1:
        return (runs[-1],)
    return tuple(runs[round(i * (len(runs) - 1) / (most - 1))] for i in range(most))


def _alike(group: Group, knob: str) -> dict[str, list[Run]]:
    """Defended runs with a number for ``knob``, by all else; of two runs with the same number the first counts."""
    alike: dict[str, dict[float, Run]] = {}
    for run in group.runs:
        if run.defended and _is_number(run.params.get(knob)):
            rest = {**run.config["params"], knob: None}
            key = repr((run.mechanism, sorted(rest.items()), run.private, run.seed))
            alike.setdefault(key, {}).setdefault(float(run.params[knob]), run)
    return {key: list(runs.values()) for key, runs in alike.items()}


def _others(run: Run, knob: str) -> str:
    """The parts of a run's setting that are not about ``knob``."""
    parts = [part for part in run.setting.split(", ") if not part.startswith(f"{parameter_name(knob)} = ")]
    return ", ".join(parts) or run.name


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
