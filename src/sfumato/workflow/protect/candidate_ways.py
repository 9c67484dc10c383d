"""Which mechanisms and settings come into question, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.dataset import Dataset
from sfumato.core.errors import SfumatoError
from sfumato.core.threats import title
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import SpendsByFit
from sfumato.mechanisms.label_targets import refuse_numbers
from sfumato.mechanisms.registry import names
from sfumato.mechanisms.search_space import KnobRange, SearchSpace
from sfumato.workflow.protect.goal import Goal


@dataclass(frozen=True)
class Way:
    """One mechanism, used in one way."""

    mechanism: str
    space: SearchSpace

    @property
    def fresh(self) -> Mechanism:
        """The mechanism with the settings of this way, unfitted."""
        return mechanism_class(self.mechanism)().set_params(**self.space.fixed)

    @property
    def spends(self) -> bool:
        """Whether every fit costs privacy."""
        return isinstance(self.fresh, SpendsByFit)

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """The settings that are tried first, each knob with a value."""
        own = mechanism_class(self.mechanism).parameters()
        middle = {name: _within(knob, own[name]) for name, knob in self.space.knobs.items()}
        return tuple({**middle, **start} for start in self.space.starts)

    def grid(self, values: int) -> tuple[dict[str, Any], ...]:
        """Every combination of so many values of each range, and of all others."""
        found: list[dict[str, Any]] = [{}]
        for name, knob in self.space.knobs.items():
            each = knob.spaced(values) if isinstance(knob, KnobRange) else knob
            whole = isinstance(knob, KnobRange) and knob.whole
            found = [{**one, name: int(value) if whole else value} for one in found for value in each]
        return tuple(found)


@dataclass(frozen=True)
class Candidate:
    """A mechanism with settings, before it is tried."""

    way: Way
    knobs: Mapping[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        return {**self.way.space.fixed, **self.knobs}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.knobs.items() if value != "")
        return f"{self.way.mechanism} {shown}".strip()


@dataclass(frozen=True)
class Unfit:
    """A mechanism that does not come into question, and why."""

    mechanism: str
    why: str

    def __str__(self) -> str:
        return f"{self.mechanism}: {self.why}"

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.mechanism, "why": self.why}


def ways_for(goal: Goal, owner: Dataset) -> tuple[tuple[Way, ...], tuple[Unfit, ...]]:
    """What may be tried for a goal with these records, and what may not."""
    every = [Way(name, space) for name in names() for space in mechanism_class(name).searched]
    known = {one for way in every for one in way.space.against}
    found: list[Way] = []
    unfit: dict[str, Unfit] = {}
    for way in every:
        why = why_not(way, goal, owner, known)
        if why is None:
            found.append(way)
        else:
            unfit.setdefault(way.mechanism, Unfit(way.mechanism, why))
    chosen = {way.mechanism for way in found}
    return tuple(found), tuple(one for one in unfit.values() if one.mechanism not in chosen)


def why_not(way: Way, goal: Goal, owner: Dataset, known: set[str]) -> str | None:
    """Why a way does not come into question for a goal; None if it does."""
    space, schema = way.space, owner.schema
    if space.leaves != goal.leaves:
        return f"{space.leaves} leave, and {goal.leaves} were asked for (--leaves {space.leaves})"
    if schema.kind not in space.kinds:
        return f"it is made for {' and '.join(space.kinds)} records, and these are {schema.kind} records"
    if goal.wants_proof and space.promise not in goal.wants_proof:
        return f"its promise is {space.promise}, and the policy requires {goal.policy.require}"
    missed = [one for one in goal.threats if one in known and one not in space.against]
    if missed:
        return f"nothing in it is made against attacks of the kind “{title(missed[0])}”"
    fresh = way.fresh
    if fresh.traits.reads_private and not owner.private:
        return "it hides private labels, and none is named (--private)"
    try:
        fresh._check_params()
        refuse_numbers(fresh, owner)
    except SfumatoError as error:
        return str(error).rstrip(".")
    return None


def _within(knob: KnobRange | tuple[Any, ...], default: Any) -> Any:
    if isinstance(knob, KnobRange):
        value = min(knob.high, max(knob.low, default))
        return int(value) if knob.whole else float(value)
    return default if default in knob else knob[0]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def tried_first(ways: Sequence[Way]) -> list[Candidate]:
    """The declared settings of all ways: the best of each, then the second best of each; cheap ways first."""
    rounds = max(len(way.settings) for way in ways)
    ways = sorted(ways, key=lambda way: way.space.cost)
    return [Candidate(way, way.settings[n]) for n in range(rounds) for way in ways if n < len(way.settings)]
