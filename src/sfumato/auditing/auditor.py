"""The audit of a frozen mechanism: utility, every attack that the threat model allows, and the worst of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks import suite
from sfumato.attacks.base import Attack, AttributeAttack
from sfumato.auditing.effort import CPU, Effort
from sfumato.auditing.geometry import picture
from sfumato.auditing.information import information_scores
from sfumato.auditing.utility import FRESH, fresh_scores, own_scores
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.guarantee import Guarantee
from sfumato.core.knowledge import Knowledge, Query, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.score import Score, worst_by_threat

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

Say = Callable[[str], None]
GALLERY = 8


@dataclass(frozen=True)
class Audit:
    """What was measured, and what a report shows of it.

    ``confusion`` holds, for each private label, what the worst attribute attack took for what: its name, the classes,
    and a matrix with the truth in rows and the guess in columns. ``information`` is an estimate and ranks nothing.
    """

    mechanism: str
    data: str
    guarantee: Guarantee
    utility: tuple[Score, ...]
    attacks: tuple[Score, ...]
    skipped: tuple[tuple[str, str], ...]
    confusion: dict[str, dict[str, Any]]
    information: tuple[Score, ...]
    gallery: dict[str, FloatArray] = field(repr=False)
    features: dict[str, Any] = field(repr=False)

    @property
    def worst(self) -> dict[str, Score]:
        """The worst score of each threat: the one that counts."""
        return worst_by_threat(self.attacks)

    @property
    def accuracy(self) -> Score:
        """The mechanism's own accuracy where it has a classifier, else the fresh classifier's."""
        return next(score for score in self.utility if score.primary)

    def to_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "data": self.data,
            "guarantee": self.guarantee.to_json(),
            "utility": [score.to_json() for score in self.utility],
            "attacks": [score.to_json() for score in self.attacks],
            "worst": {threat: score.to_json() for threat, score in self.worst.items()},
            "skipped": [{"attack": attack, "reason": reason} for attack, reason in self.skipped],
            "confusion": self.confusion,
            "information": [score.to_json() for score in self.information],
        }


class Controls:
    """What each attack and task gets from the raw records; measured once for a data set and kept."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, float]] = {}

    def get(self, key: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        if key not in self._values:
            self._values[key] = measure()
        return self._values[key]


def audit(
    mechanism: Mechanism,
    splits: Splits,
    *,
    attacks: list[Attack] | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    controls: Controls | None = None,
    say: Say = lambda _: None,
) -> Audit:
    """Attack a fitted mechanism with fresh adversaries trained on the attacker's split.

    ``controls`` shares the undefended figures among audits of the same splits, effort and seed.
    """
    controls = controls or Controls()
    scene = _Scene(mechanism, splits, effort, seed)
    features = scene.features()  # first: what is missing for it must not cost an audit
    utility = _utility(scene, controls, say)
    scores: list[Score] = []
    skipped: list[tuple[str, str]] = []
    matrices: dict[tuple[str, str], IntArray] = {}
    gallery = scene.gallery()
    chosen = attacks if attacks is not None else _suite(splits, effort)
    for attack in chosen:
        knowledge, release, truth = scene.stage(attack)
        obstacle = attack.obstacle(knowledge)
        if obstacle is not None:
            skipped.append((attack.name, obstacle))
            continue
        say(f"{mechanism.name}: {attack.name}")
        outcome = attack(release, knowledge, truth, control=_control(attack, scene, controls))
        scores += outcome.scores
        if attack.threat == "reconstruction":
            gallery[f"recon/{attack.name}"] = outcome.guess[scene.shown]
        if isinstance(attack, AttributeAttack):
            codes = splits.victim.label(attack.label)
            matrices[attack.name, attack.label] = metrics.confusion(codes, outcome.guess)
    return Audit(
        mechanism=mechanism.name,
        data=splits.victim.name,
        guarantee=mechanism.guarantee(),
        utility=tuple(utility),
        attacks=tuple(scores),
        skipped=tuple(skipped),
        confusion=_worst_confusion(scores, matrices, splits),
        information=tuple(information_scores(scene.release.payload, splits.victim, seed)),
        gallery=gallery,
        features=features,
    )


def _suite(splits: Splits, effort: Effort) -> list[Attack]:
    every = suite(splits.schema, epochs=effort.attack_epochs, width=effort.attack_width, steps=effort.attack_steps)
    return [attack for attack in every if effort.threats in ("all", attack.threat)]


def _worst_confusion(
    scores: list[Score], matrices: dict[tuple[str, str], IntArray], splits: Splits
) -> dict[str, dict[str, Any]]:
    """The matrix of the worst attribute attack on each private label."""
    worst = {(score.attack, score.target) for score in worst_by_threat(scores).values()}
    return {
        label: {"attack": attack, "classes": list(splits.schema.classes(label)), "matrix": matrix.tolist()}
        for (attack, label), matrix in matrices.items()
        if (attack, label) in worst
    }


class _Scene:
    """The release of the victims, and what the attacker is granted."""

    def __init__(self, mechanism: Mechanism, splits: Splits, effort: Effort, seed: int) -> None:
        self.mechanism, self.splits, self.effort, self.seed = mechanism, splits, effort, seed
        self.release = mechanism.release(splits.victim, seed=derive_seed(seed, "victims"))
        self.truth = Truth(splits.victim)
        self.knowledge = Knowledge(
            auxiliary=splits.attacker,
            query=_query(mechanism, derive_seed(seed, "queries")),
            encoder=mechanism.public_encoder(),
            randomised=mechanism.randomised,
            seed=derive_seed(seed, "attacker"),
        )
        few = min(effort.candidates, len(splits.victim))
        order = np.random.default_rng(derive_seed(seed, "candidates")).permutation(few)
        suspects = splits.victim.take(slice(0, few))
        self._suspects = Truth(suspects, np.argsort(order).astype(np.int64))
        nameless = replace(suspects.take(order), ids=np.arange(few).astype(np.str_))  # ids may count the rows
        self._lineup = replace(self.knowledge, candidates=nameless)
        self.shown = _one_of_each_class(splits.victim)

    def stage(self, attack: Attack) -> tuple[Knowledge, Release, Truth]:
        """What this attack is given: a re-identification sees as many releases as there are candidates."""
        if attack.threat != "reidentification":
            return self.knowledge, self.release, self.truth
        assert self._lineup.candidates is not None
        few = len(self._lineup.candidates)
        payload = self.release.payload[:few]
        return self._lineup, replace(self.release, payload=payload, utility={}), self._suspects

    def gallery(self) -> dict[str, FloatArray]:
        released = self.release.payload[self.shown]
        decoded = self.mechanism.decode(released)
        shown = {"originals": self.splits.victim.x[self.shown], "release": released}
        return shown if decoded is None else {**shown, "decoded": decoded}

    def features(self) -> dict[str, Any]:
        """The picture of what left."""
        seed = derive_seed(self.seed, "geometry")
        return picture(self.release.payload, self.splits.victim, self.effort.geometry, seed)


def _utility(scene: _Scene, controls: Controls, say: Say) -> list[Score]:
    """The own classifier first (it ranks), then a fresh one for every utility label."""
    victim = scene.splits.victim
    say(f"{scene.mechanism.name}: utility")
    logits = scene.mechanism.predict(scene.release.payload)
    scores = [] if logits is None else own_scores(logits, victim, next(iter(victim.utility)))
    owner = scene.mechanism.release(scene.splits.owner, seed=derive_seed(scene.seed, "owner"))
    raw_owner, raw_victim = _raw(scene.splits.owner), _raw(victim)
    for label in victim.utility:

        def fresh(a: Release, b: Release, control: float | None, label: str = label) -> list[Score]:
            return fresh_scores(a, b, victim, label, scene.effort.task_epochs, scene.seed, control)

        control = controls.get(
            f"{FRESH}:{label}", lambda: {s.metric: s.value for s in fresh(raw_owner, raw_victim, None)}
        )
        scores += fresh(owner, scene.release, control["accuracy"])
    return scores


def _control(attack: Attack, scene: _Scene, controls: Controls) -> dict[str, float] | None:
    """The same attack on the raw records; None where it needs an encoder, which raw records do not have."""
    knowledge, release, truth = scene.stage(attack)
    undefended = replace(knowledge, query=lambda data: data.x.copy(), encoder=None, randomised=False)
    if attack.obstacle(undefended) is not None:
        return None
    raw = replace(release, mechanism="none", payload=scene.splits.victim.x[: len(release)])
    return controls.get(repr(attack), lambda: attack(raw, undefended, truth).values())


def _raw(data: Dataset) -> Release:
    from sfumato.core.guarantee import empirical

    return Release("none", data.x, empirical("No defence."), data.utility)


def _query(mechanism: Mechanism, seed: int) -> Query:
    """The pipeline as a black box with fresh, repeatable randomness on every call."""
    calls = 0

    def query(data: Dataset) -> FloatArray:
        nonlocal calls
        calls += 1
        return mechanism.transform(data.x, private=data.private, seed=derive_seed(seed, calls), name=data.name)

    return query


def _one_of_each_class(data: Dataset) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Rows for the gallery: the first record of each class, filled up to ``GALLERY``."""
    codes = next(iter(data.utility.values()))
    first = [int(np.flatnonzero(codes == code)[0]) for code in np.unique(codes)][:GALLERY]
    spread = np.linspace(0, len(data) - 1, min(len(data), 4 * GALLERY)).astype(int)  # records may come in order
    rest = [int(row) for row in spread if row not in first]
    return np.array((first + rest)[: min(GALLERY, len(data))], dtype=np.intp)
