"""A filter is made in seconds, a hundred of them for the price of twenty, and applying one is next to nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.interleaved import Ratio, figure, interleaved
from sfumato.core.randomness import Seeded
from sfumato.core.schema import Schema
from sfumato.mechanisms.filter.mechanism import Filter, LinearFilter
from sfumato.mechanisms.filter.min_max_game import ROUNDS, Choice, Labels, MinMaxGame, Spent
from sfumato.mechanisms.filter.vae import VAE
from sfumato.nets.training_loop import forward_in_batches

RECORDS, USERS, ROUNDS_TIMED = 60_000, 100, 7
SECONDS, TIMES_ONE, SHARE, BYTES = 5.0, 20.0, 0.05, 64 * 1024
SCHEMA = Schema("image", (1, 28, 28), utility={"u": ("a", "b")}, private={"y": ("a", "b")})


def run(small: bool = False) -> dict[str, Any]:
    """Latents and labels of MNIST's size; their values do not matter for the time."""
    records = 6_000 if small else RECORDS
    turns = 3 if small else ROUNDS_TIMED
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(records, 10, generator=generator)
    variance = torch.rand(records, 10, generator=generator) * 0.1 + 0.01
    labels = torch.stack([(mean[:, 0] > 0).long(), (mean[:, 1] > 0).long()])
    training = {
        "one": lambda: _train(mean, variance, labels, 1),
        "many": lambda: _train(mean, variance, labels, 10 if small else USERS),
    }
    fits = interleaved(training, 2 if small else 3)
    vae = VAE()
    vae.schema_ = SCHEMA
    vae._build(SCHEMA)
    kinds = (("linear", LinearFilter), ("nonlinear", Filter))
    shares = {name: _share_of_encoder(vae, cls, turns) for name, cls in kinds}
    sizes = {name: _bytes(vae, cls) for name, cls in kinds}
    times = fits.ratio("many", "one")
    return {
        "claim": "one linear filter on 60,000 latents ≤ 5 s; 100 users ≤ 20 × one; applying < 5 % of encoding; < 64 KB",
        "holds": (
            fits.median("one") <= SECONDS
            and times.median <= TIMES_ONE
            and max(share.median for share in shares.values()) < SHARE
            and max(sizes.values()) < BYTES
        ),
        "ratios": {
            f"{USERS} users over one": {**times.to_json(), "at most": TIMES_ONE},
            **{f"applying {name} over encoding": {**s.to_json(), "at most": SHARE} for name, s in shares.items()},
            "noise drawing over encoding": _noise_share(vae, turns).to_json(),
        },
        "figures": {"seconds for one": figure(fits.median("one")), "bytes": sizes},
    }


def _train(mean: torch.Tensor, variance: torch.Tensor, labels: torch.Tensor, users: int) -> None:
    """``filter-linear`` with its defaults; many users share the records in equal parts, half of them public."""
    rows = torch.arange(len(mean))
    own = [rows] if users == 1 else list(rows[: len(mean) // 2].chunk(users))
    public = rows[:0] if users == 1 else rows[len(mean) // 2 :]
    private, utility = (Labels(part[None], (2,)) for part in labels)
    choices = [Choice(private, utility, part, public, 300.0) for part in own]
    game = MinMaxGame(mean, variance, choices, LinearFilter().rules(mean.shape[1]))
    for number in range(ROUNDS):
        game.round(number)
    game.enforce()


def _fitted(vae: VAE, cls: type[Filter]) -> Filter:
    one = cls(base=vae)
    one.schema_ = SCHEMA
    one._build(SCHEMA)
    one.spent_ = Spent(0.0, 1)
    return one


def _share_of_encoder(vae: VAE, cls: type[Filter], turns: int) -> Ratio:
    """Time of f(z, ε, y) over time of the encoder, noise at hand."""
    one = _fitted(vae, cls)
    x = torch.rand(8192, 1, 28, 28)
    mean, variance = vae.posterior(x.numpy())
    y = torch.nn.functional.one_hot(torch.arange(len(x)) % 2, 2).float()
    noise = torch.randn(len(x), 2 * vae.latent + one.filter_.chance)
    ways = {
        "encode": lambda: forward_in_batches(vae.encoder_, x),
        "apply": lambda: one.apply(mean, variance, y, noise),
    }
    return interleaved(ways, turns).ratio("apply", "encode")


def _noise_share(vae: VAE, turns: int) -> Ratio:
    """Time of drawing the filter's noise (2d + ε₀ normals a record, seeded source) over time of the encoder."""
    x = torch.rand(8192, 1, 28, 28)
    ways = {
        "encode": lambda: forward_in_batches(vae.encoder_, x),
        "draw": lambda: Seeded(0).normal((len(x), 30)).astype(np.float32),
    }
    return interleaved(ways, turns).ratio("draw", "encode")


def _bytes(vae: VAE, cls: type[Filter]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        _fitted(vae, cls).save(Path(folder))
        return (Path(folder) / "checkpoint" / "filter.safetensors").stat().st_size
