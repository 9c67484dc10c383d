"""Attacks by threat; each one trains afresh for every release."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.attacks.base import Attack
    from sfumato.core.schema import Schema


def suite(schema: Schema, *, epochs: int = 6, width: int = 32, steps: int = 500) -> list[Attack]:
    """The attacks that make sense for a schema: reconstruction, re-identification, one probe set a private label.

    ``epochs``, ``width`` and the least number of ``steps`` are the inverse networks' effort.
    """
    from sfumato.attacks.inverse import InverseNetwork
    from sfumato.attacks.probes import KINDS, AttributeProbe
    from sfumato.attacks.reidentification import ReidentifyByDecoding, ReidentifyByQuery

    residual = InverseNetwork(decoder="residual", epochs=epochs, width=width, fewest_steps=steps)
    probes = [AttributeProbe(label=label, kind=kind) for label in schema.private for kind in KINDS]
    return [
        InverseNetwork(decoder="mirror", epochs=epochs, fewest_steps=steps),
        residual,
        *probes,
        ReidentifyByDecoding(inverse=residual),
        ReidentifyByQuery(),
    ]
