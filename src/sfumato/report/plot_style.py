"""What Plotly figures of this page share: how a method is drawn, error bars, reference lines, axes.

Figures are plain JSON values. Text from files is escaped: Plotly reads a subset of HTML in it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from sfumato.report.wording import reference

Figure = dict[str, Any]

INK = "#1c2430"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "pentagon", "hexagon", "x")
_GLYPHS = dict(zip((*SYMBOLS, "x-thin", "cross-thin"), "●■◆▲✚★▼⬟⬢✖×+", strict=True))
_GLYPHS |= {"dotted": "····", "dashed": "– –"}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# Dark enough for thin lines on white (contrast above 4.5), apart in hue for the common kinds of colour blindness.
_COLOURS = (
    "#0b5fa5", "#b4460f", "#1d7a4a", "#8b3a8f", "#8a6500", "#b0124f", "#2c6e7f", "#5a4fcf", "#555f6b", "#7a3b12",
)  # fmt: skip
CLASS_COLOURS = (
    "#0b5fa5", "#d1661b", "#1d7a4a", "#8b3a8f", "#a67c00", "#c2185b", "#3aa6c9", "#5a4fcf", "#6b7480", "#7a3b12",
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How one method is drawn everywhere on the page."""

    symbol: str
    dash: str
    colour: str


@dataclass(frozen=True)
class Reference:
    """A line across a chart at one value, or a band where the runs' own differ by more than a twentieth."""

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


def styles(methods: Sequence[str], controls: Sequence[str] = ()) -> dict[str, Style]:
    """A style for each method: no two share both symbol and dash; what hides nothing is drawn in ink."""
    drawn = {
        name: Style(symbol, "solid", INK)
        for name, symbol in zip(controls, cycle(("cross-thin", "x-thin")), strict=False)
    }
    for i, name in enumerate(name for name in methods if name not in controls):
        drawn[name] = Style(SYMBOLS[i % 10], _DASHES[i % 6], _COLOURS[i % 10])
    return drawn


def safe(text: str) -> str:
    """Text that Plotly prints as it is."""
    return html.escape(text, quote=False)


def marker(look: Style, size: int) -> Figure:
    thin = look.symbol.endswith("-thin")
    edge = {"color": look.colour, "width": 3} if thin else {"color": "#fff", "width": 1.5}
    return {"symbol": look.symbol, "size": size, "color": look.colour, "line": edge}


def error_bars(
    items: Iterable[tuple[float, tuple[float, float]] | None], look: Style, floor: float | None = None
) -> Figure:
    """Error bars from value and interval; on a logarithmic axis they end at its floor."""

    def ends(item: tuple[float, tuple[float, float]] | None) -> tuple[float, float]:
        if item is None:
            return 0.0, 0.0
        value, (low, high) = item
        if floor is not None:
            value, low = max(value, floor), max(low, floor)
        return max(high - value, 0.0), max(value - low, 0.0)

    up, down = zip(*(ends(item) for item in items), strict=True)
    return {
        "type": "data",
        "symmetric": False,
        "array": list(up),
        "arrayminus": list(down),
        "color": look.colour,
        "thickness": 1.1,
        "width": 3,
    }


def reference_lines(
    lines: Iterable[Reference], metric: str, across: Sequence[float], *, logarithmic: bool = False
) -> tuple[list[Figure], list[Figure]]:
    """Shapes from one x to another, and notes, for the lines that have a value; ``logarithmic`` is the y axis."""
    shapes: list[Figure] = []
    notes: list[Figure] = []
    for whole in lines:
        line = replace(whole, values=tuple(value for value in whole.values if value > 0 or not logarithmic))
        if not line.values:
            continue
        low, high = line.ends
        shapes.append(
            {
                "type": "line" if low == high else "rect",
                "x0": across[0],
                "x1": across[1],
                "y0": low,
                "y1": high,
                "line": {"color": "#4b5563", "width": 1.3, "dash": line.dash},
                "fillcolor": "rgba(75,85,99,0.06)",
                "layer": "between",
            }
        )
        notes.append(
            {
                "xref": "paper",
                "x": 0.005,
                "xanchor": "left",
                "y": math.log10(high) if logarithmic else high,
                "yanchor": "bottom",
                "text": f"{line.name}: {line.span(metric)}",
                "showarrow": False,
                "font": {"size": 12, "color": "#3b4452"},
            }
        )
    return shapes, notes


def axis() -> Figure:
    return {
        "gridcolor": "#eceff3",
        "linecolor": "#8a94a3",
        "showline": True,
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "#8a94a3",
        "zeroline": False,
        "automargin": True,
    }


def layout() -> Figure:
    return {
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {
            "bgcolor": "#fff",
            "bordercolor": "#8a94a3",
            "font": {"color": INK, "size": 13},
            "align": "left",
        },
    }


@dataclass(frozen=True)
class Panel:
    """One chart of a board; ``title`` and ``note`` are plain text above it."""

    title: str
    note: str
    data: list[Figure]
    layout: Figure


@dataclass(frozen=True)
class Sheet:
    """The panels that are seen together, and what their marks mean: (symbol, colour, name)."""

    name: str
    key: tuple[tuple[str, str, str], ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Board:
    """A section of small charts side by side; ``choice`` is what its sheets are chosen by."""

    title: str
    about: str
    kind: str
    choice: str
    sheets: tuple[Sheet, ...]

    def to_json(self) -> list[Figure]:
        return [
            {
                "key": [
                    {"glyph": _GLYPHS[symbol], "colour": colour, "name": name} for symbol, colour, name in sheet.key
                ],
                "panels": [
                    {
                        "title": panel.title.replace(" = ", "\u00a0=\u00a0"),
                        "note": panel.note.replace(" %", "\u00a0%"),
                        "data": panel.data,
                        "layout": panel.layout,
                    }
                    for panel in sheet.panels
                ],
            }
            for sheet in self.sheets
        ]
