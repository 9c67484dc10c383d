"""Membership: was this record among those that an encoder, a decoder or a classifier was fitted to?

What is fitted knows its own records better than others. The attacker sees how well: by the log-odds of the true class
and by the error of a decoder. Records differ in how hard they are, so either is compared with what it is for models
that have not seen the record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.label_codes import side_by_side
from sfumato.attacks.membership.synthetic_records import MembershipAttack
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Model
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

Signals = npt.NDArray[np.float64]
"""How well a model knows each record: (signals, N), the higher the better."""

_AVERAGED = 4
"""Queries of a randomised pipeline whose signals are averaged."""
_COMPONENTS = 32
_MOST = 5000
"""Records of the attacker's own that show what is hard, and as many for a decoder of its own."""


class TrainingMembership(MembershipAttack):
    """The members are the records that ``knowledge.model`` was fitted to."""

    def obstacle(self, knowledge: Knowledge) -> str | None:
        if knowledge.own_device is not None:
            return "a rotated message is not the encoder's output"
        none = "needs a public encoder, decoder or classifier that was fitted to the owner's records"
        return super().obstacle(knowledge) or (none if knowledge.model is None else None)


class HardRecords(TrainingMembership):
    """How much better the model knows a record than one so hard: φ(x) − φ̂(x), in deviations of other records.

    φ̂ is a ridge regression of φ on the record and its label, learnt from the attacker's records, which are no members
    (after Bertran et al. 2023, who learn a quantile). Where nothing public but the encoder was fitted, φ is the error
    of a linear decoder that the attacker fits to half of its records.
    """

    name = "member-hardness"
    title = "Known better than one so hard"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        seed = derive_seed(knowledge.seed, self.name)
        model, own = _model(knowledge), knowledge.auxiliary.sample(2 * _MOST, seed)
        if _says_nothing(model):
            half = len(own) // 2
            model, own = _linear_decoder(model, own.take(slice(0, half))), own.take(slice(half, None))
        return np.asarray(_excess(model, own, candidates, knowledge.randomised, seed).sum(axis=0))


class ShadowModels(TrainingMembership):
    """The likelihood ratio of φ for models with and without the record (LiRA, Carlini et al. 2022).

    The mechanism is fitted ``shadows`` times to a random half of the candidates and the attacker's records, so that
    half of the models have seen each candidate. With φ ~ N(in, σ²) or N(out, σ²) the log ratio is (in − out)·(φ − (in +
    out)/2)/σ²; the gap of a record is drawn to that of all records, as far as so few models cannot tell it from chance.
    """

    name = "member-shadows"
    slow = True
    title = "Likelihood ratio of shadow models"

    shadows: int = 4
    records: int = 1000

    def obstacle(self, knowledge: Knowledge) -> str | None:
        costly = "needs shadow models, which cost too much at this effort"
        silent = "needs a public decoder or classifier that was fitted to the owner's records"
        reason = super().obstacle(knowledge)
        if reason is not None or knowledge.model is None:
            return reason
        if _says_nothing(knowledge.model):
            return silent
        return costly if knowledge.refit is None else None

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        assert knowledge.refit is not None  # obstacle() has seen to it
        seed, more = derive_seed(knowledge.seed, self.name), max(0, 2 * self.records - len(candidates))
        pool = candidates.joined(knowledge.auxiliary.sample(more, seed))
        inside = halves(len(pool), self.shadows, seed)  # (shadows, pool)
        shadows = [
            knowledge.refit(pool.take(np.flatnonzero(rows)), derive_seed(seed, number))
            for number, rows in enumerate(inside)
        ]
        seen = np.stack([signals(model, candidates, knowledge.randomised) for model in shadows])
        target = signals(_model(knowledge), candidates, knowledge.randomised)
        ratios = [log_ratio(target[s], seen[:, s], inside[:, : len(candidates)]) for s in range(len(target))]
        return np.asarray(np.sum(ratios, axis=0))


def signals(model: Model, data: Dataset, randomised: bool) -> Signals:
    """The log-odds of the true class and minus the log of the decoder's error, as far as the model has them."""
    return np.asarray(np.mean([_signals(model, data) for _ in range(_AVERAGED if randomised else 1)], axis=0))


def log_ratio(target: Signals, seen: Signals, inside: npt.NDArray[np.bool_]) -> Signals:
    """log p(φ | in) − log p(φ | out) of ``target`` (N,), by what shadow models ``seen`` (K, N) say with ``inside``."""
    counts = inside.sum(axis=0), (~inside).sum(axis=0)
    within, without = (seen * inside).sum(axis=0) / counts[0], (seen * ~inside).sum(axis=0) / counts[1]
    apart = seen - np.where(inside, within, without)
    freedom = len(seen) - 2
    variance = float((apart**2).sum(axis=0).mean() / freedom) if freedom else 1.0
    gap = within - without
    by_chance = variance * float(np.mean(1.0 / counts[0] + 1.0 / counts[1]))
    trusted = max(0.0, 1.0 - by_chance / max(float(gap.var()), 1e-12)) if freedom else 0.0
    gap = np.maximum(gap.mean() + trusted * (gap - gap.mean()), 1e-6)
    return np.asarray(gap * (target - (within + without) / 2.0) / max(variance, 1e-12))


def halves(count: int, times: int, seed: int) -> npt.NDArray[np.bool_]:
    """Random halves of ``count`` and their complements, ``times`` (an even number) in all: (times, count)."""
    rng = np.random.default_rng(seed)
    first = np.stack([rng.permutation(count) < count // 2 for _ in range(times // 2)])
    return np.concatenate([first, ~first])


def _signals(model: Model, data: Dataset) -> Signals:
    payload, found = model.query(data), []
    if model.predict is not None and data.utility:
        found.append(_known_well(model.predict(payload), data))
    if model.decode is not None:
        found.append(-np.log(metrics.mse(data.x, model.decode(payload)) + 1e-6))
    return np.stack(found)


def _known_well(scores: FloatArray, data: Dataset) -> npt.NDArray[np.float64]:
    """The log-odds of the true class, or minus the log of the error of a number, by its range."""
    label = next(iter(data.utility))
    scale = data.schema.numbers.get(label)
    if scale is None:
        return _log_odds(scores, data.utility[label])
    error = np.abs(scores[:, 0] - data.numbers(label)) / ((scale.high - scale.low) or 1.0)
    return np.asarray(-np.log(error + 1e-6))


def _log_odds(scores: FloatArray, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """log p/(1 − p) of the true class; scores are logits, log-probabilities or probabilities."""
    values = scores.astype(np.float64)
    if (values >= 0.0).all() and np.allclose(values.sum(axis=1), 1.0, atol=1e-3):
        values = np.log(values + 1e-12)
    values -= values.max(axis=1, keepdims=True)
    p = np.exp(values)
    rows = np.arange(len(codes))
    true = p[rows, codes].copy()
    p[rows, codes] = 0.0
    return np.asarray(np.log(true + 1e-12) - np.log(p.sum(axis=1) + 1e-12))


@dataclass(frozen=True)
class _Known:
    """What is known of a record's hardness without the model: its principal components and classes."""

    mean: FloatArray
    basis: FloatArray

    def __call__(self, data: Dataset) -> npt.NDArray[np.float64]:
        points = (data.x.reshape(len(data), -1) - self.mean) @ self.basis  # (N, k)
        classes = [side_by_side(data.utility, data.schema)] if data.utility else []
        return np.concatenate([points, points**2, *classes], axis=1)


def _excess(model: Model, own: Dataset, candidates: Dataset, randomised: bool, seed: int) -> Signals:
    """φ − φ̂ of the candidates in deviations of the attacker's own records, (signals, N)."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    flat = own.x.reshape(len(own), -1)
    few = max(1, min(_COMPONENTS, len(flat) // 8, flat.shape[1]))
    narrow = PCA(few, svd_solver="randomized", random_state=seed % 2**32).fit(flat)
    known = _Known(narrow.mean_, narrow.components_.T)
    found = []
    for phi, there in zip(signals(model, own, randomised), signals(model, candidates, randomised), strict=True):
        regression = make_pipeline(StandardScaler(), RidgeCV(alphas=(1.0, 10.0, 100.0, 1000.0)))
        strange = phi - cross_val_predict(regression, known(own), phi, cv=min(5, len(own)))
        expected = regression.fit(known(own), phi).predict(known(candidates))
        found.append((there - expected) / max(float(strange.std()), 1e-6))
    return np.stack(found)


def _says_nothing(model: Model) -> bool:
    return model.predict is None and model.decode is None


def _linear_decoder(model: Model, own: Dataset) -> Model:
    """With the best linear way back to the record, by principal components of the payloads."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    payload = model.query(own).reshape(len(own), -1)
    few = max(1, min(4 * _COMPONENTS, len(own) // 4, payload.shape[1]))
    back = make_pipeline(PCA(few, svd_solver="randomized", random_state=0), Ridge()).fit(
        payload, own.x.reshape(len(own), -1)
    )

    def decode(payload: FloatArray) -> FloatArray:
        found = back.predict(payload.reshape(len(payload), -1))
        return np.asarray(found, dtype=np.float32).reshape(-1, *own.schema.shape)

    return Model(model.query, decode=decode)


def _model(knowledge: Knowledge) -> Model:
    assert knowledge.model is not None  # obstacle() has seen to it
    return knowledge.model
