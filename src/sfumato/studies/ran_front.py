"""Figure 3 of the ``ran`` paper: accuracy against the error of a fresh decoder, for every setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.intervals import bootstrap, share_interval
from sfumato.studies.drawing import Curve, plots
from sfumato.studies.papers import paper
from sfumato.studies.ran_choice import MIRROR, Chosen, choose, mean_of_each
from sfumato.studies.ran_points import FEW_PEOPLE, attacked, clean, in_papers_range, title
from sfumato.studies.rows import (
    Results,
    Row,
    Values,
    accuracy,
    aligned,
    attack_score,
    difference,
    each_of,
    plain_row,
    points_of,
    ratio,
    score_row,
)
from sfumato.studies.verdicts import Asked, Setting

OWN = "own-decoder"
RESIDUAL = "inverse-residual"
_ATTACKERS = {
    MIRROR: "a fresh mirror decoder (the paper's attacker)",
    RESIDUAL: "a fresh residual decoder",
    "inverse-encoder": "a search through the public encoder",
}
_WHOLE = {"cifar10": 10_000}
"""Victims of a run that trains on the whole data set, where ``cpu`` does not."""


def figure3(data: str, results: Results) -> list[Row]:
    """Every point's accuracy and errors, then what the paper says of them (§3.1)."""
    points = attacked(results)
    rows = [row for result in points for row in _rows_of(data, result)]
    for mechanism in ("noisy", "dnn-resized"):
        rows += [
            score_row(f"{title(data, result)}: accuracy", accuracy(result)) for result in clean(results, mechanism)
        ]
    (dnn,) = points_of(points, "dnn")
    ran = points_of(points, "ran")
    for result in ran:
        rows += _beside_dnn(data, result, dnn)
    chosen = choose(points)
    rows += _accuracy_claims(data, chosen)
    rows += _privacy_claims(data, chosen)
    rows += _own_decoder(data, ran)
    return [*rows, *_stability(data, results)]


def _rows_of(data: str, result: Mapping[str, Any]) -> list[Row]:
    """Accuracy, the paper's attacker, RAN's own decoder, the worst attack, and the information loss of noise."""
    name = title(data, result)
    rows = [score_row(f"{name}: accuracy", accuracy(result))]
    for attack, who in ((MIRROR, "mirror decoder (the paper's attacker)"), (OWN, "RAN's own decoder")):
        score = attack_score(result, attack, "mse")
        rows += [] if score is None else [score_row(f"{name}: {who}", score)]
    rows.append(score_row(f"{name}: worst attack", result["worst"]["reconstruction"]))
    if result["mechanism"] == "noisy":
        loss = information_loss(result["params"]["noise"])
        rows.append(plain_row(f"{name}: information loss without any attacker", "mse", "higher", loss, exact=True))
    return rows


def information_loss(noise: float) -> float:
    """The paper's privacy of *Noisy*, E|I − Ī|² a number: the variance 2b² of Laplace noise of scale b."""
    return 2.0 * noise**2


def _beside_dnn(data: str, result: Mapping[str, Any], dnn: Mapping[str, Any]) -> list[Row]:
    """One λ beside plain features, over the same victims."""
    name = title(data, result)
    gain, interval = difference((result, accuracy(result)), (dnn, accuracy(dnn)))
    rows = [_row(f"{name}: accuracy less dnn's", "accuracy difference", gain, interval, accuracy(dnn))]
    for attack, who in _ATTACKERS.items():
        rows += _error_over(f"{name} over dnn: error of {who}", attack, result, dnn)
    return rows


def _accuracy_claims(data: str, chosen: Chosen) -> list[Row]:
    """More accurate than dnn, and as accurate as the paper says, at a λ that other victims chose."""
    score, plain = accuracy(chosen.accurate), accuracy(chosen.dnn)
    few = FEW_PEOPLE.get(data, "")
    part = "" if plain["n"] >= _WHOLE.get(data, 0) else "trained on a part of the pictures"
    gain, interval = difference((chosen.accurate, score), (chosen.dnn, plain))
    asked = Asked("ran-more-accurate", "above", 0.0, unless=few or part)
    rows = [
        _row("ran at the most accurate λ: accuracy less dnn's", "accuracy difference", gain, interval, plain, asked)
    ]
    printed = paper("ran").figure_or_none("§3.1", data, "accuracy")
    right, whose = each_of(chosen.accurate, score)
    reached = None
    if printed is not None:
        reached = Asked("ran-accuracy", "above", printed, unless=(few and f"{few} whom nobody trained on") or part)
    name = "ran at the most accurate λ: accuracy"
    interval = share_interval(right, whose)
    row = _row(name, "accuracy", float(right.mean()), interval, score, reached, paper=printed)
    return [*rows, row]


def _privacy_claims(data: str, chosen: Chosen) -> list[Row]:
    """Harder to rebuild than dnn's features, and than noisy baselines that are as accurate."""
    few = FEW_PEOPLE.get(data, "")
    rows: list[Row] = []

    def add(name: str, attack: str, other: Mapping[str, Any] | None, claim: str, setting: Setting) -> None:
        if other is not None:
            asked = Asked(claim, "above", 1.0, setting, unless=few)
            rows.extend(_error_over(f"{name}: error of {_ATTACKERS[attack]}", attack, chosen.hiding, other, asked))

    best = "ran at the λ that hides most within a point of dnn"
    for attack in _ATTACKERS:
        add(f"{best}, over dnn", attack, chosen.dnn, "ran-hides-more", "paper" if attack == MIRROR else "adaptive")
    for attack in (MIRROR, RESIDUAL):
        setting: Setting = "paper" if attack == MIRROR else "adaptive"
        add(f"{best}, over dnn-resized", attack, chosen.resized, "ran-better-tradeoff", setting)
    add(f"{best}, over noisy", RESIDUAL, chosen.noisy, "ran-better-tradeoff", "adaptive")
    return rows


def _own_decoder(data: str, ran: Results) -> list[Row]:
    """RAN's own decoder, and a stronger fresh one, beside the fresh mirror: each on average over the paper's λ."""
    few = FEW_PEOPLE.get(data, "")
    tried = [result for result in ran if in_papers_range(data, result)] or list(ran)
    fresh = (mean_of_each(tried, MIRROR), _key(MIRROR))
    own = ratio((mean_of_each(tried, OWN), _key(OWN)), fresh)
    stronger = ratio((mean_of_each(tried, RESIDUAL), _key(RESIDUAL)), fresh)
    like = attack_score(tried[0], MIRROR, "mse")
    assert like is not None
    name = "RAN's own decoder over a fresh mirror decoder: error, mean over the paper's λ"
    mirror = "A fresh residual decoder over a fresh mirror decoder: error, mean over the paper's λ"
    return [
        _row(name, "mse ratio", *own, like, Asked("ran-own-decoder-errs-more", "above", 1.0, unless=few)),
        _row(
            f"{name} (§3.3)", "mse ratio", *own, like, Asked("ran-own-decoder-is-more-potent", "below", 1.0, unless=few)
        ),
        _row(mirror, "mse ratio", *stronger, like, Asked("ran-worst-decoder", "above", 1.0, unless=few)),
    ]


def _stability(data: str, results: Results) -> list[Row]:
    """The range of accuracy over λ beside that of the noisy baselines over their noise."""
    points = attacked(results)
    ran = [result for result in points_of(points, "ran") if in_papers_range(data, result)]
    if len(ran) < 2:
        return []
    rows = []
    printed = paper("ran").figures["§3.1, Noisy and DNN(resized)"]["accuracy"]
    for how, groups in (
        ("trained on clean data", [clean(results, kind) for kind in ("noisy", "dnn-resized")]),
        ("trained on what leaves", [points_of(points, kind) for kind in ("noisy", "dnn-resized")]),
    ):
        asked = None
        if how == "trained on clean data":
            asked = Asked("ran-stable", "below", 0.0, unless=FEW_PEOPLE.get(data, ""))
            every = [accuracy(result) for group in groups for result in group]
            for end, pick in (("lowest", min), ("highest", max)):
                score = pick(every, key=lambda one: float(one["value"]))
                rows.append(score_row(f"noisy and dnn-resized, {how}: {end} accuracy", score, paper=printed[end]))
        value, interval = narrower(ran, groups)
        name = f"range of ran's accuracy over λ less the narrower one of noisy and dnn-resized, {how}"
        rows.append(_row(name, "accuracy difference", value, interval, accuracy(ran[0]), asked, better="lower"))
    return rows


def narrower(ran: Results, baselines: Sequence[Results]) -> tuple[float, tuple[float, float]]:
    """max − min of ran's accuracy less the smallest max − min among the baselines, over the same victims."""
    every = [result for group in (ran, *baselines) for result in group]
    right, whose = aligned(*((result, accuracy(result)) for result in every))
    ends = np.cumsum([len(ran), *(len(group) for group in baselines)])
    own, *others = np.split(np.stack(right), ends[:-1])  # (λ, N), (noises, N) each

    def spread(right: Values, weights: Values) -> float:
        means = right @ weights / weights.sum()
        return float(means.max() - means.min())

    def statistic(weights: Values) -> float:
        return spread(own, weights) - min(spread(other, weights) for other in others)

    n = own.shape[1]
    return statistic(np.ones(n)), bootstrap(statistic, n, whose)


def _error_over(
    name: str, attack: str, result: Mapping[str, Any], other: Mapping[str, Any], asked: Asked | None = None
) -> list[Row]:
    """The error of an attack on ``result`` over its error on ``other``, over the same victims."""
    mine, theirs = attack_score(result, attack, "mse"), attack_score(other, attack, "mse")
    if mine is None or theirs is None:
        return []
    return [_row(name, "mse ratio", *ratio((result, mine), (other, theirs)), mine, asked)]


def _row(
    name: str,
    metric: str,
    value: float,
    interval: tuple[float, float],
    like: Mapping[str, Any],
    asked: Asked | None = None,
    **more: Any,
) -> Row:
    """A row over the victims of ``like``."""
    people = like.get("people")
    better = more.pop("better", "higher")
    return Row(name, metric, better, more.pop("paper", None), value, interval, asked, like["n"], people, **more)


def _key(attack: str) -> Mapping[str, Any]:
    return {"attack": attack, "target": None, "metric": "mse"}


def draw_figure3(data: str, results: Results, path: Path) -> None:
    """Accuracy against the error of a fresh mirror decoder (of the noisy record itself for noisy), as in the paper."""
    points = attacked(results)
    curves: dict[str, Curve] = {}
    for mechanism, attack, name in (
        ("noisy", "", "noisy (information loss)"),
        ("noisy", RESIDUAL, "noisy, residual decoder"),
        ("dnn", MIRROR, "dnn"),
        ("dnn-resized", MIRROR, "dnn-resized"),
        ("ran", MIRROR, "ran, fresh decoder"),
        ("ran", OWN, "ran, its own decoder"),
    ):
        found = sorted(points_of(points, mechanism), key=lambda result: float(accuracy(result)["value"]))
        errors = [_error(result, attack) for result in found]
        curves[name] = ([float(accuracy(result)["value"]) for result in found], errors, None)
    plots(
        path,
        [(f"{data}: up is more private, right more accurate", curves)],
        x="accuracy",
        y="mean squared error (log)",
        lines=False,
        logarithmic="y",
        dashed=("ran, its own decoder",),
    )


def _error(result: Mapping[str, Any], attack: str) -> float:
    score = attack_score(result, attack, "mse") if attack else None
    return information_loss(result["params"]["noise"]) if score is None else float(score["value"])
