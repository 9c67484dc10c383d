"""What a filter may stand on: the latents of a variational autoencoder, or of any encoder that serves the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.filter.fixed_encoder import FIXED, FixedEncoder
from sfumato.mechanisms.filter.vae import VAE
from sfumato.mechanisms.registry import load_mechanism

Own = Literal["vae", "pca", "raw"]
OWN: tuple[Own, ...] = ("vae", "pca", "raw")
"""Bases that are made on the spot, by name."""

_NARROW, _LEARNABLE = 32, 256
"""Numbers that a filter moves one by one, and of a table's row that an autoencoder learns."""
_SIDE, _LARGE, _FEW = 48, 20_000, 500
"""Pictures of so many pixels a side need so many records for an autoencoder worth having; other records fewer."""
_PICTURE_LATENT = 50
"""Numbers in a latent of large pictures, as in the paper (§6.5.1)."""


@runtime_checkable
class Base(Protocol):
    """Something that gives a distribution of latents for a record."""

    title: str
    decodes: bool
    """Whether there is a way back from latents to records."""
    schema_: Schema
    latent: int

    def posterior(self, x: FloatArray) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(z|x) for checked records, (N, d) each."""

    def decode(self, payload: FloatArray) -> FloatArray:
        """Records of latents, where there is a way back."""

    def public_encoder(self) -> nn.Module:
        """The network that everybody knows."""

    @property
    def digest(self) -> str:
        """What tells it from another base."""

    def save(self, folder: Path) -> None:
        """Write it below ``folder``."""

    def _check_fitted(self) -> None: ...


def default_base(schema: Schema, records: int) -> Own:
    """What serves records of this kind, if there are so many of them.

    An autoencoder has to be learnt: from few records, or for rows of very many categories, it gives a grey mean, and of
    vectors it loses what is not loud. Components keep more, and numbers that are few stay as they are.
    """
    if schema.kind == "table" and all(column.kind == "numeric" for column in schema.columns):
        return "raw" if schema.size <= _NARROW else "pca"
    if schema.kind == "table":
        return "vae" if schema.size <= _LEARNABLE and records >= _FEW else "pca"
    if schema.kind == "image":
        return "vae" if records >= (_LARGE if _is_large(schema) else _FEW) else "pca"
    return "pca"


def made(name: Own, data: Dataset, seed: int, components: int) -> Base:
    """A base of that name, fitted to the owner's records."""
    if name != "vae":
        return FixedEncoder.own(name, data.schema, data.x, components)
    own: dict[str, Any] = {"latent": _PICTURE_LATENT} if _is_large(data.schema) else {}
    return VAE(seed=seed, **own).fit(data)


def _is_large(schema: Schema) -> bool:
    return schema.kind == "image" and min(schema.shape[1:]) >= _SIDE


def given(base: Base | Mechanism | nn.Module, data: Dataset, components: int) -> Base:
    """A base of the user's: an autoencoder as it is; the encoder of anything else brought to the scale of the data."""
    if isinstance(base, (VAE, FixedEncoder)):
        return base
    if isinstance(base, Mechanism):
        base._check_fitted()
        return FixedEncoder.of_mechanism(base, data.x, components)
    if isinstance(base, nn.Module):
        return FixedEncoder.of_network(base, data.schema, data.x, components)
    raise UsageError(
        f"base must be a run folder, one of {', '.join(OWN)}, a fitted mechanism or a network, got {base!r}."
    )


def stored(folder: Path) -> Base | Mechanism:
    """The fitted mechanism of a run folder, or a base that was stored with a filter."""
    if (folder / FIXED).is_file():
        return FixedEncoder.load(folder)
    if not (folder / "mechanism.json").is_file():
        raise DataError(
            f"base={folder} holds no fitted run: give the run folder of 'sfumato fit vae' (or of another encoder), or "
            f"one of {', '.join(OWN)}."
        )
    return load_mechanism(folder)


def is_stored(folder: Path) -> bool:
    """Whether a base lies there."""
    return (folder / FIXED).is_file() or (folder / "mechanism.json").is_file()


def same_records(base: Base | Mechanism, schema: Schema) -> None:
    """Raise if the base was made for records of another kind."""
    theirs = base.schema_
    if (theirs.shape, theirs.columns) != (schema.shape, schema.columns):
        raise DataError(
            f"the base was made for records of shape {theirs.shape}, these have {schema.shape} (or other columns): fit "
            "one on data of this kind and give it as base."
        )
