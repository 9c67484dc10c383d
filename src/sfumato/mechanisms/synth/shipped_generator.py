"""The generator of a GAN method as a sampler that can be shipped: (z, one-hot class) → picture."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfumato.core.errors import UsageError
from sfumato.core.ports import Port
from sfumato.core.schema import Schema
from sfumato.mechanisms.halves import RECORD, Half, Halves
from sfumato.mechanisms.synth.gan_networks import Generator

_WINDOW = 2
"""Side of a region of the fractional pooling."""


class FixedRegions(nn.Module):
    """Fractional max pooling whose regions are fixed at ½ as maxima of gathered rows and columns, which ONNX has.

    Region i of n on a side of m begins at ⌊(i + ½)·α⌋ − ⌊½·α⌋ with α = (m − 2)/(n − 1), the last one at m − 2 (Graham
    2014).
    """

    def __init__(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        super().__init__()
        for axis, m, n in zip(("rows", "columns"), before, after, strict=True):
            alpha = torch.tensor((m - _WINDOW) / (n - 1), dtype=torch.float32)
            half = torch.tensor(0.5, dtype=torch.float32)
            starts = [int((place + half) * alpha) - int(half * alpha) for place in range(n - 1)]
            self.register_buffer(axis, torch.tensor([*starts, m - _WINDOW]))
        self.rows: Tensor
        self.columns: Tensor

    def forward(self, x: Tensor) -> Tensor:
        tall = torch.maximum(x[:, :, self.rows], x[:, :, self.rows + 1])
        return torch.maximum(tall[:, :, :, self.columns], tall[:, :, :, self.columns + 1])


class FromClass(nn.Module):
    """The generator with its class as a one-hot vector and its pooling as ``FixedRegions``."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.generator = generator
        _, height, width = generator.shape
        high, wide = (-(-6 * side // 40) for side in (height, width))
        self.pool = FixedRegions((8 * high, 8 * wide), (height, width))

    def forward(self, noise: Tensor, given: Tensor) -> Tensor:
        own = self.generator
        hidden = own.first(noise)
        if own.labels is not None:
            scale, shift = torch.matmul(given, own.labels.weight).chunk(2, dim=1)
            hidden = hidden * (1.0 + scale) + shift
        large = own.last(own.deconvolutions(own.second(hidden.relu()))) + own.bias
        out: Tensor = (self.pool(large).tanh() + 1.0) / 2.0
        return out


def generator_halves(method: str, modules: dict[str, nn.Module], schema: Schema, classes: int) -> Halves:
    """A sampler, if the method has a generator network; drawing costs no budget."""
    generator = modules.get("generator")
    if not isinstance(generator, Generator):
        raise UsageError(
            f"synth: method={method} draws without a network, and nothing of it runs on a record: hand on what "
            "'sfumato release RUN --rows N' draws, or fit method=dpsgd-gan or frozen-front."
        )
    noise = Port("noise", "float32", (-1, generator.latent), source="drawn", law="normal")
    given = Port("class", "float32", (-1, classes), source="class")
    record = Port(RECORD, "float32", (-1, *schema.shape), range=(0.0, 1.0))
    return Halves(sampler=Half(FromClass(generator), (noise, given), record), labels=tuple(schema.utility))
