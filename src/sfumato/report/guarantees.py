"""What is promised, and on what authority: one sentence for the verdict, and a box for each promise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

from sfumato.report.audited_runs import Group, Run
from sfumato.report.wording import KINDS, epsilon_line, listed, one_in


def guarantee_sentence(runs: Iterable[Run]) -> str:
    """What is promised for which method."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        figures = kinds.setdefault(run.guarantee.kind, {}).setdefault(run.mechanism, [])
        figure = run.guarantee.anonymity if run.guarantee.kind == "anonymity" else run.guarantee.epsilon
        figures += [figure] if figure is not None else []
    if set(kinds) == {"empirical"}:
        return "No formal guarantee is given: these figures are measurements, and no ε can be stated."
    words = {
        "dp": "differential privacy is proven for",
        "anonymity": "anonymity holds under conditions for",
        "empirical": "there is measurement only for",
        "as-published": "an ε is published but NOT PROVEN for",
    }
    every = [name for names in kinds.values() for name in names]
    parts = []
    for kind, names in kinds.items():
        told = [(f"some settings of {name}" if every.count(name) > 1 else name, each) for name, each in names.items()]
        parts.append(f"{words[kind]} {listed([_with_figures(kind, *item) for item in told])}")
    return f"Guarantees: {'; '.join(parts)}."


def _with_figures(kind: str, name: str, figures: Sequence[float]) -> str:
    """A method with its ε or among how many it hides, or the range: a proof says little where ε is large."""
    if not figures:
        return name
    if kind == "anonymity":
        few, many = (f"{1 / end:.3g}" for end in (max(figures), min(figures)))
        return f"{name} (one in {few})" if few == many else f"{name} (one in {few} to {many})"
    low, high = (f"{end:.3g}" for end in (min(figures), max(figures)))
    return f"{name} (ε = {low})" if low == high else f"{name} (ε = {low} to {high})"


def guarantee_boxes(groups: Sequence[Group]) -> str:
    """A box for each promise, with the conditions under which it holds."""
    boxes: dict[str, tuple[Run, list[str]]] = {}
    for group in groups:
        for run in group.runs:
            key = json.dumps([run.mechanism, run.guarantee.to_json()], sort_keys=True, default=str)
            boxes.setdefault(key, (run, []))[1].append(run.setting)
    return "".join(_box(run, settings) for run, settings in boxes.values())


def _box(run: Run, settings: Sequence[str]) -> str:
    guarantee = run.guarantee
    named = [setting for setting in dict.fromkeys(settings) if setting]
    where = f'<p class="setting">{escape(listed(named))}</p>' if named else ""
    conditions = "".join(f"<li>{escape(condition)}</li>" for condition in guarantee.conditions)
    under = f"<p>Conditions:</p><ul>{conditions}</ul>" if conditions else ""
    badge = f' <span class="badge">{one_in(guarantee)}</span>' if guarantee.kind == "anonymity" else ""
    return (
        f'<article class="guarantee {escape(guarantee.kind)}"><h3>{escape(run.mechanism)}</h3>{where}'
        f'<p class="kind">{escape(KINDS[guarantee.kind])}{badge}</p><p>{escape(guarantee.statement)}</p>'
        f"<p>{escape(epsilon_line(guarantee))}</p>{under}</article>"
    )
