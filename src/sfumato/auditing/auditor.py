"""The audit of a frozen mechanism: utility, every attack that the threat model allows, and the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import CPU, Effort
from sfumato.auditing.exposure import exposures
from sfumato.auditing.fairness import apart, unmeasured
from sfumato.auditing.information_scores import information_scores
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.release_canaries import MOST_RELEASED, RELEASED, TITLE, release_score
from sfumato.auditing.repeated_releases import repeated_steps
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.staging import gallery, plans_for, scene_of
from sfumato.auditing.steps import AuditStep, AuditSteps, attack_steps
from sfumato.auditing.synthetic_audit import synthetic_steps
from sfumato.auditing.trials import Found, suite
from sfumato.auditing.utility import utility_scores
from sfumato.auditing.wrong_key import wrong_key
from sfumato.core import compute, memory
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import UsageError
from sfumato.core.leakage import with_leakage
from sfumato.core.randomness import derive_seed
from sfumato.core.threats import CLAIM
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Rotates, Samples

_COPIES = 4
"""Of the owner's records, in an audit that compares them with drawn ones."""


def audit(
    mechanism: Mechanism,
    splits: Splits,
    *,
    attacks: Sequence[Attack] | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    controls: Controls | None = None,
    neighbour: Dataset | None = None,
    say: Say = lambda _: None,
) -> Audit:
    """Attack a fitted mechanism with fresh adversaries trained on the attacker's split.

    Args:
        mechanism: A fitted mechanism.
        splits: The owner's records that it was fitted on, the attacker's, and the victims'.
        attacks: The attacks to run; without them, all that the mechanism's capabilities and the installed plugins
            call for.
        effort: How hard the attackers try.
        seed: Repeatable randomness of victims' release, attackers and intervals.
        controls: Undefended figures, shared among audits of the same splits, effort and seed.
        neighbour: The owner's records if the file lacked one record or person, for claims of differential privacy
            about the owner's file.
        say: Called with a line of progress before each step.

    Returns:
        Scores of utility and attacks, what could not be run and why, and what a report shows.
    """
    steps = audit_steps(
        mechanism, splits, attacks=attacks, effort=effort, seed=seed, controls=controls, neighbour=neighbour
    )
    for note in steps.notes:
        say(f"{mechanism.name}: {note}")
    return steps.audit(say)


def audit_steps(
    mechanism: Mechanism,
    splits: Splits,
    *,
    attacks: Sequence[Attack] | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    controls: Controls | None = None,
    neighbour: Dataset | None = None,
) -> AuditSteps:
    """The same audit, to be done in parts; the arguments are those of ``audit``."""
    with compute.threads(splits.victim.x[0].size):
        compute.bring(mechanism)
        used, controls = _drawn(mechanism, splits, seed), controls or Controls()
        if isinstance(mechanism, Samples):
            return _told(synthetic_steps(mechanism, used, attacks, effort, seed, controls, neighbour), splits, used)
        if effort.students:
            raise UsageError(f"{mechanism.name} releases no synthetic records to learn from: leave out --student.")
        return _told(_steps(mechanism, used, attacks, effort, seed, controls), splits, used)


def _told(steps: AuditSteps, splits: Splits, used: Splits) -> AuditSteps:
    """The same steps; notes and result say which parts were not used whole."""
    sizes = {name: (len(part), len(splits.parts[name])) for name, part in used.parts.items()}
    drawn = {name: (some, every) for name, (some, every) in sizes.items() if some < every}
    notes = [f"{some:,} of {every:,} records of the {name} are drawn" for name, (some, every) in drawn.items()]
    return replace(steps, notes=notes, conclude=lambda found: replace(steps.conclude(found), drawn=drawn))


def _steps(
    mechanism: Mechanism,
    splits: Splits,
    attacks: Sequence[Attack] | None,
    effort: Effort,
    seed: int,
    controls: Controls,
) -> AuditSteps:
    scene = scene_of(mechanism, splits, effort, seed, controls)
    plans = plans_for(mechanism, scene)
    payload, victim, victims = scene.release.payload, splits.victim, derive_seed(seed, "victims")
    claimed = mechanism.guarantee()

    def shown(_say: Say) -> Found:
        features = picture(payload, victim, effort.geometry, derive_seed(seed, "geometry"))
        return Found(features=features, information=information_scores(payload, victim, seed))

    def utility(say: Say) -> Found:
        return Found(useful=utility_scores(mechanism, scene, say))

    def claim(say: Say) -> Found:
        say(f"{mechanism.name}: {RELEASED}")
        score = release_score(mechanism, victim, min(effort.draws, MOST_RELEASED))
        return Found(scores=[score], titles={RELEASED: (TITLE, "")})

    every = [AuditStep("picture", shown), AuditStep("utility", utility)]  # the picture first: it may be refused
    every += attack_steps(plans, suite(plans) if attacks is None else attacks, mechanism.name)
    if claimed.kind == "dp" and attacks is None and effort.tries(CLAIM):
        every.append(AuditStep(RELEASED, claim))
    if attacks is None and not isinstance(mechanism, Rotates):
        every += repeated_steps(scene)

    def conclude(found: Found) -> Audit:
        useful, fairness = apart(found.useful)
        scores = with_leakage((*found.scores, *found.repeated))  # by the same controls
        return Audit(
            mechanism=mechanism.name,
            traits=mechanism.traits,
            data=victim.name,
            guarantee=claimed.beside(scene.release.utility),
            utility=useful,
            fairness=fairness,
            attacks=scores[: len(found.scores)],
            skipped=(*found.skipped, *unmeasured(victim, (s.target for s in useful if s.target))),
            titles=found.titles,
            confusion=found.worst_confusion(victim),
            information=tuple(found.information),
            wrong_key=wrong_key(mechanism, victim, victims) if isinstance(mechanism, Rotates) else {},
            gallery={**gallery(mechanism, scene), **found.kept},
            features=found.features,
            repeated=scores[len(found.scores) :],
            answers=found.answers,
            exposure=exposures(scores[: len(found.scores)], found.attempts, seed),
        )

    return AuditSteps(every, seed, splits.victim.x[0].size, conclude)


def _drawn(mechanism: Mechanism, splits: Splits, seed: int) -> Splits:
    """The attacker's and the victims' records in random order: many attacks use the first so many of them, which are
    all of one class if the file is sorted. Of more than memory takes, as many as it takes, and so of the owner's."""
    most = memory.drawn(splits.victim.x[0].nbytes)
    samples = isinstance(mechanism, Samples)
    if samples:
        memory.refuse_copies(_COPIES, splits.owner.x, f"the audit of {mechanism.name}", splits.owner.name)
    rng = np.random.default_rng(derive_seed(seed, "order"))
    attacker, victim = (part.take(rng.permutation(len(part))[:most]) for part in (splits.attacker, splits.victim))
    owner = splits.owner
    if len(owner) > most and not samples:
        owner = owner.take(np.sort(rng.permutation(len(owner))[:most]))
    return Splits(owner, attacker, victim)
