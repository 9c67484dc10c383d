"""What the Plotly figures of a page share: how a method is drawn, marks, reference lines, layouts, boards of charts.

Figures are plain JSON values in Plotly's vocabulary, of which ``charts.js`` draws what occurs here. Texts are plain;
lines are parted by line breaks. Colours are those of the page's style, for light and for dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from sfumato.report.wording import reference, unbroken

Figure = dict[str, Any]

INK = "var(--ink)"
DASHED, DOTTED = "6px,4px", "2px,3px"
_MOST_TICKS = 8
_LOGARITHMIC_FROM = 4.0  # the largest value over the smallest
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "pentagon", "hexagon", "x")
_GLYPHS = dict(zip((*SYMBOLS, "x-thin", "cross-thin"), "●■◆▲✚★▼⬟⬢✖×+", strict=True))
_GLYPHS |= {DOTTED: "····", DASHED: "– –"}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_COLOURS = CLASS_COLOURS = tuple(f"var(--c{i})" for i in range(1, 11))


def entry(symbol: str, colour: str, name: str) -> Figure:
    """One entry of the key to a chart; ``symbol`` is that of a mark, or the dash of a reference."""
    return {"glyph": _GLYPHS[symbol], "colour": colour, "name": name}


@dataclass(frozen=True)
class Style:
    """How one method is drawn everywhere on the page."""

    symbol: str
    dash: str
    colour: str

    @property
    def line(self) -> Figure:
        return {"color": self.colour, "width": 2, "dash": self.dash}

    def marker(self, size: int) -> Figure:
        thin = self.symbol.endswith("-thin")
        edge = {"color": self.colour, "width": 3} if thin else {"color": "var(--paper)", "width": 1.5}
        return {"symbol": self.symbol, "size": size, "color": self.colour, "line": edge}

    def entry(self, name: str) -> Figure:
        return entry(self.symbol, self.colour, name)

    def open_marker(self, size: int, width: float) -> Figure:
        return {"symbol": f"{self.symbol}-open", "size": size, "color": self.colour, "line": {"width": width}}


def styles(methods: Sequence[str], controls: Sequence[str] = ()) -> dict[str, Style]:
    """A style for each method: no two share both symbol and dash; what hides nothing is drawn in ink."""
    drawn = {
        name: Style(symbol, "solid", INK)
        for name, symbol in zip(controls, cycle(("cross-thin", "x-thin")), strict=False)
    }
    for i, name in enumerate(name for name in methods if name not in controls):
        drawn[name] = Style(SYMBOLS[i % 10], _DASHES[i % 6], _COLOURS[i % 10])
    return drawn


@dataclass(frozen=True)
class Mark:
    """One mark of a chart with the interval of its y; ``told`` is shown to whoever points at it."""

    x: float
    y: float
    ci: tuple[float, float]
    told: str


def scatter(name: str, marks: Sequence[Mark | None], look: Style, size: int = 9, floor: float = -math.inf) -> Figure:
    """Marks with error bars. None is a gap; nothing is drawn below ``floor``, the end of a logarithmic axis."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [None if mark is None else mark.x for mark in marks],
        "y": [None if mark is None else max(mark.y, floor) for mark in marks],
        "error_y": error_bars([None if mark is None else (mark.y, mark.ci) for mark in marks], look, floor),
        "text": ["" if mark is None else mark.told for mark in marks],
        "marker": look.marker(size),
    }


def error_bars(
    items: Iterable[tuple[float, tuple[float, float]] | None], look: Style, floor: float = -math.inf
) -> Figure:
    """Error bars from value and interval, cut off at ``floor``."""
    up, down = [], []
    for item in items:
        value, (low, high) = item or (0.0, (0.0, 0.0))
        up.append(max(high - max(value, floor), 0.0))
        down.append(max(max(value, floor) - max(low, floor), 0.0))
    return {"array": up, "arrayminus": down, "color": look.colour}


@dataclass(frozen=True)
class Reference:
    """A line across a chart at one value, or a band where the runs' own values differ by more than a twentieth."""

    name: str
    dash: str
    values: tuple[float, ...]

    @property
    def ends(self) -> tuple[float, float]:
        low, high = min(self.values), max(self.values)
        return (low, high) if high - low > 0.05 * max(abs(high), abs(low), 1e-12) else (low, low)

    def span(self, metric: str) -> str:
        """The value in words, or both ends of the band."""
        low, high = (reference(end, metric) for end in self.ends)
        return low if self.ends[0] == self.ends[1] else f"{low} to {high}"

    def entry(self) -> Figure:
        return entry(self.dash, INK, self.name)

    def shape(self, across: Sequence[float]) -> Figure:
        """The line or band from one x to another."""
        low, high = self.ends
        return {
            "type": "line" if low == high else "rect",
            "x0": across[0],
            "x1": across[1],
            "y0": low,
            "y1": high,
            "line": {"color": "var(--soft)", "width": 1.3, "dash": self.dash},
        }


def panel(title: str, note: str, data: list[Figure], layout: Figure) -> Figure:
    """One chart of a board; ``title`` and ``note`` are plain text above it."""
    return {"title": unbroken(title), "note": unbroken(note), "data": data, "layout": layout}


def panel_layout(x: Figure, y: Figure, shapes: list[Figure]) -> Figure:
    """The layout of a small chart with two axes."""
    return {"xaxis": x, "yaxis": y, "shapes": shapes}


def tried_axis(values: Sequence[float], name: str) -> Figure:
    """An x axis for the values that were tried, in rising order; far apart ones are on a logarithmic scale."""
    low, high = values[0], values[-1]
    logarithmic = low > 0 and high / low >= _LOGARITHMIC_FROM
    ends = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
    air = 0.08 * (ends[1] - ends[0])
    ticks = values if len(values) <= _MOST_TICKS else None
    return {
        "title": {"text": name},
        "type": "log" if logarithmic else "linear",
        "range": [ends[0] - air, ends[1] + air],
        "tickvals": ticks,
        "ticktext": None if ticks is None else [f"{value:g}" for value in ticks],
    }


@dataclass(frozen=True)
class Board:
    """A section of small charts side by side.

    ``sheets`` holds by name what is seen at a time: a key to the marks, and panels. ``choice`` says what the names are.
    """

    title: str
    about: str
    kind: str
    choice: str
    sheets: Mapping[str, Figure]
