"""Attribute probes: classifiers trained on the protected pipeline to read a private label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from sfumato.attacks.base import AttributeAttack
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

Kind = Literal["linear", "elu", "mlp", "trees", "knn"]
KINDS: tuple[Kind, ...] = ("linear", "elu", "mlp", "trees", "knn")

_WIDEST: dict[Kind, int] = {"linear": 1024, "elu": 1024, "mlp": 1024, "trees": 64, "knn": 64}
"""So many principal components are read of a wider payload: more cost time and, for neighbours, accuracy."""


class AttributeProbe(AttributeAttack):
    """Predicts ``label`` from the payload; of all kinds the best one counts.

    At most ``records`` auxiliary records are used. A randomised pipeline is queried twice a record.
    """

    def __init__(self, *, label: str, kind: Kind = "linear", records: int = 20_000) -> None:
        self.label = label
        self.kind = kind
        self.records = records

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"probe-{self.kind}"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        assert knowledge.query is not None  # obstacle() has seen to it
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        rows = np.random.default_rng(seed).permutation(len(knowledge.auxiliary))[: self.records]
        sample = knowledge.auxiliary.take(rows)
        queries = 2 if knowledge.randomised else 1
        features = np.concatenate([_flat(knowledge.query(sample)) for _ in range(queries)])
        labels = np.tile(sample.label(self.label), queries)
        model = _pipeline(self.kind, features, labels, seed)
        model.fit(features, labels)
        scores = np.zeros((len(release), len(sample.schema.classes(self.label))), dtype=np.float32)
        scores[:, model.classes_] = model.predict_proba(_flat(release.payload))
        return scores


def _pipeline(kind: Kind, features: FloatArray, labels: IntArray, seed: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps: list[Any] = [StandardScaler()]
    if features.shape[1] > _WIDEST[kind]:
        steps.append(PCA(min(_WIDEST[kind], len(features)), svd_solver="randomized", random_state=seed))
    return make_pipeline(*steps, _ESTIMATORS[kind](labels, seed))


def _can_hold_out(labels: IntArray) -> bool:
    """Whether a tenth of the records, for early stopping, can have every class."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(labels) >= 10 * len(counts))


def _linear(_labels: IntArray, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300, C=0.3, random_state=seed)


def _mlp(labels: IntArray, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        (128,),
        early_stopping=_can_hold_out(labels),
        max_iter=40,
        n_iter_no_change=4,
        batch_size=min(256, len(labels) * 9 // 10),
        random_state=seed,
    )


def _trees(labels: IntArray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    early = _can_hold_out(labels)
    return HistGradientBoostingClassifier(max_iter=150, early_stopping=early, n_iter_no_change=5, random_state=seed)


def _knn(labels: IntArray, _seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(min(15, len(labels)), weights="distance")


def _elu(_labels: IntArray, seed: int) -> Any:
    from sfumato.attacks.small import SmallNetwork

    return SmallNetwork(seed=seed)


_ESTIMATORS: dict[Kind, Callable[[IntArray, int], Any]] = {
    "linear": _linear,
    "elu": _elu,
    "mlp": _mlp,
    "trees": _trees,
    "knn": _knn,
}


def _flat(payload: FloatArray) -> FloatArray:
    return payload.reshape(len(payload), -1)
