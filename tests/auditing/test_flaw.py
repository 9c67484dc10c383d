"""The noise layer's promise, refuted; the same adversary cannot refute a DP-SGD step."""

from __future__ import annotations

import math

import pytest
import torch

from sfumato.auditing.noise_layer_flaw import Finding, Front, blank_batches, natural_batches, sound_steps
from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon
from sfumato.studies import synth_flaw

DELTA = 1e-5


@pytest.fixture(scope="module")
def pictures(digits: Splits) -> torch.Tensor:
    return torch.from_numpy(digits.owner.x[:33].copy())


@pytest.mark.parametrize("sigma", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)], ids=str)
def test_blank_gradients_are_exactly_zero_and_one_record_shows_at_any_noise(
    sigma: float, shape: tuple[int, ...]
) -> None:
    record = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0))
    for finding in blank_batches(record, sigma=sigma, draws=20, delta=DELTA):
        assert (finding.hits, finding.alarms, finding.draws) == (20, 0, 20)
    front = Front(shape, sigma, seed=1)
    assert all(float(gradient.abs().max()) == 0.0 for gradient in front.gradients(torch.zeros(4, *shape)))
    assert all(float(gradient.norm()) > 0.0 for gradient in front.gradients(record.repeat(2, 1, 1, 1)))


@pytest.mark.parametrize("sigma", [4.0, 16.0])
def test_a_natural_record_among_natural_ones_betrays_more_than_is_claimed(sigma: float, pictures: torch.Tensor) -> None:
    span, linear = natural_batches(pictures[:32], pictures[32:], sigma=sigma, draws=120, delta=DELTA)
    assert (span.hits, span.alarms) == (120, 0)
    assert span.refutes
    assert linear.refutes
    assert linear.claimed == gaussian_epsilon(sigma, DELTA, 1.0)


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_the_best_test_stays_below_the_claim_of_a_sound_step(sigma: float, pictures: torch.Tensor) -> None:
    finding = sound_steps(pictures[:32], pictures[32:], sigma=sigma, draws=1000, delta=DELTA)
    assert not finding.refutes


def test_the_adversary_of_the_sound_step_is_no_fool(pictures: torch.Tensor) -> None:
    """Where the noise is too small for privacy it wins: at σ = 0.2 the distance is five standard deviations."""
    finding = sound_steps(pictures[:32], pictures[32:], sigma=0.2, draws=1000, delta=DELTA)
    assert finding.bound > 3.0
    assert not finding.refutes


def test_third_gradient_is_the_same_from_halfway(pictures: torch.Tensor) -> None:
    front = Front((1, 28, 28), 0.0, seed=0)
    whole = front.gradients(pictures)[2]
    assert torch.allclose(front.third(front.before_third(pictures)), whole)
    patches = front.patches(front.before_third(pictures))
    inside = patches.T @ torch.linalg.lstsq(patches.T, whole.double().T, driver="gelsd").solution
    assert torch.allclose(inside.T, whole.double(), atol=1e-5)  # its rows lie in the patches' span


def test_a_finding_speaks_of_its_counts() -> None:
    finding = Finding("zero", "convolution 1", 1.0, DELTA, 2000, 0, 2000)
    edge = 0.025 ** (1 / 2000)
    assert finding.bound == pytest.approx(math.log((edge - DELTA) / (1 - edge)))
    assert finding.refutes
    assert not Finding("zero", "convolution 1", 1.0, DELTA, 1000, 1000, 2000).refutes


def test_study_refutes_the_noise_layer_and_not_a_sound_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(synth_flaw.DRAWS, "smoke", 60)
    monkeypatch.setattr(synth_flaw, "_BLANK", (100.0,))
    monkeypatch.setattr(synth_flaw, "_NATURAL", (16.0,))
    found = [row.to_json("cpu") for row in synth_flaw.rows(scale="smoke")]  # judged as if enough were drawn
    assert len(found) == 3 + 2 + 3
    theirs = [row for row in found if row["name"].startswith("convolution")]
    assert {(row["claim"], row["verdict"]) for row in theirs} == {("synth-theorem-2", "does not hold")}
    assert all(row["ours"] > row["asked"]["bound"] and row["paper"] is None for row in theirs)
    assert all(row["claim"] is None for row in found if row not in theirs), "DP-SGD is no claim of the paper"


def test_study_knows_its_scales() -> None:
    with pytest.raises(UsageError, match="scale"):
        synth_flaw.rows(scale="huge")
