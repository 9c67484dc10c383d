"""Metrics with their range and direction, one value a record where that is possible.

Records and guesses are arrays (N, …) in [0, 1]; class scores are (N, classes) probabilities.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray

Values = npt.NDArray[np.float64]

PSNR_CAP = 100.0
"""dB; a perfect guess has no finite PSNR."""


def mse(truth: FloatArray, guess: FloatArray) -> Values:
    """Mean squared error of each record, in [0, 1]."""
    return np.asarray((_flat(truth - guess).astype(np.float64) ** 2).mean(axis=1))


def l1(truth: FloatArray, guess: FloatArray) -> Values:
    """Mean absolute error of each record, in [0, 1]."""
    return np.asarray(np.abs(_flat(truth - guess).astype(np.float64)).mean(axis=1))


def psnr(truth: FloatArray, guess: FloatArray) -> Values:
    """10·log₁₀(1/MSE) of each record in dB for the data range 1, in [0, 100]."""
    floor = 10.0 ** (-PSNR_CAP / 10.0)
    return np.asarray(-10.0 * np.log10(np.maximum(mse(truth, guess), floor)))


def ssim(truth: FloatArray, guess: FloatArray) -> Values:
    """Structural similarity of each picture (N, C, H, W) for the data range 1, in [−1, 1].

    Wang et al. 2004: Gaussian window of σ = 1.5 and 11 pixels, K₁ = 0.01, K₂ = 0.03, population covariance; the
    5-pixel border, where the window leaves the picture, does not count.
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


def correct(truth: IntArray, scores: FloatArray) -> Values:
    """1 where the highest score is the true class; its mean is the accuracy."""
    return np.asarray(scores.argmax(axis=1) == truth, dtype=np.float64)


def balanced_accuracy(truth: IntArray, scores: FloatArray) -> float:
    """The mean over classes of the share of that class's records that were recognised, in [0, 1]."""
    right = correct(truth, scores)
    return float(np.mean([right[truth == code].mean() for code in np.unique(truth)]))


def auroc(truth: IntArray, scores: FloatArray) -> float:
    """Area under the ROC curve in [0, 1], one class against the rest, averaged over the classes that occur.

    A class's area is the chance that a record of the class scores above one that is not, ties counting half
    (Mann–Whitney). 0.5 is a guess.
    """
    from scipy.stats import rankdata

    areas = []
    for code in np.unique(truth):
        positive = truth == code
        n_pos, n_neg = int(positive.sum()), int((~positive).sum())
        if n_neg == 0:
            continue
        ranks = rankdata(scores[:, code])
        areas.append((ranks[positive].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))
    return float(np.mean(areas)) if areas else 0.5


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)
