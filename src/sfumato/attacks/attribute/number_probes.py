"""Probes of a private label that is a number: regressions trained on the protected pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal

import numpy as np
import torch
from torch.nn import functional as F

from sfumato.attacks.attribute.number_attack import NumberAttack
from sfumato.attacks.attribute.probes import preparation
from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.decoder_training import Constant, Pair, Schedule, fit_decoder
from sfumato.attacks.label_codes import labels_missing, side_by_side
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.threats import ATTRIBUTE, ATTRIBUTE_WITH_LABELS
from sfumato.nets.residual_classifier import ResidualClassifier
from sfumato.nets.training_loop import as_tensor, forward_in_batches

NumberKind = Literal["ridge", "trees", "trees-absolute", "knn", "mlp"]
NUMBER_KINDS: tuple[NumberKind, ...] = ("ridge", "trees", "trees-absolute", "knn", "mlp")
_WIDEST: dict[NumberKind, int] = {"ridge": 1024, "mlp": 1024, "trees": 64, "trees-absolute": 64, "knn": 64}
"""So many principal components are read of a wider payload."""
_NARROW, _DRAWS = 64, {True: 4, False: 2}
"""Queries of each record that these probes learn from: of payloads of at most 64 numbers, and of wider ones."""
_RATE, _DECAY, _BATCH, _FEWEST_IN_EPOCH, _JUDGED_BY = 2e-3, 0.5, 256, 8, 4
_RECORDS_A_COMPONENT, _FEWEST_COMPONENTS = 12, 32


class NumberPayloadProbe(NumberAttack):
    """Predicts ``label`` from the payload, with the attacker's own records for examples.

    It learns the number in deviations from the mean of those records.
    """

    label: str
    queried: QueriedRecords = field(default_factory=QueriedRecords)
    with_labels: bool = False

    @property
    def threat(self) -> str:  # type: ignore[override]
        return ATTRIBUTE_WITH_LABELS if self.with_labels else ATTRIBUTE

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"probe-{self.reader}" + ("+labels" if self.with_labels else "")

    @property
    @abstractmethod
    def reader(self) -> str:
        """The kind of regression, in the attack's name."""

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = labels_missing(knowledge) if self.with_labels else None
        return super().obstacle(knowledge) or missing

    @abstractmethod
    def fit(self, draws: FloatArray, wanted: FloatArray, seed: int) -> Callable[[FloatArray], Values]:
        """A function of payloads (N, F), from draws (R, N, F) of payloads and one number a record."""

    def guess(self, release: Release, knowledge: Knowledge) -> Values:
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        own = self.queried.of(knowledge)
        draws, victims = own.payloads, release.payload.reshape(len(release), -1)
        if self.with_labels:
            schema = own.data.schema
            known = side_by_side(own.data.utility, schema)
            draws = np.concatenate([draws, np.broadcast_to(known, (len(draws), *known.shape))], axis=2)
            victims = np.concatenate([victims, side_by_side(release.utility, schema)], axis=1)
        codes = own.data.label(self.label)
        scale = own.data.schema.numbers[self.label].learnt(codes)
        return scale.raw(self.fit(draws, scale.standard(codes), seed)(victims))


class NumberProbe(NumberPayloadProbe):
    """A regression of scikit-learn's."""

    kind: NumberKind = "ridge"

    @property
    def reader(self) -> str:
        return self.kind

    def fit(self, draws: FloatArray, wanted: FloatArray, seed: int) -> Callable[[FloatArray], Values]:
        some = draws[: _DRAWS[draws.shape[2] <= _NARROW]]
        return fit_number(self.kind, some.reshape(-1, draws.shape[2]), np.tile(wanted, len(some)), seed)


class ResidualNumberProbe(NumberPayloadProbe):
    """A residual network that sees other noise in every pass and starts from the ridge regression.

    The pass that is best on the last tenth of the records is kept, or their mean if that is better still.
    """

    version = 2
    reader = "residual"
    slow = True

    epochs: int = 60
    width: int = 256
    fewest_steps: int = 1000

    @property
    def yardstick(self) -> bool:  # type: ignore[override]
        return not self.with_labels

    def fit(self, draws: FloatArray, wanted: FloatArray, seed: int) -> Callable[[FloatArray], Values]:
        from sklearn.pipeline import make_pipeline

        few = max(_FEWEST_COMPONENTS, draws.shape[1] // _RECORDS_A_COMPONENT)
        narrow = make_pipeline(*preparation(draws[0], _WIDEST["mlp"], seed, few)).fit(draws[0])
        x = as_tensor(np.stack([narrow.transform(draw) for draw in draws]).astype(np.float32))
        y = as_tensor(wanted)[:, None]
        rest = max(1, len(y) - max(1, len(y) // 10))
        judged = x[:_JUDGED_BY, rest:].flatten(0, 1)  # (R′·n, F)
        held = judged, y[rest:].repeat(len(judged) // len(y[rest:]), 1)
        torch.manual_seed(seed)
        network = ResidualClassifier(x[0, :rest], 1, self.width)
        network.start_ridge(x[0, :rest], y[:rest])

        def draw(epoch: int) -> Pair:
            return x[epoch % len(x), :rest], y[:rest]

        schedule = Schedule(
            self.epochs, min(_BATCH, max(16, rest // _FEWEST_IN_EPOCH)), _RATE, self.fewest_steps, _DECAY
        )
        kept = fit_decoder(
            network, draw, held, schedule=schedule, seed=seed, loss=F.mse_loss, otherwise=Constant(y[:rest].mean(0))
        )

        def answer(payloads: FloatArray) -> Values:
            features = as_tensor(narrow.transform(payloads).astype(np.float32))
            found = np.asarray(forward_in_batches(kept, features)[:, 0], dtype=np.float64)
            return found.clip(wanted.min(), wanted.max())  # a network may go astray on what it has never seen

        return answer


def fit_number(kind: NumberKind, features: FloatArray, wanted: FloatArray, seed: int) -> Callable[[FloatArray], Values]:
    """A regression of that kind for vectors (N, D)."""
    from sklearn.pipeline import make_pipeline

    steps = preparation(features, _WIDEST[kind], seed)
    model = make_pipeline(*steps, _ESTIMATORS[kind](len(wanted), seed)).fit(features, wanted)
    low, high = float(wanted.min()), float(wanted.max())
    return lambda payloads: np.clip(np.asarray(model.predict(payloads), dtype=np.float64), low, high)


def _ridge(_records: int, _seed: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return RidgeCV(np.logspace(-1, 5, 13))


def _trees(records: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=150, early_stopping=records >= 20, n_iter_no_change=5, random_state=seed
    )


def _absolute_trees(records: int, seed: int) -> Any:
    return _trees(records, seed).set_params(loss="absolute_error")


def _knn(records: int, _seed: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(min(15, records), weights="distance")


def _mlp(records: int, seed: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=(128,),
        early_stopping=records >= 20,
        max_iter=60,
        n_iter_no_change=5,
        batch_size=min(256, max(1, records * 9 // 10)),
        random_state=seed,
    )


_ESTIMATORS: dict[NumberKind, Callable[[int, int], Any]] = {
    "ridge": _ridge,
    "trees": _trees,
    "trees-absolute": _absolute_trees,
    "knn": _knn,
    "mlp": _mlp,
}
