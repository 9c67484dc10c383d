"""What rotating a network's features costs: the cloud's part on phase tensors against the same part on real ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.against import Against
from benchmarks.interleaved import Rounds, interleaved, threads
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


def run(small: bool = False) -> dict[str, Any]:
    """Ratios of interleaved rounds, with one thread and with two."""
    ratios: dict[str, dict[str, Any]] = {}
    against = []
    for count in (1,) if small else (1, 2):
        with threads(count):
            for name in ("lenet",) if small else RECORDS:
                found, times = _compare(name, 3 if small else ROUNDS)
                ratios |= {f"{name}, {count} threads, {what}": ratio for what, ratio in found.items()}
                against += [line(f"{name}, {count} threads") for line in times]
    return {
        "claim": f"d = 2 costs ≤ {FORWARD} × a real forward pass and ≤ {TRAINING} × a real training step; "
        f"≥ {FASTER} × faster than torch's complex tensors",
        "holds": all(
            one["median"] <= one.get("at most", math.inf) and one["median"] >= one.get("at least", 0)
            for one in ratios.values()
        ),
        "ratios": ratios,
        "against": against,
    }


def _compare(name: str, turns: int) -> tuple[dict[str, dict[str, Any]], list[Callable[[str], dict[str, Any]]]]:
    """Ratios with their targets, and lines for the page of peers."""
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
    ratios: dict[str, dict[str, Any]] = {}
    lines: list[Callable[[str], dict[str, Any]]] = []
    for what, work, most in (("forward", _forward, FORWARD), ("training", _training_step, TRAINING)):
        ways = {way: partial(work, *network) for way, network in networks.items()}
        rounds = interleaved(ways, turns, warm=2)
        ratios |= {
            f"{what} over real": {**rounds.ratio("phase", "real").to_json(), "at most": most},
            f"complex {what} over ours": {**rounds.ratio("complex", "phase").to_json(), "at least": FASTER},
            f"real, twice the batch, over real, {what}": rounds.ratio("real, twice", "real").to_json(),
        }
        lines += [
            partial(_line, what, rounds, way, peer)
            for way, peer in (("complex", "torch's complex tensors"), ("real", "PyTorch, unprotected"))
        ]
    return ratios, lines


def _line(what: str, rounds: Rounds, way: str, peer: str, network: str) -> dict[str, Any]:
    ours, theirs = (1e3 * rounds.median(name) for name in ("phase", way))
    task = f"cloud's part of {network}, {what} of {BATCH}"
    return Against(peer, task, "milliseconds", ours, theirs, rounds.ratio("phase", way)).to_json()


def _components_first(pair: Tensor) -> Tensor:
    """The same numbers with every component's map in channels_last order."""
    merged = pair.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    return merged.view(*pair.shape)


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
