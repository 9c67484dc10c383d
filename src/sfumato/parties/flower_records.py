"""Conversion of values to the Flower records exchanged between parties and server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.parties.wire_precision import halved


def config(values: Mapping[str, Any]) -> ConfigRecord:
    """Wrap named strings and whole numbers."""
    return ConfigRecord(dict(values))


def metrics(values: Mapping[str, float]) -> MetricRecord:
    """Wrap named figures."""
    return MetricRecord(dict(values))


def arrays(values: Mapping[str, npt.NDArray[Any]]) -> ArrayRecord:
    """Wrap named arrays."""
    return ArrayRecord({name: Array(np.ascontiguousarray(value)) for name, value in values.items()})


def encoder_records(encoder: Published, *, half: bool) -> RecordDict:
    """Wrap a published encoder: weights (in 16 bits if ``half``; they must fit), settings, schema and digest."""
    about = {"params": json.dumps(dict(encoder.params)), "schema": json.dumps(dict(encoder.schema))}
    tensors = {name: halved(np.asarray(values)) if half else values for name, values in encoder.tensors.items()}
    return RecordDict({"encoder": arrays(tensors), "about": config({**about, "digest": encoder.digest})})
