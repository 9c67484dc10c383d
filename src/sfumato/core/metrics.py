"""Metrics, with one value per record where possible.

Records and guesses are arrays (N, …) in [0, 1]; class scores are (N, classes) probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.schema import Column

Values = npt.NDArray[np.float64]

PSNR_CAP = 100.0
"""Largest PSNR in dB; that of a perfect guess would be infinite."""


def mse(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the mean squared error of each record, in [0, 1]."""
    return np.asarray((_flat(truth - guess).astype(np.float64) ** 2).mean(axis=1))


def l1(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the mean absolute error of each record, in [0, 1]."""
    return np.asarray(np.abs(_flat(truth - guess).astype(np.float64)).mean(axis=1))


def psnr(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the PSNR of each record, 10·log₁₀(1/MSE) for data range 1, in dB and in [0, 100]."""
    floor = 10.0 ** (-PSNR_CAP / 10.0)
    return np.asarray(-10.0 * np.log10(np.maximum(mse(truth, guess), floor)))


def ssim(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the structural similarity of each image (N, C, H, W) for data range 1, in [−1, 1].

    Wang et al. 2004: Gaussian window with σ = 1.5 and 11 pixels, K₁ = 0.01, K₂ = 0.03, population covariance. The
    5-pixel border, where the window leaves the image, is ignored.
    """
    from scipy.ndimage import gaussian_filter

    a, b = truth.astype(np.float64), guess.astype(np.float64)
    sigma = (0.0, 0.0, 1.5, 1.5)

    def blur(values: Values) -> Values:
        return np.asarray(gaussian_filter(values, sigma, truncate=3.5))

    mean_a, mean_b = blur(a), blur(b)
    var_a, var_b = blur(a * a) - mean_a**2, blur(b * b) - mean_b**2
    cov = blur(a * b) - mean_a * mean_b
    c1, c2 = 0.01**2, 0.03**2
    index = ((2 * mean_a * mean_b + c1) * (2 * cov + c2)) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
    crop = 5 if min(a.shape[2:]) > 10 else 0
    inner = index[:, :, crop : a.shape[2] - crop, crop : a.shape[3] - crop]
    return np.asarray(np.clip(inner.reshape(len(a), -1).mean(axis=1), -1.0, 1.0))


def best_of(truth: FloatArray, guesses: FloatArray) -> FloatArray:
    """Return the guess with the least squared error, (N, …), out of several per record, (N, k, …)."""
    errors = np.stack([mse(truth, guesses[:, place]) for place in range(guesses.shape[1])], axis=1)
    return np.asarray(guesses[np.arange(len(guesses)), errors.argmin(axis=1)])


def angle(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the angle between directions (N, d), in [0, π]; a guess of zeros gets π/2, the mean of a uniform guess."""
    a, b = truth.astype(np.float64), guess.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = (a * b).sum(axis=1) / np.where(lengths > 0.0, lengths, 1.0)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def folded_angle(truth: FloatArray, guess: FloatArray) -> Values:
    """Return the angle between lines, in [0, π/2], where u and −u count as one.

    A guess of zeros gets the mean of a uniform guess, π/4 for d = 2.
    """
    angles = angle(truth, guess)
    uniform = _mean_folded_angle(guess.shape[1])
    return np.where(guess.any(axis=1), np.minimum(angles, np.pi - angles), uniform)


def _mean_folded_angle(d: int) -> float:
    """Return the mean angle of a uniform guess, whose density on [0, π/2] is sin(t)^(d − 2)."""
    t = (np.arange(10_000) + 0.5) * np.pi / 20_000
    density = np.sin(t) ** (d - 2)
    return float((t * density).sum() / density.sum())


def correct(truth: IntArray, scores: FloatArray) -> Values:
    """Return 1 where the highest score is the true class, else 0; the mean is the accuracy."""
    return np.asarray(scores.argmax(axis=1) == truth, dtype=np.float64)


def confusion(truth: IntArray, scores: FloatArray) -> IntArray:
    """Count how often each true class (row) was predicted as each class (column): (classes, classes)."""
    classes = scores.shape[1]
    pairs = truth * classes + scores.argmax(axis=1)
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


Statistic = Callable[[Values], float]
"""A metric as a function of the records' weights, so that a bootstrap only needs to draw weights."""


def balanced_accuracy_statistic(truth: IntArray, scores: FloatArray) -> Statistic:
    """Return the balanced accuracy as a statistic: the recall averaged over the classes that occur, in [0, 1]."""
    right = correct(truth, scores)

    def statistic(weights: Values) -> float:
        sizes = np.bincount(truth, weights)
        hits = np.bincount(truth, weights * right)
        return float((hits[sizes > 0] / sizes[sizes > 0]).mean())

    return statistic


def auroc_statistic(truth: IntArray, scores: FloatArray) -> Statistic:
    """Return the area under the ROC curve as a statistic: one class against the rest, averaged over those that occur.

    The area of a class is the probability that one of its records scores above a record of another class, with ties
    counting half (Mann–Whitney). It lies in [0, 1], and 0.5 is chance level.
    """
    levels = {code: np.unique(scores[:, code], return_inverse=True)[1] for code in np.unique(truth)}

    def statistic(weights: Values) -> float:
        areas = []
        for code, level in levels.items():
            positive = np.bincount(level, weights * (truth == code))
            negative = np.bincount(level, weights * (truth != code))
            pairs = positive.sum() * negative.sum()
            if pairs > 0:
                below = np.cumsum(negative) - negative
                areas.append(float(positive @ (below + 0.5 * negative) / pairs))
        return float(np.mean(areas)) if areas else 0.5

    return statistic


def explained(truth: Values, guess: Values) -> Values:
    """Return 1 − (y − ŷ)²/Var(y) of each record; the mean is R², which is at most 1, and 0 for the mean of the truth.

    The variance is that of these records. Where all numbers are equal nothing can be explained, and all are 0.
    """
    spread = float(np.var(truth))
    return 1.0 - np.square(truth - guess) / spread if spread > 0 else np.zeros(len(truth))


def r2_statistic(truth: Values, guess: Values) -> Statistic:
    """Return R² = 1 − Σ w (y − ŷ)² / Σ w (y − ȳ)² as a statistic, ȳ the weighted mean of the truth."""
    errors = np.square(truth - guess)

    def statistic(weights: Values) -> float:
        mean = float(weights @ truth / weights.sum())
        total = float(weights @ np.square(truth - mean))
        return 1.0 - float(weights @ errors) / total if total > 0 else 0.0

    return statistic


def tpr_statistic(truth: IntArray, scores: FloatArray, fpr: float) -> Statistic:
    """Return, as a statistic, the true positive rate (records with truth 1) at the false positive rate ``fpr``.

    The ROC curve is interpolated linearly between thresholds, so an uninformative score has a rate of ``fpr``.
    """
    _, level = np.unique(-scores, return_inverse=True)  # the highest score first

    def statistic(weights: Values) -> float:
        positive = np.bincount(level, weights * (truth == 1))
        negative = np.bincount(level, weights * (truth != 1))
        if positive.sum() == 0.0 or negative.sum() == 0.0:
            return fpr
        hits = np.concatenate([[0.0], np.cumsum(positive) / positive.sum()])
        alarms = np.concatenate([[0.0], np.cumsum(negative) / negative.sum()])
        place = int(np.searchsorted(alarms, fpr, side="right"))  # the first point beyond
        before, after = alarms[place - 1], alarms[place]
        return float(hits[place - 1] + (hits[place] - hits[place - 1]) * (fpr - before) / (after - before))

    return statistic


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)


def categories_right(truth: FloatArray, guess: FloatArray, columns: Sequence[Column]) -> Values:
    """Return the fraction of the categorical columns of each record (N, D) whose likeliest category is correct."""
    right, at, count = np.zeros(len(truth)), 0, 0
    for column in columns:
        if column.kind == "categorical":
            entries = slice(at, at + column.width)
            right += truth[:, entries].argmax(1) == guess[:, entries].argmax(1)
            count += 1
        at += column.width
    return right / max(1, count)


_NUMBER_RIGHT = 0.005
"""A number counts as rebuilt within this part of its range; a whole number if it rounds to the right one."""


def records_right(truth: FloatArray, guess: FloatArray, columns: Sequence[Column]) -> Values:
    """Return 1 for each record (N, D) that is rebuilt in every column, and 0 for the others."""
    right, at = np.ones(len(truth), dtype=bool), 0
    for column in columns:
        entries = slice(at, at + column.width)
        if column.kind == "categorical":
            right &= truth[:, entries].argmax(1) == guess[:, entries].argmax(1)
        else:
            error = np.abs(truth[:, entries] - guess[:, entries])
            right &= error[:, 0] < (0.5 / (column.high - column.low) if column.integer else _NUMBER_RIGHT)
            right &= (error[:, 1:] < 0.5).all(1)  # missing or not
        at += column.width
    return right.astype(np.float64)
