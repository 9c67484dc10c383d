"""Digits pasted on photographs: records whose object and background are known, each with a label of its own.

Object and background are Eq. 5 of the ``ran`` paper by construction: the digit is what the task needs, the background
the rest. The mask is for the scorer alone. Owner, attacker and victims have digits and backgrounds of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato import load_splits
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.randomness import derive_seed

SIDE = 32
INK = 0.25
"""A pixel with at least so much ink is the digit's."""
_CLASSES = 10
PARTS = ("owner", "attacker", "victim")


@dataclass(frozen=True)
class Layers:
    """What pictures are made of: digits (N, 28, 28) and backgrounds (N, 3, 32, 32), both with their classes."""

    digits: FloatArray
    digit: IntArray
    backgrounds: FloatArray
    background: IntArray

    def __len__(self) -> int:
        return min(len(self.digits), len(self.backgrounds))


@dataclass(frozen=True)
class Pasted:
    """Pictures in three parts, and for the scorer which pixels of each victim are the digit's, (N, 1, 32, 32)."""

    splits: Splits
    masks: npt.NDArray[np.bool_]


def layers(data: str, limit: int | None, seed: int) -> dict[str, Layers]:
    """Digits and backgrounds of each part: MNIST over CIFAR-10, or without any download ``digits`` over textures."""
    digits = load_splits(data, utility=["digit"], limit=limit, seed=seed).parts
    photographs = {} if data == "digits" else load_splits("cifar10", utility=["label"], limit=limit, seed=seed).parts
    return {part: _layers(digits[part], photographs.get(part), derive_seed(seed, "layers", part)) for part in PARTS}


def _layers(digits: Dataset, photographs: Dataset | None, seed: int) -> Layers:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    ink, digit = digits.x[order, 0], digits.utility["digit"][order]
    if photographs is None:
        return Layers(ink, digit, *textures(len(order), rng))
    mixed = rng.permutation(len(photographs))
    return Layers(ink, digit, photographs.x[mixed], photographs.utility["label"][mixed])


def textures(count: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Waves in two colours (N, 3, 32, 32); the class is their direction."""
    kind = rng.integers(0, _CLASSES, count)
    angle = np.pi * kind / _CLASSES
    waves, shift = rng.uniform(2.0, 5.0, count), rng.uniform(0.0, 2 * np.pi, count)
    down, across = np.mgrid[0:SIDE, 0:SIDE] / SIDE  # (32, 32) each
    along = np.cos(angle)[:, None, None] * across + np.sin(angle)[:, None, None] * down  # (N, 32, 32)
    height = 0.5 + 0.5 * np.sin(2 * np.pi * waves[:, None, None] * along + shift[:, None, None])
    one, other = rng.uniform(0.0, 0.7, (2, count, 3, 1, 1))
    pictures = one + (other - one) * height[:, None]
    return pictures.astype(np.float32), kind.astype(np.int64)


def paste(digits: FloatArray, backgrounds: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """White ink over the background: pictures (N, 3, 32, 32), and which pixels are the digit's, (N, 1, 32, 32)."""
    edge = (SIDE - digits.shape[-1]) // 2
    ink = np.pad(digits, ((0, 0), (edge, edge), (edge, edge)))[:, None]  # (N, 1, 32, 32)
    return (backgrounds + ink * (1.0 - backgrounds)).astype(np.float32), ink >= INK


def pasted(parts: dict[str, Layers], seed: int, *, tied: float = 0.0) -> Pasted:
    """Every digit on a background; in a share ``tied`` of the owner's, the background's class is the digit's."""
    made: list[tuple[FloatArray, npt.NDArray[np.bool_]]] = []
    labels: dict[str, list[IntArray]] = {"digit": [], "background": []}
    for part in PARTS:
        own = parts[part]
        rng = np.random.default_rng(derive_seed(seed, "tied", part))
        rows = np.arange(len(own))
        if part == "owner" and tied:
            follow = rng.random(len(own)) < tied
            same = [np.flatnonzero(own.background == kind) for kind in range(_CLASSES)]
            rows = np.where(follow, [rng.choice(same[kind]) for kind in own.digit[: len(own)]], rows)
        made.append(paste(own.digits[: len(own)], own.backgrounds[rows]))
        labels["digit"].append(own.digit[: len(own)])
        labels["background"].append(own.background[rows])
    every = Dataset.from_arrays(
        np.concatenate([x for x, _ in made]),
        utility={"digit": np.concatenate(labels["digit"])},
        private={"background": np.concatenate(labels["background"])},
        name="digits on backgrounds",
    )
    ends: list[Any] = np.cumsum([0, *(len(x) for x, _ in made)]).tolist()
    three = [every.take(slice(ends[i], ends[i + 1])) for i in range(len(PARTS))]
    return Pasted(Splits(*three), made[-1][1])


def crossed(victims: Layers, count: int) -> FloatArray:
    """The first ``count`` victims' digits, each on the first ``count`` backgrounds: (count, count, 3, 32, 32)."""
    digits = np.repeat(victims.digits[:count], count, axis=0)
    backgrounds = np.tile(victims.backgrounds[:count], (count, 1, 1, 1))
    pictures, _ = paste(digits, backgrounds)
    return pictures.reshape(count, count, 3, SIDE, SIDE)
