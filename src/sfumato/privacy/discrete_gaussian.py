"""Gaussian noise that keeps its promise on a computer: whole multiples of a grid, from a cryptographic source."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from sfumato.core.randomness import Randomness, Secure, Seeded

DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

GRID_BITS = 30
"""The grid's step is σ·2⁻³⁰."""
_LARGEST = 2.0**62


class Noise(ABC):
    """Adds N(0, σ²) on a grid."""

    @abstractmethod
    def whole(self, values: IntArray, scale: float) -> IntArray:
        """``values`` with discrete Gaussian noise of this standard deviation."""

    @abstractmethod
    def randomness(self) -> Randomness:
        """Uniform and normal numbers of the same origin, for sampling and for noise in bulk."""

    def add(self, values: DoubleArray, sensitivity: float, multiplier: float) -> DoubleArray:
        """``values`` with the noise that hides a change of L2 norm ``sensitivity`` as one Gaussian of ``multiplier``.

        Values are rounded to a grid of step g = σ·2⁻³⁰ first. Rounding may lengthen the change to sensitivity + √m·g
        for m numbers; σ is widened by as much, so that σ/(sensitivity + √m·g) = multiplier holds exactly.
        """
        root = math.sqrt(values.size)
        scale = multiplier * sensitivity / (1.0 - multiplier * root * 2.0**-GRID_BITS)
        if scale <= 0.0 or not math.isfinite(scale):
            raise ValueError(f"no grid is fine enough for {values.size} numbers at noise multiplier {multiplier}.")
        step = scale * 2.0**-GRID_BITS
        units = np.clip(values / step, -_LARGEST, _LARGEST)
        return np.asarray(self.whole(np.rint(units).astype(np.int64), 2.0**GRID_BITS) * step)


class ExactNoise(Noise):
    """OpenDP's discrete Gaussian: no floating-point tell-tale, bits from the operating system. No seed exists."""

    def whole(self, values: IntArray, scale: float) -> IntArray:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        mechanism = dp.m.make_gaussian(*space, scale=scale)
        return np.asarray(mechanism(values.ravel()), dtype=np.int64).reshape(values.shape)

    def randomness(self) -> Randomness:
        return Secure()


class RepeatableNoise(Noise):
    """Seeded noise for tests of the code and for auditors: it protects nobody."""

    def __init__(self, seed: int) -> None:
        self._randomness = Seeded(seed)

    def whole(self, values: IntArray, scale: float) -> IntArray:
        return values + np.rint(scale * self._randomness.normal(values.shape)).astype(np.int64)

    def randomness(self) -> Randomness:
        return self._randomness
