"""A filter is made in seconds, a hundred of them for the price of twenty, and applying one is next to nothing."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sfumato.core.randomness import Seeded
from sfumato.core.schema import Schema
from sfumato.mechanisms.filter.mechanism import Filter, LinearFilter
from sfumato.mechanisms.filter.min_max_game import ROUNDS, Choice, Labels, MinMaxGame, Spent
from sfumato.mechanisms.filter.vae import VAE
from sfumato.nets.training_loop import forward_in_batches

RECORDS, USERS, ROUNDS_TIMED = 60_000, 100, 7
SECONDS, TIMES_ONE, SHARE, BYTES = 5.0, 20.0, 0.05, 64 * 1024
SCHEMA = Schema("image", (1, 28, 28), utility={"u": ("a", "b")}, private={"y": ("a", "b")})


def run() -> dict[str, Any]:
    """Latents and labels of MNIST's size; their values do not matter for the time."""
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(RECORDS, 10, generator=generator)
    variance = torch.rand(RECORDS, 10, generator=generator) * 0.1 + 0.01
    labels = torch.stack([(mean[:, 0] > 0).long(), (mean[:, 1] > 0).long()])
    one, many = [], []
    for _ in range(3):  # interleaved: the machine is shared
        one.append(_timed(lambda: _train(mean, variance, labels, 1)))
        many.append(_timed(lambda: _train(mean, variance, labels, USERS)))
    vae = VAE()
    vae.schema_ = SCHEMA
    vae._build(SCHEMA)
    shares = {name: _share_of_encoder(vae, cls) for name, cls in (("linear", LinearFilter), ("nonlinear", Filter))}
    sizes = {name: _bytes(vae, cls) for name, cls in (("linear", LinearFilter), ("nonlinear", Filter))}
    times = statistics.median(b / a for a, b in zip(one, many, strict=True))
    found: dict[str, Any] = {
        "claim": "one linear filter on 60,000 latents ≤ 5 s; 100 users ≤ 20 × one; applying < 5 % of encoding; < 64 KB",
        "seconds one": round(statistics.median(one), 2),
        "100 users over one": round(times, 2),
        "applying over encoding": {name: round(share, 4) for name, share in shares.items()},
        "noise drawing over encoding": round(_noise_share(vae), 4),
        "bytes": sizes,
    }
    found["holds"] = (
        found["seconds one"] <= SECONDS
        and times <= TIMES_ONE
        and max(shares.values()) < SHARE
        and max(sizes.values()) < BYTES
    )
    return found


def _train(mean: torch.Tensor, variance: torch.Tensor, labels: torch.Tensor, users: int) -> None:
    """``filter-linear`` with its defaults; many users share the records in equal parts, half of them public."""
    rows = torch.arange(RECORDS)
    own = [rows] if users == 1 else list(rows[: RECORDS // 2].chunk(users))
    public = rows[:0] if users == 1 else rows[RECORDS // 2 :]
    private, utility = (Labels(part[None], (2,)) for part in labels)
    choices = [Choice(private, utility, part, public, 300.0) for part in own]
    game = MinMaxGame(mean, variance, choices, LinearFilter().rules())
    for number in range(ROUNDS):
        game.round(number)
    game.enforce()


def _fitted(vae: VAE, cls: type[Filter]) -> Filter:
    one = cls(base=vae)
    one.schema_ = SCHEMA
    one._build(SCHEMA)
    one.spent_ = Spent(0.0, 1)
    return one


def _share_of_encoder(vae: VAE, cls: type[Filter]) -> float:
    """Time of f(z, ε, y) over time of the encoder, noise at hand; the median of interleaved rounds."""
    one = _fitted(vae, cls)
    x = torch.rand(8192, 1, 28, 28)
    mean, variance = vae.posterior(x.numpy())
    y = torch.nn.functional.one_hot(torch.arange(len(x)) % 2, 2).float()
    noise = torch.randn(len(x), 2 * vae.latent + one.filter_.chance)
    ratios = []
    for _ in range(ROUNDS_TIMED):
        encode = _timed(lambda: forward_in_batches(vae.encoder_, x))
        ratios.append(_timed(lambda: one.apply(mean, variance, y, noise)) / encode)
    return statistics.median(ratios)


def _noise_share(vae: VAE) -> float:
    """Time of drawing the filter's noise (2d + ε₀ normals a record, seeded source) over time of the encoder."""
    x = torch.rand(8192, 1, 28, 28)
    ratios = []
    for _ in range(ROUNDS_TIMED):
        encode = _timed(lambda: forward_in_batches(vae.encoder_, x))
        ratios.append(_timed(lambda: Seeded(0).normal((len(x), 30)).astype(np.float32)) / encode)
    return statistics.median(ratios)


def _bytes(vae: VAE, cls: type[Filter]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        _fitted(vae, cls).save(Path(folder))
        return (Path(folder) / "checkpoint" / "filter.safetensors").stat().st_size


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
