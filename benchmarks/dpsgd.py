"""A DP-SGD step by our own per-record gradients against Opacus' and against torch.func, on the same network."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import opacus
import torch
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from torch import Tensor
from torch.nn import functional as F

from benchmarks.against import Against
from benchmarks.interleaved import interleaved, threads
from sfumato.mechanisms.synth.gan_networks import SmallDiscriminator
from sfumato.mechanisms.synth.per_record_gradients import record_gradients
from sfumato.privacy.query_counter import clipped_sum

TARGET = 1.2
BATCH, ROUNDS = 256, 15


def run(small: bool = False) -> dict[str, Any]:
    """Processor time of Σ clip(∂ℓᵢ/∂w) for 256 pictures 28×28 and the network of ``dpsgd-gan``, rounds interleaved."""
    batch = 32 if small else BATCH
    with threads(1):
        torch.manual_seed(0)
        network = SmallDiscriminator((1, 28, 28), 10)
        x, y = torch.rand(batch, 1, 28, 28), torch.arange(batch) % 10
        ways = {
            "ours": lambda: _ours(network, x, y),
            "hooks": _hooks(copy.deepcopy(network), x, y),
            "ghost": _ghost(copy.deepcopy(network), x, y),
            "torch.func": _functional(network, x, y),
            "no clipping": lambda: _plain(network, x, y),
        }
        ours = ways["ours"]()
        apart = {name: float((ours - ways[name]()).abs().max()) for name in ("hooks", "ghost", "torch.func")}
        rounds = interleaved(ways, 3 if small else ROUNDS, warm=1, clock=time.process_time)
    ratio = rounds.ratio("ours", "hooks")
    named = {
        "hooks": "Opacus, hooks",
        "ghost": "Opacus, ghost clipping",
        "torch.func": "torch.func",
        "no clipping": "PyTorch, by hand, without clipping",
    }
    return {
        "claim": f"a clipped gradient sum takes ≤ {TARGET:g} × the time of Opacus' and is the same",
        "holds": ratio.median <= TARGET and max(apart.values()) < 1e-3,
        "ratios": {
            f"ours over {whose}": rounds.ratio("ours", way).to_json() | ({"at most": TARGET} if way == "hooks" else {})
            for way, whose in named.items()
        },
        "against": [
            Against(
                whose,
                f"clipped gradient sum of {batch} pictures",
                "milliseconds",
                1e3 * rounds.median("ours"),
                1e3 * rounds.median(way),
                rounds.ratio("ours", way),
            ).to_json()
            for way, whose in named.items()
        ],
        "figures": {"largest difference": apart},
    }


def _ours(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Tensor:
    return clipped_sum(record_gradients(network, lambda: F.softplus(-network(x, y))), 1.0)


def _hooks(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    """Gradients of single records by Opacus' hooks, clipped by its optimiser."""
    wrapped = opacus.GradSampleModule(network, loss_reduction="sum")
    optimiser = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=1.0,
        expected_batch_size=1,
        loss_reduction="sum",
    )

    def step() -> Tensor:
        optimiser.zero_grad()
        with _quiet():
            F.softplus(-wrapped(x, y)).sum().backward()
        optimiser.clip_and_accumulate()
        return torch.cat([parameter.summed_grad.flatten() for parameter in wrapped.parameters()])

    return step


def _ghost(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    """Opacus' ghost clipping: the norms alone in one backward pass, the clipped sum in a second."""
    wrapped = GradSampleModuleFastGradientClipping(
        network, loss_reduction="sum", max_grad_norm=1.0, use_ghost_clipping=True
    )

    def step() -> Tensor:
        wrapped.zero_grad()
        wrapped.enable_hooks()
        with _quiet():
            losses = F.softplus(-wrapped(x, y)).flatten()
            losses.sum().backward(retain_graph=True)
            wrapped.zero_grad()
            factors = wrapped.get_clipping_coef()
            wrapped.disable_hooks()
            (factors * losses).sum().backward()
        return torch.cat([parameter.grad.flatten() for parameter in wrapped.parameters()])

    return step


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook")
        yield


def _functional(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    weights = {name: weight.detach() for name, weight in network.named_parameters()}

    def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.softplus(-torch.func.functional_call(network, weights, (x[None], y[None]))).sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))

    def step() -> Tensor:
        return clipped_sum(torch.cat([part.flatten(1) for part in each(weights, x, y).values()], dim=1), 1.0)

    return step


def _plain(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Tensor:
    found = torch.autograd.grad(F.softplus(-network(x, y)).sum(), list(network.parameters()))
    return torch.cat([part.flatten() for part in found])
