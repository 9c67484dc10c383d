"""Every phase layer commutes with rotations and reflections, and computes what the paper's equations say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from sfumato.mechanisms.phase import (
    Each,
    PhaseActivation,
    PhaseActivationPool,
    PhaseDropout,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
    rotate,
)
from sfumato.mechanisms.phase.kernels import Delta, FixedNormDelta, Norm, NormDelta

PICTURE, SIGNAL, ROW = (4, 9, 8), (4, 12), (6,)
LAYERS: dict[str, tuple[tuple[int, ...], Callable[[], nn.Module]]] = {
    "conv": (PICTURE, lambda: Each(nn.Conv2d(4, 6, 3, padding=1, bias=False))),
    "depthwise": (PICTURE, lambda: Each(nn.Conv2d(4, 8, 3, stride=2, groups=4, bias=False))),
    "dilated, same": (PICTURE, lambda: Each(nn.Conv2d(4, 2, 3, dilation=2, padding="same", bias=False))),
    "circular": (PICTURE, lambda: Each(nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular", bias=False))),
    "conv1d": (SIGNAL, lambda: Each(nn.Conv1d(4, 3, 5, bias=False))),
    "transposed": (PICTURE, lambda: Each(nn.ConvTranspose2d(4, 3, 3, stride=2, bias=False))),
    "linear": (ROW, lambda: Each(nn.Linear(6, 5, bias=False))),
    "average": (PICTURE, lambda: Each(nn.AvgPool2d(3, 2, padding=1))),
    "average1d": (SIGNAL, lambda: Each(nn.AvgPool1d(3))),
    "adaptive": (PICTURE, lambda: Each(nn.AdaptiveAvgPool2d(2))),
    "adaptive1d": (SIGNAL, lambda: Each(nn.AdaptiveAvgPool1d(3))),
    "flatten": (PICTURE, lambda: Each(nn.Flatten())),
    "unflatten": (ROW, lambda: Each(nn.Unflatten(1, (2, 3)))),
    "nearest": (PICTURE, lambda: Each(nn.Upsample(scale_factor=2))),
    "bilinear": (PICTURE, lambda: Each(nn.Upsample(scale_factor=2, mode="bilinear"))),
    "zero pad": (PICTURE, lambda: Each(nn.ZeroPad2d(2))),
    "pixel shuffle": (PICTURE, lambda: Each(nn.PixelShuffle(2))),
    "identity": (PICTURE, lambda: Each(nn.Identity())),
    "δ, c = 1": (PICTURE, lambda: PhaseActivation(4)),
    "δ, c = 2.5": (SIGNAL, lambda: PhaseActivation(4, c=2.5)),
    "δ, c_k": (PICTURE, lambda: PhaseActivation(4, c=None)),
    "δ, c_k of rows": (ROW, lambda: PhaseActivation(6, c=None)),
    "norm": (PICTURE, lambda: PhaseNorm(4)),
    "norm of rows": (ROW, lambda: PhaseNorm(6)),
    "norm and δ": (PICTURE, lambda: PhaseNormActivation(4, 0.7)),
    "norm and δ of signals": (SIGNAL, lambda: PhaseNormActivation(4)),
    "max": (PICTURE, lambda: PhaseMaxPool(nn.MaxPool2d(2))),
    "max, all settings": (PICTURE, lambda: PhaseMaxPool(nn.MaxPool2d((3, 2), 2, (1, 0), (2, 1), ceil_mode=True))),
    "max1d": (SIGNAL, lambda: PhaseMaxPool(nn.MaxPool1d(3, 2, padding=1))),
    "δ and max": (PICTURE, lambda: PhaseActivationPool(PhaseActivation(4, c=None), PhaseMaxPool(nn.MaxPool2d(2)))),
    "dropout": (PICTURE, lambda: PhaseDropout(0.4)),
    "dropout of channels": (PICTURE, lambda: PhaseDropout(0.4, channels=True)),
}


def orthogonal(batch: int, d: int) -> Tensor:
    """A map of O(d) for each record, every other one with a reflection."""
    R = torch.linalg.qr(torch.randn(batch, d, d, dtype=torch.float64))[0]
    R[:, 0] *= (torch.linalg.det(R) * (-1.0) ** torch.arange(batch)).round()[:, None]
    assert torch.allclose(torch.linalg.det(R), (-1.0) ** torch.arange(batch).double())
    return R.float()


def error(network: nn.Module, x: Tensor) -> float:
    """‖Φ(R x) − R Φ(x)‖ / ‖Φ(x)‖, with the same chance in both passes."""
    R = orthogonal(len(x), x.shape[1])
    with torch.no_grad():
        torch.manual_seed(1)
        y = network(x)
        torch.manual_seed(1)
        turned = network(rotate(x, R))
    return float((turned - rotate(y, R)).norm() / y.norm())


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**31), d=st.sampled_from([2, 3, 4]), train=st.booleans(), last=st.booleans())
def test_every_layer_is_equivariant(name: str, seed: int, d: int, train: bool, last: bool) -> None:
    torch.manual_seed(seed)
    shape, build = LAYERS[name]
    x = torch.randn(4, d, *shape) * torch.rand(4, 1, *(1,) * len(shape)).exp()
    if last and len(shape) == 3:
        x = x.flatten(0, 1).contiguous(memory_format=torch.channels_last).view(x.shape)
    layer = build()
    layer(x)  # running statistics that are not the initial ones
    assert error(layer.train(train), x) < 1e-5


def test_delta_of_three_and_four() -> None:
    x = torch.tensor([[[3.0], [4.0]]])  # (1, 2, 1): norm 5
    assert torch.equal(PhaseActivation(1, c=1.0)(x), x)
    assert torch.allclose(PhaseActivation(1, c=10.0)(x), x / 2)


def test_c_of_a_channel_is_its_mean_norm() -> None:
    x = torch.tensor(
        [[[3.0, 0.0], [4.0, 2.0]], [[0.0, 0.0], [1.0, 4.0]]]
    )  # norms: channel 0 5 and 1, channel 1 2 and 4
    layer = PhaseActivation(2, c=None)
    expected = x * torch.tensor([[[1.0, 2 / 3]], [[1 / 3, 1.0]]])
    assert torch.allclose(layer(x), expected)
    assert layer.mean_norm is not None
    assert torch.allclose(layer.mean_norm, torch.tensor([0.9 + 0.1 * 3, 0.9 + 0.1 * 3]))
    layer.mean_norm.copy_(torch.tensor([10.0, 1.0]))
    assert torch.allclose(layer.eval()(x)[0], x[0] * torch.tensor([0.5, 1.0]))


def test_norm_divides_by_the_root_of_the_mean_square() -> None:
    x = torch.tensor([[[3.0], [4.0]], [[1.0], [0.0]]])  # mean square (25 + 1) / 2
    layer = PhaseNorm(1)
    assert torch.allclose(layer(x), x / 13.0**0.5, atol=1e-5)
    assert torch.allclose(layer.mean_square, torch.tensor([0.9 + 1.3]))
    assert torch.allclose(layer.eval()(x), x / 2.2**0.5, atol=1e-5)


def test_max_pool_keeps_all_components_of_the_longest_unit() -> None:
    x = torch.tensor([[[[3.0, -5.0, 0.0, 1.0]], [[4.0, 1.0, -2.0, 1.0]]]])  # norms² 25, 26, 4, 2
    assert PhaseMaxPool(nn.MaxPool1d(2))(x).tolist() == [[[[-5.0, 0.0]], [[1.0, -2.0]]]]


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_max_pool_passes_gradients_to_the_chosen_units_only(memory: torch.memory_format) -> None:
    torch.manual_seed(0)
    x = torch.randn(3 * 2, 4, 7, 7).contiguous(memory_format=memory).view(3, 2, 4, 7, 7).requires_grad_()
    y = PhaseMaxPool(nn.MaxPool2d(3, 2, padding=1))(x)
    weight = torch.randn_like(y)
    (ours,) = torch.autograd.grad((y * weight).sum(), x)
    chosen = nn.functional.max_pool2d(x.square().sum(1), 3, 2, 1, return_indices=True)[1].flatten(2)
    plain = x.flatten(3).gather(3, chosen[:, None].expand(-1, 2, -1, -1)).view(y.shape)
    (expected,) = torch.autograd.grad((plain * weight).sum(), x)
    assert torch.equal(y, plain) and torch.allclose(ours, expected)


def test_dropout_gives_the_components_of_a_unit_one_mask() -> None:
    torch.manual_seed(0)
    x = torch.ones(8, 3, 5, 6, 6)
    units = PhaseDropout(0.25)(x)
    assert torch.equal(units[:, 0], units[:, 2]) and units.unique().tolist() == pytest.approx([0.0, 4 / 3])
    channels = PhaseDropout(0.25, channels=True)(x)
    assert torch.equal(channels, channels[:, :1, :, :1, :1].expand_as(x))
    assert torch.equal(PhaseDropout(0.25).eval()(x), x) and not PhaseDropout(1.0)(x).any()


def test_two_components_are_complex_numbers() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 5, 3, stride=2, padding=1, groups=1, bias=False)
    z = torch.randn(4, 3, 8, 8, dtype=torch.complex64)
    expected = nn.functional.conv2d(z, conv.weight.to(z.dtype), stride=2, padding=1)
    y = Each(conv)(torch.stack([z.real, z.imag], 1))
    assert torch.allclose(torch.complex(y[:, 0], y[:, 1]), expected, atol=1e-5)
    turned = rotate(torch.stack([z.real, z.imag], 1), torch.tensor([[0.0, -1.0], [1.0, 0.0]]).expand(4, 2, 2))
    assert torch.allclose(torch.complex(turned[:, 0], turned[:, 1]), 1j * z)


def test_gradients_are_right() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 3, 2, 4, dtype=torch.float64, requires_grad=True)
    per_channel = torch.tensor([[0.8], [1.7]], dtype=torch.float64)
    for c in (1.0, 1.9, per_channel):
        assert torch.autograd.gradcheck(lambda x, c=c: Delta.apply(x, c), (x,))
    assert torch.autograd.gradcheck(lambda x: Norm.apply(x)[0], (x,))
    assert torch.autograd.gradcheck(lambda x: NormDelta.apply(x, 0.9)[0], (x,))
    assert torch.autograd.gradcheck(lambda x: FixedNormDelta.apply(x, per_channel, 1.2), (x,))


@pytest.mark.parametrize(
    "layer", [PhaseActivation(2), PhaseActivation(2, c=None), PhaseNormActivation(2), PhaseNorm(2)]
)
@pytest.mark.parametrize("scale", [0.0, 1e-25, 1e-12])
def test_gradients_stay_finite_at_zero(layer: nn.Module, scale: float) -> None:
    x = (scale * torch.ones(2, 2, 2, 3)).requires_grad_()
    for mode in (True, False):
        y = layer.train(mode)(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert y.isfinite().all() and gradient.isfinite().all()


def test_norm_and_delta_in_one_are_the_two_in_a_row() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 2, 4, 6, 6, requires_grad=True)
    one, two = PhaseNormActivation(4, 0.8), nn.Sequential(PhaseNorm(4), PhaseActivation(4, 0.8))
    for mode in (True, False):
        ours, expected = one.train(mode)(x), two.train(mode)(x)
        assert torch.allclose(ours, expected, atol=1e-6)
        weight = torch.randn_like(ours)
        gradients = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (ours, expected)]
        assert torch.allclose(*gradients, atol=1e-5)
    assert torch.allclose(one.mean_square, two[0].mean_square)


@pytest.mark.parametrize("c", [None, 0.9])
def test_delta_and_pool_in_one_are_the_two_in_a_row(c: float | None) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 2, 4, 6, 6, requires_grad=True)
    one = PhaseActivationPool(PhaseActivation(4, c), PhaseMaxPool(nn.MaxPool2d(2)))
    two = nn.Sequential(PhaseActivation(4, c), PhaseMaxPool(nn.MaxPool2d(2)))
    for mode in (True, False):
        ours, expected = one.train(mode)(x), two.train(mode)(x)
        assert torch.allclose(ours, expected, atol=1e-6)
        weight = torch.randn_like(ours)
        gradients = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (ours, expected)]
        assert torch.allclose(*gradients, atol=1e-5)


def test_channels_last_memory_stays_channels_last() -> None:
    x = torch.randn(8, 4, 8, 8).contiguous(memory_format=torch.channels_last).view(4, 2, 4, 8, 8)
    conv = nn.Conv2d(4, 4, 3, padding=1, bias=False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    pool = PhaseMaxPool(nn.MaxPool2d(2))
    for layer in (Each(conv), PhaseNorm(4), PhaseActivation(4), PhaseNormActivation(4), pool, PhaseDropout(0.5)):
        y = layer(x)
        assert y.flatten(0, 1).is_contiguous(memory_format=torch.channels_last), layer


def test_impossible_thresholds_are_refused() -> None:
    with pytest.raises(ValueError, match="channels"):
        PhaseActivation(c=None)
    with pytest.raises(ValueError, match="positive"):
        PhaseActivation(c=0.0)
