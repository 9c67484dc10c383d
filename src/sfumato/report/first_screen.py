"""The first screen: one sentence that answers, what became of gates, and the release that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sfumato.core.score import Score
from sfumato.core.threats import ATTRIBUTE_WITH_LABELS, CLAIM, RECONSTRUCTION_WITH_LABELS, threat, title
from sfumato.report.audited_runs import Group, Run, owner_gain
from sfumato.report.foreign_rows import SHOWN, compared, worst_first
from sfumato.report.verdict import refuted
from sfumato.report.wording import count, leak, measured, metric_name, named, number

WITH_LABELS = (RECONSTRUCTION_WITH_LABELS, ATTRIBUTE_WITH_LABELS)
_MOST_OPEN = 3  # questions without a limit that are named one by one

State = Literal["passed", "failed", "open"]


@dataclass(frozen=True)
class Said:
    """A stretch of a sentence; stressed ones carry the answer."""

    text: str
    stressed: bool = False


@dataclass(frozen=True)
class Chip:
    """One thing that was asked, or not: ``why`` is the figure or the reason."""

    state: State
    text: str
    why: str = ""


@dataclass(frozen=True)
class Answer:
    """The sentence, how it was come by, and the run that it is about (None where it is about several)."""

    sentence: tuple[Said, ...]
    how: str
    run: Run | None
    chips: tuple[Chip, ...]


def answer(group: Group) -> Answer:
    """What a group of runs says, in one sentence."""
    if len(group.runs) > 1 and all(run.unlinked for run in group.runs):
        sentence, _, _ = compared(group.runs)
        worst = worst_first(group.runs)[0]
        return Answer((Said(sentence),), _effort(group), None, tuple(_chips(group, worst)))
    run = chosen(group)
    return Answer(tuple(_sentence(run)), _how(group, run), run, tuple(_chips(group, run)))


def chosen(group: Group) -> Run:
    """The defended run with the best balance: its share of what raw data serve, less its worst leakage.

    Runs that were not attacked on the main question come last: nothing is known of what they leak there.
    """
    runs = [run for run in group.runs if run.defended] or list(group.runs)
    runs = [run for run in runs if run.use is not None] or runs
    asked = [run for run in runs if group.threats and group.threats[0] in run.worst] or runs
    if any(worst_leak(run) is not None for run in asked):
        return max(asked, key=_balance)
    if not group.threats or all(group.threats[0] not in run.worst for run in asked):
        return max(asked, key=lambda run: run.use_value)
    near = max(run.use_value for run in asked) - 0.01
    return max(
        (run for run in asked if run.use_value >= near), key=lambda run: owner_gain(run.judged(group.threats[0]))
    )


def worst_leak(run: Run) -> tuple[str, Score] | None:
    """The question on which the payload of a run leaks most; None where no leakage can be stated.

    What is shown to leak comes before what chance may have made, and what the payload tells before what utility labels
    that leave beside it tell.
    """
    graded = [(key, score) for key, score in run.worst.items() if score.leakage is not None]
    payload = [one for one in graded if one[0].partition(":")[0] not in WITH_LABELS] or graded
    sure = [one for one in payload if shown_to_leak(one[1])] or payload
    return max(sure, key=lambda one: float(one[1].leakage or 0.0), default=None)


def shown_to_leak(score: Score) -> bool:
    """Whether the interval of the leakage lies above 0 as it is printed."""
    return score.leakage_ci is not None and score.leakage_ci[0] >= SHOWN


def useful_share(run: Run) -> float:
    """Where a run's utility lies between a guess (0) and raw data (1); the bare value where that was not measured."""
    use = run.use
    if use is None:
        return 0.0
    control = use.control if use.control is not None else _same_control(run, use)
    if use.baseline is None or control is None or control <= use.baseline:
        return use.value
    return (use.value - use.baseline) / (control - use.baseline)


def _same_control(run: Run, use: Score) -> float | None:
    same = [s.control for s in run.utility if (s.metric, s.target) == (use.metric, use.target) and s.control]
    return max(same, default=None)


def _balance(run: Run) -> float:
    worst = worst_leak(run)
    return useful_share(run) - (1.0 if worst is None else float(worst[1].leakage or 0.0))


def _sentence(run: Run) -> Iterator[Said]:
    yield Said(run.title, stressed=True)
    use = run.use
    if use is not None:
        what = use.target or run.main_label or "the label"
        by = f" {metric_name(use.metric)}" if use.metric != "accuracy" else ""
        yield Said(f" serves {what} at ")
        yield Said(number(use.value, use.metric) + by, stressed=True)
        yield Said(" and ")
    else:
        yield Said(": ")
    worst = worst_leak(run)
    if worst is None:
        yield from _ungraded(run)
        return
    key, score = worst
    if not shown_to_leak(score):
        yield Said("no attack finds more than chance may make", stressed=True)
        yield Said("; other attacks may.")
        return
    name, _, target = key.partition(":")
    told = "the owner’s records themselves tell" if run.unlinked else "an undefended release tells"
    yield Said("leaks ")
    yield Said(f"{100 * float(score.leakage or 0):.0f} %", stressed=True)
    yield Said(f" of what {told} to the worst attack on {threat(name).object.format(target=target)}")
    private = [(k, s) for k, s in run.worst.items() if k.startswith("attribute:") and k != key and leak(s)]
    if private:
        name, least = private[0]
        yield Said(f"; {100 * float(least.leakage or 0):.0f} % about {name.partition(':')[2]}")
    yield Said(".")


def _ungraded(run: Run) -> Iterator[Said]:
    """What the best attack gets, where no share of an undefended release can be stated."""
    key = next(iter(run.worst), None)
    if key is None:
        yield Said("no attack was run: nothing is known about what leaks.")
        return
    yield Said("the best attack gets ")
    yield Said(named(run.worst[key]), stressed=True)
    yield Said(f" ({title(key)}).")


def _how(group: Group, run: Run) -> str:
    several = sum(one.defended for one in group.runs) > 1
    picked = "The best balance of use and leakage. " if several and worst_leak(run) is not None else ""
    use = run.use
    interval = f"Use {measured(use)}; " if use is not None else ""
    worst = worst_leak(run)
    figure = f"leakage {leak(worst[1])}; " if worst is not None else ""
    beside = [s for k, s in run.worst.items() if k.partition(":")[0] in WITH_LABELS and shown_to_leak(s)]
    most = max((float(score.leakage or 0.0) for score in beside), default=0.0)
    labels = f"up to {100 * most:.0f} % if its utility labels leave as well; " if most else ""
    return f"{picked}{interval}{figure}{labels}{_effort(group)}"


def _effort(group: Group) -> str:
    attacks = {score.attack for run in group.runs for score in run.attacks}
    asked = count(len(group.threats), "question")
    return f"{count(len(attacks), 'attack')} on {asked}, {count(len(group.runs), 'run')}. Other attacks may do better."


def _chips(group: Group, run: Run) -> Iterator[Chip]:
    yield from (
        Chip("failed", f"claimed ε of {one.title}", "refuted by canaries") for one in group.runs if refuted(one)
    )
    judged = [one for one in group.runs if one.gate is not None]
    if len(group.runs) > 1 and judged:
        passed = sum(one.gate is not None and one.gate.passed for one in judged)
        state: State = "passed" if passed else "failed"
        yield Chip(state, f"{passed} of {count(len(judged), 'gated run')} passed")
        if len(judged) < len(group.runs):
            yield Chip("open", f"{count(len(group.runs) - len(judged), 'run')} not gated")
    if run.gate is None:
        which = run.name if len(group.runs) == 1 else "RUN"
        yield Chip(
            "open", f"no gate was put to {run.title if judged else 'these runs'}", f"sfumato gate {which} --max …"
        )
        return
    for check in run.gate.checks:
        yield Chip("passed" if check.outcome == "passed" else "failed", check.asked, check.because)
    told = " ".join(check.asked for check in run.gate.checks)
    without = [key for key in run.worst if key != CLAIM and key.partition(":")[0] not in told]
    if len(without) <= _MOST_OPEN:
        yield from (Chip("open", title(key), "not asked") for key in without)
    else:
        yield Chip("open", count(len(without), "question"), "not asked")


def gate_state(run: Run) -> State:
    """What became of a run's gate; open where none was put to it."""
    if run.gate is None:
        return "open"
    return "passed" if run.gate.passed else "failed"
