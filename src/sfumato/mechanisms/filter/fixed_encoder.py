"""A base without a distribution of its own: principal components, the records themselves, or an encoder of the user's.

A filter's budget measures how far a release lies from q(z|x). Such a base has a point instead, so it is given one:
q(z|x) = N((e(x) − mean)/deviation, s²·I), with each number of e brought to mean 0 and deviation 1 over the owner's
records and s = ``SPREAD``, about what a variational autoencoder has.
"""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor, nn

from sfumato.core import compute
from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json, read_tensors, write_json, write_tensors
from sfumato.core.schema import Schema
from sfumato.mechanisms.capabilities import HasEncoder
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
    """(B, d) → records (B, *shape) in [0, 1]: the inverse of ``Standardised`` and, for components, the way back."""

    def __init__(self, encoder: nn.Sequential, shape: tuple[int, ...]) -> None:
        super().__init__()
        self._encoder, self._shape = [encoder], shape  # in a list: its weights are stored with the encoder

    def forward(self, z: Tensor) -> Tensor:
        front, standard = self._encoder[0][0], self._encoder[0][1]
        values = z * standard.deviation + standard.mean
        if isinstance(front, Components):
            values = values @ front.basis.T + front.middle
        return values.clamp(0.0, 1.0).reshape(-1, *self._shape)


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
        basis = torch.nn.functional.normalize(centred.T @ leading, dim=0) if few else leading
        largest = basis.gather(0, basis.abs().argmax(0, keepdim=True))
        self.basis.copy_(basis * largest.sign())

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.middle) @ self.basis


class FixedEncoder:
    """A deterministic encoder as the base of a filter. ``fit`` learns its scale, and the components of ``pca``."""

    def __init__(self, kind: Kind, schema: Schema, front: nn.Module, source: Mechanism | None = None) -> None:
        self.kind, self.schema_, self._source = kind, schema, source
        self.absent_: tuple[str, ...] = ()
        self.title = _TITLES.get(kind) or f"the encoder of a {'' if source is None else source.name}"
        shape = _features(front, schema)
        self.latent = torch.Size(shape).numel()
        self.encoder_ = nn.Sequential(front, Standardised(self.latent)).requires_grad_(False).eval()
        own = kind in ("pca", "raw")
        self.decoder_: nn.Module | None = Back(self.encoder_, schema.shape) if own else None

    @classmethod
    def own(cls, kind: Literal["pca", "raw"], schema: Schema, x: FloatArray, components: int) -> FixedEncoder:
        """Principal components of the owner's records x (N, *shape), or these themselves."""
        made = compute.bring(cls(kind, schema, _front(kind, schema, min(components, schema.size, len(x) - 1))))
        front = made.encoder_[0]
        if isinstance(front, Components):
            step = -(-len(x) // _SOME)
            front.learn(as_tensor(x)[::step].flatten(1).clone())
        return made._scaled(x)

    @classmethod
    def of_network(cls, network: nn.Module, schema: Schema, x: FloatArray) -> FixedEncoder:
        """A network of the user's."""
        return compute.bring(cls("module", schema, copy.deepcopy(network)))._scaled(x)

    @classmethod
    def of_mechanism(cls, source: Mechanism, x: FloatArray) -> FixedEncoder:
        """The public encoder of a fitted mechanism, without its noise."""
        return compute.bring(cls("run", source.schema_, copy.deepcopy(_public(source)), source))._scaled(x)

    def _scaled(self, x: FloatArray) -> FixedEncoder:
        front, scale = self.encoder_[0], self.encoder_[1]
        assert isinstance(scale, Standardised)
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
        """The record of a latent, where there is a way back."""
        if self.decoder_ is None:
            raise UsageError(
                "this base is an encoder without a way back, so that only latents can leave: leave out output=data, "
                "or take base=pca, base=raw or a vae."
            )
        return forward_in_batches(self.decoder_, as_tensor(payload)).numpy()

    def public_encoder(self) -> nn.Module:
        return self.encoder_

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
        about = {"kind": self.kind, "latent": self.latent, "architecture": " ".join(str(front).split())}
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
        made = cls(kind, schema, copy.deepcopy(front), source)
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


def _features(front: nn.Module, schema: Schema) -> tuple[int, ...]:
    """The shape of what an encoder makes of one record."""
    try:
        return output_shape(front, schema.shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UsageError(
            f"the base cannot take records of shape {schema.shape} ({reason}): give another encoder."
        ) from None
