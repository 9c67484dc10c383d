"""Rows that somebody else made: what is particular to their audit, beside what every report shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.core.score import Score
from sfumato.core.threats import MEMBERSHIP, title
from sfumato.report.audited_runs import Group, Run
from sfumato.report.page_values import Cell, Items, Passage, RunRow, Section, Table
from sfumato.report.wording import interval, leak, listed, number

_RATES = {
    "auroc": "Area under the ROC curve",
    "tpr-at-1-fpr": "Found at 1 % false alarms",
    "tpr-at-0.1-fpr": "Found at 0.1 %",
}
SHOWN = 0.005
"""Leakage below this is printed as 0 %."""
EXCESS = (
    " An excess is how much more often an attack is right about people whose records were used than about held-out "
    "people: what holds for everybody alike is no leakage."
)


def compared(runs: Sequence[Run]) -> tuple[str, list[str], list[str]]:
    """What several releases of the same records leak: a sentence, an item for each that does, worst first, and what is
    to be said below."""
    leaks = {run.title: _leaks(run) for run in worst_first(runs)}
    found = [name for name in leaks if leaks[name]]
    others = [name for name in leaks if not leaks[name]]
    items = [f"{name}: {', '.join(f'{title(key)} {leak(score)}' for key, score in leaks[name])}" for name in found]
    many = len({key for run in runs for key in run.worst}) * len(runs)
    notes = [f"In {listed(others)} no attack finds more than chance may make; other attacks may."] if others else []
    notes.append(f"Every interval is for one question of one release; of {many} some may miss by chance.")
    sentence = (
        f"{len(found)} of {len(runs)} releases leak: an attack does better on people whose records were used than on "
        "held-out people, beyond its interval."
        if found
        else f"In none of {len(runs)} releases does an attack find more than chance may make; other attacks may."
    )
    return sentence, items, notes


def worst_first(runs: Sequence[Run]) -> list[Run]:
    """Those that leak most first, and those where no attack finds more than chance last."""
    return sorted(runs, key=lambda run: -_most(_leaks(run)))


def leaked(run: Run) -> str:
    """What one release leaks, in a sentence."""
    found = [f"{title(key)} {leak(score)}" for key, score in _leaks(run)]
    if not found:
        return (
            "No attack finds more about people whose records were used than about held-out people; other attacks may."
        )
    return f"It leaks about people whose records were used what it does not say of held-out people: {listed(found)}."


def _leaks(run: Run) -> list[tuple[str, Score]]:
    """The questions whose interval lies above 0 as it is printed, worst first."""
    above = [(key, score) for key, score in run.worst.items() if score.leakage_ci and score.leakage_ci[0] >= SHOWN]
    return sorted(above, key=lambda one: -float(one[1].leakage or 0.0))


def _most(leaks: Sequence[tuple[str, Score]]) -> float:
    return max((float(score.leakage or 0.0) for _, score in leaks), default=0.0)


def foreign_section(group: Group) -> Section | None:
    """Membership at low false-alarm rates, what was not asked and what was noticed; nothing for releases of ours."""
    runs = [run for run in group.runs if run.unlinked]
    if not runs:
        return None
    return Section(
        "Rows that belong to nobody in particular",
        "Somebody else made these rows of the owner’s records. Every attack was also put to people who were not used; "
        "the figures are what it gets beyond them.",
        (*_members(runs), *_said("What was not asked", _left_out(runs)), *_said("Noticed", _noticed(runs))),
    )


def _members(runs: Sequence[Run]) -> tuple[Passage, ...]:
    """For one release every membership attack, for several the strongest of each."""
    rows = []
    for run in worst_first(runs):
        areas = [score for score in run.attacks if score.threat == MEMBERSHIP and score.metric == "auroc"]
        if len(runs) == 1:
            rows += [RunRow(run.called(one.attack)[0], one.attack, _rates(run, one.attack)) for one in areas]
        elif areas:
            best = max(areas, key=lambda score: score.value).attack
            rows.append(RunRow(run.title, run.called(best)[0], _rates(run, best)))
    if not rows:
        return ()
    heads = ("Attack" if len(runs) == 1 else "Release", *_RATES.values(), "Leakage")
    members = Passage(
        "Was this person’s record used?",
        "Who must hardly ever accuse a stranger can still find some members: the last two columns say how many. "
        "A guess gets 0.5, 1 % and 0.1 %.",
        (Table("glance releases", heads, tuple(rows)),),
    )
    return (members,)


def _rates(run: Run, attack: str) -> tuple[Cell, ...]:
    of = {score.metric: score for score in run.attacks if score.threat == MEMBERSHIP and score.attack == attack}
    cells = [_figure(head, of.get(metric)) for metric, head in _RATES.items()]
    primary = next((score for score in of.values() if score.primary), None)
    return (*cells, Cell("Leakage", (leak(primary) if primary else None) or "–"))


def _figure(head: str, score: Score | None) -> Cell:
    if score is None:
        return Cell(head, absent="not measured")
    return Cell(head, figure=number(score.value, score.metric), ci=interval(score))


def left_out(run: Run) -> list[str]:
    """What was not asked of one release, and why."""
    return [f"{what}: {why}" for what, why in run.skipped]


def _left_out(runs: Sequence[Run]) -> list[str]:
    return _together((run.title, left_out(run)) for run in runs)


def _noticed(runs: Sequence[Run]) -> list[str]:
    return _together((run.title, list(run.notes)) for run in runs)


def _together(told: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Each sentence once, with the releases that it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    names = []
    for name, sentences in told:
        names.append(name)
        for sentence in sentences:
            about.setdefault(sentence, []).append(name)
    return [
        sentence if len(whose) == len(names) else f"{sentence} ({listed(whose)})" for sentence, whose in about.items()
    ]


def _said(head: str, sentences: Sequence[str]) -> tuple[Items, ...]:
    return (Items(tuple(sentences), head),) if sentences else ()
