"""Eq. 8 of the ``phase`` paper: does its adversarial loss hide features from a critic that comes later?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfumato import load_splits
from sfumato.auditing.turned_features import TurnedFeatures, compared, turned_features
from sfumato.core import metrics
from sfumato.core.dataset import Splits
from sfumato.core.intervals import bootstrap, mean_interval, share_interval
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.studies.base import Measurement
from sfumato.studies.phase_points import DATA, EFFORTS, SEEDS, SMOKE_LIMIT, network_part
from sfumato.studies.rows import Row, plain_row
from sfumato.studies.verdicts import Asked

_GUESSING = 0.55
"""What "challenging" leaves: five points above guessing."""
_NAMES = {"with Eq. 8": 1.0, "without Eq. 8": 0.0}
"""And the critic's weight; its schedule is the default, the W-GAN's."""


def rows(
    *,
    data: str,
    scale: str,
    limit: int | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **_: Any,
) -> list[Row]:
    """The published scheme with and without its critic, on the same records and with the same first weights."""
    points = network_part(data, scale).points
    split = next(dict(point.params) for point in points if point.mechanism == "split")
    splits = load_splits(data, seed=seed, limit=limit, **DATA[data])
    fitted = {name: _fitted(name, splits, split, weight, seed, say) for name, weight in _NAMES.items()}
    asked = {
        name: turned_features(one[0], splits, EFFORTS[scale], derive_seed(seed, "phase-critic"))
        for name, one in fitted.items()
    }
    right = {name: _right(one[0], splits, seed) for name, one in fitted.items()}
    found = [row for name in _NAMES for row in _rows_of(name, right[name], asked[name], fitted[name][1])]
    change = right["with Eq. 8"] - right["without Eq. 8"]
    name = "with Eq. 8 less without: accuracy"
    found.append(
        Row(name, "accuracy difference", "higher", None, float(change.mean()), mean_interval(change), n=len(change))
    )
    return [*found, *_against(asked["without Eq. 8"], asked["with Eq. 8"])]


def _fitted(
    name: str, splits: Splits, split: Mapping[str, Any], weight: float, seed: int, say: Callable[[str], None]
) -> tuple[Phase, Mapping[str, float]]:
    """The network, and the mean losses of its last epoch."""
    losses: dict[str, float] = {}

    def hear(done: int, of: int, now: Mapping[str, float]) -> None:
        losses.update(now)
        say(f"{name}: epoch {done} of {of}")

    mechanism = Phase(variant="published", keyed=False, d=2, critic=weight, seed=seed, **split)
    mechanism.fit(splits.owner, progress=hear)
    return mechanism, losses


def _right(mechanism: Phase, splits: Splits, seed: int) -> metrics.Values:
    victim = splits.victim
    scores = victim.schema.by_label(mechanism.answer(victim, seed=derive_seed(seed, "victims")))
    right = [metrics.correct(victim.utility[label], part) for label, part in scores.items()]
    return np.asarray(np.mean(right, axis=0))


def _rows_of(name: str, right: metrics.Values, asked: TurnedFeatures, losses: Mapping[str, float]) -> list[Row]:
    every = np.ones(asked.n)
    area, spread = asked.area(every), asked.spread(every)
    claimed = Asked("phase-critic-fooled", "below", _GUESSING) if name == "with Eq. 8" else None
    limits = (0.0, 1.0)
    rows = [
        Row(f"{name}: accuracy", "accuracy", "higher", None, float(right.mean()), share_interval(right), n=len(right)),
        Row(
            f"{name}: a fresh critic tells features from turned ones",
            "auroc",
            "lower",
            None,
            area,
            bootstrap(asked.area, asked.n, limits=limits),
            claimed,
            n=asked.n,
        ),
        Row(
            f"{name}: spread of the features",
            "deviation",
            "higher",
            None,
            spread,
            bootstrap(asked.spread, asked.n),
            n=asked.n,
        ),
    ]
    for loss, what in (("L", "Eq. 8's own value in the last epoch"), ("task", "task loss in the last epoch")):
        if loss in losses:
            rows.append(plain_row(f"{name}: {what}", "loss", "lower", losses[loss]))
    return rows


def _against(without: TurnedFeatures, having: TurnedFeatures) -> list[Row]:
    """What the loss does: both over the same victims."""
    area, spread = compared(without, having, "area"), compared(having, without, "spread", ratio=True)
    asked = Asked("phase-critic-fooled", "above", 0.0)
    name = "without Eq. 8 less with: a fresh critic tells features from turned ones"
    return [
        Row(name, "auroc difference", "higher", None, *area, asked, n=having.n),
        Row("with Eq. 8 over without: spread of the features", "ratio", "higher", None, *spread, n=having.n),
    ]


CRITIC = Measurement(
    name="phase-critic",
    family="phase-critic",
    title="Phase, Eq. 8: what the adversarial loss does",
    about=(
        "The published scheme with its critic (five steps of RMSProp at 5e-5 for each one of the network) and without: "
        "how well a fresh critic tells features of records from turned ones, how far features spread over records, and "
        "accuracy."
    ),
    data=("cifar10", "mnist", "digits"),
    run=rows,
    claims=("phase-critic-fooled",),
    seeds=SEEDS,
    limits={"smoke": SMOKE_LIMIT, "cpu": 24_000},
)
