"""Two sources of randomness that must not be mixed up: seeded (repeatable) and secure (keys, masks, noise)."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

DoubleArray = npt.NDArray[np.float64]


def derive_seed(seed: int, *purpose: object) -> int:
    """Derive a 63-bit seed for one named purpose, so that no two parts of a run share a stream."""
    text = repr((seed, *purpose)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def fresh_seed() -> int:
    """Return an unpredictable seed from the operating system. It is never stored."""
    return int.from_bytes(os.urandom(8), "little") >> 1


class Randomness(ABC):
    """A source of uniform random numbers, and of normal and Laplace noise made from them."""

    @abstractmethod
    def uniform(self, shape: tuple[int, ...]) -> DoubleArray:
        """Draw independent uniform numbers in [0, 1)."""

    def normal(self, shape: tuple[int, ...]) -> DoubleArray:
        """Draw standard normal noise by the Box–Muller transform."""
        count = int(np.prod(shape, dtype=np.int64))
        pairs = (count + 1) // 2
        first, second = self.uniform((2, pairs))
        return np.concatenate(_box_muller(first, second))[:count].reshape(shape)

    def laplace(self, shape: tuple[int, ...], scale: float) -> DoubleArray:
        """Draw Laplace noise by inversion: −b·sign(u)·ln(1 − 2|u|), u uniform on (−½, ½)."""
        centred = self.uniform(shape) - 0.5
        tail = np.maximum(1.0 - 2.0 * np.abs(centred), np.finfo(np.float64).tiny)
        return np.asarray(-scale * np.sign(centred) * np.log(tail))


class Seeded(Randomness):
    """Repeatable noise, for experiments."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def uniform(self, shape: tuple[int, ...]) -> DoubleArray:
        return self._generator.random(shape)


class Secure(Randomness):
    """Noise from the operating system's cryptographic generator, for real releases."""

    def uniform(self, shape: tuple[int, ...]) -> DoubleArray:
        count = int(np.prod(shape, dtype=np.int64))
        return _unit(np.frombuffer(os.urandom(8 * count), dtype=np.uint64)).reshape(shape)


def gaussian(bits: npt.NDArray[np.uint64]) -> DoubleArray:
    """Turn random words into standard normal numbers, (…, 2n) → (…, 2n)."""
    first, second = np.split(_unit(bits), 2, axis=-1)
    return np.concatenate(_box_muller(first, second), axis=-1)


def _unit(bits: npt.NDArray[np.uint64]) -> DoubleArray:
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _box_muller(first: DoubleArray, second: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    radius, angle = np.sqrt(-2.0 * np.log1p(-first)), 2.0 * np.pi * second
    return radius * np.cos(angle), radius * np.sin(angle)
