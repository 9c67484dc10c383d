"""Gaussian noise that stays private in finite precision: multiples of a grid step, from a cryptographic source."""

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
    """Adds N(0, σ²) noise on a grid."""

    @abstractmethod
    def whole(self, values: IntArray, scale: float) -> IntArray:
        """Add discrete Gaussian noise of standard deviation ``scale``."""

    @abstractmethod
    def randomness(self) -> Randomness:
        """Return uniform and normal numbers from the same source, for sampling and for bulk noise."""

    def add(self, values: DoubleArray, sensitivity: float, multiplier: float) -> DoubleArray:
        """Add the noise that hides a change of L2 norm ``sensitivity`` at noise multiplier ``multiplier``.

        Values are first rounded to a grid of step g = σ·2⁻³⁰. For m numbers, rounding may increase the change to
        sensitivity + √m·g; σ is increased accordingly, so that σ/(sensitivity + √m·g) = multiplier holds exactly.
        """
        root = math.sqrt(values.size)
        scale = multiplier * sensitivity / (1.0 - multiplier * root * 2.0**-GRID_BITS)
        if scale <= 0.0 or not math.isfinite(scale):
            raise ValueError(f"no grid is fine enough for {values.size} numbers at noise multiplier {multiplier}.")
        step = scale * 2.0**-GRID_BITS
        units = np.clip(values / step, -_LARGEST, _LARGEST)
        return np.asarray(self.whole(np.rint(units).astype(np.int64), 2.0**GRID_BITS) * step)


class ExactNoise(Noise):
    """OpenDP's discrete Gaussian: no floating-point leaks, with bits from the operating system and no seed."""

    def whole(self, values: IntArray, scale: float) -> IntArray:
        # not opendp.prelude, which imports scikit-learn and takes seconds
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance
        from opendp.mod import enable_features

        enable_features("contrib")
        mechanism = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)
        return np.asarray(mechanism(values.ravel()), dtype=np.int64).reshape(values.shape)

    def randomness(self) -> Randomness:
        return Secure()


class ResampledNoise(Noise):
    """Draws again from outputs of another generator: for auditors, who need more of its noise than it makes in time.

    A generator that adds too little noise, or none, hands on exactly that.
    """

    def __init__(self, source: Noise, outputs: int, seed: int) -> None:
        self._source = source
        self._outputs = source.whole(np.zeros(outputs, dtype=np.int64), 2.0**GRID_BITS)
        self._generator = np.random.default_rng(seed)

    def whole(self, values: IntArray, scale: float) -> IntArray:
        if scale != 2.0**GRID_BITS:
            raise ValueError(f"the outputs are of scale {2.0**GRID_BITS:g}, not {scale:g}.")
        return np.asarray(values + self._generator.choice(self._outputs, values.shape))

    def randomness(self) -> Randomness:
        return self._source.randomness()


class RepeatableNoise(Noise):
    """Seeded noise for tests and auditors; it protects nobody."""

    def __init__(self, seed: int) -> None:
        self._randomness = Seeded(seed)

    def whole(self, values: IntArray, scale: float) -> IntArray:
        return values + np.rint(scale * self._randomness.normal(values.shape)).astype(np.int64)

    def randomness(self) -> Randomness:
        return self._randomness
