"""What rotating a network's features costs: the cloud's part on phase tensors against the same part on real ones."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.phase import (
    NETWORKS,
    Each,
    PhaseActivation,
    PhaseActivationPool,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
    split,
    to_phase,
)
from sfumato.nets.training_loop import channels_last

BATCH, ROUNDS = 128, 9
FORWARD, TRAINING, FASTER = 2.1, 2.2, 1.6
RECORDS = {"resnet20-alpha": (3, 32, 32), "lenet": (1, 28, 28)}


def run() -> dict[str, Any]:
    """Medians of the ratios in interleaved rounds, with one thread and with two."""
    before = torch.get_num_threads()
    measured = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        measured |= {f"{name}, {threads} threads": _compare(name) for name in RECORDS}
    torch.set_num_threads(before)
    found: dict[str, Any] = {
        "claim": f"d = 2 costs ≤ {FORWARD} × a real forward pass and ≤ {TRAINING} × a real training step; "
        f"≥ {FASTER} × faster than torch's complex tensors",
        **measured,
    }
    found["holds"] = all(
        one["forward over real"] <= FORWARD
        and one["training over real"] <= TRAINING
        and one["complex forward over ours"] >= FASTER
        and one["complex training over ours"] >= FASTER
        for one in measured.values()
    )
    return found


def _compare(name: str) -> dict[str, float]:
    torch.manual_seed(0)
    blueprint, shape = NETWORKS[name], RECORDS[name]
    parts = split(blueprint.build(shape, 10), blueprint.encrypt_to, blueprint.decrypt_from, shape)
    features = parts.head.eval()(torch.rand(BATCH, *shape)).detach().contiguous(memory_format=torch.channels_last)
    real = channels_last(parts.middle)
    phase = channels_last(to_phase(parts.middle))
    other = torch.randn_like(features)
    pair = torch.stack([features, other], 1)  # (B, 2, C, …)
    networks = {
        "real": (real, features),
        "phase": (phase, _components_first(pair)),
        "real, twice": (copy.deepcopy(real), torch.cat([features, other])),  # what twice the data costs by itself
        "complex": (_complex(phase), torch.complex(features, other).unsqueeze(1)),
    }
    forward, training = _rounds(networks, _forward), _rounds(networks, _training_step)
    return {
        "forward over real": _ratio(forward, "phase", "real"),
        "training over real": _ratio(training, "phase", "real"),
        "complex forward over ours": _ratio(forward, "complex", "phase"),
        "complex training over ours": _ratio(training, "complex", "phase"),
        "real, twice the batch, over real, forward": _ratio(forward, "real, twice", "real"),
        "real, twice the batch, over real, training": _ratio(training, "real, twice", "real"),
        "forward ms": round(1e3 * statistics.median(forward["phase"]), 1),
        "training ms": round(1e3 * statistics.median(training["phase"]), 1),
    }


def _ratio(seconds: dict[str, list[float]], one: str, other: str) -> float:
    """The median of the rounds' ratios: neighbours in time see the same load."""
    return round(statistics.median(a / b for a, b in zip(seconds[one], seconds[other], strict=True)), 2)


def _components_first(pair: Tensor) -> Tensor:
    """The same numbers with every component's map in channels_last order."""
    merged = pair.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    return merged.view(*pair.shape)


def _rounds(
    networks: dict[str, tuple[nn.Module, Tensor]], work: Callable[[nn.Module, Tensor], None]
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    for turn in range(ROUNDS + 2):  # interleaved: the machine is shared
        for name, (network, x) in networks.items():
            started = time.perf_counter()
            work(network, x)
            if turn >= 2:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def _forward(network: nn.Module, x: Tensor) -> None:
    """As the cloud serves it."""
    network.eval()
    with torch.inference_mode():
        network(x)


def _training_step(network: nn.Module, x: Tensor) -> None:
    """Forward, backward to the weights and to the features, and a step of SGD."""
    network.train()
    x = x.detach().requires_grad_()
    y = network(x)
    loss = (y.real.square() + y.imag.square()).mean() if y.is_complex() else y.square().mean()
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(loss, [x, *parameters])
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients[1:], strict=True):
            parameter.sub_(gradient, alpha=1e-3)


# The same network as one writes it with torch's complex tensors, (B, 1, C, …).


class _ComplexEach(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        weight = getattr(self.module, "weight", None)
        y = x.flatten(0, 1)
        if isinstance(self.module, nn.Conv2d):
            y = F.conv2d(y, weight.to(x.dtype), None, self.module.stride, self.module.padding)
        elif isinstance(self.module, nn.Linear):
            y = F.linear(y, weight.to(x.dtype))
        else:
            y = self.module(y)
        return y.unflatten(0, x.shape[:2])


class _ComplexLayer(nn.Module):
    """Norm, δ, both or max-pool."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        layer = self.layer
        if isinstance(layer, PhaseMaxPool):
            pool = (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode)
            x = x.squeeze(1)
            chosen = F.max_pool2d(x.detach().abs(), *pool, return_indices=True)[1]
            return x.flatten(2).gather(2, chosen.flatten(2)).view(chosen.shape).unsqueeze(1)
        axes = [axis for axis in range(x.dim()) if axis != 2]
        ones = (-1, *(1,) * (x.dim() - 3))
        if isinstance(layer, PhaseNorm):
            mean_square = x.abs().square().mean(axes) if self.training else layer.mean_square
            x = x * (mean_square + 1e-5).rsqrt().view(ones)
        if isinstance(layer, (PhaseActivation, PhaseNormActivation)):
            norm = x.abs()
            if layer.c is None:
                c = norm.detach().mean(axes) if self.training else layer.mean_norm
                return x * (norm / c.view(ones)).clamp(max=1.0)
            return x * (norm / layer.c).clamp(max=1.0)
        return x


def _complex(phase: nn.Module) -> nn.Module:
    twin = copy.deepcopy(phase)
    layers = dict(twin.named_modules())
    for name, layer in layers.items():
        if isinstance(layers.get(name.rpartition(".")[0]), PhaseActivationPool):
            continue
        if isinstance(layer, Each):
            twin.set_submodule(name, _ComplexEach(layer.module))
        elif isinstance(layer, PhaseActivationPool):
            twin.set_submodule(name, nn.Sequential(_ComplexLayer(layer.activation), _ComplexLayer(layer.pool)))
        elif isinstance(layer, (PhaseNorm, PhaseActivation, PhaseMaxPool)):
            twin.set_submodule(name, _ComplexLayer(layer))
    return twin
