"""Attribute probes: classifiers trained on the protected pipeline to read a private label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sfumato.attacks.attribute.principal_components import VERY_WIDE, Narrowed
from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.label_codes import labels_missing, side_by_side
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.threats import ATTRIBUTE, ATTRIBUTE_WITH_LABELS

Kind = Literal["linear", "elu", "mlp", "trees", "knn"]
KINDS: tuple[Kind, ...] = ("linear", "elu", "mlp", "trees", "knn")

_WIDEST: dict[Kind, int] = {"linear": 1024, "elu": 1024, "mlp": 1024, "trees": 64, "knn": 64}
"""So many principal components are read of a wider payload: more cost time and, for neighbours, accuracy."""
_OF_VERY_WIDE = 512
"""And not more than so many of one so wide that they are learnt from a thousand records."""
_NARROW, _DRAWS = 64, {True: 4, False: 2}
"""Queries of each record that these probes learn from: of payloads of at most 64 numbers, and of wider ones."""


class PayloadProbe(AttributeAttack):
    """Predicts ``label`` from the payload, with the attacker's own records for examples; of all the best one counts."""

    version = 2

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
        """The kind of classifier, in the attack's name."""

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = labels_missing(knowledge) if self.with_labels else None
        return super().obstacle(knowledge) or missing

    @abstractmethod
    def fit(self, draws: FloatArray, labels: IntArray, seed: int) -> Any:
        """A classifier with scikit-learn's manners, from draws (R, N, F) of payloads and one label a record."""

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        own = self.queried.of(knowledge)
        draws, victims = own.payloads, release.payload.reshape(len(release), -1)
        if self.with_labels:
            schema = own.data.schema
            known = side_by_side(own.data.utility, schema)
            draws = np.concatenate([draws, np.broadcast_to(known, (len(draws), *known.shape))], axis=2)
            victims = np.concatenate([victims, side_by_side(release.utility, schema)], axis=1)
        model = self.fit(draws, own.data.label(self.label), seed)
        return class_scores(model, victims, len(own.data.schema.classes(self.label)))


_RECORDS_A_COMPONENT, _FEWEST_COMPONENTS = 12, 32
"""The residual network scales all components alike: with as many of them as records it would read noise alone."""


class AttributeProbe(PayloadProbe):
    """A classifier of scikit-learn's, or the `filter` paper's small network."""

    kind: Kind = "linear"

    @property
    def reader(self) -> str:
        return self.kind

    def fit(self, draws: FloatArray, labels: IntArray, seed: int) -> Any:
        some = draws[: _DRAWS[draws.shape[2] <= _NARROW]]
        return fit_probe(self.kind, some.reshape(-1, draws.shape[2]), np.tile(labels, len(some)), seed)


class ResidualProbe(PayloadProbe):
    """A residual network that sees other noise in every pass (``ResidualReader``): the strongest reader."""

    version = 3

    reader = "residual"
    slow = True

    epochs: int = 60
    width: int = 256
    fewest_steps: int = 1000

    @property
    def yardstick(self) -> bool:  # type: ignore[override]
        return not self.with_labels

    def fit(self, draws: FloatArray, labels: IntArray, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline

        from sfumato.attacks.attribute.residual_reader import ResidualReader

        few = max(_FEWEST_COMPONENTS, draws.shape[1] // _RECORDS_A_COMPONENT)
        narrow = make_pipeline(*preparation(draws[0], _WIDEST["mlp"], seed, few)).fit(draws[0])
        reader = ResidualReader(self.epochs, self.width, self.fewest_steps, seed)
        reader.fit(np.stack([narrow.transform(draw) for draw in draws]), labels)
        return Prepared(narrow, reader)


@dataclass(frozen=True)
class Prepared:
    """A fitted reader of what a fitted preparation makes of payloads."""

    preparation: Any
    reader: Any

    @property
    def classes_(self) -> IntArray:
        return np.asarray(self.reader.classes_)

    def predict_proba(self, features: FloatArray) -> FloatArray:
        return np.asarray(self.reader.predict_proba(self.preparation.transform(features)))


def preparation(features: FloatArray, widest: int, seed: int, most: int | None = None) -> list[Any]:
    """Standardised columns or, of vectors wider than ``widest``, at most ``most`` (None: as many) components."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    components = min(widest, len(features), most or widest)
    if features.shape[1] > VERY_WIDE:
        return [Narrowed(components=min(components, _OF_VERY_WIDE), seed=seed)]
    if features.shape[1] > widest:
        return [StandardScaler(), PCA(components, svd_solver="randomized", random_state=seed)]
    return [StandardScaler()]


def fit_probe(kind: Kind, features: FloatArray, labels: IntArray, seed: int) -> Any:
    """A classifier of that kind for vectors (N, D), with scikit-learn's manners."""
    from sklearn.pipeline import make_pipeline

    steps = preparation(features, _WIDEST[kind], seed)
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
