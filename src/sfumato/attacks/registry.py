"""Which attacks an audit runs, by what is released; and those of installed plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.plugins import load_plugin, plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sfumato.attacks.attribute.queried_records import QueriedRecords
    from sfumato.attacks.base import Attack
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
    from sfumato.core.coded_columns import CodedColumn
    from sfumato.core.schema import Schema

GROUP = "sfumato.attacks"
_CHEAP = 4
"""A substitute decoder costs this much less than an inverse network, and is trained longer."""
_MIRRORED: dict[str, Any] = {"batch": 128, "rate": 4e-3}
"""The paper's attacker learns from larger batches, more slowly."""
_WIDER, _LONGER, _MORE_STEPS, _DRAWS = 8, 8, 2, 2
"""A residual probe's width, passes and steps as multiples of an inverse network's; and its queries of each record as a
multiple of the network's passes."""
_MOST_TARGETS = 60
"""Columns that are asked for if none is named: each costs as much as the first."""
_MEANS = 4
"""How often readers of means ask for others: each costs as many queries as there are releases in it."""


def features_suite(
    schema: Schema,
    *,
    epochs: int = 6,
    width: int = 32,
    steps: int = 500,
    renewals: int = 0,
    search: int = 100,
    starts: int = 2,
    labels_leave: bool = False,
    pictures: bool = False,
    second: bool = False,
    public: bool = False,
) -> list[Attack]:
    """Any payload that belongs to a record: reconstruction, re-identification, one set of probes a private label.

    ``epochs``, ``width`` and ``steps`` (a minimum) are the inverse networks' effort, from which the residual probe's
    follows; ``renewals`` is how often they query a randomised mechanism anew (0: for every epoch); ``search`` and
    ``starts`` are the steps and starts of a search through the public encoder. Where utility labels may leave beside
    the payload, attacks that read them run, too. Where the payload is a picture like the record, a convolutional probe
    reads it, too. A ``second`` release by another pipeline is aligned with the first, and payloads with a ``public``
    embedding of the records.
    """
    from sfumato.attacks.attribute.picture_probe import PictureProbe
    from sfumato.attacks.attribute.probes import KINDS, AttributeProbe, ResidualProbe
    from sfumato.attacks.attribute.queried_records import QueriedRecords
    from sfumato.attacks.linkage.two_releases import (
        LinkByAlignment,
        LinkByDecoding,
        LinkByMetric,
        LinkByPayload,
    )
    from sfumato.attacks.reconstruction.counting import CodebookAttack, CountingAttack
    from sfumato.attacks.reconstruction.encoder_inversion import EncoderInversion
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
    from sfumato.attacks.reconstruction.latent_search import LatentSearch
    from sfumato.attacks.reconstruction.ridge_inverse import RidgeInverse
    from sfumato.attacks.reidentification.candidates import (
        ReidentifyByAlignment,
        ReidentifyByDecoding,
        ReidentifyByEncoder,
        ReidentifyByQuery,
    )
    from sfumato.attacks.reidentification.public_embedding import ReidentifyInPublic

    residual = InverseNetwork(decoder="residual", epochs=epochs, width=width, fewest_steps=steps, renewals=renewals)
    queried = QueriedRecords(draws=renewals or _DRAWS * epochs)
    effort = _probe_effort(epochs, width, steps)
    classes = schema.with_classes(schema.private)
    probes = [AttributeProbe(label=label, queried=queried, kind=kind) for label in classes for kind in KINDS]
    strongest = [ResidualProbe(label=label, queried=queried, **effort) for label in classes]
    seen = {"epochs": epochs, "width": max(8, width // 2), "fewest_steps": steps}
    lookers = [PictureProbe(label=label, queried=queried, **seen) for label in classes] if pictures else []
    labelled = _label_readers(schema, queried, effort, residual) if labels_leave else []
    return [
        InverseNetwork(decoder="mirror", epochs=epochs, fewest_steps=steps, renewals=renewals, **_MIRRORED),
        residual,
        RidgeInverse(),
        EncoderInversion(inverse=residual, steps=search, starts=starts),
        LatentSearch(inverse=residual, steps=search, starts=max(1, starts // 2), training=steps),
        CountingAttack(),
        CodebookAttack(),
        *probes,
        *strongest,
        *_number_probes(schema, queried, effort),
        *lookers,
        *labelled,
        ReidentifyByDecoding(inverse=residual),
        ReidentifyByQuery(),
        ReidentifyByEncoder(),
        ReidentifyByAlignment(),
        *([ReidentifyInPublic()] if public else []),
        LinkByPayload(),
        LinkByDecoding(inverse=residual),
        LinkByMetric(),
        *([LinkByAlignment()] if second else []),
    ]


def _probe_effort(epochs: int, width: int, steps: int) -> dict[str, Any]:
    """A residual probe's effort beside an inverse network's."""
    return {"epochs": _LONGER * epochs, "width": _WIDER * width, "fewest_steps": _MORE_STEPS * steps}


def _number_probes(schema: Schema, queried: QueriedRecords, effort: dict[str, Any]) -> list[Attack]:
    """One set of regressions for each private label that is a number."""
    from sfumato.attacks.attribute.number_probes import NUMBER_KINDS, NumberProbe, ResidualNumberProbe

    labels = [label for label in schema.private if label in schema.numbers]
    probes = [NumberProbe(label=label, queried=queried, kind=kind) for label in labels for kind in NUMBER_KINDS]
    return [*probes, *(ResidualNumberProbe(label=label, queried=queried, **effort) for label in labels)]


def _label_readers(
    schema: Schema, queried: QueriedRecords, effort: dict[str, Any], inverse: InverseNetwork
) -> list[Attack]:
    """What utility labels that leave, or are read from the payload, say of private labels and records."""
    from sfumato.attacks.attribute.number_floor import (
        ClassByNumber,
        NumberByUtility,
        NumberFromLabels,
        NumberReading,
    )
    from sfumato.attacks.attribute.number_probes import NumberProbe, ResidualNumberProbe
    from sfumato.attacks.attribute.probes import AttributeProbe, ResidualProbe
    from sfumato.attacks.attribute.utility_floor import ByUtility, UtilityReading
    from sfumato.attacks.shared_labels import InverseWithLabels, LabelMean, LabelOnly

    served = schema.with_classes(schema.utility)
    readings = [UtilityReading(ResidualProbe(label=label, queried=queried, **effort)) for label in served]
    numbers = [
        NumberReading(ResidualNumberProbe(label=label, queried=queried, **effort))
        for label in schema.utility
        if label in schema.numbers
    ]
    suite: list[Attack] = []
    for label in schema.private:
        if label in schema.numbers:
            suite += [NumberByUtility(label=label, reading=reading) for reading in readings]
            suite += [NumberByUtility(label=label, reading=reading) for reading in numbers]
            suite += [
                NumberFromLabels(label=label),
                NumberProbe(label=label, queried=queried, kind="trees", with_labels=True),
                ResidualNumberProbe(label=label, queried=queried, with_labels=True, **effort),
            ]
            continue
        suite += [ByUtility(label=label, reading=reading) for reading in readings]
        suite += [ClassByNumber(label=label, reading=reading) for reading in numbers]
        suite += [
            LabelOnly(label=label),
            AttributeProbe(label=label, queried=queried, kind="trees", with_labels=True),
            ResidualProbe(label=label, queried=queried, with_labels=True, **effort),
        ]
    return [*suite, LabelMean(), InverseWithLabels(inverse=inverse)]


def averages_suite(schema: Schema, *, epochs: int = 6, width: int = 32, steps: int = 500) -> list[Attack]:
    """Means of several releases of one record: the strongest readers of any payload, who ask seldom."""
    from sfumato.attacks.attribute.number_probes import ResidualNumberProbe
    from sfumato.attacks.attribute.probes import ResidualProbe
    from sfumato.attacks.attribute.queried_records import QueriedRecords
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork

    queried = QueriedRecords(records=4_000, draws=_MEANS)
    effort = _probe_effort(epochs, width, steps)
    probes = [
        (ResidualNumberProbe if label in schema.numbers else ResidualProbe)(label=label, queried=queried, **effort)
        for label in schema.private
    ]
    return [InverseNetwork(epochs=epochs, width=width, fewest_steps=steps, renewals=_MEANS), *probes]


def rotations_suite(
    schema: Schema, labels: Sequence[str], *, epochs: int = 6, width: int = 32, steps: int = 500
) -> list[Attack]:
    """Rotated messages, in addition: by what no key changes, by keys of the attacker's own, by what came later.

    ``labels`` are those that the network reads.
    """
    from sfumato.attacks.rotations.cloud_view import CLOUD_KINDS, CloudProbe, CloudView, LabelByCloud
    from sfumato.attacks.rotations.direction_critic import EstimateAngle, InverseCritic
    from sfumato.attacks.rotations.feature_decoder import PlainDecoder
    from sfumato.attacks.rotations.inverse_frame import AverageFrame, InverseFrame
    from sfumato.attacks.rotations.later_releases import (
        CountCopies,
        DecoyLaterSent,
        MeetAcrossReleases,
        MeetAfterRefit,
    )
    from sfumato.attacks.rotations.list_decoder import ListCritic, ListDecoder
    from sfumato.attacks.rotations.row_guesses import RowsByCritic, RowsByDecoding, RowsByKey
    from sfumato.attacks.rotations.row_spans import IntersectSpans, ReidentifyBySpan

    frame = InverseFrame(epochs=epochs, width=width, fewest_steps=steps)
    plain = PlainDecoder(epochs=epochs, width=width, fewest_steps=steps)
    lines = PlainDecoder(unit=True, epochs=epochs, width=width, fewest_steps=steps)
    critic = InverseCritic(decoder=plain, epochs=epochs, width=width // 2, fewest_steps=steps)
    view, named = CloudView(), schema.with_classes(schema.private)
    probes = [CloudProbe(label=label, view=view, kind=kind) for label in named for kind in CLOUD_KINDS]
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
        CountCopies(),
        MeetAcrossReleases(),
        MeetAfterRefit(),
        DecoyLaterSent(),
        ReidentifyBySpan(),
        *probes,
        *(LabelByCloud(label=label, view=view, kind=kind) for label in labels for kind in CLOUD_KINDS),
    ]


def shared_suite(*, epochs: int = 6, width: int = 32, steps: int = 500) -> list[Attack]:
    """What parties share, in addition: by the attacker's own masks, by any, by the victims', by repeats."""
    from sfumato.attacks.masks.mask_attacks import KnownMask, MaskBySpread, ReadMask, SearchMask
    from sfumato.attacks.masks.substitute_decoders import AnyMask, AverageShares, CleanDecoder, OwnMask
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork

    kinds = (CleanDecoder, OwnMask, AnyMask, KnownMask, ReadMask, SearchMask)
    average = AverageShares(inverse=InverseNetwork(epochs=epochs, width=width, fewest_steps=steps))
    decoders = (kind(epochs=_CHEAP * epochs, steps=_CHEAP * steps) for kind in kinds)
    return [*decoders, MaskBySpread(), average]


def device_suite(schema: Schema, *, epochs: int = 6, width: int = 32, steps: int = 500) -> list[Attack]:
    """A device that keeps a secret, in addition: by somebody who may send records of their own through it."""
    from sfumato.attacks.attribute.probes import AttributeProbe, Kind
    from sfumato.attacks.attribute.queried_records import QueriedRecords
    from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
    from sfumato.attacks.same_device import NearestAnswer, SameDeviceDecoder, SameDeviceProbe

    queried = QueriedRecords()
    kinds: tuple[Kind, ...] = ("mlp", "knn")
    named = schema.with_classes(schema.private)
    inners = [AttributeProbe(label=label, queried=queried, kind=kind) for label in named for kind in kinds]
    return [
        SameDeviceDecoder(inner=InverseNetwork(epochs=epochs, width=width, fewest_steps=steps)),
        NearestAnswer(),
        *(SameDeviceProbe(label=inner.label, inner=inner) for inner in inners),
    ]


def training_suite(*, shadows: int = 4, records: int = 1000) -> list[Attack]:
    """What was fitted to the owner's records, in addition: who was among them; by ``shadows`` models of ``records``."""
    from sfumato.attacks.membership.training_records import HardRecords, ShadowModels

    return [HardRecords(), ShadowModels(shadows=shadows, records=records)]


def membership_suite(labels: Sequence[str]) -> list[Attack]:
    """Synthetic records; attacks that compare classes need the release's ``labels``."""
    from sfumato.attacks.membership.synthetic_records import (
        DensityRatio,
        NearestSynthetic,
        StudentLoss,
        SyntheticOrReal,
    )

    by_class: list[Attack] = [NearestSynthetic(within=True), StudentLoss()] if labels else []
    return [NearestSynthetic(), DensityRatio(), SyntheticOrReal(), *by_class]


def rows_suite(
    columns: Sequence[CodedColumn], *, asked: int = 1000, shadows: int = 16, remade: bool = False
) -> list[Attack]:
    """Rows that belong to nobody in particular: singling out, linkability, inference, membership, copies.

    ``asked`` predicates by each way of singling out; ``shadows`` other releases by the same maker, if it can be
    called (``remade``): only then do these attacks count among those that intervals have to cover.
    """
    from sfumato.attacks.copies.copied_rows import ExactCopies, NearCopies, PartCopies, RareCopies
    from sfumato.attacks.inference.unknown_columns import NearestRows, Trees
    from sfumato.attacks.linkability.column_parts import LineUp, SameNeighbour
    from sfumato.attacks.membership.coded_records import (
        CodedDensity,
        NearerThanOthers,
        NearestCoded,
        ReleasedOrNot,
        StandsOut,
    )
    from sfumato.attacks.membership.shadow_releases import LearntRatio, ReleaseRatio, ShadowSignals
    from sfumato.attacks.singling_out.predicates import OneColumn, SeveralColumns, WholeRow

    named = any(column.private for column in columns)
    targets = [
        at for at, one in enumerate(columns) if not one.companion and one.categories != 1 and (one.private or not named)
    ]
    if not named and len(targets) > _MOST_TARGETS:
        targets = [targets[at * len(targets) // _MOST_TARGETS] for at in range(_MOST_TARGETS)]
    about: dict[str, Any] = {
        "targets": tuple(targets),
        "numbers": tuple(columns[at].number for at in targets),
        "names": tuple(columns[at].name for at in targets),
        "apart": named,
    }
    single = [kind(among=3, asked=asked) for kind in (OneColumn, SeveralColumns, WholeRow)]
    link: list[Attack] = [SameNeighbour(k=1, among=3), SameNeighbour(k=10, among=3), LineUp(among=3)]
    infer: list[Attack] = [
        NearestRows(k=1, among=3, **about),
        NearestRows(k=10, among=3, **about),
        Trees(among=3, **about),
    ]
    kinds = [one.number for one in columns]
    ways = [False, True] if any(kinds) and not all(kinds) else [False]
    most = 2 + 3 * len(ways) + 2 * remade
    signals = ShadowSignals(shadows)
    member: list[Attack] = [
        *(kind(numbers=way, among=most) for kind in (NearestCoded, NearerThanOthers, StandsOut) for way in ways),
        *(kind(among=most) for kind in (CodedDensity, ReleasedOrNot)),
    ]
    shadow: list[Attack] = [kind(among=most, signals=signals) for kind in (ReleaseRatio, LearntRatio)]
    copies: list[Attack] = [kind(among=4) for kind in (ExactCopies, RareCopies, NearCopies, PartCopies)]
    others = [*single, *link, *(infer if targets else []), *member, *copies]
    return [*shadow, *others] if remade else [*others, *shadow]  # what may fail comes first


def plugin_suite(schema: Schema) -> list[Attack]:
    """The attacks of installed plugins for records of this schema. They run last, so they change no other figure."""
    from sfumato.attacks.base import Attack

    found = [load_plugin(point, Attack) for point in plugins(GROUP).values()]
    return [attack for cls in found for attack in cls.suite(schema)]
