"""From a fitted mechanism to what is audited: the only place that asks a mechanism what it can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.base import Plan, Repeat, Rows, Scene
from sfumato.auditing.plans.device_users import DevicePlan
from sfumato.auditing.plans.features import FeaturesPlan
from sfumato.auditing.plans.fitted_records import TrainingPlan
from sfumato.auditing.plans.rotations import RotationsPlan
from sfumato.auditing.plans.shared import SharedPlan
from sfumato.auditing.result import GALLERY
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.fresh_seeds import FreshSeeds
from sfumato.core.knowledge import Knowledge, Model, Query, Refit
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import (
    Classifies,
    HasCloud,
    HasDecoder,
    HasDevice,
    HasEncoder,
    HasParticipants,
    Keyed,
    Repeats,
    Rotates,
)

_FEW = 2
"""Payloads that show whether a mechanism's classifier has an answer."""
"""What a fit counts as that is not made of passes over the records."""


def scene_of(mechanism: Mechanism, splits: Splits, effort: Effort, seed: int, controls: Controls) -> Scene:
    """The release of the victims, and what every attacker is granted."""
    victims = derive_seed(seed, "victims")
    release = mechanism.release(splits.victim, seed=victims)
    secrets = mechanism.secrets(splits.victim, seed=victims) if isinstance(mechanism, Keyed) else {}
    return Scene(
        name=mechanism.name,
        splits=splits,
        effort=effort,
        seed=seed,
        release=release,
        knowledge=Knowledge(
            auxiliary=splits.attacker,
            query=_query(mechanism, derive_seed(seed, "queries")),
            encoder=mechanism.public_encoder() if isinstance(mechanism, HasEncoder) else None,
            randomised=mechanism.traits.randomised,
            unknown=tuple(secrets),
            seed=derive_seed(seed, "attacker"),
        ),
        shown=one_of_each_class(splits.victim),
        secrets=secrets,
        repeat=_repeat(mechanism),
        controls=controls,
    )


def plans_for(mechanism: Mechanism, scene: Scene) -> Sequence[Plan]:
    """A plan for each capability."""
    plans: list[Plan] = [FeaturesPlan(scene)]
    if isinstance(mechanism, Rotates):
        opened = mechanism.opened(scene.splits.victim, seed=derive_seed(scene.seed, "victims"))
        cloud = mechanism.public_cloud() if isinstance(mechanism, HasCloud) else None
        plans.append(RotationsPlan(scene, opened, mechanism.visits, cloud))
    if isinstance(mechanism, HasParticipants):
        own = mechanism.participant(scene.splits.attacker, seed=derive_seed(scene.seed, "participant"))
        plans.append(SharedPlan(scene, own, mechanism.turns))
    if isinstance(mechanism, HasDevice):
        device = mechanism.same_device(seed=derive_seed(scene.seed, "victims"))
        plans += [] if device is None else [DevicePlan(scene, device)]
    few = scene.release.payload[:_FEW]
    model, refit = _model(mechanism, few, scene.seed), _refit(mechanism, few, scene.effort)
    return [*plans, TrainingPlan(scene, model, refit)]


def gallery(mechanism: Mechanism, scene: Scene) -> dict[str, FloatArray]:
    """What a report shows of a few victims: the record, what left, and that decoded."""
    released = scene.release.payload[scene.shown]
    found = {"originals": scene.splits.victim.x[scene.shown], "release": released}
    decoded = mechanism.decode(released) if isinstance(mechanism, HasDecoder) else None
    return found if decoded is None else {**found, "decoded": decoded}


def one_of_each_class(data: Dataset) -> Rows:
    """Rows for the gallery: the first record of each class, filled up to ``GALLERY``."""
    codes = next(iter((*data.utility.values(), *data.private.values())), np.zeros(len(data), dtype=np.int64))
    first = [int(np.flatnonzero(codes == code)[0]) for code in np.unique(codes)][:GALLERY]
    spread = np.linspace(0, len(data) - 1, min(len(data), 4 * GALLERY)).astype(int)  # records may come in order
    rest = [int(row) for row in spread if row not in first]
    return np.array((first + rest)[: min(GALLERY, len(data))], dtype=np.intp)


def _model(mechanism: Mechanism, payload: FloatArray, seed: int) -> Model:
    """What anybody can do with the fitted mechanism, whose payloads look like these."""
    return Model(
        query=_query(mechanism, derive_seed(seed, "model")),
        predict=_predict(mechanism, payload),
        decode=_decode(mechanism, payload),
    )


def _predict(mechanism: Mechanism, payload: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
    """The public classifier of the first utility label, or what it takes a number for; None without one."""
    if not isinstance(mechanism, Classifies) or mechanism.predict(payload) is None:
        return None

    def predict(payload: FloatArray) -> FloatArray:
        scores = mechanism.predict(payload)
        assert scores is not None  # it has just answered
        label, first = next(iter(mechanism.schema_.by_label(scores).items()))
        scale = mechanism.schema_.numbers.get(label)
        return first if scale is None else scale.raw(first).astype(np.float32)

    return predict


def _decode(mechanism: Mechanism, payload: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
    """The public decoder; None where this setting has none."""
    if not isinstance(mechanism, HasDecoder) or mechanism.decode(payload) is None:
        return None

    def decode(payload: FloatArray) -> FloatArray:
        records = mechanism.decode(payload)
        assert records is not None  # it has just decoded some
        return records

    return decode


def _refit(mechanism: Mechanism, payload: FloatArray, effort: Effort) -> Refit | None:
    """The same mechanism fitted to other records, if that takes few enough passes over them."""
    params = mechanism.get_params()
    if not effort.refits(params):
        return None
    return lambda data, seed: _model(type(mechanism)(**{**params, "seed": seed}).fit(data), payload, seed)


def _query(mechanism: Mechanism, seed: int) -> Query:
    """The pipeline as a black box with fresh, repeatable randomness on every call."""
    fresh = FreshSeeds(seed)

    def query(data: Dataset) -> FloatArray:
        return mechanism.transform(data.x, private=data.private, origin=data.origin, seed=fresh(), name=data.name)

    return query


def _repeat(mechanism: Mechanism) -> Repeat:
    def repeat(data: Dataset, times: int, seed: int) -> tuple[FloatArray, ...]:
        if isinstance(mechanism, Repeats):
            return mechanism.repeated(data, times, seed=seed)
        seeds = (derive_seed(seed, number) for number in range(times))
        return tuple(
            mechanism.transform(data.x, private=data.private, origin=data.origin, seed=fresh, name=data.name)
            for fresh in seeds
        )

    return repeat
