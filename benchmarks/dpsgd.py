"""A DP-SGD step by our own per-record gradients against Opacus' and against torch.func, on the same network."""

from __future__ import annotations

import copy
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.mechanisms.synth.gan_networks import SmallDiscriminator
from sfumato.mechanisms.synth.per_record_gradients import record_gradients
from sfumato.privacy.query_counter import clipped_sum

TARGET = 1.2
BATCH, ROUNDS = 256, 15


def run() -> dict[str, Any]:
    """Processor time of Σ clip(∂ℓᵢ/∂w) for 256 pictures 28×28 and the network of ``dpsgd-gan``, rounds interleaved."""
    try:
        import opacus
    except ImportError:
        return {"claim": "opacus is not installed: pip install sfumato[dp]", "holds": False}
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = SmallDiscriminator((1, 28, 28), 10)
    x, y = torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % 10
    ways = {
        "ours": lambda: _ours(network, x, y),
        "opacus": _opacus(opacus, copy.deepcopy(network), x, y),
        "torch.func": _functional(network, x, y),
        "no clipping": lambda: _plain(network, x, y),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            started = time.process_time()
            work()
            seconds[name].append(time.process_time() - started)
    apart = float((ways["ours"]() - ways["opacus"]()).abs().max())
    torch.set_num_threads(before)
    ratio = statistics.median(a / b for a, b in zip(seconds["ours"], seconds["opacus"], strict=True))
    return {
        "claim": f"a clipped gradient sum takes ≤ {TARGET:g} × the time of Opacus' and is the same",
        "milliseconds": {name: round(1000 * statistics.median(times), 1) for name, times in seconds.items()},
        "over opacus": round(ratio, 3),
        "largest difference": apart,
        "target": TARGET,
        "holds": ratio <= TARGET and apart < 1e-3,
    }


def _ours(network: SmallDiscriminator, x: Tensor, y: Tensor) -> Tensor:
    return clipped_sum(record_gradients(network, lambda: F.softplus(-network(x, y))), 1.0)


def _opacus(opacus: Any, network: SmallDiscriminator, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook")
            F.softplus(-wrapped(x, y)).sum().backward()
        optimiser.clip_and_accumulate()
        return torch.cat([parameter.summed_grad.flatten() for parameter in wrapped.parameters()])

    return step


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
