"""One page to print for whoever has to sign: what is promised, what was attacked, the worst figures, the limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run
from sfumato.report.first_screen import Chip, chosen
from sfumato.report.guarantees import Promise, promises
from sfumato.report.verdict import trust_warnings
from sfumato.report.wording import count, leak, listed, measured, metric_name, named

_MOST_GROUPS = 4
LIMITS = (
    "The figures hold for these records, these attacks and what the attacks were granted; another attack, more "
    "auxiliary data or repeated releases may reveal more.",
    "Intervals cover the choice of the scored records, not the randomness of training.",
    "A label that was not declared private was not attacked. Where nothing is proven, low figures are no proof.",
)


@dataclass(frozen=True)
class AskedLine:
    """One question: how many attacks tried, the worst of them, what it got, and the leakage."""

    threat: str
    attacks: str
    worst: str
    figure: str
    leakage: str


@dataclass(frozen=True)
class Sheet:
    """The summary of one run."""

    number: int
    title: str
    facts: tuple[tuple[str, str], ...]
    promise: Promise
    asked: tuple[AskedLine, ...]
    groups: tuple[str, ...]
    checks: tuple[Chip, ...]
    limits: tuple[str, ...]


def sheets(group: Group, numbers: dict[str, int]) -> tuple[Sheet, ...]:
    """A summary for the run that the page answers with, and for one run of every other method."""
    first = chosen(group)
    others = [group.representative(method) for method in group.methods if method != first.mechanism]
    return tuple(_sheet(run, numbers[run.name]) for run in (first, *others))


def _sheet(run: Run, number: int) -> Sheet:
    (promise,) = promises([run])
    checks = () if run.gate is None else run.gate.checks
    return Sheet(
        number=number,
        title=run.title,
        facts=tuple((name, value) for name, value in _facts(run) if value),
        promise=promise,
        asked=tuple(_asked(run)),
        groups=tuple(_groups(run)),
        checks=tuple(
            Chip("passed" if check.outcome == "passed" else "failed", check.asked, check.because) for check in checks
        ),
        limits=(*trust_warnings([run]), *_left_out(run), *LIMITS),
    )


def _left_out(run: Run) -> tuple[str, ...]:
    names = list(dict.fromkeys(what for what, _ in run.skipped))
    return (f"Attacks that could not be tried: {listed(names)}.",) if names else ()


def _facts(run: Run) -> Iterable[tuple[str, str]]:
    yield "Data", run.data
    yield "Audited on", count(run.use.n, "record") if run.use is not None else ""
    yield "Labels that others may use", ", ".join(run.labels)
    yield "Labels that nobody may learn", ", ".join(run.private)
    for label in run.labels:
        score = run.reads(label)
        yield f"Use: {label}", f"{metric_name(score.metric)} {measured(score)}" if score is not None else ""
    yield "Run", f"{run.name}, seed {run.seed}, sfumato {run.env.get('sfumato', 'of unknown version')}"


def _asked(run: Run) -> Iterable[AskedLine]:
    for key, score in run.worst.items():
        tried = {s.attack for s in run.attacks if s.primary and (s.threat, s.target) == (score.threat, score.target)}
        yield AskedLine(title(key), str(len(tried)), score.attack, named(score), leak(score) or "cannot be stated")


def _groups(run: Run) -> Iterable[str]:
    every = [(key, one) for key, found in run.exposure.items() for one in found.groups if one["worse"]]
    for key, one in sorted(every, key=lambda pair: -float(pair[1]["leakage"]))[:_MOST_GROUPS]:
        yield f"{one['column']} = {one['value']}: {100 * one['leakage']:.0f} % ({title(key)})"
