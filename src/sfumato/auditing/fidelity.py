"""How much synthetic records are like real ones; it ranks no mechanism and says nothing about privacy.

Synthetic records are held against the victims, which the model has never seen. The control is the owner's own records
in their place, what a perfect model would get. The baseline knows no record as a whole: rows of a table are drawn
uniformly from the domain, and every number of other records by itself from the attacker's. Where the owner's records
are what is compared with (``_neighbours``, ``table_fidelity``), the control is held-out records in place of the
synthetic ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from sfumato.auditing.domain_records import uniform
from sfumato.auditing.similarity import (
    Codes,
    contrasts,
    dynamic_ranges,
    frechet_distance,
    inside,
    nearest_rows,
    shape_likeness,
    trend_likeness,
)
from sfumato.auditing.students import usual_network
from sfumato.auditing.table_fidelity import IDENTICAL, K_MARGINAL, LOWER, Coded, coder, independent, table_likeness
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.intervals import Interval, wilson
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import Direction
from sfumato.nets.training_loop import as_tensor, forward_in_batches

THREAT = "fidelity"
SHAPES, TRENDS = "column-shapes", "pair-trends"
FRECHET, PRECISION, RECALL = "frechet-distance", "precision", "recall"
CONTRAST, RANGE = "contrast", "dynamic-range"
"""Means of the synthetic pictures in shares of the real ones' (the paper's Figure 2)."""
OTHER_CLASS, COPIES = "other-class-neighbours", "exact-copies"
"""Shares of the synthetic records (the paper's Figure 3)."""
_LOWER = (FRECHET, OTHER_CLASS, COPIES)
_ROUNDING = 0.5 / 255
"""Pictures that differ by no more in any pixel are the same in 8 bits."""
_BINS = 10
"""Intervals of a numeric column."""
_MOST_ROWS, _MOST_PICTURES = 20_000, 2000
_WIDTH = 8
"""Of the classifier whose features are compared: any that tells the classes apart will do."""
_COMPONENTS = 64
_RESAMPLES = 20

Set = tuple[FloatArray, Mapping[str, IntArray]]
"""Records, and their labels by name."""
Found = dict[str, tuple[float, Interval]]


def fidelity_scores(release: Release, splits: Splits, epochs: int, seed: int) -> list[Score]:
    """Tables: shapes of columns and trends of pairs. Other records: Fréchet distance, precision and recall in the
    features of a classifier that was trained on the attacker's real records, and the nearest records of the owner; of
    pictures, contrast and dynamic range."""
    started = time.perf_counter()
    owner, victim = splits.owner, splits.victim
    seed = derive_seed(seed, THREAT)
    labels = [name for name in release.utility if name in victim.utility]
    table = victim.schema.kind == "table"
    most = min(_MOST_ROWS if table else _MOST_PICTURES, len(victim), len(owner), len(release))
    rng = np.random.default_rng(seed)
    random = (
        uniform(victim.schema, most, derive_seed(seed, "uniform"))
        if table
        else one_by_one(splits.attacker.x, most, rng)
    )
    spread = {name: rng.integers(0, len(victim.schema.classes(name)), most) for name in labels}
    sets = {
        name: _some(x, {label: codes[label] for label in labels}, most, rng)
        for name, (x, codes) in {
            "real": (victim.x, victim.utility),
            "value": (release.payload, release.utility),
            "control": (owner.x, owner.utility),
            "baseline": (random, spread),
        }.items()
    }
    compare = _tables(victim.schema, seed) if table else _vectors(splits.attacker, epochs, seed)
    found = {name: compare(sets["real"], one) for name, one in sets.items() if name != "real"}
    if not table:
        near = {"value": sets["value"], "control": sets["real"], "baseline": sets["baseline"]}
        for name, one in near.items():
            found[name] |= _neighbours(one, owner)
    if table and len(victim.schema.columns) + len(labels) > 1:
        for name, likeness in _likeness(release, splits, tuple(labels), seed).items():
            found[name] |= likeness
    seconds = round(time.perf_counter() - started, 3)
    return [
        _score(metric, value, ci, found["baseline"][metric][0], found["control"][metric][0], most, seconds)
        for metric, (value, ci) in found["value"].items()
    ]


def _likeness(release: Release, splits: Splits, labels: tuple[str, ...], seed: int) -> dict[str, Found]:
    """The measures of ``table_fidelity`` against all of the owner's records; the control are all that were held out."""
    coded = coder(splits.owner, labels)
    owner = coded(splits.owner)
    drawn = coded(Dataset(release.payload, splits.schema, {name: release.utility[name] for name in labels}))
    held = [coded(part) for part in (splits.attacker, splits.victim)]
    others = Coded(np.concatenate([one.codes for one in held]), owner.sizes, np.concatenate([one.rows for one in held]))
    alone = independent(owner, len(owner.codes), np.random.default_rng(seed))
    sets = {"value": drawn, "control": others, "baseline": alone}
    return {name: table_likeness(owner, one, seed) for name, one in sets.items()}


def nearest_real(samples: FloatArray, owner: Dataset) -> FloatArray:
    """The owner's record nearest to each sample, by Euclidean distance: what a copy would show."""
    return np.asarray(owner.x[nearest_rows(samples, owner.x)])


def one_by_one(x: FloatArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """So many records whose numbers are each drawn from those of ``x`` at that place, without regard to the others."""
    flat = x.reshape(len(x), -1)
    drawn = np.take_along_axis(flat, rng.integers(0, len(flat), (rows, flat.shape[1])), axis=0)
    return np.asarray(drawn.reshape(rows, *x.shape[1:]))


def columns_of(x: FloatArray, labels: Mapping[str, IntArray], schema: Schema) -> tuple[Codes, list[int]]:
    """Codes (N, columns) of a table's columns and labels, and how many values each can have.

    A number falls into one of ten intervals of its range; what is missing has a code of its own.
    """
    columns: list[npt.NDArray[np.int64]] = []
    sizes = []
    start = 0
    for column in schema.columns:
        part = x[:, start : start + column.width]
        start += column.width
        if column.kind == "categorical":
            columns.append(part.argmax(axis=1))
            sizes.append(column.width)
            continue
        binned = np.clip((part[:, 0] * _BINS).astype(np.int64), 0, _BINS - 1)
        columns.append(np.where(part[:, 1] > 0.5, _BINS, binned) if column.nullable else binned)
        sizes.append(_BINS + int(column.nullable))
    for name, codes in labels.items():
        columns.append(np.asarray(codes))
        sizes.append(len(schema.classes(name)))
    return np.stack(columns, axis=1).astype(np.int64), sizes


def _tables(schema: Schema, seed: int) -> Callable[[Set, Set], Found]:
    def compare(real: Set, other: Set) -> Found:
        codes, sizes = columns_of(*real, schema)
        others, _ = columns_of(*other, schema)
        found: Found = {}
        for metric, likeness in ((SHAPES, shape_likeness), (TRENDS, trend_likeness)):
            value = likeness(codes, others, sizes)
            spread = _deviation(lambda a, b, f=likeness: f(codes[a], others[b], sizes), len(codes), len(others), seed)  # type: ignore[misc]
            found[metric] = value, (max(0.0, value - spread), min(1.0, value + spread))
        return found

    return compare


def _neighbours(samples: Set, owner: Dataset) -> Found:
    """How many samples have a nearest record of another class, and how many are that record."""
    x, labels = samples
    rows = nearest_rows(x, owner.x)
    same = np.abs(x - owner.x[rows]).reshape(len(x), -1).max(axis=1) <= _ROUNDING
    found: Found = {COPIES: (float(same.mean()), wilson(float(same.sum()), len(x)))}
    for label, codes in list(labels.items())[:1]:
        other = owner.utility[label][rows] != codes
        found[OTHER_CLASS] = (float(other.mean()), wilson(float(other.sum()), len(x)))
    return found


def _vectors(attacker: Dataset, epochs: int, seed: int) -> Callable[[Set, Set], Found]:
    features = _features(attacker, epochs, seed)
    shown = {CONTRAST: contrasts, RANGE: dynamic_ranges} if attacker.schema.kind == "image" else {}

    def compare(real: Set, other: Set) -> Found:
        a, b = features(real[0]), features(other[0])
        distance = frechet_distance(a, b)
        spread = _deviation(lambda i, j: frechet_distance(a[i], b[j]), len(a), len(b), seed)
        precision, recall = inside(b, a), inside(a, b)
        seen: Found = {}
        for metric, of in shown.items():
            ours, theirs = of(other[0]), of(real[0])
            ratio = float(ours.mean() / theirs.mean())
            half = _deviation(lambda i, j, a=theirs, b=ours: b[j].mean() / a[i].mean(), len(theirs), len(ours), seed)  # type: ignore[misc]
            seen[metric] = ratio, (max(0.0, ratio - half), ratio + half)
        return seen | {
            FRECHET: (distance, (max(0.0, distance - spread), distance + spread)),
            PRECISION: (float(precision.mean()), wilson(float(precision.sum()), len(b))),
            RECALL: (float(recall.mean()), wilson(float(recall.sum()), len(a))),
        }

    return compare


def _features(attacker: Dataset, epochs: int, seed: int) -> Callable[[FloatArray], Values]:
    """The last hidden layer of a classifier of the attacker's records, or principal components without a label."""
    if not attacker.utility:
        from sklearn.decomposition import PCA

        flat = attacker.x.reshape(len(attacker), -1)
        narrow = PCA(min(_COMPONENTS, *flat.shape), svd_solver="randomized", random_state=seed % 2**32).fit(flat)
        return lambda x: np.asarray(narrow.transform(x.reshape(len(x), -1)), dtype=np.float64)
    label, codes = next(iter(attacker.utility.items()))
    classes = len(attacker.schema.classes(label))
    network = usual_network(attacker.x, codes, classes, epochs=epochs, seed=seed, width=_WIDTH)
    hidden = network[:-1]  # (N, 128), after the ReLU
    return lambda x: forward_in_batches(hidden, as_tensor(x)).numpy().astype(np.float64)


def _deviation(
    statistic: Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], float], n: int, m: int, seed: int
) -> float:
    """1.96 standard deviations of a statistic of rows drawn with replacement from both sets.

    Its mean is no use: rows that are drawn twice make any two sets less alike.
    """
    rng = np.random.default_rng(seed)
    values = [statistic(rng.integers(0, n, n), rng.integers(0, m, m)) for _ in range(_RESAMPLES)]
    return 1.96 * float(np.std(values, ddof=1))


def _some(x: FloatArray, labels: Mapping[str, IntArray], most: int, rng: np.random.Generator) -> Set:
    rows = rng.permutation(len(x))[:most]
    return x[rows], {name: codes[rows] for name, codes in labels.items()}


def _score(metric: str, value: float, ci: Interval, baseline: float, control: float, n: int, seconds: float) -> Score:
    better: Direction = "lower" if metric in (*_LOWER, *LOWER) else "higher"
    unbounded = metric in (FRECHET, CONTRAST, RANGE)
    return Score(
        attack="fidelity",
        threat=THREAT,
        metric=metric,
        better_for_owner=better,
        value=value,
        ci=ci,
        baseline=baseline,
        control=control,
        n=n,
        seconds=seconds,
        limits=(0.0, np.inf if unbounded else IDENTICAL if metric == K_MARGINAL else 1.0),
    )
