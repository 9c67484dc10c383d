"""A base without a distribution of its own: principal components, the records themselves, or an encoder of the user's.

A filter's budget measures how far a release lies from q(z|x). Such a base has a point instead, so it is given one:
q(z|x) = N((e(x) − mean)/deviation, s²·I), with each number of e brought to mean 0 and deviation 1 over the owner's
records and s = ``SPREAD``, about what a variational autoencoder has.
"""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core import compute
from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json, read_tensors, write_json, write_tensors
from sfumato.core.schema import Schema
from sfumato.mechanisms.capabilities import HasEncoder
from sfumato.mechanisms.filter.base_networks import Spread
from sfumato.mechanisms.registry import load_mechanism
from sfumato.mechanisms.storage import SCHEMA, WEIGHTS, load_state_of
from sfumato.nets.encoders import output_shape
from sfumato.nets.training_loop import as_tensor, forward_in_batches

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

Kind = Literal["pca", "raw", "run", "module"]

_TITLES = {"pca": "principal components", "raw": "the records' own numbers", "module": "an encoder of the owner's"}
SPREAD = 0.2
"""s, in deviations of a latent."""
FIXED = "fixed.json"
_SOURCE = "run"
"""The mechanism whose encoder it is, in a folder of its own."""
_FLOOR = 0.2
"""Of the root mean square deviation: a number that hardly ever changes is not blown up beyond 5 of its own."""
_FEWEST = 1e-6
_EDGE = 1e-4
"""What lies beyond a range comes this close to its end: at the end it would be the very value of somebody."""
_NARROW = 128
"""Numbers of an encoder that a filter moves one by one; of a wider one its leading components."""
_SOME = 4_000
"""Records from which components are learnt, at most: every n-th."""


class Standardised(nn.Module):
    """(B, …) → (B, d): each number with mean 0 and deviation 1 over the owner's records."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))
        self.mean: Tensor
        self.deviation: Tensor

    def learn(self, z: Tensor) -> None:
        """Mean and deviation of z (N, d)."""
        deviation = z.std(0, unbiased=False)
        least = _FLOOR * float(deviation.square().mean().sqrt())
        self.mean.copy_(z.mean(0))
        self.deviation.copy_(deviation.clamp(min=max(least, _FEWEST)))

    def forward(self, z: Tensor) -> Tensor:
        return (z.flatten(1) - self.mean) / self.deviation


class Back(nn.Module):
    """(B, d) → records (B, *shape) in [0, 1]: the inverse of ``Standardised`` and, for components, the way back; of a
    table the likeliest row."""

    def __init__(self, encoder: nn.Sequential, schema: Schema) -> None:
        super().__init__()
        self._encoder, self._schema = [encoder], schema  # in a list: its weights are stored with the encoder

    def forward(self, z: Tensor) -> Tensor:
        front, standard = self._encoder[0][0], self._encoder[0][1]
        assert isinstance(standard, Standardised)
        values = z * standard.deviation + standard.mean
        if isinstance(front, Components):
            values = values @ front.basis.T + front.middle
        values = values.clamp(_EDGE, 1.0 - _EDGE)
        at = 0
        for column in self._schema.columns:
            if column.kind == "categorical":
                part = values[:, at : at + column.width]
                values[:, at : at + column.width] = F.one_hot(part.argmax(1), column.width).to(values.dtype)
            elif column.nullable:
                values[:, at + 1] = (values[:, at + 1] > 0.5).to(values.dtype)
            at += column.width
        return values.reshape(-1, *self._schema.shape)


class Components(nn.Module):
    """(B, *shape) → (B, k): the directions in which the owner's records vary most."""

    def __init__(self, size: int, components: int) -> None:
        super().__init__()
        self.register_buffer("middle", torch.zeros(size))
        self.register_buffer("basis", torch.zeros(size, components))
        self.middle: Tensor
        self.basis: Tensor

    def learn(self, x: Tensor) -> None:
        """Directions of records x (N, D), with signs of their own."""
        self.middle.copy_(x.mean(0))
        centred = x - self.middle
        few = centred.shape[0] < centred.shape[1]
        square = (centred @ centred.T if few else centred.T @ centred).double()
        _, vectors = torch.linalg.eigh(square)
        leading = vectors.flip(1)[:, : self.basis.shape[1]].float()
        basis = F.normalize(centred.T @ leading, dim=0) if few else leading
        largest = basis.gather(0, basis.abs().argmax(0, keepdim=True))
        self.basis.copy_(basis * largest.sign())

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.middle) @ self.basis


class FixedEncoder:
    """A deterministic encoder as the base of a filter. ``fit`` learns its scale, and the components of ``pca``."""

    def __init__(
        self, kind: Kind, schema: Schema, front: nn.Module, source: Mechanism | None = None, components: int = 0
    ) -> None:
        self.kind, self.schema_, self._source, self._components = kind, schema, source, components
        self.absent_: tuple[str, ...] = ()
        self.title = _TITLES.get(kind) or f"the encoder of a {'' if source is None else source.name}"
        if components:
            front = nn.Sequential(front, Components(_features(front, schema), components))
        self.latent = _features(front, schema)
        self.encoder_ = nn.Sequential(front, Standardised(self.latent)).requires_grad_(False).eval()
        self.decodes = kind in ("pca", "raw")
        self.decoder_: nn.Module | None = Back(self.encoder_, schema) if self.decodes else None

    @classmethod
    def own(cls, kind: Literal["pca", "raw"], schema: Schema, x: FloatArray, components: int) -> FixedEncoder:
        """Principal components of the owner's records x (N, *shape), or these themselves."""
        return cls(kind, schema, _front(kind, schema, min(components, schema.size, len(x) - 1)))._learnt(x)

    @classmethod
    def of_network(cls, network: nn.Module, schema: Schema, x: FloatArray, components: int) -> FixedEncoder:
        """A network of the user's, or the ``components`` of what it gives, where that is wide."""
        front = copy.deepcopy(network)
        return cls("module", schema, front, components=_fewer(front, schema, len(x), components))._learnt(x)

    @classmethod
    def of_mechanism(cls, source: Mechanism, x: FloatArray, components: int) -> FixedEncoder:
        """The public encoder of a fitted mechanism, without its noise; its ``components``, where it is wide."""
        front, schema = copy.deepcopy(_public(source)), source.schema_
        return cls("run", schema, front, source, _fewer(front, schema, len(x), components))._learnt(x)

    def _learnt(self, x: FloatArray) -> FixedEncoder:
        """With components and scale of the owner's records."""
        compute.bring(self)
        front, scale = self.encoder_[0], self.encoder_[1]
        assert isinstance(scale, Standardised)
        if isinstance(front, Components):
            front.learn(as_tensor(x)[:: _every(len(x))].flatten(1).clone())
        elif self._components:
            assert isinstance(front, nn.Sequential) and isinstance(front[1], Components)
            some = forward_in_batches(front[0], as_tensor(x)[:: _every(len(x))])
            front[1].learn(some.flatten(1))
        scale.learn(forward_in_batches(front, as_tensor(x)).flatten(1))
        return self

    def _check_fitted(self) -> None:
        """As a mechanism has it."""
        compute.bring(self)

    def posterior(self, x: FloatArray) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(z|x) for checked records, (N, d) each."""
        mean = forward_in_batches(self.encoder_, as_tensor(x))
        return mean, torch.full_like(mean, SPREAD**2)

    def decode(self, payload: FloatArray) -> FloatArray:
        """The record of a latent, where there is a way back (``decodes``)."""
        assert self.decoder_ is not None
        return forward_in_batches(self.decoder_, as_tensor(payload)).numpy()

    def public_encoder(self) -> nn.Module:
        return self.encoder_

    def posterior_network(self) -> nn.Module:
        return Spread(self.encoder_, SPREAD**2)

    def decoder_network(self) -> nn.Module | None:
        return self.decoder_

    @property
    def digest(self) -> str:
        """SHA-256 of the encoder: a filter belongs to the latents that it makes."""
        hasher = hashlib.sha256(self.kind.encode())
        for name, tensor in sorted(self.encoder_.state_dict().items()):
            hasher.update(name.encode())
            hasher.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return hasher.hexdigest()

    def save(self, folder: Path) -> None:
        """The weights of the whole encoder, and what it is; never its code."""
        (folder / WEIGHTS).mkdir(parents=True, exist_ok=True)
        front = self.encoder_[0]
        about: dict[str, Any] = {"kind": self.kind, "latent": self.latent, "components": self._components}
        about["architecture"] = " ".join(
            str(front[0] if isinstance(front, nn.Sequential) and self._components else front).split()
        )
        write_tensors(folder / WEIGHTS / "encoder.safetensors", self.encoder_.state_dict())
        write_json(folder / SCHEMA, self.schema_.to_json())
        if self._source is not None:
            self._source.save(folder / _SOURCE)
        write_json(folder / FIXED, about)

    @classmethod
    def load(cls, folder: Path, front: nn.Module | None = None) -> FixedEncoder:
        """What ``save`` wrote. A network of the user's own is given again as ``front``: only its weights are stored."""
        about, schema = read_json(folder / FIXED), Schema.from_json(read_json(folder / SCHEMA))
        kind = next((known for known in get_args(Kind) if known == about["kind"]), None)
        if kind is None:
            raise DataError(f"{folder} holds a base of kind '{about['kind']}', made by a newer sfumato: upgrade.")
        tensors = read_tensors(folder / WEIGHTS / "encoder.safetensors")
        source = load_mechanism(folder / _SOURCE) if kind == "run" else None
        if kind in ("pca", "raw"):
            front = _front(kind, schema, int(about["latent"]))
        elif source is not None:
            front = _public(source)
        elif front is None:
            raise UsageError(
                f"the base in {folder} is your own network, of which only the weights are stored "
                f"({about['architecture'][:120]}): give a network of that form again, load(folder, base=network)."
            )
        made = cls(kind, schema, copy.deepcopy(front), source, int(about["components"]))
        weights = {f"encoder.{name}": tensor for name, tensor in tensors.items()}
        load_state_of({"encoder": made.encoder_}, weights, f"the base in {folder}")
        return made


def _public(source: Mechanism) -> nn.Module:
    """The encoder that a mechanism shows to everybody."""
    encoder = source.public_encoder() if isinstance(source, HasEncoder) else None
    if encoder is None:
        raise UsageError(
            f"a {source.name} has no public encoder that a filter could build on: give a vae, dnn, ran, leace or "
            "another run whose device half is an encoder."
        )
    return encoder


def _front(kind: Kind, schema: Schema, components: int) -> nn.Module:
    return nn.Flatten() if kind == "raw" else Components(schema.size, components)


def _fewer(network: nn.Module, schema: Schema, records: int, components: int) -> int:
    """How many components are taken of what a network gives; 0: it is narrow enough as it is."""
    wide = _features(network, schema) > _NARROW
    return min(components, records - 1) if wide else 0


def _every(records: int) -> int:
    return -(-records // _SOME)


def _features(front: nn.Module, schema: Schema) -> int:
    """How many numbers an encoder makes of one record."""
    try:
        return torch.Size(output_shape(front, schema.shape)).numel()
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UsageError(
            f"the base cannot take records of shape {schema.shape} ({reason}): give another encoder."
        ) from None
