"""What the initiator publishes: the encoder and how it is used. No decoder, no record, no secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.core.errors import DataError
from sfumato.core.schema import Schema

Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Published:
    """The first message of the framework (§3.3): the mechanism's parameters, the schema and the encoder's weights."""

    params: Mapping[str, Any]
    schema: Mapping[str, Any]
    tensors: Tensors

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything: a party shares under one encoder only, and says which."""
        return digest_of(self.tensors, json.dumps([self.params, self.schema], sort_keys=True))

    def check(self, schema: Schema, name: str) -> None:
        """Raise ``DataError`` unless records of ``schema`` mean the same to this encoder as the initiator's."""
        try:
            theirs = Schema.from_json(self.schema)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError("the published encoder's schema cannot be read: ask for the encoder again.") from None
        for what, a, b in (
            ("kind", theirs.kind, schema.kind),
            ("shape", theirs.shape, schema.shape),
            ("columns", theirs.columns, schema.columns),
            ("ranges", theirs.ranges, schema.ranges),
            ("audio frame", theirs.audio, schema.audio),
            ("utility labels", dict(theirs.utility), dict(schema.utility)),
        ):
            if a != b:
                raise DataError(
                    f"{name}: the {what} differ from the initiator's ({_short(b)}, there {_short(a)}): representations "
                    "of different data cannot be pooled. Give every party the same declared schema (--domain)."
                )

    def weights(self, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights for an encoder whose state is ``own``; ``DataError`` unless they are its names, shapes and kinds.

        Nothing is copied before the sizes agree.
        """
        wrong = sorted(set(own) ^ set(self.tensors)) or [
            name for name, tensor in own.items() if not _same_kind(self.tensors[name], tensor)
        ]
        if wrong:
            raise DataError(f"the published encoder does not fit its own description ({_short(wrong[0])}).")
        weights = {name: torch.as_tensor(np.array(self.tensors[name])).reshape(own[name].shape) for name in own}
        broken = [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]
        if broken:
            raise DataError(f"the published encoder holds NaN or infinite weights ({broken[0]}): ask for it again.")
        return weights


def check_settings(params: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ``DataError`` unless the settings that came with an encoder have the names and kinds of these defaults."""
    odd = sorted(set(known) ^ set(params)) or [
        name for name, default in known.items() if not _is_like(params[name], default)
    ]
    if odd:
        raise odd_setting(str(odd[0]))


def odd_setting(name: str) -> DataError:
    """A setting that no initiator publishes."""
    return DataError(f"the published encoder's settings are not those of a published ars: see '{name[:40]}'.")


def _is_like(value: object, default: object) -> bool:
    """Whether a value that came from outside is of the kind of a default; a whole number is a number, too."""
    kinds = (int, float) if isinstance(default, float) else (type(default),)
    return type(value) in kinds


def _same_kind(array: object, tensor: Tensor) -> bool:
    if not isinstance(array, np.ndarray) or array.dtype != tensor.numpy().dtype:
        return False
    return (array.shape or (1,)) == (tuple(tensor.shape) or (1,))  # on the wire a single number is a list of one


def digest_of(tensors: Tensors, *more: str) -> str:
    """SHA-256 of some texts and of named arrays: their names, kinds, shapes and numbers."""
    hasher = hashlib.sha256("".join(more).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        hasher.update(repr((name, array.dtype.str, array.shape)).encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def public_schema(schema: Schema) -> dict[str, Any]:
    """The schema without private labels, and without the means of numbers: what is one party's own stays there."""
    stored = schema.to_json()
    hidden = set(schema.private)
    return {
        **stored,
        "private": {},
        "numbers": {
            name: {**scale, "mean": None, "deviation": None}
            for name, scale in stored["numbers"].items()
            if name not in hidden
        },
        "id_column": None,
        "left_out": {},
        "sources": {name: text for name, text in stored["sources"].items() if name not in hidden},
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
