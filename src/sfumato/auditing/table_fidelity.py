"""How much a synthetic table is like the real one, in the measures that people who make such tables know.

Everything is against the owner's records: the synthetic records, other real ones that were held out (the control) and
columns drawn independently of each other (the baseline). All of it is for the owner: exact matches and inconsistencies
follow from single records, and no figure here is private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.auditing.similarity import Codes
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import Interval, wilson
from sfumato.core.metrics import Values

K_MARGINAL, PROPENSITY, ASSOCIATION = "k-marginal", "propensity-error", "association-error"
MATCHES, INCONSISTENT = "unique-exact-matches", "inconsistencies"
LOWER = (PROPENSITY, ASSOCIATION, MATCHES, INCONSISTENT)
IDENTICAL = 1000.0
_BINS = 20
_MOST = 20_000
"""Rows of either side that a classifier learns to tell apart."""
_SEEN = 10.0
"""A combination is expected to occur if independent columns would bring it about so often in the owner's records."""
_RESAMPLES = 20
Found = dict[str, tuple[float, Interval]]


@dataclass(frozen=True)
class Coded:
    """Records as codes (N, columns), their labels among the columns, with the number of values of each column."""

    codes: Codes
    sizes: tuple[int, ...]
    rows: FloatArray
    """The encoded records with their labels, for what has to be exact."""

    def take(self, rows: Codes) -> Coded:
        return Coded(self.codes[rows], self.sizes, self.rows[rows])


def coder(owner: Dataset, labels: tuple[str, ...]) -> Callable[[Dataset], Coded]:
    """How to code a data set like the owner's: numbers by twenty quantiles of those, what is missing by itself."""
    cuts: list[Values | None] = []
    start = 0
    for column in owner.schema.columns:
        if column.kind == "categorical":
            cuts.append(None)
        else:
            values = owner.x[:, start].astype(np.float64)
            if column.nullable:
                values = values[owner.x[:, start + 1] < 0.5]
            cuts.append(np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS)) if len(values) else np.zeros(0))
        start += column.width

    def coded(data: Dataset) -> Coded:
        columns, sizes, start = [], [], 0
        for column, cut in zip(owner.schema.columns, cuts, strict=True):
            part = data.x[:, start : start + column.width]
            start += column.width
            if cut is None:
                columns.append(part.argmax(axis=1))
                sizes.append(column.width)
                continue
            found = np.searchsorted(cut, part[:, 0].astype(np.float64), side="left")
            columns.append(np.where(part[:, 1] > 0.5, len(cut) + 1, found) if column.nullable else found)
            sizes.append(len(cut) + 1 + int(column.nullable))
        for name in labels:
            columns.append(data.utility[name])
            sizes.append(len(owner.schema.classes(name)))
        rows = np.concatenate([data.x, *(data.utility[name][:, None] for name in labels)], axis=1, dtype=np.float32)
        return Coded(np.stack(columns, axis=1).astype(np.int64), tuple(sizes), rows)

    return coded


def independent(real: Coded, rows: int, rng: np.random.Generator) -> Coded:
    """So many rows whose columns are drawn from those of ``real``, each by itself."""
    drawn = [rng.integers(0, len(real.codes), rows) for _ in real.sizes]
    codes = np.stack([real.codes[each, place] for place, each in enumerate(drawn)], axis=1)
    return Coded(codes, real.sizes, np.full((rows, 1), -1.0, dtype=np.float32))


def table_likeness(owner: Coded, other: Coded, seed: int) -> Found:
    """All measures of ``other`` against the owner's records; exact matches where ``other`` has whole records."""
    rng = np.random.default_rng(seed)
    rare = _impossible(owner)
    broken = _breaks(other, rare)
    found: Found = {
        K_MARGINAL: _resampled(k_marginal, owner, other, rng, IDENTICAL),
        PROPENSITY: propensity_error(owner, other, seed),
        ASSOCIATION: _resampled(association_error, owner, other, rng, 1.0),
        INCONSISTENT: (float(broken.mean()), wilson(float(broken.sum()), len(broken))),
    }
    if other.rows.shape[1] == owner.rows.shape[1]:
        hit = unique_matches(owner.rows, other.rows)
        found[MATCHES] = float(hit.mean()) if len(hit) else 0.0, wilson(float(hit.sum()), max(len(hit), 1))
    else:
        found[MATCHES] = 0.0, (0.0, 0.0)
    return found


def k_marginal(owner: Coded, other: Coded) -> float:
    """1000·(1 − ½·mean over all pairs of columns of Σ|p − q|): NIST's k-marginal score for k = 2; 1000 is identical."""
    apart = [np.abs(p - q).sum() for p, q in _pair_shares(owner, other)]
    return float(IDENTICAL * (1.0 - np.mean(apart) / 2.0)) if apart else IDENTICAL


def association_error(owner: Coded, other: Coded) -> float:
    """The mean absolute difference of Cramér's V over all pairs of columns."""
    errors = [abs(_cramer(p) - _cramer(q)) for p, q in _pair_shares(owner, other)]
    return float(np.mean(errors)) if errors else 0.0


def propensity_error(owner: Coded, other: Coded, seed: int) -> tuple[float, Interval]:
    """The mean of 4·(p − ½)², p a classifier's chance, on records it did not learn from, that a record is synthetic.

    0: nobody can tell; 1: everybody can. Equal numbers of both, boosted trees, two halves in turn.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(seed)
    rows = min(len(owner.codes), len(other.codes), _MOST)
    x = np.concatenate([one.codes[rng.permutation(len(one.codes))[:rows]] for one in (owner, other)])
    y = np.repeat([0, 1], rows)
    half = rng.permutation(2 * rows) % 2
    chance = np.full(2 * rows, 0.5)
    for part in (0, 1):
        learn = half == part
        if len(np.unique(y[learn])) == 2:
            model = HistGradientBoostingClassifier(max_iter=50, early_stopping=False, random_state=seed % 2**32)
            chance[~learn] = model.fit(x[learn], y[learn]).predict_proba(x[~learn])[:, 1]
    errors = 4.0 * (chance - 0.5) ** 2
    spread = 1.96 * float(errors.std()) / np.sqrt(len(errors))
    value = float(errors.mean())
    return value, (max(0.0, value - spread), min(1.0, value + spread))


def unique_matches(owner: FloatArray, other: FloatArray) -> np.ndarray:
    """For each record that the owner has exactly once, whether ``other`` holds it too, in every column."""

    def whole(rows: FloatArray) -> np.ndarray:
        return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()

    found, counts = np.unique(whole(owner), return_counts=True)
    return np.isin(found[counts == 1], whole(other))


def _pair_shares(owner: Coded, other: Coded) -> list[tuple[Values, Values]]:
    found = []
    for i, j in combinations(range(len(owner.sizes)), 2):
        shape = owner.sizes[i], owner.sizes[j]
        pair = []
        for one in (owner, other):
            counts = np.bincount(one.codes[:, i] * shape[1] + one.codes[:, j], minlength=shape[0] * shape[1])
            pair.append(counts.reshape(shape) / len(one.codes))
        found.append((pair[0], pair[1]))
    return found


def _cramer(shares: Values) -> float:
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    able = expected > 0.0
    least = min((expected.sum(axis=1) > 0).sum(), (expected.sum(axis=0) > 0).sum()) - 1
    if least < 1:
        return 0.0
    return float(np.sqrt((((shares - expected)[able]) ** 2 / expected[able]).sum() / least))


def _impossible(owner: Coded) -> dict[tuple[int, int], np.ndarray]:
    """Which combinations of two columns the owner's records never have though their columns are frequent enough."""
    found = {}
    for (i, j), (shares, _) in zip(
        combinations(range(len(owner.sizes)), 2), _pair_shares(owner, owner.take(np.arange(1))), strict=True
    ):
        expected = len(owner.codes) * np.outer(shares.sum(axis=1), shares.sum(axis=0))
        never = (shares == 0.0) & (expected >= _SEEN)
        if never.any():
            found[i, j] = never
    return found


def _breaks(other: Coded, never: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    """Which records have at least one combination that never occurs."""
    broken = np.zeros(len(other.codes), dtype=np.bool_)
    for (i, j), cells in never.items():
        broken |= cells[other.codes[:, i], other.codes[:, j]]
    return broken


def _resampled(
    measure: Callable[[Coded, Coded], float], owner: Coded, other: Coded, rng: np.random.Generator, most: float
) -> tuple[float, Interval]:
    """A measure, with 1.96 standard deviations of it over rows of ``other`` drawn with replacement."""
    value, rows = measure(owner, other), len(other.codes)
    values = [measure(owner, other.take(rng.integers(0, rows, rows))) for _ in range(_RESAMPLES)]
    spread = 1.96 * float(np.std(values, ddof=1))
    return value, (max(0.0, value - spread), min(most, value + spread))
