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
from sfumato.auditing.repeated_releases import repeated_scores
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.staging import gallery, plans_for, scene_of
from sfumato.auditing.synthetic_audit import audit_synthetic
from sfumato.auditing.trials import carry_out, trials
from sfumato.auditing.utility import utility_scores
from sfumato.auditing.wrong_key import wrong_key
from sfumato.core import compute
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import UsageError
from sfumato.core.leakage import with_leakage
from sfumato.core.randomness import derive_seed
from sfumato.core.threats import CLAIM
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Rotates, Samples


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
    with compute.threads(splits.victim.x[0].size):
        return _audit(mechanism, _mixed(splits, seed), attacks, effort, seed, controls or Controls(), neighbour, say)


def _audit(
    mechanism: Mechanism,
    splits: Splits,
    attacks: Sequence[Attack] | None,
    effort: Effort,
    seed: int,
    controls: Controls,
    neighbour: Dataset | None,
    say: Say,
) -> Audit:
    if isinstance(mechanism, Samples):
        return audit_synthetic(
            mechanism,
            splits,
            attacks=attacks,
            effort=effort,
            seed=seed,
            controls=controls,
            neighbour=neighbour,
            say=say,
        )
    if effort.students:
        raise UsageError(f"{mechanism.name} releases no synthetic records to learn from: leave out --student.")
    scene = scene_of(mechanism, splits, effort, seed, controls)
    plans = plans_for(mechanism, scene)
    payload, victim = scene.release.payload, splits.victim
    features = picture(payload, victim, effort.geometry, derive_seed(seed, "geometry"))  # first: it may be refused
    utility, fairness = apart(utility_scores(mechanism, scene, say))
    found = carry_out(trials(plans, attacks), mechanism.name, say)
    claimed = mechanism.guarantee()
    if claimed.kind == "dp" and attacks is None and effort.tries(CLAIM):
        say(f"{mechanism.name}: {RELEASED}")
        found.scores.append(release_score(mechanism, victim, min(effort.draws, MOST_RELEASED)))
        found.titles[RELEASED] = (TITLE, "")
    averaged = () if attacks is not None or isinstance(mechanism, Rotates) else repeated_scores(scene, say)
    scores = with_leakage((*found.scores, *averaged))  # by the same controls
    victims = derive_seed(seed, "victims")
    return Audit(
        mechanism=mechanism.name,
        traits=mechanism.traits,
        data=victim.name,
        guarantee=claimed.beside(scene.release.utility),
        utility=utility,
        fairness=fairness,
        attacks=scores[: len(found.scores)],
        skipped=(*found.skipped, *unmeasured(victim, (s.target for s in utility if s.target))),
        titles=found.titles,
        confusion=found.worst_confusion(victim),
        information=tuple(information_scores(payload, victim, seed)),
        wrong_key=wrong_key(mechanism, victim, victims) if isinstance(mechanism, Rotates) else {},
        gallery={**gallery(mechanism, scene), **found.kept},
        features=features,
        repeated=scores[len(found.scores) :],
        answers=found.answers,
        exposure=exposures(scores[: len(found.scores)], found.attempts, seed),
    )


def _mixed(splits: Splits, seed: int) -> Splits:
    """The attacker's and the victims' records in random order: many attacks use the first so many of them, which are
    all of one class if the file is sorted."""
    rng = np.random.default_rng(derive_seed(seed, "order"))
    attacker, victim = (part.take(rng.permutation(len(part))) for part in (splits.attacker, splits.victim))
    return replace(splits, attacker=attacker, victim=victim)
