"""The noise of ``ars`` costs no more than the passes it needs, and less than a general toolbox takes for it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.against import Against
from benchmarks.interleaved import interleaved, threads
from sfumato.mechanisms.ars import fgsm
from sfumato.nets.autoencoders import substitute_decoder

RECORDS, LATENT, STEPS, EPSILON = 10_000, 64, 10, 1.0
TARGET, FASTER = 1.15, 2.0
ROUNDS = 9
OTHERS = 0.002
"""Share of records whose noise may differ: the sign of a gradient of nearly zero hangs on how sums are rounded."""
LARGE = 1000
"""The batch at which the toolbox was fastest here."""


def run(small: bool = False) -> dict[str, Any]:
    """Processor time for 10,000 records 28 × 28, h = 64, n = 10, no mask, one thread, rounds interleaved.

    ``noise``            ``against_decoder``
    ``passes``           ten times forward and ``loss.backward()`` as in training, over the same batches
    ``input only``       the same with the gradient of the input alone
    ``toolbox``          BasicIterativeMethod of adversarial-robustness-toolbox, same decoder, steps and batches
    ``toolbox, large``   the same in batches of 1,000
    """
    records = 1000 if small else RECORDS
    with threads(1):
        torch.manual_seed(0)
        decoder = substitute_decoder("image", (1, 28, 28), LATENT).eval()
        z, x, mask = torch.randn(records, LATENT), torch.rand(records, 1, 28, 28), torch.ones(records, LATENT)
        ways: dict[str, Callable[[], Any]] = {
            "noise": lambda: fgsm.against_decoder(decoder, z, x, mask, EPSILON, STEPS),
            "passes": lambda: _passes(decoder, z, x),
            "input only": _input_only(decoder, z, x),
            "toolbox": _toolbox(decoder, z, x, fgsm._BATCH),
            "toolbox, large": _toolbox(decoder, z, x, LARGE),
        }
        apart = np.abs(ways["noise"]().numpy() - ways["toolbox"]()).max(axis=1) > 1e-4
        rounds = interleaved(ways, 3 if small else ROUNDS, clock=time.process_time)
    cost, slower = rounds.ratio("noise", "passes"), rounds.ratio("toolbox", "noise")

    def beside(way: str, peer: str, task: str) -> dict[str, Any]:
        ratio = rounds.ratio("noise", way)
        return Against(peer, task, "seconds", rounds.median("noise"), rounds.median(way), ratio).to_json()

    task = f"FGSM noise of {STEPS} steps for {records:,} records"
    return {
        "claim": f"noise for {RECORDS:,} records, n = {STEPS}, costs ≤ {TARGET} × ten forward-backward passes, is ≥ "
        f"{FASTER:g} × faster than adversarial-robustness-toolbox and the same",
        "holds": cost.median <= TARGET and slower.median >= FASTER and apart.mean() <= OTHERS,
        "ratios": {
            "noise over ten passes": {**cost.to_json(), "at most": TARGET},
            "noise over ten passes to the input only": rounds.ratio("noise", "input only").to_json(),
            "toolbox over noise": {**slower.to_json(), "at least": FASTER},
            f"toolbox in batches of {LARGE} over noise": rounds.ratio("toolbox, large", "noise").to_json(),
        },
        "against": [
            beside("toolbox", "ART, BasicIterativeMethod", task),
            beside("toolbox, large", "ART, BasicIterativeMethod", f"{task}, its batches of {LARGE}"),
            beside("passes", "PyTorch, by hand", f"{task}; theirs: forward and backward as in training"),
            beside("input only", "PyTorch, by hand", f"{task}; theirs: the input's gradient alone"),
        ],
        "figures": {
            "seconds": rounds.medians(),
            "batch": fgsm._BATCH,
            "share of records that differ": float(apart.mean()),
        },
    }


def _passes(decoder: nn.Module, z: Tensor, x: Tensor) -> None:
    for start in range(0, len(z), fgsm._BATCH):
        points, real = z[start : start + fgsm._BATCH], x[start : start + fgsm._BATCH]
        for _ in range(STEPS):
            decoder.zero_grad()
            F.mse_loss(decoder(points), real, reduction="sum").backward()


def _input_only(decoder: nn.Module, z: Tensor, x: Tensor) -> Callable[[], None]:
    frozen = copy.deepcopy(decoder).requires_grad_(False)

    def passes() -> None:
        for start in range(0, len(z), fgsm._BATCH):
            points = z[start : start + fgsm._BATCH].clone().requires_grad_(True)
            for _ in range(STEPS):
                error = F.mse_loss(frozen(points), x[start : start + fgsm._BATCH], reduction="sum")
                torch.autograd.grad(error, points)

    return passes


class _SquaredError(nn.Module):
    """The toolbox flattens what a regressor says, and not what it should say."""

    def forward(self, output: Tensor, wanted: Tensor) -> Tensor:
        return F.mse_loss(output.reshape(-1), wanted.reshape(-1), reduction="sum")


def _toolbox(decoder: nn.Module, z: Tensor, x: Tensor, batch: int) -> Callable[[], Any]:
    from art.attacks.evasion import BasicIterativeMethod
    from art.estimators.regression.pytorch import PyTorchRegressor

    estimator = PyTorchRegressor(copy.deepcopy(decoder), _SquaredError(), (LATENT,), device_type="cpu")
    method = BasicIterativeMethod(
        estimator, eps=EPSILON, eps_step=EPSILON / STEPS, max_iter=STEPS, batch_size=batch, verbose=False
    )
    points, records = z.numpy(), x.numpy()
    return lambda: method.generate(points, records)
