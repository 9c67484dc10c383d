"""Helpers shared by the training loops."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sfumato.core import compute, ranks


def as_tensor(array: npt.NDArray[np.float32] | npt.NDArray[np.int64]) -> Tensor:
    """Return a tensor that shares the array's memory. The caller must not write to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.as_tensor(array)


def channels_last(module: nn.Module) -> nn.Module:
    """Store the weights of 2-D convolutions channels last, which is about twice as fast on a CPU.

    With a single channel both orders are the same memory, and only the strides say which one is meant: without them
    maps would be channels first up to the second convolution, where pooling takes three times as long.
    """
    for parameter in module.parameters():
        if parameter.dim() == 4:
            data = parameter.data.contiguous(memory_format=torch.channels_last)
            _, channels, height, width = data.shape
            meant = (channels * height * width, 1, channels * width, channels)
            parameter.data = data.as_strided(data.shape, meant) if channels == 1 else data
    return module


def minibatches(n: int, batch: int, seed: int, fewest: int = 8) -> Iterator[Tensor]:
    """Yield the rows of one epoch in seeded order; a last batch of fewer than ``fewest``, too small for batch norm,
    joins the one before."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    parts = list(torch.split(order, batch))
    if len(parts) > 1 and len(parts[-1]) < min(batch, fewest):
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


def forward_in_batches(module: nn.Module, x: Tensor, batch: int = 256) -> Tensor:
    """Return module(x) in evaluation mode, without gradients, in fp32, computed a batch at a time."""
    modes = [(each, each.training) for each in module.modules()]  # a wrapper's is not that of its parts
    module.eval()
    with torch.inference_mode(), compute.exact():
        first = module(x[:batch])
        out = torch.empty(len(x), *first.shape[1:])
        out[:batch] = first
        for start in range(batch, len(x), batch):
            out[start : start + batch] = module(x[start : start + batch])
    for each, mode in modes:
        each.training = mode
    return out


def adam(parameters: Iterable[nn.Parameter], rate: float) -> torch.optim.Adam:
    """Adam that passes once over the weights in each step, instead of a dozen times, where that is faster and the same:
    on the CPU, for networks of matrices (a convolution's weights may lie in another order than their gradients)."""
    held = list(parameters)
    return torch.optim.Adam(held, rate, fused=all(each.device.type == "cpu" and each.dim() <= 2 for each in held))


CONSTANT = "constant"
"""Marks a group of parameters whose learning rate does not decay."""


def take_step(optimiser: torch.optim.Optimizer, objective: Tensor) -> None:
    """Take one step on ``objective`` with the optimiser's own parameters, leaving all other gradients alone.

    Processes that train together step by the mean of their gradients."""
    parameters = optimiser.param_groups[0]["params"]
    gradients = ranks.averaged(torch.autograd.grad(objective, parameters))
    for parameter, gradient in zip(parameters, gradients, strict=True):
        same = gradient.stride() == parameter.stride()  # else what runs through both at once would mix them up
        parameter.grad = gradient if same else torch.empty_like(parameter).copy_(gradient)
    optimiser.step()


def decay_rate(optimiser: torch.optim.Optimizer, done: float) -> None:
    """Decay the learning rate linearly to a twentieth, where ``done`` is the completed fraction of the training.

    The rate depends on ``done`` alone, so that a resumed run continues where it was. At a constant rate, the quality of
    a small classifier depended on the last step.
    """
    for group in optimiser.param_groups:
        if group.get(CONSTANT):
            continue
        first = group.setdefault("initial_lr", group["lr"])
        group["lr"] = first * max(0.05, 1.0 - done)


def optimiser_state(optimisers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return moments and step counts (of Adam, RMSProp) as named tensors."""
    return {
        f"optimiser.{name}.{index}.{key}": value
        for name, optimiser in optimisers.items()
        for index, slots in optimiser.state_dict()["state"].items()
        for key, value in slots.items()
    }


def load_optimiser_state(optimisers: Mapping[str, torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Restore what ``optimiser_state`` returned."""
    for name, optimiser in optimisers.items():
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            parts = key.split(".")
            if parts[0] == "optimiser" and parts[1] == name:
                state.setdefault(int(parts[2]), {})[parts[3]] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
