"""Attacks by threat; each one trains afresh for every release."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.attacks.base import Attack
    from sfumato.core.schema import Schema


_CHEAP = 4
"""A substitute decoder costs so much less than an inverse network, and is trained longer."""


def suite(schema: Schema, *, epochs: int = 6, width: int = 32, steps: int = 500, renewals: int = 0) -> list[Attack]:
    """The attacks that make sense for a schema: reconstruction, re-identification, one probe set a private label.

    ``epochs``, ``width`` and the least number of ``steps`` are the inverse networks' effort; so often they query a
    randomised mechanism anew (``renewals``, 0: for every epoch).
    """
    from sfumato.attacks.attribute.probes import KINDS, AttributeProbe
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
    from sfumato.attacks.reidentification.candidates import ReidentifyByDecoding, ReidentifyByEncoder, ReidentifyByQuery

    residual = InverseNetwork(decoder="residual", epochs=epochs, width=width, fewest_steps=steps, renewals=renewals)
    probes = [AttributeProbe(label=label, kind=kind) for label in schema.private for kind in KINDS]
    return [
        InverseNetwork(decoder="mirror", epochs=epochs, fewest_steps=steps, renewals=renewals),
        residual,
        *probes,
        ReidentifyByDecoding(inverse=residual),
        ReidentifyByQuery(),
        ReidentifyByEncoder(),
    ]


def rotation_suite(
    schema: Schema, utility_label: str, *, epochs: int = 6, width: int = 32, steps: int = 500
) -> list[Attack]:
    """The further attacks on rotated messages: by what no key changes, by keys of the attacker's own, by repeats."""
    from sfumato.attacks.rotations.cloud_view import CLOUD_KINDS, CloudProbe, CloudView, LabelByCloud
    from sfumato.attacks.rotations.direction_critic import EstimateAngle, InverseCritic
    from sfumato.attacks.rotations.feature_decoder import PlainDecoder
    from sfumato.attacks.rotations.inverse_frame import AverageFrame, InverseFrame
    from sfumato.attacks.rotations.list_decoder import ListCritic, ListDecoder
    from sfumato.attacks.rotations.row_guesses import RowsByCritic, RowsByDecoding, RowsByKey
    from sfumato.attacks.rotations.row_spans import IntersectSpans, ReidentifyBySpan

    frame = InverseFrame(epochs=epochs, width=width, fewest_steps=steps)
    plain = PlainDecoder(epochs=epochs, width=width, fewest_steps=steps)
    lines = PlainDecoder(unit=True, epochs=epochs, width=width, fewest_steps=steps)
    critic = InverseCritic(decoder=plain, epochs=epochs, width=width // 2, fewest_steps=steps)
    view = CloudView()
    probes = [CloudProbe(label=label, view=view, kind=kind) for label in schema.private for kind in CLOUD_KINDS]
    return [
        frame,
        AverageFrame(inverse=frame),
        critic,
        IntersectSpans(decoder=lines),
        ListDecoder(epochs=epochs, width=width, fewest_steps=steps),
        ListCritic(inverse=critic),
        EstimateAngle(inverse=critic),
        RowsByKey(),
        RowsByDecoding(inverse=frame),
        RowsByCritic(inverse=critic),
        ReidentifyBySpan(),
        *probes,
        *(LabelByCloud(label=utility_label, view=view, kind=kind) for kind in CLOUD_KINDS),
    ]


def shared_suite(*, epochs: int = 6, width: int = 32, steps: int = 500) -> list[Attack]:
    """The further attacks on what parties share: by their own masks and any, by the victims', by repeats."""
    from sfumato.attacks.masks.mask_attacks import KnownMask, MaskBySpread, ReadMask, SearchMask
    from sfumato.attacks.masks.substitute_decoders import AnyMask, AverageShares, CleanDecoder, OwnMask
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork

    kinds = (CleanDecoder, OwnMask, AnyMask, KnownMask, ReadMask, SearchMask)
    average = AverageShares(inverse=InverseNetwork(epochs=epochs, width=width, fewest_steps=steps))
    decoders = (kind(epochs=_CHEAP * epochs, steps=_CHEAP * steps) for kind in kinds)
    return [*decoders, MaskBySpread(), average]
