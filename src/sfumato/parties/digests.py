"""Digests that let parties compare schemas and ids without revealing them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy.typing as npt

from sfumato.core.schema import Schema


def schema_digest(schema: Schema) -> str:
    """Return the SHA-256 of what all parties must agree on: records and utility labels, but not private labels."""
    whole = schema.to_json()
    common = {key: whole[key] for key in ("kind", "shape", "ranges", "utility", "columns", "audio")}
    return hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()


def ids_digest(ids: npt.NDArray[Any], held_out: npt.NDArray[Any], salt: str) -> str:
    """Return the SHA-256 of the ordered ids of training and held-out records, salted per run."""
    hasher = hashlib.sha256(salt.encode())
    for part in (ids, held_out):
        hasher.update(json.dumps([str(one) for one in part.tolist()]).encode())
    return hasher.hexdigest()
