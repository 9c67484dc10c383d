"""What is guaranteed, and on what authority: one sentence for the verdict, one line for the card, and a box each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.core.guarantee import Guarantee
from sfumato.report.audited_runs import Run
from sfumato.report.wording import listed

KINDS = {
    "dp": "Differential privacy (proven)",
    "anonymity": "Anonymity, under conditions",
    "empirical": "Empirical",
    "as-published": "As published: NOT PROVEN",
}
_HELD_FOR = {
    "dp": "differential privacy is proven for",
    "anonymity": "anonymity holds under conditions for",
    "empirical": "there is measurement only for",
    "as-published": "an ε is published but NOT PROVEN for",
}


def epsilon_line(guarantee: Guarantee) -> str:
    """What may be said about ε: never more than the guarantee does."""
    if guarantee.kind == "dp":
        figures = f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}"
        return f"{figures}, for data sets that are neighbours by: {guarantee.relation}."
    if guarantee.kind == "as-published":
        return f"The paper states ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}. This is NOT PROVEN."
    if guarantee.kind == "anonymity":
        among = one_in(guarantee)
        return (
            f"{among[0].upper()}{among[1:]}: which of the records in a "
            f"message is meant is guessed right with probability {guarantee.anonymity:.3g} if every condition holds; "
            "if one does not, nothing is promised. No ε can be stated."
        )
    return "No ε can be stated: what is known is what the attacks measured."


def covers_line(guarantee: Guarantee) -> str:
    """What the promise is about, and what it leaves out."""
    return f"Covered: {guarantee.covers}" if guarantee.covers.payload else "Nothing is covered by a promise."


def outside_line(guarantee: Guarantee) -> str:
    """For a promise of differential privacy: that the audit's own figures are no part of it; else ""."""
    if guarantee.kind != "dp":
        return ""
    return (
        "The figures of the audit are computed on real records, without noise and outside the ledger: the promise is "
        "for the release, not for them. Keep them to yourself, or count what they tell."
    )


def kind_line(guarantee: Guarantee) -> str:
    """The kind of a guarantee; an anonymity says among how many."""
    among = f": {one_in(guarantee)}" if guarantee.kind == "anonymity" else ""
    return f"{KINDS[guarantee.kind]}{among}"


def one_in(guarantee: Guarantee) -> str:
    """ "one in 2", for a probability of 1/2."""
    return f"one in {1 / guarantee.anonymity:.3g}" if guarantee.anonymity else "not one"


def guarantee_sentence(runs: Iterable[Run]) -> str:
    """What is guaranteed for which method."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        figures = kinds.setdefault(run.guarantee.kind, {}).setdefault(run.mechanism, [])
        figure = run.guarantee.anonymity if run.guarantee.kind == "anonymity" else run.guarantee.epsilon
        figures += [figure] if figure is not None else []
    if set(kinds) == {"empirical"}:
        return "No formal guarantee is given: these figures are measurements, and no ε can be stated."
    every = [name for names in kinds.values() for name in names]
    parts = []
    for kind, names in kinds.items():
        told = [(f"some settings of {name}" if every.count(name) > 1 else name, each) for name, each in names.items()]
        parts.append(f"{_HELD_FOR[kind]} {listed([_with_figures(kind, *item) for item in told])}")
    return f"Guarantees: {'; '.join(parts)}."


def _with_figures(kind: str, name: str, figures: Sequence[float]) -> str:
    """A method with its ε, or with the number of records that it hides among; a range where settings differ."""
    if not figures:
        return name
    stated, values = ("one in", [1 / figure for figure in figures]) if kind == "anonymity" else ("ε =", figures)
    low, high = (f"{end:.3g}" for end in (min(values), max(values)))
    return f"{name} ({stated} {low})" if low == high else f"{name} ({stated} {low} to {high})"


@dataclass(frozen=True)
class Promise:
    """One guarantee in words: of which method at which settings, on what authority, and under which conditions."""

    method: str
    settings: str
    kind: str
    called: str
    badge: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    conditions: tuple[str, ...]


def promises(runs: Iterable[Run]) -> tuple[Promise, ...]:
    """Each guarantee once."""
    boxes: dict[str, tuple[Run, list[str]]] = {}
    for run in runs:
        key = json.dumps([run.mechanism, run.guarantee.to_json()], sort_keys=True, default=str)
        boxes.setdefault(key, (run, []))[1].append(run.setting)
    return tuple(_promise(run, settings) for run, settings in boxes.values())


def _promise(run: Run, settings: Sequence[str]) -> Promise:
    guarantee = run.guarantee
    covers = covers_line(guarantee) if guarantee.covers.payload else ""
    sentences = (guarantee.statement, epsilon_line(guarantee), covers, outside_line(guarantee))
    return Promise(
        method=run.mechanism,
        settings=listed(different) if (different := [s for s in dict.fromkeys(settings) if s]) else "",
        kind=guarantee.kind,
        called=KINDS[guarantee.kind],
        badge=one_in(guarantee) if guarantee.kind == "anonymity" else "",
        sentences=tuple(sentence for sentence in sentences if sentence),
        warnings=tuple(map(str, guarantee.warnings)),
        conditions=tuple(str(condition) for condition in guarantee.conditions),
    )
