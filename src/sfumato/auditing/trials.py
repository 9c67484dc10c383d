"""Plans composed and carried out: each attack once, on what its plan gives it, beside its control."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from sfumato.attacks.base import Attack, AttributeAttack, Outcome
from sfumato.attacks.held_out import HeldOutAttack
from sfumato.attacks.membership.synthetic_records import MembershipAttack
from sfumato.attacks.registry import plugin_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.exposure import Attempt
from sfumato.auditing.held_out_exposure import AskedPeople
from sfumato.auditing.plans.base import Plan, Stage
from sfumato.auditing.result import Say
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import Unanswered
from sfumato.core.fresh_seeds import asking
from sfumato.core.leakage import with_leakage
from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import ATTRIBUTE, LIST, RECONSTRUCTION


@dataclass(frozen=True)
class Trial:
    """One attack, what it is given, and what the same attack gets where nothing is defended: from raw records and, if
    that is measured, from the same encoder without noise."""

    attack: Attack
    stage: Stage
    obstacle: str | None
    control: Callable[[], Values | None]
    encoder_control: Callable[[], Values | None]


@dataclass
class Found:
    """What the steps of one audit found.

    scores, repeated   of attacks on the release, and on means of several releases
    useful, information  scores of utility and fairness; estimates that rank nothing
    kept       rebuilt records for the gallery
    answers    what attribute attacks took each victim for
    titles     what a report calls each attack and what it does
    features   a picture of the payloads
    attempts   the records behind the scores of each attack
    asked      members and strangers behind the scores of each attack that compares these
    """

    scores: list[Score] = field(default_factory=list)
    repeated: list[Score] = field(default_factory=list)
    useful: list[Score] = field(default_factory=list)
    information: list[Score] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    kept: dict[str, FloatArray] = field(default_factory=dict)
    confusion: dict[tuple[str, str], IntArray] = field(default_factory=dict)
    answers: dict[str, IntArray] = field(default_factory=dict)
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)
    attempts: dict[tuple[str, str | None], Attempt] = field(default_factory=dict)
    asked: dict[tuple[str, str | None], AskedPeople] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)

    def add(self, more: Found) -> None:
        """What a later step found, behind what the earlier ones did."""
        for one in fields(self):
            ours, theirs = getattr(self, one.name), getattr(more, one.name)
            ours.update(theirs) if isinstance(ours, dict) else ours.extend(theirs)

    def worst_confusion(self, victim: Dataset) -> dict[str, dict[str, Any]]:
        """What the worst attribute attack on each private label took for what."""
        worst = {(score.attack, score.target) for score in worst_by_threat(with_leakage(self.scores)).values()}
        return {
            label: {"attack": attack, "classes": list(victim.schema.classes(label)), "matrix": matrix.tolist()}
            for (attack, label), matrix in self.confusion.items()
            if (attack, label) in worst
        }


def trials(plans: Sequence[Plan], attacks: Sequence[Attack] | None = None) -> Iterator[Trial]:
    """Every attack of the plans and of installed plugins (or these attacks), staged."""
    for attack in suite(plans) if attacks is None else attacks:
        yield staged(plans, attack)


def suite(plans: Sequence[Plan]) -> list[Attack]:
    """Every attack of the plans and of installed plugins."""
    scene = plans[0].scene
    own = [attack for plan in plans for attack in plan.attacks()]
    return [each for each in (*own, *plugin_suite(scene.splits.schema)) if scene.effort.tries(each.threat)]


def staged(plans: Sequence[Plan], attack: Attack) -> Trial:
    """By the last plan that can. The control is what the attack says itself, else that of the first plan that can
    measure one."""
    knowledge = plans[0].scene.knowledge
    for plan in plans:
        knowledge = plan.grant(knowledge)

    def control() -> Values | None:
        measured = (plan.control(attack, knowledge) for plan in plans)
        return attack.undefended or next((values for values in measured if values is not None), None)

    def encoder_control() -> Values | None:
        measured = (plan.encoder_control(attack, knowledge) for plan in plans)
        return next((values for values in measured if values is not None), None)

    given = (plan.stage(attack, knowledge) for plan in reversed(plans))
    obstacles = (plan.obstacle(attack) for plan in plans)
    stage = next(each for each in given if each is not None)
    obstacle = next((reason for reason in obstacles if reason is not None), None)
    return Trial(attack, stage, obstacle, control, encoder_control)


def carry_out(every: Iterable[Trial], name: str, say: Say) -> Found:
    """Run the attacks one after the other."""
    found = Found()
    for trial in every:
        found.add(_outcome(trial, name, say))
    return found


def _outcome(trial: Trial, name: str, say: Say) -> Found:
    found = Found()
    attack, stage = trial.attack, trial.stage
    reason = trial.obstacle or attack.obstacle(stage.knowledge)
    if reason is not None:
        found.skipped.append((attack.name, reason))
        return found
    say(f"{name}: {attack.name}")
    asker = f"{attack.name}|{attack.target()}"
    with asking(f"control|{asker}"):
        control = trial.control()
    with asking(f"encoder|{asker}"):
        encoder_control = trial.encoder_control()
    controls = {"control": control, "encoder_control": encoder_control}
    try:
        with asking(asker):
            outcome = attack(stage.release, stage.knowledge, stage.truth, **controls)
    except Unanswered as missing:
        found.skipped.append((attack.name, str(missing)))
        return found
    found.scores += outcome.scores
    _remember(found, attack, outcome, stage)
    found.titles[attack.name] = (attack.title or attack.name, attack.how)
    if attack.threat == RECONSTRUCTION:
        found.kept[f"recon/{attack.name}"] = outcome.guess[stage.shown]
    elif attack.threat == LIST:
        found.kept[f"recon-list/{attack.name}"] = outcome.guess[stage.shown]
    elif isinstance(attack, AttributeAttack) and attack.threat == ATTRIBUTE:
        codes = stage.truth.open().label(attack.label)
        found.confusion[attack.name, attack.label] = metrics.confusion(codes, outcome.guess)
        found.answers[f"{attack.name}|{attack.label}|answer"] = outcome.guess.argmax(1)
    return found


def _remember(found: Found, attack: Attack, outcome: Outcome, stage: Stage) -> None:
    """Whose records the scores are about, and what the same guesses are worth if they are dealt to them by lot; of
    attacks that compare members with strangers, what they got of each."""
    victim = stage.truth.open()
    if isinstance(attack, (HeldOutAttack, MembershipAttack)):
        each = attack.of_each(outcome.guess, stage.truth)
        found.asked |= {(attack.name, target): AskedPeople.of(values, stage.truth) for target, values in each.items()}
        return
    if not any(score.primary for score in outcome.scores) or len(outcome.guess) != len(victim):
        return
    dealt = outcome.guess[np.random.default_rng(stage.knowledge.seed).permutation(len(victim))]
    by_lot = {m.metric: m.each for m in attack.measure(dealt, stage.truth) if m.each is not None}
    found.attempts[attack.name, attack.target()] = Attempt.on(victim, by_lot)
