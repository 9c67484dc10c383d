"""A decoder that reads more begins with what one that reads less has learnt."""

from __future__ import annotations

import pytest
import torch

from sfumato.nets.carried_weights import carry_over
from sfumato.nets.residual_decoder import residual_decoder


@pytest.mark.parametrize(
    ("payload", "record"),
    [
        ((8, 3, 3), (1, 28, 28)),
        ((8, 14, 14), (1, 28, 28)),
        ((12,), (20,)),
        ((12,), (1, 16, 16)),
        ((8, 30), (2, 64)),
        ((1, 12, 12), (1, 12, 12)),
        ((2, 32), (2, 32)),
        ((20,), (20,)),
    ],
)
def test_what_is_read_in_addition_has_no_effect_before_it_is_learnt(
    payload: tuple[int, ...], record: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    wider = (payload[0] + 2, *payload[1:])
    known = residual_decoder(payload, record, 8).eval()
    network = residual_decoder(wider, record, 8, beside=2).eval()
    x, more = torch.rand(3, *payload), torch.rand(3, 2, *payload[1:])
    assert carry_over(known, network)
    assert torch.allclose(network(torch.cat([x, more], 1)), known(x), atol=1e-5)


def test_networks_of_different_kinds_are_left_alone() -> None:
    known, network = residual_decoder((1, 28, 28), (1, 28, 28), 8), residual_decoder((3, 28, 28), (1, 28, 28), 8)
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    assert not carry_over(known, network)
    assert all(torch.equal(weight, before[name]) for name, weight in network.state_dict().items())
