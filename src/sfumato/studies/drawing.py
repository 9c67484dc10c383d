"""Figures of the studies as small PNGs: the papers' plots and rows of pictures, drawn from stored scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import UsageError
from sfumato.core.run_folder import atomic

COLOURS = ("#0b5fa5", "#d1495b", "#2e8b57", "#e0a100", "#6a4c93", "#5f6b73", "#00a5a5", "#a0522d", "#e377c2", "#8fbc3f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
"""As many as there are digits. Curves are told apart in black and white, too."""

Curve = tuple[Sequence[float], Sequence[float], Sequence[tuple[float, float]] | None]
"""x, y, and the interval of each y."""
Points = npt.NDArray[np.float64]


def plots(
    path: Path,
    panels: Sequence[tuple[str, Mapping[str, Curve]]],
    *,
    x: str,
    y: str,
    lines: bool = True,
    logarithmic: str = "",
    dashed: Collection[str] = (),
) -> None:
    """Panels side by side, each a title and named curves; ``lines=False`` draws points, but for those ``dashed``;
    ``logarithmic`` names axes."""
    figure, axes = _figure(len(panels))
    for axis, (title, curves) in zip(axes, panels, strict=True):
        for place, (name, (xs, ys, intervals)) in enumerate(curves.items()):
            bars = None
            if intervals is not None:
                ends = np.array(intervals, dtype=float).T
                bars = np.abs(ends - np.asarray(ys, dtype=float))  # (2, points)
            axis.errorbar(
                xs,
                ys,
                yerr=bars,
                label=name,
                color=colour_of(place),
                marker=marker_of(place),
                linestyle="--" if name in dashed else "-" if lines else "",
                linewidth=1.2,
                markersize=4.5,
                capsize=2,
            )
        axis.set_title(title, fontsize=9)
        axis.set_xlabel(x, fontsize=8)
        axis.set_ylabel(y, fontsize=8)
        axis.tick_params(which="both", labelsize=7)
        axis.grid(alpha=0.3)
        if "x" in logarithmic:
            axis.set_xscale("log")
        if "y" in logarithmic:
            axis.set_yscale("log")
        if len(curves) > 1:
            beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)} if not lines and len(curves) > 6 else {}
            axis.legend(fontsize=7, **beside)  # many classes lie everywhere
    _save(figure, path)


def clouds(path: Path, panels: Sequence[tuple[str, Mapping[str, Points]]]) -> None:
    """Points in space, panels side by side: each a title and named clouds (N, 3), in colours of their own."""
    figure, axes = _figure(len(panels), projection="3d")
    for axis, (title, named) in zip(axes, panels, strict=True):
        for place, (name, points) in enumerate(named.items()):
            style: dict[str, Any] = {"color": colour_of(place), "marker": marker_of(place), "linewidths": 0}
            axis.scatter(*points.T, s=12, label=name, alpha=0.9, depthshade=False, **style)
        axis.set_title(title, fontsize=8)
        axis.tick_params(labelsize=5, pad=-3)
        axis.legend(fontsize=5, markerscale=2, loc="upper left")
    _save(figure, path)


def bars(
    path: Path, groups: Mapping[str, Mapping[str, tuple[float, tuple[float, float] | None]]], *, y: str, title: str = ""
) -> None:
    """Groups of bars: group → name → value and interval."""
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    figure, (axis,) = _figure(1, wide=max(4.5, 0.45 * len(groups) * len(names) + 1.5))
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        shown = [(at, values[name]) for at, values in enumerate(groups.values()) if name in values]
        xs = [at + (place - (len(names) - 1) / 2) * width for at, _ in shown]
        heights = np.array([value for _, (value, _) in shown])
        ends = np.array([ci if ci is not None else (value, value) for _, (value, ci) in shown], dtype=float).T
        axis.bar(
            xs,
            heights,
            width,
            yerr=np.abs(ends - heights),
            label=name,
            color=colour_of(place),
            capsize=2,
            error_kw={"linewidth": 0.8},
        )
    axis.set_xticks(range(len(groups)), list(groups), fontsize=7, rotation=20 if len(groups) > 4 else 0)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_title(title, fontsize=9)
    axis.grid(axis="y", alpha=0.3)
    if len(names) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(names), 3), fontsize=7)
    _save(figure, path)


def colour_of(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def marker_of(place: int) -> str:
    """Another one where colours begin anew, so that the first hundred curves differ."""
    return MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def picture_rows(path: Path, rows: Mapping[str, FloatArray], *, scale: int = 2) -> None:
    """Rows of pictures (N, C, H, W) in [0, 1] under each other, each with its name on the left."""
    from PIL import Image, ImageDraw

    gap, margin = 2, 8 + 6 * max(len(name) for name in rows)
    some = next(iter(rows.values()))
    high, wide = some.shape[-2] * scale, some.shape[-1] * scale
    count = max(len(pictures) for pictures in rows.values())
    sheet = Image.new("RGB", (margin + count * (wide + gap), len(rows) * (high + gap)), "white")
    pen = ImageDraw.Draw(sheet)
    for line, (name, pictures) in enumerate(rows.items()):
        top = line * (high + gap)
        pen.text((4, top + high // 2 - 6), name, fill="black")
        for place, picture in enumerate(pictures):
            pixels = (np.clip(picture, 0.0, 1.0) * 255).round().astype(np.uint8)
            pixels = np.repeat(pixels, 3, axis=0) if len(pixels) == 1 else pixels[:3]
            tile = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
            sheet.paste(tile.resize((wide, high), Image.Resampling.NEAREST), (margin + place * (wide + gap), top))
    with atomic(path) as part:
        sheet.quantize(128).save(part, format="PNG", optimize=True)


def gallery_of(result: Mapping[str, Any]) -> Mapping[str, FloatArray]:
    """The stored gallery of a point: ``originals``, ``release``, ``decoded``, ``recon/ATTACK``."""
    from sfumato.core.run_folder import read_tensors

    return {
        name: values.numpy() for name, values in read_tensors(Path(result["folder"]) / "gallery.safetensors").items()
    }


def _figure(panels: int, wide: float | None = None, projection: str | None = None) -> tuple[Any, Sequence[Any]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("figures of studies need matplotlib: pip install 'sfumato[viz]'.") from None
    figure = Figure(figsize=(wide or 4.2 * panels, 3.2), dpi=110, layout="constrained")
    return figure, [figure.add_subplot(1, panels, place + 1, projection=projection) for place in range(panels)]


def _save(figure: Any, path: Path) -> None:
    """As a palette PNG of the colours that are furthest apart: an average of neighbours would make all marks grey."""
    from io import BytesIO

    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    with atomic(path) as part:
        few = Image.open(drawn).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(part, format="PNG", optimize=True)
