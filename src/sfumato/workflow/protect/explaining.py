"""What can be said of a goal before anything is trained: what cannot be hidden, what fits, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato.core.dataset import Splits
from sfumato.core.policy import Policy
from sfumato.data import load_splits
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.registry import names
from sfumato.mechanisms.search_space import LEAVES
from sfumato.workflow.protect.candidate_ways import Way, why_not
from sfumato.workflow.protect.goal import Goal, check_labels
from sfumato.workflow.protect.label_floors import LabelFloor, beyond_reach, label_floors


@dataclass(frozen=True)
class Advised:
    """One way to use a mechanism: what leaves, what it is made against, its promise, and why it does not fit ("" if
    it does). ``spends`` says that every fit costs privacy."""

    mechanism: str
    leaves: str
    against: tuple[str, ...]
    promise: str
    spends: bool
    why_not: str

    @property
    def fits(self) -> bool:
        return not self.why_not

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "against": list(self.against), "fits": self.fits}


@dataclass(frozen=True)
class Explained:
    """The records in a sentence, what useful labels tell, limits that nothing can keep, and what may be used."""

    records: str
    floors: tuple[LabelFloor, ...]
    unreachable: tuple[str, ...]
    advice: tuple[Advised, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "floors": [{**one.to_json(), "sentence": str(one)} for one in self.floors],
            "unreachable": list(self.unreachable),
            "advice": [one.to_json() for one in self.advice],
        }


def explain(
    source: str, policy: Policy, *, leaves: str | None = None, labels: bool = False, seed: int = 0, **data: Any
) -> Explained:
    """Look at the labels and at what each mechanism declares; nothing is trained.

    Args:
        source: A named set, file or folder.
        policy: Limits, as far as there are any.
        leaves: Only ways in which this leaves; None: all.
        labels: Whether the utility labels leave, too.
        seed: Of the split by which the labels are compared.
        data: Further arguments of ``load_splits``.

    Raises:
        UsageError: A limit speaks of a label that there is not.
    """
    goal = Goal(policy, {"source": source, **data}, LEAVES[0], seed, labels)
    splits = load_splits(**goal.data, seed=seed)
    schema = splits.schema
    check_labels(goal, tuple(schema.utility), tuple(schema.private), tuple(schema.numbers))
    every = [Way(name, space) for name in names() for space in mechanism_class(name).searched]
    known = {one for way in every for one in way.space.against}
    if leaves is not None:
        every = [way for way in every if way.space.leaves == leaves]
    floors = label_floors(splits, goal)
    missed = [
        f"{limit}: at least {100 * least:.0f}%" if limit.endswith("%") else f"{limit}: at least {least:.3g}"
        for limit, least, _ in beyond_reach(floors, policy)
    ]
    shape = "×".join(map(str, schema.shape))
    people = sum(len(part) for part in splits.parts.values())
    advice = [_advised(way, replace(goal, leaves=way.space.leaves), splits, known) for way in every]
    return Explained(
        records=f"{people:,} {schema.kind} records of shape {shape}",
        floors=floors,
        unreachable=tuple(missed),
        advice=tuple(sorted(advice, key=lambda one: (not one.fits, list(map(str, LEAVES)).index(one.leaves)))),
    )


def _advised(way: Way, goal: Goal, splits: Splits, known: set[str]) -> Advised:
    why = why_not(way, goal, splits.owner, known) or ""
    space = way.space
    return Advised(way.mechanism, space.leaves, space.against, space.promise, way.spends, why)


def summary(found: Mapping[str, Any]) -> list[str]:
    """What is said above the table, a line each."""
    lines = [found["records"], *(f"floor: {one['sentence']}." for one in found["floors"])]
    return [*lines, *(f"no mechanism can keep {one}" for one in found["unreachable"])]
