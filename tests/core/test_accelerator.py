"""Tensors live where one place puts them, and a wrong placement is seen without a graphics card."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.core import accelerator, compute
from sfumato.core.compute import Compute, using
from sfumato.core.errors import UsageError
from sfumato.nets.training_loop import as_tensor, forward_in_batches, minibatches
from sfumato.testing.second_device import WrongDevice, second_device


def trained() -> tuple[nn.Module, np.ndarray]:
    """A network with everything that draws: initial weights, order, dropout, noise."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout2d(0.3), nn.Flatten())
    network.append(nn.Dropout(0.5)).append(nn.Linear(4 * 36, 3))
    x = as_tensor(np.random.default_rng(0).random((64, 1, 8, 8), dtype=np.float32))
    y = torch.arange(64) % 3
    optimiser = torch.optim.Adam(network.parameters())
    for epoch in range(3):
        for rows in minibatches(64, 32, epoch):
            optimiser.zero_grad()
            noisy = x[rows] + 0.1 * torch.randn_like(x[rows])
            F.cross_entropy(network(noisy), y[rows]).backward()
            optimiser.step()
    return network, forward_in_batches(network, x).numpy()


def test_training_on_another_device_draws_and_learns_the_same() -> None:
    _, near = trained()
    with second_device() as device:
        network, far = trained()
        assert {weight.device for weight in network.parameters()} == {device}
    assert np.abs(near - far).max() < 1e-4


def test_tensor_that_was_left_behind_is_a_wrong_placement() -> None:
    behind = torch.ones(4)
    with second_device():
        there = torch.ones(4)
        with pytest.raises(WrongDevice, match="tensors of two devices"):
            there + behind
        with pytest.raises(WrongDevice, match="tensors of two devices"):
            nn.Linear(4, 2)(behind)


def test_drawing_on_the_device_and_reading_its_memory_are_seen() -> None:
    with second_device() as device:
        with pytest.raises(WrongDevice, match="a seed would mean something else"):
            torch.randn(3, device=device)
        there = torch.ones(3)
        with torch._C.DisableTorchFunction(), pytest.raises(RuntimeError):
            there.numpy()


def test_doubles_stay_on_the_cpu_where_the_device_has_none() -> None:
    with second_device(doubles=False) as device:
        whole = torch.ones(3)
        double = whole.double()
        assert (double.device.type, torch.zeros(2, dtype=torch.float64).device.type) == ("cpu", "cpu")
        assert double.float().device == device


def test_what_was_made_outside_comes_along_and_goes_home() -> None:
    class Holder:
        def __init__(self) -> None:
            self.network, self.parts = nn.Linear(2, 2), [torch.ones(2), {"a": (torch.zeros(1), "text")}]

    held = Holder()
    with second_device() as device:
        compute.bring(held)
        assert held.network.weight.device == held.parts[0].device == held.parts[1]["a"][0].device == device
    assert held.network.weight.device == held.parts[0].device == held.parts[1]["a"][0].device == torch.device("cpu")


def test_auto_takes_a_graphics_card_then_apples_then_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert [str(accelerator.found(name)) for name in ("auto", "cuda", "cuda:1", "cpu")] == [
        *("cuda:0", "cuda:0", "cuda:1", "cpu")
    ]
    with pytest.raises(UsageError, match="--device cuda:2: torch finds cuda:0 to cuda:1 on this machine"):
        accelerator.found("cuda:2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(accelerator.found("auto")) == "mps"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert str(accelerator.found("auto")) == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_device_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="--device cuda: torch finds"), using(Compute(device="cuda")):
        pass


@pytest.mark.parametrize("wrong", [{"device": "gpu"}, {"device": "cuda:x"}, {"precision": "fp16"}])
def test_unknown_device_or_precision_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="give"):
        Compute(**wrong)


def test_bf16_is_for_steps_of_training_alone() -> None:
    network, x = nn.Linear(8, 8), torch.rand(4, 8)
    with using(Compute(precision="bf16")), compute.threads(10):
        with compute.learning():
            assert network(x).dtype == torch.bfloat16
            assert forward_in_batches(network, x).dtype == torch.float32
        assert network(x).dtype == torch.float32
    with using(Compute(precision="auto")), compute.threads(10**6), compute.learning():
        assert network(x).dtype == torch.float32, "without a card that is made for it"


def test_weights_that_a_step_changes_are_used_by_the_next_in_bf16_too() -> None:
    network, x = nn.Linear(8, 1), torch.rand(4, 8)
    with using(Compute(precision="bf16")), compute.learning():
        first = network(x)
        with torch.no_grad():
            network.weight.add_(1.0)
        assert not torch.equal(first, network(x))
