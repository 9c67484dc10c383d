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
        hasher = hashlib.sha256(json.dumps([self.params, self.schema], sort_keys=True).encode())
        for name in sorted(self.tensors):
            array = np.ascontiguousarray(self.tensors[name])
            hasher.update(repr((name, array.dtype.str, array.shape)).encode())
            hasher.update(array.tobytes())
        return hasher.hexdigest()

    def check(self, schema: Schema, name: str) -> None:
        """Raise ``DataError`` unless records of ``schema`` mean the same to this encoder as the initiator's."""
        theirs = Schema.from_json(self.schema)
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


def public_schema(schema: Schema) -> dict[str, Any]:
    """The schema without private labels: what is private to one party is nobody's business."""
    stored = schema.to_json()
    hidden = set(schema.private)
    return {
        **stored,
        "private": {},
        "id_column": None,
        "sources": {name: text for name, text in stored["sources"].items() if name not in hidden},
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
