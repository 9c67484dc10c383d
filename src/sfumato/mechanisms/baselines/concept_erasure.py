"""``leace``: least-squares concept erasure in closed form (Belrose et al., NeurIPS 2023, arXiv 2306.03819).

The smallest affine change of a vector after which no linear function of it tells the private labels better than a
constant:

    r(x) = x − W⁻¹ P W (x − μ),    W = Σ_xx^−½,  P the projection onto the columns of W Σ_xz

with z the one-hot private labels, and the value of one that is a number. Nothing is drawn, and a release needs no
label. What is not linear stays: a curved reader, or one that asks two numbers together, finds the label again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.label_targets import target, told, widths
from sfumato.mechanisms.parameters import whole
from sfumato.mechanisms.record_checks import check_private
from sfumato.mechanisms.search_space import SearchSpace
from sfumato.nets.training_loop import as_tensor, forward_in_batches

_TOLERANCE = 0.01
"""Directions of W Σ_xz with a smaller singular value count as noise, as in the authors' program."""


class Eraser(nn.Module):
    """x (B, *shape) → x − (x − μ)·right·left, of the same shape; ``right`` (D, k) reads the labels, ``left`` (k, D)
    takes them out.

    In double precision: where a direction is constant (one-hot columns add up to 1), the rounding of single precision
    would leave the label there, far too small to see and large enough for least squares.
    """

    def __init__(self, size: int, directions: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("right", torch.zeros(size, directions, dtype=torch.float64))
        self.register_buffer("left", torch.zeros(directions, size, dtype=torch.float64))
        self.mean: Tensor
        self.right: Tensor
        self.left: Tensor

    def learn(self, x: Tensor, z: Tensor) -> None:
        """The eraser of codes z (N, k) from vectors x (N, D)."""
        from sklearn.covariance import ledoit_wolf

        x, z = x.double(), z.double()
        mean = x.mean(0)
        x, z = x - mean, z - z.mean(0)
        covariance = torch.as_tensor(ledoit_wolf(x.cpu().numpy(), assume_centered=True)[0]).to(x)
        values, vectors = torch.linalg.eigh(covariance)
        some = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
        root = values.clamp(min=0).sqrt()
        whiten = (vectors * torch.where(some, 1.0 / root, 0.0)) @ vectors.T
        colour = (vectors * torch.where(some, root, 0.0)) @ vectors.T
        found, strength, _ = torch.linalg.svd(whiten @ (x.T @ z) / len(x), full_matrices=False)
        found = found * (strength > _TOLERANCE)
        self.mean.copy_(mean)
        self.right.copy_(whiten @ found)
        self.left.copy_(found.T @ colour)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1).double()
        return (flat - (flat - self.mean) @ self.right @ self.left).to(x.dtype).reshape(x.shape)


class LEACE(Mechanism):
    """Releases the vector without what a linear reader could learn of any private label.

    Records of up to ``widest`` numbers: the covariance of more is neither learnt well nor turned around quickly.
    """

    name = "leace"
    searched = (SearchSpace("features", against=("attribute",), cost=0.1),)

    widest: int = whole(default=4096, low=2, high=20_000, help="most numbers in a record")

    @property
    def traits(self) -> Traits:
        """Vectors leave in their own units, for whoever reads such vectors already."""
        schema: Schema | None = self.__dict__.get("schema_")
        return Traits(role="baseline", needs_labels=False, gives_records=schema is not None and schema.is_vectors)

    def _build(self, schema: Schema) -> None:
        if schema.size > self.widest:
            raise DataError(
                f"leace: records have {schema.size} numbers, more than widest={self.widest}: erase from features "
                "(sfumato fit dnn, vae …) instead, or give a larger widest."
            )
        self.eraser_ = Eraser(schema.size, sum(widths(schema, list(schema.private))))

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        if not data.private:
            raise DataError(f"leace erases private labels and {data.name} has none: name one with --private.")
        if any(column.kind == "categorical" for column in data.schema.columns):
            self._warn(
                "leace is made for vectors: in a table with categories the column of one that hardly anybody has "
                "carries what was read of the label, for everybody else to read. Erase from features (a dnn) instead."
            )
        codes = check_private(data.private, data.schema, len(data), self.name, data.name)
        parts = [told(target(label, codes[label], data.schema), data.schema.width(label)) for label in codes]
        self.eraser_.learn(as_tensor(data.x).flatten(1), torch.cat(parts, dim=1))
        progress(1, 1, {"erased": float((self.eraser_.right.square().sum(0) > 0).sum())})

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return np.asarray(forward_in_batches(self.eraser_, as_tensor(x)).numpy())

    def public_encoder(self) -> nn.Module:
        return self.eraser_

    def halves(self) -> Halves:
        """The eraser; whoever reads such vectors already reads these."""
        return plain_halves(self.eraser_, None, self.schema_, ())

    def guarantee(self) -> Guarantee:
        return empirical(
            "On the records of the fit no linear function of the payload tells a private label better than a constant "
            "(LEACE). Of other records this holds nearly, of readers that are not linear not at all, and which record "
            "it was is not hidden."
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {"eraser": self.eraser_}
