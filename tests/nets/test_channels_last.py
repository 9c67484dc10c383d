"""Pictures of one channel are computed channels last as well."""

from __future__ import annotations

import copy

import pytest
import torch

from sfumato.nets.encoders import ENCODERS
from sfumato.nets.training_loop import channels_last


@pytest.mark.parametrize("channels", [1, 3])
def test_maps_are_channels_last_from_the_first_convolution_on(channels: int) -> None:
    torch.manual_seed(0)
    plain = ENCODERS["lenet"]((channels, 28, 28))
    fast = channels_last(copy.deepcopy(plain))
    x = torch.rand(4, channels, 28, 28)
    assert fast[0](x).stride(1) == 1
    assert torch.allclose(fast(x), plain(x), atol=1e-5)
    fast.load_state_dict(plain.state_dict())
    assert fast[0](x).stride(1) == 1, "loaded weights take the order of those that were there"
    assert all(weight.is_contiguous() for weight in fast.state_dict().values() if weight.shape[-3:-2] == (1,))
