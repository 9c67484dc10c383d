"""The audit of synthetic records: they belong to no victim, so the questions are others.

Members are the owner's records, on which the model was fitted, and strangers the victims. What a synthetic set is good
for is what students of it know about the victims.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.membership.synthetic_records import MembershipAttack, membership_suite
from sfumato.auditing.canaries import canary_scores, obstacle
from sfumato.auditing.effort import Effort
from sfumato.auditing.fidelity import fidelity_scores, nearest_real
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.result import GALLERY, Audit, Controls, Say
from sfumato.auditing.students import check_students, student_scores, usual_students
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.mechanisms.synth.mechanism import Synth

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

ALIGNED = "reconstruction, attribute and re-identification"
_NO_VICTIM = "a synthetic record belongs to no victim"
_NO_LABELS = "the release has no labels"


def audit_synthetic(
    mechanism: Mechanism,
    splits: Splits,
    *,
    attacks: list[Attack] | None,
    effort: Effort,
    seed: int,
    controls: Controls,
    say: Say,
) -> Audit:
    """Students, membership attacks, canaries and fidelity of a fitted mechanism that releases synthetic records."""
    check_students(effort.students, splits.schema.shape)
    release = mechanism.release(splits.owner, seed=derive_seed(seed, "owner"))  # as many as it was fitted on
    features = _picture(release, splits, effort, seed)  # first: what is missing for it must not cost an audit
    utility = _utility(mechanism, release, splits, effort, seed, controls, say)
    stage = membership_stage(splits, effort, seed)
    scores, skipped = _membership(mechanism, release, stage, splits, attacks, effort, controls, say)
    if isinstance(mechanism, Synth) and attacks is None and effort.threats == "all":
        reason = obstacle(mechanism)
        if reason is None:
            say(f"{mechanism.name}: canaries")
            scores += canary_scores(mechanism, splits.owner, effort, seed)
        else:
            skipped.append(("canaries", reason))
    fidelity: list[Score] = []
    if effort.threats != "none":
        say(f"{mechanism.name}: fidelity")
        fidelity = fidelity_scores(release, splits, effort.task_epochs, seed)
    return Audit(
        mechanism=mechanism.name,
        data=splits.victim.name,
        guarantee=mechanism.guarantee(),
        utility=tuple(utility),
        attacks=tuple(scores),
        skipped=tuple(skipped),
        confusion={},
        information=tuple(fidelity),
        wrong_key={},
        gallery=_gallery(release, splits.owner),
        features=features,
    )


def membership_stage(splits: Splits, effort: Effort, seed: int) -> tuple[Knowledge, Truth]:
    """Owner's records and as many victims, shuffled, under ids that say nothing; and which are which."""
    rng = np.random.default_rng(derive_seed(seed, "suspects"))
    few = max(1, min(effort.suspects // 2, len(splits.owner), len(splits.victim)))
    members, strangers = (part.take(rng.permutation(len(part))[:few]) for part in (splits.owner, splits.victim))
    order = rng.permutation(2 * few)
    suspects = members.joined(strangers).take(order)
    candidates = replace(suspects, ids=np.arange(2 * few).astype(np.str_))
    knowledge = Knowledge(
        auxiliary=splits.attacker, candidates=candidates, randomised=True, seed=derive_seed(seed, "attacker")
    )
    return knowledge, Truth(suspects, members=(order < few).astype(np.int64))


def _membership(
    mechanism: Mechanism,
    release: Release,
    stage: tuple[Knowledge, Truth],
    splits: Splits,
    attacks: list[Attack] | None,
    effort: Effort,
    controls: Controls,
    say: Say,
) -> tuple[list[Score], list[tuple[str, str]]]:
    """Every membership attack, and what could not be run."""
    knowledge, truth = stage
    raw = Release("none", splits.owner.x, empirical("No defence."), splits.owner.utility)
    every = membership_suite(tuple(release.utility)) if attacks is None else attacks
    scores: list[Score] = []
    skipped = [(ALIGNED, _NO_VICTIM)] if attacks is None else []
    if attacks is None and not release.utility:
        names = {attack.name for attack in every}
        skipped += [(each.name, _NO_LABELS) for each in membership_suite(("label",)) if each.name not in names]
    for attack in every:
        reason = attack.obstacle(knowledge) if isinstance(attack, MembershipAttack) else _NO_VICTIM
        if reason is not None:
            skipped.append((attack.name, reason))
        elif effort.threats in ("all", attack.threat):
            say(f"{mechanism.name}: {attack.name}")
            control = controls.get(repr(attack), lambda attack=attack: attack(raw, knowledge, truth).values())  # type: ignore[misc]
            scores += attack(release, knowledge, truth, control=control).scores
    return scores, skipped


def _utility(
    mechanism: Mechanism, release: Release, splits: Splits, effort: Effort, seed: int, controls: Controls, say: Say
) -> list[Score]:
    """Each student for each released label; the first student ranks. Its control learns from the owner's records."""
    victim = splits.victim
    raw = Release("none", splits.owner.x, empirical("No defence."), splits.owner.utility)
    students = effort.students or usual_students(splits.schema.shape, splits.schema.kind)
    scores = []
    for student in students:
        say(f"{mechanism.name}: student {student}")
        for label in release.utility:

            def learns(
                source: Release, control: float | None, student: str = student, label: str = label
            ) -> list[Score]:
                return student_scores(
                    student,
                    source,
                    victim,
                    label,
                    epochs=effort.task_epochs,
                    width=effort.student_width,
                    seed=seed,
                    control=control,
                    primary=student == students[0],
                )

            real = controls.get(f"student {student}:{label}", lambda: {s.metric: s.value for s in learns(raw, None)})
            scores += learns(release, real["accuracy"])
    return scores


def _gallery(release: Release, owner: Dataset) -> dict[str, FloatArray]:
    """Samples, one of each class first, and the owner's record nearest to each (the paper's Figure 3)."""
    first: list[int] = []
    for codes in list(release.utility.values())[:1]:
        first = [int(np.flatnonzero(codes == code)[0]) for code in np.unique(codes)]
    rest = [row for row in range(min(len(release), 4 * GALLERY)) if row not in first]
    samples = release.payload[np.array((first + rest)[:GALLERY], dtype=np.intp)]
    return {"synthetic": samples, "nearest": nearest_real(samples, owner)}


def _picture(release: Release, splits: Splits, effort: Effort, seed: int) -> dict[str, Any]:
    """The synthetic records as points, coloured by their labels."""
    labels, names = dict(release.utility), dict(splits.schema.utility)
    if not labels:
        labels, names = {"record": np.zeros(len(release), dtype=np.int64)}, {"record": ("synthetic",)}
    schema = replace(splits.schema, utility={name: names[name] for name in labels}, private={})
    drawn = Dataset(release.payload, schema, labels, name="synthetic")
    return picture(release.payload, drawn, effort.geometry, derive_seed(seed, "geometry"))
