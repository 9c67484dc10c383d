"""Weights of federated averaging at the precision of the wire, in both directions.

Down go the model's weights, up goes what training changed of them. In ``uint8`` and ``uint4`` each tensor is sent as
counts of a step between its lowest and highest number. Changes are rounded at random, up as often as the remainder
says, so that small ones are not lost: the mean over parties and rounds stays right.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp import Grid

from sfumato.core.dataset import FloatArray
from sfumato.parties.flower_records import arrays
from sfumato.parties.message_checks import MessageRefused, bounded, check_keys, plain_array
from sfumato.parties.wire_precision import counted, flat_codes, flat_size, flat_values, sent_dtype

LOG = logging.getLogger("sfumato.parties")
SCALE = "scale"
"""The lowest number and the step of each tensor, (tensors, 2)."""
Weights = Mapping[str, FloatArray]
Shapes = Mapping[str, tuple[int, ...]]


def weights_record(weights: Weights, wire: str, random: np.random.Generator | None = None) -> ArrayRecord:
    """The weights as they are sent; with ``random`` they are rounded at random, else to the nearest."""
    if not counted(wire):
        return arrays({name: np.asarray(values, dtype=wire) for name, values in weights.items()})
    sent: dict[str, npt.NDArray[Any]] = {}
    scale = []
    for name, values in weights.items():
        sent[name], low, step = flat_codes(values, wire, random)
        scale.append((low, step))
    return arrays({**sent, SCALE: np.array(scale, dtype=np.float32)})


def read_weights(record: Any, wire: str, shapes: Shapes) -> dict[str, FloatArray]:
    """What ``weights_record`` sent, checked: names, types, shapes, finite and bounded values."""
    check_keys(record, [*shapes, *([SCALE] if counted(wire) else [])], "model")
    if not counted(wire):
        found = {name: plain_array(record[name], name, (wire,), shape) for name, shape in shapes.items()}
        return {name: bounded(values.astype(np.float32), name) for name, values in found.items()}
    scale = bounded(plain_array(record[SCALE], SCALE, ("float32",), (len(shapes), 2)), SCALE)
    weights = {}
    for (name, shape), (low, step) in zip(shapes.items(), scale, strict=True):
        size = int(np.prod(shape))
        codes = plain_array(record[name], name, (sent_dtype(wire),), (flat_size(size, wire),))
        weights[name] = bounded(flat_values(codes, wire, low, step, size).reshape(shape), name)
    return weights


class PreciseGrid(Grid):
    """Wraps a grid: Flower's strategy sees float32 weights, and what passes is at the precision of ``wire``."""

    def __init__(self, inner: Grid, wire: str, shapes: Shapes) -> None:
        self._inner, self._wire, self._shapes = inner, wire, shapes

    def set_run(self, run: Any) -> None:
        self._inner.set_run(run)

    @property
    def run(self) -> Any:
        return self._inner.run

    def create_message(self, *args: Any, **options: Any) -> Message:
        return self._inner.create_message(*args, **options)

    def get_node_ids(self) -> Iterable[int]:
        return self._inner.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._inner.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._inner.pull_messages(message_ids)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send one model to all and add each party's change to the model that it received."""
        listed = list(messages)
        if not listed:
            return []
        model: Any = listed[0].content["arrays"]
        sent = weights_record({name: model[name].numpy() for name in self._shapes}, self._wire)
        for message in listed:
            message.content = RecordDict({**message.content, "arrays": sent})
        received = read_weights(sent, self._wire, self._shapes)
        replies = self._inner.send_and_receive(listed, timeout=timeout)
        return [whole for reply in replies if (whole := self._whole(reply, received)) is not None]

    def _whole(self, reply: Message, received: Weights) -> Message | None:
        if reply.has_error() or "arrays" not in reply.content:
            return reply
        try:
            change = read_weights(reply.content["arrays"], self._wire, self._shapes)
        except MessageRefused as error:
            LOG.warning("a model was refused: %s", error)
            return None
        whole = arrays({name: received[name] + change[name] for name in self._shapes})
        reply.content = RecordDict({**reply.content, "arrays": whole})
        return reply
