"""Device half and cloud half of one party of ``ars``."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from sfumato.core.ports import KeyedBy, Port
from sfumato.core.schema import Schema
from sfumato.mechanisms.ars.party import Defence, SharingParty, rounding_step
from sfumato.mechanisms.ars.published_encoder import digest_of
from sfumato.mechanisms.halves import Half, Halves, noise_port, payload_port, reader, record_port
from sfumato.mechanisms.halves.chain_gradient import Perturbed
from sfumato.mechanisms.halves.shipped_networks import Added, Rounded, SideByTask


def hardened_halves(
    party: SharingParty, schema: Schema, tasks: nn.ModuleList, width: int, epsilon: float, *, keyed: bool
) -> Halves:
    """Encoder and noise on the device, the initiator's task networks in the cloud."""
    weights = {name: tensor.numpy() for name, tensor in party.encoder.state_dict().items()}
    scaled = ("scaled", schema.kind, schema.shape, schema.ranges, schema.columns, schema.audio)
    purposes = (repr(scaled), repr(("noise", digest_of(weights), float(epsilon))))
    grid = rounding_step(epsilon) if epsilon > 0.0 else None
    payload = payload_port((width,), grid=grid)
    cloud = reader(SideByTask(tasks), payload, sum(schema.width(label) for label in schema.utility))
    if grid is None:
        device = Half(party.encoder, (record_port(schema),), payload)
    else:
        noise = noise_port((width,), "normal", KeyedBy(purposes, "record") if keyed else None)
        device = Half(Rounded(Added(party.encoder, epsilon), grid), (record_port(schema), noise), payload, jump=grid)
    return Halves(device, cloud, labels=tuple(schema.utility))


def published_halves(party: SharingParty, schema: Schema, width: int, defence: Defence, *, keyed: bool) -> Halves:
    """Encoder, substitute decoder and attribute networks on the device; it has no receiver of its own."""
    assert party.substitute is not None
    attributes: Sequence[tuple[nn.Module, int]] = list(party.attributes.values())
    network = Perturbed(party.encoder, party.substitute, attributes, defence.weights, defence.epsilon, defence.n)
    purposes = (repr(("party", 0)), repr(("mask",)))
    by = KeyedBy(purposes, "device") if keyed else None
    mask = Port("mask", "float32", (-1, width), source="drawn", law="bits", keyed=by, range=(0.0, 1.0))
    ones = Port("mask", "float32", (-1, width), source="drawn", law="ones")
    inputs = (record_port(schema), mask if defence.masked else ones)
    return Halves(Half(network, inputs, payload_port((width,)), jump=2.0 * defence.epsilon))
