"""Figures 1, 3, 4 and 6 to 9 of the `filter` paper as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.run_folder import read_json
from sfumato.studies.drawing import Curve, gallery_of, picture_rows, plots
from sfumato.studies.filter_base import READER, SETTINGS, Result, named, private, raw, useful
from sfumato.studies.rows import Results

KINDS = ("gaussian", "filter-linear", "filter")


def information(result: Result, attack: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        s for s in result["information"] if s["better_for_owner"] == "lower" and s["attack"] == attack
    )
    return found


ESTIMATORS = {"mutual-information-corrected": "Gao et al. 2015", "mutual-information": "Gao et al. 2017"}
"""The first is the one that the paper cites."""


def drawn_of(result: Result) -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_json(Path(result["folder"]) / "features.json")
    return found


def draw_pictures(_data: str, results: Results, path: Path) -> None:
    """Originals, decoded latents, and the same after the paper's filter and ours at the largest of its budgets."""
    shown = {"decoded": raw(results)}
    for kind in ("filter-linear", "filter"):
        last = named(results, kind)[-1]
        shown[f"{kind}, b = {last['params']['budget']:g}"] = last
    rows = {"original": gallery_of(raw(results))["originals"]}
    picture_rows(path, {**rows, **{name: gallery_of(r)["decoded"] for name, r in shown.items()}})


def draw_sensitivity(_data: str, results: Results, path: Path, *, hidden: str, served: tuple[str, ...]) -> None:
    """Accuracies over the budget, at 0 those of the raw latent."""
    panels = []
    for kind in KINDS:
        chain = [raw(results), *named(results, kind)]
        xs = [0.0, *(float(r["params"]["budget"]) for r in chain[1:])]
        lines = {f"{hidden}, {READER[s]}": [private(r, hidden, s) for r in chain] for s in SETTINGS}
        lines |= {label: [useful(r, label) for r in chain] for label in served}
        panels.append((kind, {name: _curve(xs, scores) for name, scores in lines.items()}))
    plots(path, panels, x="budget b (half squared norm)", y="accuracy")


def draw_information(_data: str, results: Results, path: Path) -> None:
    """Figure 9: nats over the budget, by both estimators."""
    panels = []
    for attack, whose in ESTIMATORS.items():
        curves = {}
        for kind in KINDS:
            chain = [raw(results), *named(results, kind)]
            xs = [0.0, *(float(r["params"]["budget"]) for r in chain[1:])]
            curves[kind] = _curve(xs, [information(r, attack) for r in chain])
        panels.append((whose, curves))
    plots(path, panels, x="budget b (half squared norm)", y="nats about the private label")


def _curve(xs: list[float], scores: list[Mapping[str, Any]]) -> Curve:
    return xs, [float(s["value"]) for s in scores], [(s["ci"][0], s["ci"][1]) for s in scores]


def draw_geometry(_data: str, results: Results, path: Path, *, label: str) -> None:
    """Figures 4 and 8: victims' latents in the plane, one colour a digit or class."""
    linear = named(results, "filter-linear")
    panels = []
    for name, result in (("raw latent", raw(results)), *((f"b = {r['params']['budget']:g}", r) for r in linear)):
        drawn = drawn_of(result)
        points, codes = np.array(drawn["points"]), np.array(drawn["colours"][label]["codes"])
        classes = drawn["colours"][label]["classes"]
        curves: dict[str, Curve] = {
            str(name): (points[codes == code, 0].tolist(), points[codes == code, 1].tolist(), None)
            for code, name in enumerate(classes)
            if (codes == code).any()
        }
        panels.append((name, curves))
    plots(path, panels, x="", y="", lines=False)
