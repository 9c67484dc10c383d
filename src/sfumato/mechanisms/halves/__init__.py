"""Device half and cloud half of a fitted mechanism as plain networks, ready to be shipped (``HasHalves``).

A half draws nothing by itself: keys, noise and masks are inputs, so that whoever runs it draws them where they belong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from sfumato.core.ports import CompanyRule, KeyedBy, Law, Port
from sfumato.core.schema import Schema
from sfumato.nets.encoders import output_shape

Shape = tuple[int, ...]
RECORD, PAYLOAD, SCORES = "record", "payload", "scores"


@dataclass(frozen=True)
class Half:
    """A network and what goes in, in the order of its arguments, and what comes out.

    ``jump`` is how far two computers may be apart where a rounding, a sign or a choice hangs on the last bit; 0 if none
    does, infinite where the choice is between units of nearly one norm.
    """

    network: nn.Module
    inputs: tuple[Port, ...]
    output: Port
    jump: float = 0.0


@dataclass(frozen=True)
class Halves:
    """What a mechanism ships. ``labels`` are those that the scores are about, in order; ``sampler`` draws records."""

    device: Half | None = None
    cloud: Half | None = None
    finish: Half | None = None
    sampler: Half | None = None
    labels: tuple[str, ...] = ()
    company: CompanyRule | None = None


def record_port(schema: Schema, axis: str = "batch") -> Port:
    """The preprocessed record."""
    return Port(RECORD, "float32", (-1, *schema.shape), axis, "record", range=(0.0, 1.0))


def private_port(schema: Schema) -> Port:
    """The private labels side by side, one-hot or standardised."""
    return Port("private", "float32", (-1, sum(schema.width(label) for label in schema.private)), source="private")


def noise_port(row: Shape, law: Law, keyed: KeyedBy | None = None) -> Port:
    """Fresh random numbers for each record."""
    return Port("noise", "float32", (-1, *row), source="drawn", law=law, keyed=keyed)


def payload_port(row: Shape, *, records: bool = False, grid: float | None = None) -> Port:
    """What leaves; ``records`` says that these are records of the owner's kind."""
    return Port(PAYLOAD, "float32", (-1, *row), range=(0.0, 1.0) if records else None, grid=grid)


def reader(network: nn.Module, payload: Port, scores: int) -> Half:
    """A cloud half that reads scores from a payload."""
    return Half(network, (sent(payload),), Port(SCORES, "float32", (-1, scores)))


def sent(payload: Port) -> Port:
    """The device's output as the cloud's input."""
    return replace(payload, source="payload", range=None, grid=None)


def plain_halves(
    encoder: nn.Module,
    classifier: nn.Module | None,
    schema: Schema,
    labels: tuple[str, ...],
    *,
    noise: Law | None = None,
    width: Shape | None = None,
    records: bool = False,
) -> Halves:
    """An encoder on the device, whose second argument is ``noise`` of the payload's shape, and a classifier behind it.

    ``width`` is the payload's shape where the network cannot be asked for it.
    """
    row = output_shape(encoder, schema.shape) if width is None else width
    payload = payload_port(row, records=records)
    inputs = (record_port(schema), *(() if noise is None else (noise_port(row, noise),)))
    cloud = None
    if classifier is not None:
        cloud = reader(classifier, payload, sum(schema.width(label) for label in labels))
    return Halves(Half(encoder, inputs, payload), cloud, labels=labels if cloud else ())
