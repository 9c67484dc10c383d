"""A doubled map is convolved at its own size, for the numbers of upsampling first."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from sfumato.nets.doubling_convolution import DoublingConv2d, DoublingConvTranspose2d


@pytest.mark.parametrize("side", [3, 5, 7])
def test_doubling_and_convolving_at_once_gives_what_one_after_the_other_gives(side: int) -> None:
    torch.manual_seed(0)
    layer = DoublingConv2d(6, 2, side)
    maps, again = (torch.rand(3, 6, 7, 5, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    maps.requires_grad_(True)
    again.requires_grad_(True)
    doubled = F.interpolate(again, scale_factor=2, mode="nearest")
    plain = F.conv2d(doubled, layer.weight, layer.bias, padding=side // 2)
    assert torch.allclose(layer(maps), plain, atol=1e-5)
    ours = torch.autograd.grad(layer(maps).square().sum(), (maps, layer.weight))
    theirs = torch.autograd.grad(plain.square().sum(), (again, layer.weight))
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-3) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(("side", "padding"), [(3, 0), (3, 1), (5, 0), (5, 1), (5, 2), (7, 0), (1, 0)])
def test_doubling_and_convolving_backwards_at_once_gives_what_one_after_the_other_gives(
    side: int, padding: int
) -> None:
    torch.manual_seed(0)
    layer = DoublingConvTranspose2d(6, 2, side, padding)
    maps, again = (torch.rand(3, 6, 7, 5, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    maps.requires_grad_(True)
    again.requires_grad_(True)
    doubled = F.interpolate(again, scale_factor=2, mode="nearest")
    plain = F.conv_transpose2d(doubled, layer.weight, layer.bias, padding=padding)
    assert torch.allclose(layer(maps), plain, atol=1e-5)
    ours = torch.autograd.grad(layer(maps).square().sum(), (maps, layer.weight))
    theirs = torch.autograd.grad(plain.square().sum(), (again, layer.weight))
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-3) for a, b in zip(ours, theirs, strict=True))
