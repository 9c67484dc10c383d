"""Attribute probes: classifiers trained on the protected pipeline to read a private label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from sfumato.attacks.attribute.principal_components import VERY_WIDE, Narrowed
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.decoder_training import affordable
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

Kind = Literal["linear", "elu", "mlp", "trees", "knn"]
KINDS: tuple[Kind, ...] = ("linear", "elu", "mlp", "trees", "knn")

_WIDEST: dict[Kind, int] = {"linear": 1024, "elu": 1024, "mlp": 1024, "trees": 64, "knn": 64}
"""So many principal components are read of a wider payload: more cost time and, for neighbours, accuracy."""


_OF_VERY_WIDE = 512
"""And not more than so many of one so wide that they are learnt from a thousand records."""


class AttributeProbe(AttributeAttack):
    """Predicts ``label`` from the payload; of all kinds the best one counts.

    At most ``records`` auxiliary records are used, and no more than a gigabyte holds. A randomised pipeline is queried
    twice a record.
    """

    label: str
    kind: Kind = "linear"
    records: int = 20_000

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"probe-{self.kind}"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        assert knowledge.query is not None  # obstacle() has seen to it
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        queries = 2 if knowledge.randomised else 1
        size = release.payload[0].size
        most = affordable(self.records, queries * size)
        sample = knowledge.auxiliary.take(np.random.default_rng(seed).permutation(len(knowledge.auxiliary))[:most])
        features = np.empty((queries, len(sample), size), dtype=np.float32)
        for number in range(queries):
            features[number] = _flat(knowledge.query(sample))
        labels = np.tile(sample.label(self.label), queries)
        model = fit_probe(self.kind, features.reshape(-1, size), labels, seed)
        return class_scores(model, _flat(release.payload), len(sample.schema.classes(self.label)))


def fit_probe(kind: Kind, features: FloatArray, labels: IntArray, seed: int) -> Any:
    """A classifier of that kind for vectors (N, D), with scikit-learn's manners."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps: list[Any] = [StandardScaler()]
    components = min(_WIDEST[kind], len(features))
    if features.shape[1] > VERY_WIDE:
        steps = [Narrowed(components=min(components, _OF_VERY_WIDE), seed=seed)]
    elif features.shape[1] > _WIDEST[kind]:
        steps.append(PCA(components, svd_solver="randomized", random_state=seed))
    return make_pipeline(*steps, _ESTIMATORS[kind](labels, seed)).fit(features, labels)


def class_scores(model: Any, features: FloatArray, classes: int) -> FloatArray:
    """A fitted probe's probability for every class, also for those it has never seen."""
    scores = np.zeros((len(features), classes), dtype=np.float32)
    scores[:, model.classes_] = model.predict_proba(features)
    return scores


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
    from sfumato.attacks.attribute.elu_network import SmallNetwork

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
