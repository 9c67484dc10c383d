"""Plans composed and carried out: each attack once, on what its plan gives it, beside its control."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.attacks.base import Attack, AttributeAttack, Outcome
from sfumato.attacks.registry import plugin_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.exposure import Attempt
from sfumato.auditing.plans.base import Plan, Stage
from sfumato.auditing.result import Say
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import Unanswered
from sfumato.core.leakage import with_leakage
from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import ATTRIBUTE, LIST, RECONSTRUCTION, threat


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
    """What the attacks of one audit achieved; ``kept`` are rebuilt records for the gallery, ``answers`` what attribute
    attacks took each victim for, ``titles`` what a report calls each attack and what it does, ``attempts`` the
    records and the guesses behind the scores that may count."""

    scores: list[Score] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    kept: dict[str, FloatArray] = field(default_factory=dict)
    confusion: dict[tuple[str, str], IntArray] = field(default_factory=dict)
    answers: dict[str, IntArray] = field(default_factory=dict)
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)
    attempts: dict[tuple[str, str | None], Attempt] = field(default_factory=dict)

    def worst_confusion(self, victim: Dataset) -> dict[str, dict[str, Any]]:
        """What the worst attribute attack on each private label took for what."""
        worst = {(score.attack, score.target) for score in worst_by_threat(with_leakage(self.scores)).values()}
        return {
            label: {"attack": attack, "classes": list(victim.schema.classes(label)), "matrix": matrix.tolist()}
            for (attack, label), matrix in self.confusion.items()
            if (attack, label) in worst
        }


def trials(plans: Sequence[Plan], attacks: Sequence[Attack] | None = None) -> Iterator[Trial]:
    """Every attack of the plans and of installed plugins (or these attacks), each staged by the last plan that can.

    The control is what the attack says itself, else that of the first plan that can measure one.
    """
    scene = plans[0].scene
    knowledge = scene.knowledge
    for plan in plans:
        knowledge = plan.grant(knowledge)
    if attacks is None:
        own = [attack for plan in plans for attack in plan.attacks()]
        attacks = [each for each in (*own, *plugin_suite(scene.splits.schema)) if scene.effort.tries(each.threat)]
    for attack in attacks:
        staged = (plan.stage(attack, knowledge) for plan in reversed(plans))
        obstacles = (plan.obstacle(attack) for plan in plans)

        def control(attack: Attack = attack) -> Values | None:
            measured = (plan.control(attack, knowledge) for plan in plans)
            return attack.undefended or next((values for values in measured if values is not None), None)

        def encoder_control(attack: Attack = attack) -> Values | None:
            measured = (plan.encoder_control(attack, knowledge) for plan in plans)
            return next((values for values in measured if values is not None), None)

        stage = next(each for each in staged if each is not None)
        obstacle = next((reason for reason in obstacles if reason is not None), None)
        yield Trial(attack, stage, obstacle, control, encoder_control)


def carry_out(every: Iterable[Trial], name: str, say: Say) -> Found:
    """Run the attacks one after the other."""
    found = Found()
    for trial in every:
        attack, stage = trial.attack, trial.stage
        reason = trial.obstacle or attack.obstacle(stage.knowledge)
        if reason is not None:
            found.skipped.append((attack.name, reason))
            continue
        say(f"{name}: {attack.name}")
        controls = {"control": trial.control(), "encoder_control": trial.encoder_control()}
        try:
            outcome = attack(stage.release, stage.knowledge, stage.truth, **controls)
        except Unanswered as missing:
            found.skipped.append((attack.name, str(missing)))
            continue
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
    """Keep what the attack guessed, which may be large: of a threat that has one metric only the worst attack's."""
    ranking = next((score for score in outcome.scores if score.primary), None)
    if ranking is None or len(outcome.guess) != len(stage.truth.open()):
        return
    if not threat(attack.threat).also:
        rivals = [s for s in found.scores if s.primary and (s.threat, s.target) == (ranking.threat, ranking.target)]
        if any(rival is not ranking and rival.worse_than(ranking) for rival in rivals):
            return
        for rival in rivals:
            found.attempts.pop((rival.attack, rival.target), None)

    def by_lot(seed: int) -> dict[str, metrics.Values]:
        dealt = np.random.default_rng(seed).permutation(len(outcome.guess))
        return {m.metric: m.each for m in attack.measure(outcome.guess[dealt], stage.truth) if m.each is not None}

    found.attempts[attack.name, attack.target()] = Attempt(stage.truth.open(), by_lot)
