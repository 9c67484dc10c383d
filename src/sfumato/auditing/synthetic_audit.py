"""The audit of a mechanism that draws synthetic records: students, membership, canaries and fidelity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.registry import membership_suite
from sfumato.auditing.canaries import TITLES, canary_scores, obstacle, unheard
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import Effort
from sfumato.auditing.fairness import apart, unmeasured
from sfumato.auditing.fidelity import fidelity_scores, nearest_real
from sfumato.auditing.held_out_exposure import held_out_exposures
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.plans.synthetic import NO_VICTIM, SyntheticPlan, membership_stage
from sfumato.auditing.result import GALLERY, Audit, Say
from sfumato.auditing.rows_audit import own_rows
from sfumato.auditing.steps import AuditStep, AuditSteps, attack_steps
from sfumato.auditing.students import check_students, student_scores, usual_students
from sfumato.auditing.trials import Found, suite
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
Learns = Callable[[Release, Values], list[Score]]
_NO_LABELS = "the release has no labels"


def synthetic_steps(
    mechanism: Mechanism,
    splits: Splits,
    attacks: Sequence[Attack] | None,
    effort: Effort,
    seed: int,
    controls: Controls,
    neighbour: Dataset | None,
) -> AuditSteps:
    """What students learn, who is recognised as a member, what ε the answers show, and how alike the records are."""
    check_students(effort.students, splits.schema.shape)
    name = mechanism.name
    release = mechanism.release(splits.owner, seed=derive_seed(seed, "owner"))  # as many as it was fitted on
    knowledge, truth = membership_stage(splits, effort, seed)
    nobody = np.empty(0, dtype=np.intp)
    scene = Scene(name, splits, effort, seed, release, knowledge, nobody, controls=controls)
    plans = [SyntheticPlan(scene, truth)]

    def picture(_say: Say) -> Found:
        left_out = _left_out(release) if attacks is None else []
        return Found(features=_picture(release, splits, effort, seed), skipped=left_out)

    def rows(say: Say) -> Found:
        return own_rows(release, splits, effort, seed, controls, say, _refitted(mechanism, effort, seed))

    def canaries(say: Say) -> Found:
        assert isinstance(mechanism, LearnsByCounter)
        reason = obstacle(mechanism)
        if reason is not None:
            return Found(skipped=[("canaries", reason)])
        say(f"{name}: canaries")
        scores = canary_scores(mechanism, splits.owner, effort, seed, neighbour)
        missed = unheard(mechanism, effort)
        return Found(scores=scores, skipped=[("canaries to the end", missed)] if missed else [])

    def fidelity(say: Say) -> Found:
        say(f"{name}: fidelity")
        return Found(information=fidelity_scores(release, splits, effort.task_epochs, seed))

    every = [AuditStep("picture", picture), *_student_steps(name, release, splits, effort, seed, controls)]
    every += attack_steps(plans, suite(plans) if attacks is None else attacks, name)
    if attacks is None:
        every.append(AuditStep("rows", rows, slow=True))
    if isinstance(mechanism, LearnsByCounter) and attacks is None and effort.tries(CLAIM):
        every.append(AuditStep("canaries", canaries, slow=True))
    if effort.threats is None or effort.threats:
        every.append(AuditStep("fidelity", fidelity))

    def conclude(found: Found) -> Audit:
        useful, fairness = apart(found.useful)
        scores = with_leakage(found.scores)
        return Audit(
            mechanism=name,
            traits=mechanism.traits,
            data=splits.victim.name,
            guarantee=mechanism.guarantee().beside(release.utility),
            utility=useful,
            fairness=fairness,
            attacks=scores,
            skipped=(*found.skipped, *unmeasured(splits.victim, release.utility)),
            titles={**found.titles, **{name: (title, "") for name, title in TITLES.items()}},
            confusion={},
            information=tuple(found.information),
            wrong_key={},
            gallery=_gallery(release, splits.owner),
            features=found.features,
            exposure=held_out_exposures(scores, found.asked),
        )

    return AuditSteps(every, seed, splits.victim.x[0].size, conclude)


def _left_out(release: Release) -> list[tuple[str, str]]:
    """What is not asked of synthetic records, and why."""
    if release.utility:
        return [(ALIGNED, NO_VICTIM)]
    run = {attack.name for attack in membership_suite(())}
    by_class = [attack.name for attack in membership_suite(("label",)) if attack.name not in run]
    return [(ALIGNED, NO_VICTIM), *((name, _NO_LABELS) for name in by_class)]


def _refitted(mechanism: Mechanism, effort: Effort, seed: int) -> Callable[[Dataset, int], Release] | None:
    """The same mechanism fitted to other records, and what it draws, if that takes few enough passes over them."""
    params = mechanism.get_params()
    if not effort.refits(params):
        return None

    def refitted(data: Dataset, number: int) -> Release:
        fresh = derive_seed(seed, f"shadow release {number}")
        return type(mechanism)(**{**params, "seed": fresh}).fit(data).release(data, seed=fresh)

    return refitted


def _student_steps(
    name: str, release: Release, splits: Splits, effort: Effort, seed: int, controls: Controls
) -> Iterator[AuditStep]:
    """Each student for each released label; the first student ranks. Its control learns from the owner's records."""
    victim = splits.victim
    raw = raw_release(splits.owner)
    students = effort.students or usual_students(splits.schema.shape, splits.schema.kind)
    for student in students:
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

            def do(say: Say, student: str = student, label: str = label, learns: Learns = learns) -> Found:
                say(f"{name}: student {student}")
                real = controls.get(f"student {student}:{label}", lambda: as_control(learns(raw, {})))
                return Found(useful=learns(release, real))

            yield AuditStep(f"student {student}|{label}", do, slow=True)


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
