"""The noise of ``ars`` on decoders small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.ars import fgsm
from sfumato.mechanisms.ars.fgsm import against_decoder, towards_class
from sfumato.mechanisms.ars.input_gradient import error_gradient
from sfumato.nets.autoencoders import substitute_decoder


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def small_decoder(h: int, size: int) -> nn.Sequential:
    torch.manual_seed(h + size)
    return nn.Sequential(nn.Linear(h, 7), nn.Tanh(), nn.Linear(7, size), nn.Sigmoid())


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))
    return layer


@settings(deadline=None, max_examples=50)
@given(
    epsilon=st.floats(0.0, 100.0),
    n=st.integers(1, 12),
    records=st.integers(1, 9),
    h=st.integers(1, 6),
    size=st.integers(1, 5),
)
def test_noise_is_bounded_by_epsilon(epsilon: float, n: int, records: int, h: int, size: int) -> None:
    z, x = drawn(1, records, h), drawn(2, records, size).sigmoid()
    moved = against_decoder(small_decoder(h, size), z, x, torch.ones(records, h), epsilon, n)
    assert moved.shape == z.shape
    assert float((moved - z).abs().max()) <= epsilon * (1 + 1e-5) + 1e-5  # Eq. 9, in floats


@settings(deadline=None, max_examples=50)
@given(epsilon=st.floats(0.01, 10.0), n=st.integers(1, 5), seed=st.integers(0, 1000))
def test_masked_dimensions_do_not_move(epsilon: float, n: int, seed: int) -> None:
    z, x = drawn(seed, 8, 6), drawn(seed + 1, 8, 4).sigmoid()
    mask = (drawn(seed + 2, 8, 6) > 0).float()
    moved = against_decoder(small_decoder(6, 4), z, x, mask, epsilon, n)
    assert torch.equal(moved[mask == 0], z[mask == 0])  # Eq. 12
    assert mask.sum() == 0 or not torch.equal(moved[mask == 1], z[mask == 1])


def test_one_step_on_a_linear_decoder_is_the_sign_worked_out_by_hand() -> None:
    decoder = linear([[2.0, -1.0, 0.0], [0.0, 3.0, 1.0]], [0.5, 0.0])
    z, x = torch.tensor([[1.0, 2.0, -4.0]]), torch.tensor([[1.0, 1.0]])
    # SDec(z) = (2 − 2 + 0.5, 6 − 4) = (0.5, 2); ∇ = 2·Wᵀ(SDec(z) − x) = 2·Wᵀ(−0.5, 1) = (−2, 7, 2)
    moved = against_decoder(decoder, z, x, torch.ones(1, 3), 0.25, 1)
    assert torch.equal(moved, torch.tensor([[0.75, 2.25, -3.75]]))
    moved = against_decoder(decoder, z, x, torch.tensor([[1.0, 0.0, 1.0]]), 0.25, 1)
    assert torch.equal(moved, torch.tensor([[0.75, 2.0, -3.75]]))


def test_each_step_takes_the_gradient_where_the_last_one_ended() -> None:
    decoder = linear([[1.0]], [0.0])
    # x = 1, z = 0.9: the error falls to the right until 1, so steps of 0.5 go left and left again
    moved = against_decoder(decoder, torch.tensor([[0.9]]), torch.tensor([[1.0]]), torch.ones(1, 1), 1.0, 2)
    assert torch.allclose(moved, torch.tensor([[-0.1]]))
    # a kink: relu(z) with x = 2 pulls left from 0.2 once, where the gradient dies and the point stays
    kinked = nn.Sequential(decoder, nn.ReLU())
    moved = against_decoder(kinked, torch.tensor([[0.2]]), torch.tensor([[2.0]]), torch.ones(1, 1), 1.0, 2)
    assert torch.allclose(moved, torch.tensor([[-0.3]]))


def test_noise_raises_the_decoders_error_in_every_record() -> None:
    decoder = small_decoder(6, 5)
    z, x = drawn(3, 50, 6), drawn(4, 50, 5).sigmoid()
    moved = against_decoder(decoder, z, x, torch.ones(50, 6), 0.5, 10)
    with torch.no_grad():
        before, after = (F.mse_loss(decoder(each), x, reduction="none").sum(1) for each in (z, moved))
    assert (after > before).all()


CHAINS = {
    "pictures": lambda: substitute_decoder("image", (1, 5, 3), 6),
    "table": lambda: substitute_decoder("table", (15,), 6),
    "no bias, no sigmoid": lambda: nn.Sequential(nn.Linear(6, 9, bias=False), nn.ReLU(), nn.Linear(9, 15)),
    "one layer": lambda: nn.Linear(6, 15),
    "sigmoid inside": lambda: nn.Sequential(nn.Linear(6, 9), nn.Sigmoid(), nn.Linear(9, 15), nn.ReLU()),
    "two activations": lambda: nn.Sequential(nn.Linear(6, 15), nn.ReLU(), nn.Sigmoid()),
    "activation first": lambda: nn.Sequential(nn.ReLU(), nn.Linear(6, 15)),
    "convolutions": lambda: nn.Sequential(nn.Unflatten(1, (6, 1)), nn.ConvTranspose1d(6, 3, 5), nn.Flatten()),
}


@pytest.mark.parametrize("name", CHAINS)
def test_gradient_by_hand_is_that_of_autograd(name: str) -> None:
    torch.manual_seed(3)
    decoder = CHAINS[name]().requires_grad_(False)
    z = drawn(14, 11, 6)
    shape = decoder(z).shape[1:]
    gradient, kept = error_gradient(decoder, 11), z.clone()
    for rows in (slice(0, 11), slice(2, 6)):  # a smaller batch uses the same buffers
        x = drawn(15, 11, *shape).sigmoid()[rows]
        points = z[rows].clone().requires_grad_(True)
        (truth,) = torch.autograd.grad(F.mse_loss(decoder(points), x, reduction="sum") / 2, points)
        assert torch.allclose(gradient(z[rows], x), truth, atol=1e-6)
    assert torch.equal(z, kept)


def test_records_do_not_touch_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = substitute_decoder("image", (1, 4, 4), 6)
    z, x, mask = drawn(5, 23, 6), drawn(6, 23, 1, 4, 4).sigmoid(), (drawn(7, 23, 6) > 0).float()
    together = against_decoder(decoder, z, x, mask, 1.0, 4)
    monkeypatch.setattr(fgsm, "_BATCH", 5)
    assert torch.allclose(against_decoder(decoder, z, x, mask, 1.0, 4), together, atol=1e-5)


def test_no_epsilon_moves_nothing_and_gives_a_copy() -> None:
    z = drawn(8, 3, 6)
    moved = against_decoder(small_decoder(6, 5), z, drawn(9, 3, 5), torch.ones(3, 6), 0.0, 10)
    assert torch.equal(moved, z)
    moved += 1
    assert not torch.equal(moved, z)


def test_decoder_and_latents_are_left_as_they_were() -> None:
    decoder = small_decoder(6, 5).train()
    decoder[0].weight.requires_grad_(False)
    before, z = {name: weight.clone() for name, weight in decoder.state_dict().items()}, drawn(8, 3, 6)
    kept = z.clone()
    against_decoder(decoder, z, drawn(9, 3, 5), torch.ones(3, 6), 1.0, 3)
    towards_class(decoder, z, 2, 1.0)
    assert decoder.training and all(torch.equal(before[name], weight) for name, weight in decoder.state_dict().items())
    assert [weight.requires_grad for weight in decoder.parameters()] == [False, True, True, True]
    assert all(weight.grad is None for weight in decoder.parameters())
    assert torch.equal(z, kept) and not z.requires_grad


def test_step_towards_a_class_on_a_linear_network_is_the_sign_worked_out_by_hand() -> None:
    network = linear([[1.0, -2.0], [0.0, 1.0]], [0.0, 0.0])
    # softmax at z = 0 is (½, ½); ∇ CE to class 1 = Wᵀ(½, −½) = (0.5, −1.5), and δ goes against it (Eq. 14)
    assert torch.equal(towards_class(network, torch.zeros(1, 2), 1, 0.3), torch.tensor([[-0.3, 0.3]]))


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_small_step_lowers_the_cross_entropy_to_the_wanted_class(wanted: int) -> None:
    network, z = small_decoder(6, 3)[:3], drawn(10, 100, 6)
    goal = torch.full((100,), wanted)
    with torch.no_grad():
        before = F.cross_entropy(network(z), goal, reduction="none")
        after = F.cross_entropy(network(z + towards_class(network, z, wanted, 1e-3)), goal, reduction="none")
    assert (after < before).all()


def test_a_caller_that_asked_for_no_gradients_gets_the_same_noise() -> None:
    decoder, z, x = small_decoder(6, 5), drawn(12, 9, 6), drawn(13, 9, 5).sigmoid()
    moved, step = against_decoder(decoder, z, x, torch.ones(9, 6), 1.0, 3), towards_class(decoder, z, 1, 1.0)
    with torch.no_grad():
        assert torch.equal(against_decoder(decoder, z, x, torch.ones(9, 6), 1.0, 3), moved)
        assert torch.equal(towards_class(decoder, z, 1, 1.0), step)


def test_step_has_the_full_size_in_every_dimension() -> None:
    step = towards_class(small_decoder(6, 3), drawn(11, 10, 6), 0, 0.7)
    assert np.allclose(step.abs().numpy(), 0.7)
