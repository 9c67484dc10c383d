"""``ran`` is Algorithm 1."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import UsageError
from sfumato.mechanisms.ran.mechanism import RAN, _Algorithm1


def built(tiny: Dataset, **params: float) -> RAN:
    ran = RAN(**params)  # type: ignore[arg-type]
    ran.schema_ = tiny.schema
    ran._build(tiny.schema)
    return ran


def batch(tiny: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(tiny.x.copy()), torch.from_numpy(tiny.utility["bright"].copy())


def test_one_batch_takes_k_steps_of_two_stages_and_one_of_the_third(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = built(tiny, k=3)
    game = _Algorithm1(ran)
    order: list[str] = []
    for stage, optimiser in game.optimisers.items():
        step = optimiser.step
        monkeypatch.setattr(optimiser, "step", lambda stage=stage, step=step: (order.append(stage), step()))
    game.play(*batch(tiny))
    assert order == ["d", "g", "d", "g", "d", "g", "a"]


def test_adversarial_stage_leaves_the_decoder_alone(tiny: Dataset) -> None:
    ran = built(tiny)
    game = _Algorithm1(ran)
    assert not set(game.optimisers["a"].param_groups[0]["params"]) & set(ran.decoder_.parameters())
    assert set(game.optimisers["g"].param_groups[0]["params"]) == set(ran.decoder_.parameters())


def test_adversarial_stage_at_lambda_zero_raises_the_decoders_error(tiny: Dataset) -> None:
    ran = built(tiny, lam=0.0, l3=1e-3, l1=1e-9, l2=1e-2)
    game = _Algorithm1(ran)
    x, y = batch(tiny)
    for _ in range(10):
        game.play(x, y)
    with torch.no_grad():
        before = F.mse_loss(ran.decoder_(ran.encoder_(x)), x).item()
    for group in game.optimisers["g"].param_groups:
        group["lr"] = 1e-12  # a decoder that stands still is easy to fool
    for _ in range(10):
        game.play(x, y)
    with torch.no_grad():
        after = F.mse_loss(ran.decoder_(ran.encoder_(x)), x).item()
    assert after > 1.2 * before


def test_objective_is_equation_4(tiny: Dataset) -> None:
    ran = built(tiny, lam=0.3, k=1, l1=1e-12, l2=1e-12, l3=1e-12)
    x, y = batch(tiny)
    losses = _Algorithm1(ran).play(x, y)
    assert losses["O_a"] == pytest.approx(0.3 * losses["O_d"] - 0.7 * losses["O_g"], rel=1e-3)


def test_learning_rates_are_separate(tiny: Dataset) -> None:
    game = _Algorithm1(built(tiny, l1=0.1, l2=0.2, l3=0.3))
    assert [game.optimisers[stage].param_groups[0]["lr"] for stage in "dga"] == [0.1, 0.2, 0.3]


def test_users_own_module_is_trained_and_loaded_again(digits: Splits, tmp_path: Path) -> None:
    own = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    ran = RAN(architecture=own, epochs=1).fit(digits.owner.take(slice(0, 200)))
    assert ran.transform(digits.victim.x[:2]).shape == (2, 4, 13, 13)
    assert not any(torch.equal(a, b) for a, b in zip(own.parameters(), ran.encoder_.parameters(), strict=True))
    ran.save(tmp_path)
    with pytest.raises(UsageError, match="encoder is your own"):
        RAN.load(tmp_path)
    again = RAN.load(tmp_path, architecture=own)
    assert (again.transform(digits.victim.x[:2]) == ran.transform(digits.victim.x[:2])).all()


def test_encoder_that_cannot_be_mirrored_is_refused(digits: Splits) -> None:
    with pytest.raises(UsageError, match="cannot be mirrored"):
        RAN(architecture=lambda shape: nn.Sequential(nn.Flatten(), nn.LayerNorm(784))).fit(digits.owner)


def test_encoder_for_another_shape_is_refused(digits: Splits) -> None:
    with pytest.raises(UsageError, match="cannot take records of shape"):
        RAN(architecture=lambda shape: nn.Linear(shape[0], 4)).fit(digits.owner)


@pytest.mark.parametrize(("parameter", "value"), [("lam", 1.2), ("lam", -0.1), ("k", 0), ("l1", 0.0), ("batch", 1)])
def test_parameter_out_of_range_is_refused(digits: Splits, parameter: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{parameter} must lie in"):
        RAN(**{parameter: value}).fit(digits.owner)  # type: ignore[arg-type]


def test_fit_from_a_neighbour_trains_a_quarter_of_the_epochs(digits: Splits) -> None:
    small = digits.owner.take(slice(0, 200))
    first = RAN(lam=0.5, epochs=8).fit(small)
    totals: list[int] = []
    RAN(lam=0.1, epochs=8).fit(small, start=first, progress=lambda _, total, __: totals.append(total))
    assert totals == [2, 2]


def test_fit_cannot_start_from_another_mechanism(digits: Splits, fitted: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="cannot start from a fitted dnn"):
        RAN().fit(digits.owner, start=fitted["dnn"])  # type: ignore[arg-type]
