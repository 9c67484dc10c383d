"""Curves over a parameter: private, utility and non-target accuracy, and mutual information, one panel per label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sfumato.core.score import Score
from sfumato.core.threats import CLAIM, LIST, MEMBERSHIP, RECONSTRUCTION
from sfumato.report import plots
from sfumato.report.audited_runs import Group, Run
from sfumato.report.plots import Board, Figure, Mark, Reference, Style
from sfumato.report.wording import metric_name, named, parameter_name

_HIGHER, _LOWER = "higher is better for the owner", "lower is better for the owner"

_Span = tuple[float, float]
_ScoreOf = Callable[[Run], Score | None]


@dataclass(frozen=True)
class _Subject:
    """What one panel is about."""

    title: str
    wanted: str
    score: _ScoreOf
    dash: str = "solid"


@dataclass(frozen=True)
class _Series:
    """Runs of one method by rising values of one parameter, with all else the same."""

    method: str
    name: str
    runs: Mapping[float, Run]


def tradeoff(group: Group, looks: Mapping[str, Style]) -> Board | None:
    """What the best attack and others read, over each parameter that was varied; None where nothing was."""
    subjects = [_Subject(f"Private label {x}", _LOWER, partial(Run.leak, label=x)) for x in group.private]
    if LIST in group.threats:
        subjects.append(_Subject("Reconstruction, a single guess", _HIGHER, partial(_worst, key=RECONSTRUCTION)))
        subjects.append(_Subject("Reconstruction, the best of d guesses", _HIGHER, partial(_worst, key=LIST)))
    if MEMBERSHIP in group.threats:
        subjects.append(_Subject("Membership", _LOWER, partial(_worst, key=MEMBERSHIP)))
    if CLAIM in group.threats:
        wanted = "below the claimed ε, or the claim is wrong"
        subjects.append(_Subject("Shown by canaries", wanted, partial(_worst, key=CLAIM)))
    if not subjects:
        return None
    labels = group.runs[0].labels or ("label",)
    subjects += [_useful(group, label, partial(Run.reads, label=label)) for label in labels]
    sheets = _sheets(group, looks, subjects, "guessing", alike=True)
    ranges = {tuple(shown["layout"]["yaxis"]["range"]) for sheet in [*sheets.values()][:1] for shown in sheet["panels"]}
    scale = " Panels of one metric have one scale." if LIST in group.threats else ""
    scale = " The scale is the same in every panel." if len(ranges) == 1 else scale
    non_target = " A non-target label is one that the method was not trained to keep." if len(labels) > 1 else ""
    return _board(
        "Trade-off",
        sheets,
        "What the best attack and others can still read from the release. Bars are 95 % intervals: the order of two "
        f"methods is settled only where their bars do not overlap.{scale}{non_target}",
    )


def information(group: Group, looks: Mapping[str, Style]) -> Board | None:
    """Mutual information of the release with each label, over each parameter that was varied."""
    found = [score for run in group.runs for score in run.information if score.target]
    private = dict.fromkeys(str(s.target) for s in found if s.better_for_owner == "lower")
    others = dict.fromkeys(str(s.target) for s in found if s.target not in private)
    subjects = [_Subject(f"Private label {x}", _LOWER, partial(_shared_nats, label=x)) for x in private]
    subjects += [_useful(group, label, partial(_shared_nats, label=label)) for label in others]
    return _board(
        "Mutual information",
        _sheets(group, looks, subjects, "shuffled labels", alike=False),
        "How many nats the release and a label share, by an estimate from nearest neighbours. It involves no attacker "
        "and bounds none. Shuffled labels share nothing: what the estimate says of them is its own error. Bars are "
        "95 % intervals; each panel has its own scale.",
    )


def _useful(group: Group, label: str, score: _ScoreOf) -> _Subject:
    """The utility label that methods are trained for, or one that they are not."""
    if label == (group.runs[0].main_label or "label"):
        return _Subject(f"Utility label {label}", "higher is better", score)
    return _Subject(f"Non-target label {label}", "higher is better", score, "dash")


def _worst(run: Run, key: str) -> Score | None:
    return run.worst.get(key)


def _shared_nats(run: Run, label: str) -> Score | None:
    return next((score for score in run.information if score.target == label), None)


def _board(title: str, sheets: Mapping[str, Figure], about: str) -> Board | None:
    if not sheets:
        return None
    over = next(iter(sheets)) if len(sheets) == 1 else "a parameter"
    return Board(f"{title} over {over}", about, "curves", "Parameter", sheets)


def _sheets(
    group: Group, looks: Mapping[str, Style], subjects: Sequence[_Subject], nothing: str, *, alike: bool
) -> dict[str, Figure]:
    """A sheet for each parameter; ``nothing`` names the baseline, ``alike`` gives panels of one metric one scale."""
    sheets: dict[str, Figure] = {}
    for knob in _knobs(group):
        lines = _series(group, knob)
        drawn = {line.name: looks[line.method] for line in lines}
        if len({line.method for line in lines}) < len(lines):
            drawn = plots.styles([line.name for line in lines])
        charts = [_Chart(group, lines, subject, nothing) for subject in subjects]
        charts = [chart for chart in charts if any(len(scores) > 1 for scores in chart.scores.values())]
        if not charts:
            continue
        metrics = {chart.metric for chart in charts}
        same = alike and (len(metrics) == 1 or LIST in group.threats)
        panels = [chart.panel(drawn, knob, _hull(charts, chart.metric) if same else chart.span) for chart in charts]
        references = {line.name: line.entry() for chart in charts for line in chart.references}
        key = [drawn[line.name].entry(line.name) for line in lines]
        sheets[parameter_name(knob)] = {"key": [*key, *references.values()], "panels": panels}
    return sheets


class _Chart:
    """One panel: the score of every run of every series, and the references beside them."""

    def __init__(self, group: Group, lines: Sequence[_Series], subject: _Subject, nothing: str) -> None:
        self.subject = subject
        self.scores: dict[str, dict[float, tuple[Run, Score]]] = {
            line.name: {
                value: (run, score) for value, run in line.runs.items() if (score := subject.score(run)) is not None
            }
            for line in lines
        }
        every = [score for scores in self.scores.values() for _, score in scores.values()]
        self.metric = every[0].metric if every else ""
        self.values = sorted({value for scores in self.scores.values() for value in scores})
        self.ends = [end for score in every for end in (score.value, *score.ci)]
        baselines = tuple(score.baseline for score in every if score.baseline is not None)
        self.references = [
            *self._undefended(group),
            *([Reference(nothing, plots.DASHED, baselines)] if baselines else []),
        ]

    def _undefended(self, group: Group) -> list[Reference]:
        """The first run without a defence that has this score."""
        for run in group.controls:
            score = self.subject.score(run)
            if score is not None and score.metric == self.metric:
                return [Reference("raw latent" if run.raw_latent else "no defence", plots.DOTTED, (score.value,))]
        return []

    @property
    def span(self) -> _Span:
        """The range of the y axis: everything that is drawn, and some air."""
        values = [*self.ends, *(value for line in self.references for value in line.values)]
        low, high = min(values), max(values)
        air = max(0.06 * (high - low), 0.005)
        return low - air, high + air

    def panel(self, looks: Mapping[str, Style], knob: str, span: _Span) -> Figure:
        traces = []
        for name, scores in self.scores.items():
            if scores:
                marks = []
                for x, (run, score) in scores.items():
                    told = f"{run.title}\n{named(score)}\n{score.attack}"
                    marks.append(Mark(x, score.value, score.ci, told))
                line = looks[name].line | {"dash": self.subject.dash}
                traces.append(plots.scatter(name, marks, looks[name]) | {"mode": "lines+markers", "line": line})
        told = ", ".join(f"{line.name} {line.span(self.metric)}" for line in self.references)
        return plots.panel(self.subject.title, f"{self.subject.wanted} ({told})", traces, self._layout(knob, span))

    def _layout(self, knob: str, span: _Span) -> Figure:
        x = plots.tried_axis(self.values, parameter_name(knob))
        ends = [10**end if x["type"] == "log" else end for end in x["range"]]
        y = {
            "title": {"text": metric_name(self.metric)},
            "range": list(span),
            "tickformat": ".0%" if self.metric in ("accuracy", "balanced-accuracy") else None,
        }
        return plots.panel_layout(x, y, [line.shape(ends) for line in self.references])


def _hull(charts: Sequence[_Chart], metric: str) -> _Span:
    """The range that holds everything drawn in this metric."""
    lows, highs = zip(*(chart.span for chart in charts if chart.metric == metric), strict=True)
    return min(lows), max(highs)


def _knobs(group: Group) -> list[str]:
    """The parameters of which a defended method has at least two settings, with all else the same."""
    names = dict.fromkeys(name for run in group.runs if run.defended for name in run.params)
    return [name for name in names if any(len(line.runs) > 1 for line in _series(group, name))]


def _series(group: Group, knob: str) -> list[_Series]:
    """Defended runs with a number for ``knob``, one series for each setting of all else.

    Of two runs with the same number the first counts; a single run is a series of its own.
    """
    alike: dict[str, dict[float, Run]] = {}
    for run in group.runs:
        value = run.params.get(knob)
        if run.defended and isinstance(value, (int, float)) and not isinstance(value, bool):
            rest = {**run.config["params"], knob: None}
            key = repr((run.mechanism, sorted(rest.items()), run.private, run.seed))
            alike.setdefault(key, {}).setdefault(float(value), run)
    found = [dict(sorted(runs.items())) for runs in alike.values()]
    firsts = [next(iter(runs.values())) for runs in found]
    methods = [first.mechanism for first in firsts]
    lines = []
    for first, runs in zip(firsts, found, strict=True):
        others = f", {_others(first, knob)}" if methods.count(first.mechanism) > 1 else ""
        lines.append(_Series(first.mechanism, f"{first.mechanism}{others}", runs))
    return lines


def _others(run: Run, knob: str) -> str:
    """The parts of a run's setting that are not about ``knob``."""
    parts = [part for part in run.setting.split(", ") if not part.startswith(f"{parameter_name(knob)} = ")]
    return ", ".join(parts) or run.name
