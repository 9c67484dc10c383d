"""Metrics against cases computed by hand, with their range and direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from sfumato.core import metrics
from sfumato.core.intervals import bootstrap, mean_interval, wilson


def pictures(value: float, n: int = 2) -> np.ndarray:
    return np.full((n, 1, 28, 28), value, dtype=np.float32)


def test_mse_and_l1_of_a_constant_offset() -> None:
    assert metrics.mse(pictures(0.5), pictures(0.25)) == pytest.approx([0.0625, 0.0625])
    assert metrics.l1(pictures(0.5), pictures(0.25)) == pytest.approx([0.25, 0.25])


def test_psnr_is_for_the_range_0_to_1_and_not_0_to_255() -> None:
    assert metrics.psnr(pictures(0.5), pictures(0.4)) == pytest.approx([20.0, 20.0], abs=1e-4)


def test_psnr_of_a_perfect_guess_is_the_cap() -> None:
    assert metrics.psnr(pictures(0.3), pictures(0.3)).tolist() == [100.0, 100.0]


def test_ssim_of_a_picture_with_itself_is_one() -> None:
    noise = np.random.default_rng(0).random((3, 1, 28, 28)).astype(np.float32)
    assert metrics.ssim(noise, noise) == pytest.approx([1.0] * 3)


def test_ssim_of_two_constant_pictures_is_the_luminance_term() -> None:
    a, b, c1 = 0.8, 0.2, 1e-4
    expected = (2 * a * b + c1) / (a * a + b * b + c1)
    assert metrics.ssim(pictures(a), pictures(b)) == pytest.approx([expected] * 2, rel=1e-5)


def test_ssim_of_a_negative_is_negative() -> None:
    noise = np.random.default_rng(0).random((1, 1, 28, 28)).astype(np.float32)
    assert metrics.ssim(noise, 1 - noise)[0] < -0.5


def test_ssim_agrees_with_the_formula_at_one_window() -> None:
    """An 11×11 picture has one inner window: its index follows from weighted moments."""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 11, 11))
    axis = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    w = np.outer(axis, axis) / axis.sum() ** 2
    ma, mb = (w * a).sum(), (w * b).sum()
    va, vb, cov = (w * a * a).sum() - ma**2, (w * b * b).sum() - mb**2, (w * a * b).sum() - ma * mb
    expected = (2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    got = metrics.ssim(a[None, None].astype(np.float32), b[None, None].astype(np.float32))[0]
    assert got == pytest.approx(expected, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_metrics_stay_in_their_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 3, 1, 14, 14)).astype(np.float32)
    assert ((metrics.mse(a, b) >= 0) & (metrics.mse(a, b) <= 1)).all()
    assert ((metrics.psnr(a, b) >= 0) & (metrics.psnr(a, b) <= 100)).all()
    assert (np.abs(metrics.ssim(a, b)) <= 1).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_classification_metrics_agree_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 60)
    truth[:2] = [0, 1]
    p = np.round(rng.random(60), 1)  # rounding makes ties
    scores = np.stack([1 - p, p], axis=1).astype(np.float32)
    every = np.ones(60)
    assert metrics.auroc_statistic(truth, scores)(every) == pytest.approx(roc_auc_score(truth, scores[:, 1]))
    ours = metrics.balanced_accuracy_statistic(truth, scores)(every)
    assert ours == pytest.approx(balanced_accuracy_score(truth, scores.argmax(1)))


def test_weights_count_records_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    truth, p = rng.integers(0, 2, 30), rng.random(30)
    scores = np.stack([1 - p, p], axis=1).astype(np.float32)
    counts = rng.integers(0, 4, 30)
    repeated = np.repeat(np.arange(30), counts)
    for statistic in (metrics.auroc_statistic, metrics.balanced_accuracy_statistic):
        weighted = statistic(truth, scores)(counts.astype(np.float64))
        assert weighted == pytest.approx(statistic(truth[repeated], scores[repeated])(np.ones(len(repeated))))


def test_perfect_and_reversed_scores_have_area_one_and_zero() -> None:
    truth = np.array([0, 0, 1, 1])
    scores = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]], dtype=np.float32)
    assert metrics.auroc_statistic(truth, scores)(np.ones(4)) == 1.0
    assert metrics.auroc_statistic(truth, 1 - scores)(np.ones(4)) == 0.0


def test_wilson_interval_of_a_known_case() -> None:
    low, high = wilson(8, 10)
    assert (low, high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (0, 1), (1, 1000)])
def test_wilson_interval_holds_its_proportion(successes: int, n: int) -> None:
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1


def test_interval_of_a_mean_covers_it_about_as_often_as_promised() -> None:
    covered = 0
    for seed in range(100):
        low, high = mean_interval(np.random.default_rng(seed).exponential(1.0, 200))
        covered += low <= 1.0 <= high
    assert 86 <= covered <= 100


def test_interval_is_wider_when_records_share_subjects() -> None:
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(10), 50)
    values = rng.normal(size=10)[subjects] + 0.01 * rng.normal(size=500)
    alone, together = mean_interval(values), mean_interval(values, subjects)
    assert together[1] - together[0] > 3 * (alone[1] - alone[0])


def test_bootstrap_of_a_constant_has_no_width() -> None:
    assert bootstrap(lambda weights: 2.0, 10) == (2.0, 2.0)
    assert not math.isnan(mean_interval(np.array([0.5]))[0])


def test_confusion_has_the_truth_in_rows_and_the_guess_in_columns() -> None:
    scores = np.eye(3, dtype=np.float32)[[0, 2, 2, 1]]
    assert metrics.confusion(np.array([0, 0, 2, 2]), scores).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 1]]


def test_tpr_at_a_low_fpr_of_a_case_by_hand() -> None:
    """Members at 9, 8, 5 and strangers at 7, 6, 4, 3: no stranger is above 8, one of four at or above 7."""
    truth = np.array([1, 1, 0, 0, 1, 0, 0])
    scores = np.array([9, 8, 7, 6, 5, 4, 3], dtype=np.float32)
    every = np.ones(7)
    assert metrics.tpr_statistic(truth, scores, 0.01)(every) == pytest.approx(2 / 3)
    assert metrics.tpr_statistic(truth, scores, 0.6)(every) == pytest.approx(1.0)
    assert metrics.tpr_statistic(truth, -scores, 0.01)(every) == pytest.approx(0.0)


def test_a_score_that_says_nothing_has_the_tpr_of_its_fpr() -> None:
    truth = np.arange(10) % 2
    assert metrics.tpr_statistic(truth, np.zeros(10, dtype=np.float32), 0.01)(np.ones(10)) == pytest.approx(0.01)
    assert metrics.tpr_statistic(np.ones(3), np.zeros(3, dtype=np.float32), 0.01)(np.ones(3)) == 0.01
