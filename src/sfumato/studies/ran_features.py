"""Figures 4 and 5 of the ``ran`` paper: the features as points in space, all classes and two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import RuleBroken
from sfumato.core.intervals import Interval, bootstrap
from sfumato.core.run_folder import read_json
from sfumato.studies.drawing import clouds
from sfumato.studies.ran_choice import POINT, choose
from sfumato.studies.ran_points import FEW_PEOPLE, attacked, title
from sfumato.studies.rows import Results, Row, Values, difference, points_of, score_row
from sfumato.studies.verdicts import Asked

PAIRS = {
    "mnist": ("4", "9"),
    "digits": ("4", "9"),
    "cifar10": ("ship", "automobile"),
    "har": ("SITTING", "STANDING"),
    "fsdd": ("1", "9"),
    "imagenet": ("914", "817"),
}
"""Two classes to look at closely; the paper takes sailboat and car. Elsewhere the first two."""


def figure4(data: str, results: Results) -> list[Row]:
    """A fresh classifier of what left, and how far it falls behind the one of plain features."""
    points = attacked(results)
    rows = [score_row(f"{title(data, one)}: fresh classifier on the features", _fresh(one)) for one in points]
    (dnn,) = points_of(points, "dnn")
    for result in points_of(points, "ran"):
        rows.append(_behind(f"{title(data, result)}: fresh classifier, less dnn's", result, dnn))
    chosen = choose(points)
    asked = Asked("ran-separable", "above", -POINT, unless=FEW_PEOPLE.get(data, ""))
    name = "ran at the λ that hides most within a point of dnn: fresh classifier, less dnn's"
    return [*rows, _behind(name, chosen.hiding, chosen.dnn, asked)]


def _fresh(result: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(s for s in result["utility"] if s["attack"] == "fresh classifier" and s["primary"])
    return found


def _behind(name: str, result: Mapping[str, Any], dnn: Mapping[str, Any], asked: Asked | None = None) -> Row:
    score = _fresh(result)
    value, interval = difference((result, score), (dnn, _fresh(dnn)))
    return Row(name, "accuracy difference", "higher", None, value, interval, asked, score["n"], score.get("people"))


def figure5(data: str, results: Results) -> list[Row]:
    """Two classes in the picture of the features: how much of their spread lies within a class."""
    points = attacked(results)
    (dnn,) = points_of(points, "dnn")
    rows = [_share_row(data, result) for result in (dnn, *points_of(points, "ran"))]
    chosen = choose(points)
    plain, labels = _two_classes(data, chosen.dnn, chosen.judges)
    features, _ = _two_classes(data, chosen.hiding, chosen.judges)

    def statistic(weights: Values) -> float:
        return within_share(features, labels, weights) - within_share(plain, labels, weights)

    value, interval = statistic(np.ones(len(labels))), bootstrap(statistic, len(labels))
    asked = Asked("ran-constrictive", "below", 0.0, unless=FEW_PEOPLE.get(data, ""))
    name = "ran at the λ that hides most within a point of dnn: share of variance within a class, less dnn's"
    return [*rows, Row(name, "share difference", "lower", None, value, interval, asked, len(labels))]


def _share_row(data: str, result: Mapping[str, Any]) -> Row:
    features, labels = _two_classes(data, result)

    def statistic(weights: Values) -> float:
        return within_share(features, labels, weights)

    value = statistic(np.ones(len(labels)))
    interval: Interval = bootstrap(statistic, len(labels), limits=(0.0, 1.0))
    pair = _pair(data, read_json(Path(result["folder"]) / "features.json")["classes"])
    name = f"{title(data, result)}: share of variance within a class ({' and '.join(pair)})"
    return Row(name, "share", "lower", None, value, interval, None, len(labels))


def within_share(features: Values, labels: npt.NDArray[np.int64], weights: Values) -> float:
    """Σ w·|f − mean of its class|² / Σ w·|f − mean|² of features (N, D): 0 where each class is one point."""
    mean = weights @ features / weights.sum()
    total = float(weights @ np.square(features - mean).sum(axis=1))
    inside = 0.0
    for label in np.unique(labels):
        mine = labels == label
        own = weights[mine]
        if own.sum() > 0:
            centre = own @ features[mine] / own.sum()
            inside += float(own @ np.square(features[mine] - centre).sum(axis=1))
    return inside / max(total, 1e-12)


def _two_classes(
    data: str, result: Mapping[str, Any], only: npt.NDArray[np.bool_] | None = None
) -> tuple[Values, npt.NDArray[np.int64]]:
    """The stored points (three principal components) of the two classes, of these victims or of all; the same victims
    for every mechanism."""
    picture = read_json(Path(result["folder"]) / "features.json")
    codes = np.array([picture["classes"].index(name) for name in _pair(data, picture["classes"])])
    labels = np.asarray(picture["labels"])
    kept = np.isin(labels, codes)
    if only is not None:
        if "rows" not in picture:
            raise RuleBroken(f"{result['point']}: an earlier version drew its features: run the study anew.")
        kept &= only[np.asarray(picture["rows"])]
    return np.asarray(picture["points"], dtype=np.float64)[kept], labels[kept]


def _pair(data: str, classes: Sequence[str]) -> tuple[str, ...]:
    """The two classes to look at closely."""
    named = PAIRS.get(data, ())
    return named if named and set(named) <= set(classes) else tuple(classes[:2])


def draw_figure4(data: str, results: Results, path: Path) -> None:
    """dnn beside ran, every class in its colour."""
    clouds(path, [_cloud(data, result, whole=True) for result in _shown(results)])


def draw_figure5(data: str, results: Results, path: Path) -> None:
    """The same for two classes."""
    clouds(path, [_cloud(data, result, whole=False) for result in _shown(results)])


def _shown(results: Results) -> list[Mapping[str, Any]]:
    points = attacked(results)
    chosen = choose(points)
    return [chosen.dnn, chosen.hiding]


def _cloud(data: str, result: Mapping[str, Any], *, whole: bool) -> tuple[str, Mapping[str, npt.NDArray[np.float64]]]:
    picture = read_json(Path(result["folder"]) / "features.json")
    points, labels = np.asarray(picture["points"], dtype=np.float64), np.asarray(picture["labels"])
    shown = tuple(picture["classes"]) if whole else _pair(data, picture["classes"])
    return title(data, result), {name: points[labels == picture["classes"].index(name)] for name in shown}
