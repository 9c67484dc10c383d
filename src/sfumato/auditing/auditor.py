"""The audit of a frozen mechanism: utility, every attack that the threat model allows, and the worst of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks import rotation_suite, shared_suite, suite
from sfumato.attacks.base import Attack, AttributeAttack
from sfumato.auditing.effort import CPU, Effort
from sfumato.auditing.information_scores import information_scores
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.plans.keyed import Keyed
from sfumato.auditing.result import GALLERY, Audit, Controls, Say
from sfumato.auditing.utility import FRESH, fresh_scores, own_scores
from sfumato.auditing.wrong_key import wrong_key
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.errors import UsageError
from sfumato.core.knowledge import Knowledge, Query, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.score import Score, worst_by_threat
from sfumato.nets.training_loop import as_tensor, forward_in_batches

if TYPE_CHECKING:
    from torch import nn

    from sfumato.mechanisms.base import Mechanism


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
    if mechanism.synthetic:
        from sfumato.auditing.plans.synthetic import audit_synthetic

        return audit_synthetic(mechanism, splits, attacks=attacks, effort=effort, seed=seed, controls=controls, say=say)
    if effort.students:
        raise UsageError(f"{mechanism.name} releases no synthetic records to learn from: leave out --student.")
    scene = _Scene(mechanism, splits, effort, seed)
    features = scene.features()  # first: what is missing for it must not cost an audit
    utility = _utility(scene, controls, say)
    scores: list[Score] = []
    skipped: list[tuple[str, str]] = []
    matrices: dict[tuple[str, str], IntArray] = {}
    gallery = scene.gallery()
    chosen = attacks if attacks is not None else _suite(scene)
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
            gallery[f"recon/{attack.name}"] = outcome.guess[scene.shown_in(attack)]
        if attack.threat == "list-reconstruction":
            gallery[f"recon-list/{attack.name}"] = outcome.guess[scene.shown]
        if isinstance(attack, AttributeAttack) and attack.threat == "attribute":
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
        wrong_key=wrong_key(mechanism, splits.victim, derive_seed(seed, "victims")),
        gallery=gallery,
        features=features,
    )


def _suite(scene: _Scene) -> list[Attack]:
    schema, effort = scene.splits.schema, scene.effort
    chosen = {"epochs": effort.attack_epochs, "width": effort.attack_width, "steps": effort.attack_steps}
    every = suite(schema, **chosen, renewals=effort.attack_renewals)
    if scene.keyed is not None:
        every = [attack for attack in every if attack.name != "inverse-mirror"]  # a message is no encoder's output
        every += rotation_suite(schema, next(iter(scene.splits.victim.utility)), **chosen)
    if scene.mechanism.parties:
        every += shared_suite(**chosen)
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
        victims = derive_seed(seed, "victims")
        self.release = mechanism.release(splits.victim, seed=victims)
        self.truth = Truth(splits.victim)
        self.knowledge = Knowledge(
            auxiliary=splits.attacker,
            query=_query(mechanism, derive_seed(seed, "queries")),
            encoder=mechanism.public_encoder(),
            randomised=mechanism.randomised,
            seed=derive_seed(seed, "attacker"),
        )
        self.undefended = replace(self.knowledge, query=lambda data: data.x.copy(), encoder=None, randomised=False)
        self.shown = _one_of_each_class(splits.victim)
        opened = mechanism.opened(splits.victim, seed=victims)
        self.keyed = None if opened is None else Keyed(mechanism, splits, effort, seed, opened, self.shown)
        if self.keyed is not None:
            self.truth = self.keyed.truth
            self.knowledge = self.keyed.granted(self.knowledge)
        self.clean_control: dict[str, float] | None = None
        self._masks = mechanism.masks(len(splits.victim), seed=victims)
        if mechanism.parties:
            self.truth = Truth(splits.victim, masks=self._masks)
            self.knowledge = replace(
                self.knowledge,
                participant=mechanism.participant(splits.attacker, seed=derive_seed(seed, "participant")),
                parties=mechanism.parties,
            )
        few = min(effort.candidates, len(splits.victim))
        order = np.random.default_rng(derive_seed(seed, "candidates")).permutation(few)
        suspects = splits.victim.take(slice(0, few))
        self._suspects = Truth(suspects, np.argsort(order).astype(np.int64))
        self._candidates = replace(suspects.take(order), ids=np.arange(few).astype(np.str_))  # ids may count the rows

    def stage(self, attack: Attack) -> tuple[Knowledge, Release, Truth]:
        """What this attack is given: a re-identification sees as many releases as there are candidates, an attack on
        repeated releases some of the victims, one that is to name the row the records behind each message."""
        if attack.wants_repeats and self.keyed is not None:
            return self.keyed.again(self.knowledge, self.release)
        if attack.wants_masks:
            return replace(self.knowledge, masks=self._masks), self.release, self.truth
        if attack.wants_repeats:
            repeats = self.mechanism.repeated(
                self.splits.victim, self.effort.repeats, seed=derive_seed(self.seed, "victims")
            )
            return replace(self.knowledge, repeats=repeats), self.release, self.truth
        return self._lined_up(attack, self.knowledge, self.release, self.truth)

    def control(self, attack: Attack) -> tuple[Knowledge, Release, Truth] | None:
        """The same without a defence: raw records or, for an attack on keys, messages with the identity for a key.

        Parties without a defence share clean latents. None where the attack needs an encoder, which raw records do
        not have.
        """
        raw = replace(self.release, mechanism="none", payload=self.splits.victim.x)
        staged = self._lined_up(attack, self.undefended, raw, self.truth)
        if attack.obstacle(staged[0]) is not None:
            if self.keyed is None:
                return self._clean(attack)
            if attack.wants_repeats:
                staged = self.keyed.again(self.knowledge, self.release, plain=True)
            else:
                staged = self._lined_up(attack, *self.keyed.plain(self.knowledge, self.release))
        return staged if attack.obstacle(staged[0]) is None else None

    def clean(self) -> FloatArray | None:
        """The victims' latents without noise, if parties share an encoder: each reads its own records like that."""
        encoder = self.knowledge.encoder if self.mechanism.parties else None
        return None if encoder is None else _latents(encoder, self.splits.victim)

    def _clean(self, attack: Attack) -> tuple[Knowledge, Release, Truth] | None:
        """The parties' latents without any noise, or None for an attack on what they add."""
        encoder = self.knowledge.encoder
        if encoder is None or self.knowledge.participant is None or attack.threat != "reconstruction":
            return None
        masks = self._masks if attack.wants_masks else None
        bare = replace(
            self.knowledge,
            query=lambda data: _latents(encoder, data),
            participant=lambda data, _: _latents(encoder, data),
            masks=masks,
        )
        release = replace(self.release, payload=_latents(encoder, self.splits.victim))
        return (bare, release, self.truth) if attack.obstacle(bare) is None else None

    def _lined_up(
        self, attack: Attack, knowledge: Knowledge, release: Release, truth: Truth
    ) -> tuple[Knowledge, Release, Truth]:
        if attack.threat == "row" and self.keyed is not None:
            return self.keyed.lined_up(knowledge), release, truth
        if attack.threat != "reidentification":
            return knowledge, release, truth
        payload = release.payload[: len(self._candidates)]
        known = replace(knowledge, candidates=self._candidates)
        return known, replace(release, payload=payload, utility={}), self._suspects

    def shown_in(self, attack: Attack) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The rows of the gallery among this attack's guesses: first, where it sees some of the victims only."""
        return np.arange(len(self.shown)) if attack.wants_repeats and self.keyed is not None else self.shown

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
    """The own classifier first (it ranks), then a fresh one for every utility label that a receiver may learn."""
    victim = scene.splits.victim
    say(f"{scene.mechanism.name}: utility")
    scores = []
    if scene.keyed is None:
        logits = scene.mechanism.predict(scene.release.payload)
    else:
        logits = scene.mechanism.answer(victim, seed=derive_seed(scene.seed, "victims"))
    if logits is not None:
        scores += own_scores(logits, victim, next(iter(victim.utility)))
    if scene.mechanism.hides_result:
        return scores
    owner = scene.mechanism.release(scene.splits.owner, seed=derive_seed(scene.seed, "owner"))
    raw_owner, raw_victim = _raw(scene.splits.owner), _raw(victim)
    for label in victim.utility:

        def fresh(
            a: Release, b: Release, control: float | None, clean: FloatArray | None = None, label: str = label
        ) -> list[Score]:
            return fresh_scores(a, b, victim, label, scene.effort.task_epochs, scene.seed, control, clean)

        control = controls.get(
            f"{FRESH}:{label}", lambda: {s.metric: s.value for s in fresh(raw_owner, raw_victim, None)}
        )
        scores += fresh(owner, scene.release, control["accuracy"], scene.clean())
    return scores


def _control(attack: Attack, scene: _Scene, controls: Controls) -> dict[str, float] | None:
    """The same attack where there is no defence.

    Raw records are the same for every mechanism of a comparison, and kept; plain features are the mechanism's own.
    """
    if attack.threat == "mask":
        return {"overlap": 1.0}  # a mask that is not kept secret
    staged = scene.control(attack)
    if staged is None:
        return None
    knowledge, release, truth = staged
    if knowledge.participant is not None:  # every decoder of clean latents is the same attack
        scene.clean_control = scene.clean_control or attack(release, knowledge, truth).values()
        return scene.clean_control
    if knowledge.own_device is not None:
        return attack(release, knowledge, truth).values()
    return controls.get(repr(attack), lambda: attack(release, knowledge, truth).values())


def _latents(encoder: nn.Module, data: Dataset) -> FloatArray:
    return forward_in_batches(encoder, as_tensor(data.x)).numpy()


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
