"""Digests that parties compare instead of what stands behind them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy.typing as npt

from sfumato.core.schema import Schema


def schema_digest(schema: Schema) -> str:
    """SHA-256 of what all parties must have alike: records and utility labels, not what each of them hides."""
    whole = schema.to_json()
    common = {key: whole[key] for key in ("kind", "shape", "ranges", "utility", "columns", "audio")}
    return hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()


def ids_digest(ids: npt.NDArray[Any], held_out: npt.NDArray[Any], salt: str) -> str:
    """SHA-256 of the ordered ids of training and held-out records, salted by the run."""
    hasher = hashlib.sha256(salt.encode())
    for part in (ids, held_out):
        hasher.update(json.dumps([str(one) for one in part.tolist()]).encode())
    return hasher.hexdigest()
