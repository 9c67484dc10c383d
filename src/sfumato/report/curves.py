"""Curves over a parameter: private, utility and non-target accuracy, and mutual information, one panel a label."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.score import Score
from sfumato.core.threats import CLAIM, MEMBERSHIP
from sfumato.report.audited_runs import Group, Run
from sfumato.report.plot_style import (
    INK,
    Board,
    Figure,
    Panel,
    Reference,
    Sheet,
    Style,
    axis,
    error_bars,
    layout,
    marker,
    reference_lines,
    safe,
    styles,
)
from sfumato.report.series import Series, knobs, series
from sfumato.report.wording import measured, metric_name, parameter_name

_LIST = "list-reconstruction"
_MOST_TICKS = 8
_LOGARITHMIC_FROM = 4.0  # the largest value over the smallest


@dataclass(frozen=True)
class _Subject:
    """What one panel is about."""

    title: str
    wanted: str
    score: Callable[[Run], Score | None]
    dash: str = "solid"


def tradeoff(group: Group, looks: Mapping[str, Style]) -> Board | None:
    """What the best attack and others read, over each parameter that was varied; None where nothing was."""
    first, *others = _utility_labels(group)
    subjects = [
        _Subject(f"Private label {label}", "lower is better for the owner", _leak(label)) for label in group.private
    ]
    listed = _LIST in group.threats
    if listed:
        wanted = "higher is better for the owner"
        subjects.append(_Subject("Reconstruction, a single guess", wanted, _worst("reconstruction")))
        subjects.append(_Subject("Reconstruction, the best of d guesses", wanted, _worst(_LIST)))
    if MEMBERSHIP in group.threats:
        subjects.append(_Subject("Membership", "lower is better for the owner", _worst(MEMBERSHIP)))
    if CLAIM in group.threats:
        subjects.append(_Subject("Shown by canaries", "below the claimed ε, or the claim is wrong", _worst(CLAIM)))
    if not subjects:
        return None
    subjects += [_useful(label, first, _reads(label)) for label in (first, *others)]
    sheets = _sheets(group, looks, subjects, "guessing", alike=True)
    ranges = {tuple(panel.layout["yaxis"]["range"]) for sheet in sheets[:1] for panel in sheet.panels}
    scale = " The scale is the same in every panel." if len(ranges) == 1 else ""
    scale = " Panels of one metric have one scale." if listed and not scale else scale
    non_target = " A non-target label is one that the method was not trained to keep." if others else ""
    return _board(
        "Trade-off",
        sheets,
        "What is still read from the release, by the best attack and by others. Bars are 95 % intervals: the order of "
        f"two methods at one value is settled only where they are apart.{scale}{non_target}",
    )


def information(group: Group, looks: Mapping[str, Style]) -> Board | None:
    """Mutual information of the release with each label, over each parameter that was varied."""
    found = [score for run in group.runs for score in run.information if score.target]
    private = dict.fromkeys(str(s.target) for s in found if s.better_for_owner == "lower")
    others = dict.fromkeys(str(s.target) for s in found if s.target not in private)
    subjects = [_Subject(f"Private label {t}", "lower is better for the owner", _shares(t)) for t in private]
    subjects += [_useful(label, _utility_labels(group)[0], _shares(label)) for label in others]
    sheets = _sheets(group, looks, subjects, "shuffled labels", alike=False)
    return _board(
        "Mutual information",
        sheets,
        "How many nats the release and a label share, by an estimate from nearest neighbours. It takes no attacker and "
        "bounds none. Shuffled labels share nothing: what the estimate says of them is its own error. Bars are 95 % "
        "intervals; each panel has its own scale.",
    )


def _utility_labels(group: Group) -> tuple[str, ...]:
    return group.runs[0].labels or ("label",)


def _useful(label: str, first: str, score: Callable[[Run], Score | None]) -> _Subject:
    """The utility label that methods are trained for, or one that they are not."""
    if label == first:
        return _Subject(f"Utility label {label}", "higher is better", score)
    return _Subject(f"Non-target label {label}", "higher is better", score, "dash")


def _leak(label: str) -> Callable[[Run], Score | None]:
    return lambda run: run.leak(label)


def _reads(label: str) -> Callable[[Run], Score | None]:
    return lambda run: run.reads(label)


def _worst(key: str) -> Callable[[Run], Score | None]:
    return lambda run: run.worst.get(key)


def _shares(label: str) -> Callable[[Run], Score | None]:
    return lambda run: next((s for s in run.information if s.target == label), None)


def _board(title: str, sheets: Sequence[Sheet], about: str) -> Board | None:
    if not sheets:
        return None
    over = sheets[0].name if len(sheets) == 1 else "a parameter"
    return Board(f"{title} over {over}", about, "curves", "Parameter", tuple(sheets))


def _sheets(
    group: Group, looks: Mapping[str, Style], subjects: Sequence[_Subject], nothing: str, *, alike: bool
) -> list[Sheet]:
    """A sheet for each parameter; ``nothing`` names the baseline, ``alike`` gives all panels one scale."""
    sheets = []
    for knob in knobs(group):
        lines = series(group, knob)
        drawn = looks if len({line.method for line in lines}) == len(lines) else styles([line.name for line in lines])
        found = [(subject, _Chart(group, lines, subject)) for subject in subjects]
        found = [(subject, chart) for subject, chart in found if any(len(line) > 1 for line in chart.scores)]
        if not found:
            continue
        spans = [chart.span() for _, chart in found]
        whole = {chart.metric: _hull(spans, [c.metric == chart.metric for _, c in found]) for _, chart in found}
        same = alike and (len(whole) == 1 or _LIST in group.threats)
        panels = [
            Panel(
                subject.title,
                f"{subject.wanted} ({chart.told(nothing)})",
                chart.traces(drawn, subject.dash),
                chart.layout(knob, nothing, whole[chart.metric] if same else span),
            )
            for (subject, chart), span in zip(found, spans, strict=True)
        ]
        key = [(look.symbol, look.colour, line.name) for line in lines for look in [_look(drawn, line)]]
        references = dict.fromkeys(line.name for _, chart in found for line in chart.references(nothing))
        key += [("dashed" if name == nothing else "dotted", INK, name) for name in references]
        sheets.append(Sheet(parameter_name(knob), tuple(key), tuple(panels)))
    return sheets


def _hull(spans: Sequence[tuple[float, float]], counted: Sequence[bool]) -> tuple[float, float]:
    """What holds all spans that count."""
    lows, highs = zip(*(span for span, counts in zip(spans, counted, strict=True) if counts), strict=True)
    return min(lows), max(highs)


def _look(looks: Mapping[str, Style], line: Series) -> Style:
    return looks[line.name] if line.name in looks else looks[line.method]


class _Chart:
    """One panel: the score of every run of every series, and the references beside them."""

    def __init__(self, group: Group, lines: Sequence[Series], subject: _Subject) -> None:
        self.lines = lines
        self.scores: list[dict[float, tuple[Run, Score]]] = [
            {
                value: (run, score)
                for value, run in zip(line.values, line.runs, strict=True)
                if (score := subject.score(run)) is not None
            }
            for line in lines
        ]
        every = [score for line in self.scores for _, score in line.values()]
        self.metric = every[0].metric if every else ""
        self.values = sorted({value for line in self.scores for value in line})
        self.baselines = tuple(score.baseline for score in every if score.baseline is not None)
        self.raw: dict[str, float] = {}
        for run in group.controls:
            score = subject.score(run)
            if score is not None and score.metric == self.metric and not self.raw:
                self.raw["raw latent" if run.traits.unprotected == "latent" else "no defence"] = score.value
        self.ends = [end for score in every for end in (score.value, *score.ci)]

    def span(self) -> tuple[float, float]:
        """The range of the y axis: everything that is drawn, and some air."""
        values = [*self.ends, *self.baselines, *self.raw.values()]
        low, high = min(values), max(values)
        air = max(0.06 * (high - low), 0.005)
        return low - air, high + air

    def traces(self, looks: Mapping[str, Style], dash: str) -> list[Figure]:
        traces = []
        for line, scores in zip(self.lines, self.scores, strict=True):
            if scores:
                look = _look(looks, line)
                found = [score for _, score in scores.values()]
                traces.append(
                    {
                        "type": "scatter",
                        "mode": "lines+markers",
                        "name": safe(line.name),
                        "x": list(scores),
                        "y": [score.value for score in found],
                        "error_y": error_bars([(score.value, score.ci) for score in found], look),
                        "text": [_hover(run, score) for run, score in scores.values()],
                        "hoverinfo": "text",
                        "line": {"color": look.colour, "width": 2, "dash": dash},
                        "marker": marker(look, 9),
                    }
                )
        return traces

    def references(self, nothing: str) -> list[Reference]:
        lines = [Reference(name, "2px,3px", (value,)) for name, value in self.raw.items()]
        return [*lines, *([Reference(nothing, "6px,4px", self.baselines)] if self.baselines else [])]

    def told(self, nothing: str) -> str:
        """The references in words: "raw latent 85.0 %, guessing 50.0 %"."""
        return ", ".join(f"{line.name} {line.span(self.metric)}" for line in self.references(nothing))

    def layout(self, knob: str, nothing: str, span: tuple[float, float]) -> Figure:
        across = self._across(knob)
        ends = [10**end if across["type"] == "log" else end for end in across["range"]]
        shapes, _ = reference_lines(self.references(nothing), self.metric, ends)
        percent = self.metric in ("accuracy", "balanced-accuracy")
        return layout() | {
            "xaxis": axis() | across,
            "yaxis": axis()
            | {
                "title": {"text": safe(metric_name(self.metric)), "standoff": 6},
                "range": list(span),
                "tickformat": ".0%" if percent else None,
            },
            "shapes": shapes,
            "hovermode": "closest",
            "showlegend": False,
            "margin": {"l": 56, "r": 10, "t": 6, "b": 46},
        }

    def _across(self, knob: str) -> Figure:
        """The x axis: the values that were tried, far apart ones on a logarithmic scale."""
        low, high = self.values[0], self.values[-1]
        logarithmic = low > 0 and high / low >= _LOGARITHMIC_FROM
        ends = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
        air = 0.08 * (ends[1] - ends[0])
        ticks = self.values if len(self.values) <= _MOST_TICKS else None
        return {
            "title": {"text": safe(parameter_name(knob)), "standoff": 6},
            "type": "log" if logarithmic else "linear",
            "range": [ends[0] - air, ends[1] + air],
            "tickvals": ticks,
            "ticktext": None if ticks is None else [f"{value:g}" for value in ticks],
        }


def _hover(run: Run, score: Score) -> str:
    return f"<b>{safe(run.title)}</b><br>{safe(metric_name(score.metric))} {measured(score)}<br>{safe(score.attack)}"
