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
from sfumato.mechanisms.ran.multiplier import our_lambda, papers_lambda


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


class Skips(nn.Module):
    """No chain: the input of the first layer is added to its output."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.pool = nn.MaxPool2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.pool(x + torch.relu(self.conv(x)))  # (B, C, H/4, W/4)
        return pooled


def test_encoder_without_a_mirror_is_trained_against_a_residual_decoder(digits: Splits) -> None:
    few = digits.owner.sample(100, 0)
    ran = RAN(architecture=lambda shape: Skips(shape[0]), epochs=1).fit(few)
    assert ran.transform(few.x[:2]).shape == (2, 1, 7, 7)
    assert ran.decode(ran.transform(few.x[:2])).shape == (2, 1, 28, 28)
    with pytest.raises(UsageError, match=r"cannot be mirrored.*decoder='residual'"):
        RAN(architecture=lambda shape: Skips(shape[0]), decoder="mirror").fit(few)


def test_users_own_decoder_is_fought_and_loaded_again(digits: Splits, tmp_path: Path) -> None:
    few = digits.owner.sample(100, 0)
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def own(features: tuple[int, ...], record: tuple[int, ...]) -> nn.Module:
        shapes.append((features, record))
        size = torch.Size(features).numel()
        return nn.Sequential(nn.Flatten(), nn.Linear(size, 784), nn.Sigmoid(), nn.Unflatten(1, record))

    ran = RAN(decoder=own, epochs=1).fit(few)
    assert shapes == [((32, 4, 4), (1, 28, 28))]
    sent = ran.transform(few.x[:2])
    ran.save(tmp_path)
    assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("*.pt"))
    with pytest.raises(UsageError, match="decoder is your own"):
        RAN.load(tmp_path)
    again = RAN.load(tmp_path, decoder=own)
    assert (again.decode(sent) == ran.decode(sent)).all()
    module = own((32, 4, 4), (1, 28, 28))
    assert RAN(decoder=module, epochs=1).fit(few).decoder_ is not module


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ("miror", "miror"),
        (3, "must be a text or a network"),
        (nn.Linear(3, 3), "cannot take features of shape"),
        (nn.Flatten(), r"makes records of shape \(512,\)"),
    ],
)
def test_decoder_that_does_not_fit_is_refused(digits: Splits, decoder: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RAN(decoder=decoder, epochs=1).fit(digits.owner.sample(100, 0))  # type: ignore[arg-type]


def test_papers_lambda_weighs_a_sum_and_ours_a_mean() -> None:
    # 784 numbers: 0.9/(0.9 + 784 · 0.1) = 0.9/79.3, and 0.01/(0.01 + 784 · 0.99) = 0.01/776.17
    assert our_lambda(0.9, 784) == pytest.approx(0.9 / 79.3)
    assert our_lambda(0.01, 784) == pytest.approx(0.01 / 776.17)
    # 784 · 0.001 = 0.784 beside 0.999
    assert papers_lambda(0.001, 784) == pytest.approx(0.784 / 1.783)
    assert papers_lambda(our_lambda(0.37, 3072), 3072) == pytest.approx(0.37)
    assert our_lambda(0.37, 1) == papers_lambda(0.37, 1) == pytest.approx(0.37)


def test_both_units_ask_the_same_of_the_encoder(tiny: Dataset) -> None:
    papers, numbers = 0.3, tiny.x[0].size
    x, y = batch(tiny)
    slopes = []
    for summed in (True, False):
        ran = built(tiny)
        ran._settle()
        z = ran.encoder_(x)
        entropy, error = F.cross_entropy(ran.classifier_(z), y), F.mse_loss(ran.decoder_(z), x)
        lam = papers if summed else our_lambda(papers, numbers)
        (lam * entropy - (1 - lam) * error * (numbers if summed else 1)).backward()  # type: ignore[no-untyped-call]
        slopes.append(torch.cat([p.grad.flatten() for p in ran.encoder_.parameters() if p.grad is not None]))
    assert F.cosine_similarity(slopes[0], slopes[1], dim=0).item() == pytest.approx(1.0, abs=1e-4)


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
