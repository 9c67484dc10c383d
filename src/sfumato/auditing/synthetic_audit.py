"""The audit of a mechanism that draws synthetic records: students, membership, canaries and fidelity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.registry import membership_suite
from sfumato.auditing.canaries import TITLES, canary_scores, obstacle, unheard
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import Effort
from sfumato.auditing.exposure import exposures
from sfumato.auditing.fairness import apart, unmeasured
from sfumato.auditing.fidelity import fidelity_scores, nearest_real
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.plans.synthetic import NO_VICTIM, SyntheticPlan, membership_stage
from sfumato.auditing.result import GALLERY, Audit, Say
from sfumato.auditing.rows_audit import own_rows
from sfumato.auditing.students import check_students, student_scores, usual_students
from sfumato.auditing.trials import carry_out, trials
from sfumato.auditing.utility import as_control
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.leakage import with_leakage
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release, raw_release
from sfumato.core.score import Score
from sfumato.core.threats import CLAIM
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import LearnsByCounter

ALIGNED = "reconstruction, attribute and re-identification"
_NO_LABELS = "the release has no labels"


def audit_synthetic(
    mechanism: Mechanism,
    splits: Splits,
    *,
    attacks: Sequence[Attack] | None,
    effort: Effort,
    seed: int,
    controls: Controls,
    neighbour: Dataset | None,
    say: Say,
) -> Audit:
    """What students learn, who is recognised as a member, what ε the answers show, and how alike the records are."""
    check_students(effort.students, splits.schema.shape)
    release = mechanism.release(splits.owner, seed=derive_seed(seed, "owner"))  # as many as it was fitted on
    features = _picture(release, splits, effort, seed)  # first: what is missing for it must not cost an audit
    utility, fairness = apart(_utility(mechanism.name, release, splits, effort, seed, controls, say))
    knowledge, truth = membership_stage(splits, effort, seed)
    nobody = np.empty(0, dtype=np.intp)
    scene = Scene(mechanism.name, splits, effort, seed, release, knowledge, nobody, controls=controls)
    found = carry_out(trials([SyntheticPlan(scene, truth)], attacks), mechanism.name, say)
    if attacks is None:
        rows = own_rows(release, splits, effort, seed, controls, say)
        found.scores += rows.scores
        found.skipped += rows.skipped
        found.titles |= rows.titles
    skipped = [*(_left_out(release) if attacks is None else []), *found.skipped]
    skipped += unmeasured(splits.victim, release.utility)
    if isinstance(mechanism, LearnsByCounter) and attacks is None and effort.tries(CLAIM):
        reason = obstacle(mechanism)
        if reason is None:
            say(f"{mechanism.name}: canaries")
            found.scores += canary_scores(mechanism, splits.owner, effort, seed, neighbour)
            if missed := unheard(mechanism, effort):
                skipped.append(("canaries to the end", missed))
        else:
            skipped.append(("canaries", reason))
    fidelity: list[Score] = []
    if effort.threats is None or effort.threats:
        say(f"{mechanism.name}: fidelity")
        fidelity = fidelity_scores(release, splits, effort.task_epochs, seed)
    scores = with_leakage(found.scores)
    return Audit(
        mechanism=mechanism.name,
        traits=mechanism.traits,
        data=splits.victim.name,
        guarantee=mechanism.guarantee().beside(release.utility),
        utility=utility,
        fairness=fairness,
        attacks=scores,
        skipped=tuple(skipped),
        titles={**found.titles, **{name: (title, "") for name, title in TITLES.items()}},
        confusion={},
        information=tuple(fidelity),
        wrong_key={},
        gallery=_gallery(release, splits.owner),
        features=features,
        exposure=exposures(scores, found.attempts, seed),
    )


def _left_out(release: Release) -> list[tuple[str, str]]:
    """What is not asked of synthetic records, and why."""
    if release.utility:
        return [(ALIGNED, NO_VICTIM)]
    run = {attack.name for attack in membership_suite(())}
    by_class = [attack.name for attack in membership_suite(("label",)) if attack.name not in run]
    return [(ALIGNED, NO_VICTIM), *((name, _NO_LABELS) for name in by_class)]


def _utility(
    name: str, release: Release, splits: Splits, effort: Effort, seed: int, controls: Controls, say: Say
) -> list[Score]:
    """Each student for each released label; the first student ranks. Its control learns from the owner's records."""
    victim = splits.victim
    raw = raw_release(splits.owner)
    students = effort.students or usual_students(splits.schema.shape, splits.schema.kind)
    scores = []
    for student in students:
        say(f"{name}: student {student}")
        for label in release.utility:

            def learns(source: Release, control: Values, student: str = student, label: str = label) -> list[Score]:
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

            real = controls.get(f"student {student}:{label}", lambda: as_control(learns(raw, {})))
            scores += learns(release, real)
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
