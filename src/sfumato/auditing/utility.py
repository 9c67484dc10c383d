"""What others can do with a release: the mechanism's own classifier, and a fresh one that anybody could train."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from sfumato.attacks.base import Measured, measure_classification
from sfumato.auditing.alone import alone_answers
from sfumato.auditing.controls import Values
from sfumato.auditing.fairness import fairness_scores
from sfumato.auditing.number_utility import FRESH_NUMBER, OWN_NUMBER, number_scores
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.plans.shared import latents
from sfumato.auditing.result import Say
from sfumato.auditing.task_learning import fit_classifier, lesson, task_steps
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.intervals import mean_interval
from sfumato.core.number_scale import NumberScale
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release, raw_release
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Answers, Classifies
from sfumato.nets.training_loop import as_tensor, forward_in_batches

FRESH = "fresh classifier"
OWN = "own classifier"
CLEAN = "fresh classifier, clean records"
"""The fresh classifier in the hands of a party, which reads its own records without noise."""
CLEAN_NUMBER = "fresh regression, clean records"
MEAN_ACCURACY = "mean-accuracy"
"""Over all utility labels."""


def utility_scores(mechanism: Mechanism, scene: Scene, say: Say) -> list[Score]:
    """The own classifier first (it ranks), then a fresh one for every utility label that a receiver may learn, beside
    what one of several parties gets alone.

    Beside the scores of each stands how the groups of the private labels fare with it (``fairness.apart``).
    """
    splits, victim, effort, seed = scene.splits, scene.splits.victim, scene.effort, scene.seed
    say(f"{mechanism.name}: utility")
    scores = []
    logits = None
    if isinstance(mechanism, Answers):
        logits = mechanism.answer(victim, seed=derive_seed(seed, "victims"))
    elif isinstance(mechanism, Classifies):
        logits = mechanism.predict(scene.release.payload)
    if logits is not None:
        scores += own_scores(logits, victim, mechanism.schema_)
        for label, part in victim.schema.by_label(logits).items():
            if label in victim.schema.numbers:
                continue
            scores += fairness_scores(OWN, label, softmax(part), victim, {}, primary=mechanism.traits.hides_result)
    if mechanism.traits.hides_result or (scores and effort.task_epochs == 0):
        return scores
    owner = mechanism.release(splits.owner, seed=derive_seed(seed, "owner"))
    encoder = scene.knowledge.encoder if mechanism.traits.parties else None
    clean = None if encoder is None else latents(encoder, victim)  # each party reads its own records like that
    raw_owner, raw_victim = raw_release(splits.owner), raw_release(victim)
    for label in victim.utility:

        def fresh(
            a: Release, b: Release, control: Values, clean: FloatArray | None = None, label: str = label
        ) -> list[Score]:
            codes = splits.owner.utility[label]  # where the labels do not leave, the receiver has them from elsewhere
            steps = task_steps(len(a), effort.task_epochs, effort.task_steps)
            return fresh_scores(a, codes, b, victim, label, steps, seed, control, clean)

        control = scene.controls.get(f"{FRESH}:{label}", lambda: as_control(fresh(raw_owner, raw_victim, {})))
        scores += fresh(owner, scene.release, control, clean)
        started = time.perf_counter()
        for name, answered in alone_answers(mechanism, scene, owner, label):
            seconds, started = time.perf_counter() - started, time.perf_counter()
            scale = lesson(label, splits.owner.utility[label], victim.schema)[1]
            scores += _answered(name, label, answered, victim, seconds, control, scale)
    return scores


def own_scores(logits: FloatArray, victim: Dataset, fitted: Schema) -> list[Score]:
    """What the mechanism's own cloud half reads of each label, the first one first, then the mean over several classes.

    ``fitted`` is the schema that the mechanism learnt from, whose numbers know their mean and deviation.
    """
    every = victim.schema.by_label(logits)
    scores: list[Score] = []
    for label, part in every.items():
        scale = fitted.numbers.get(label)
        if scale is None:
            scores += classification_scores(OWN, label, softmax(part), victim, 0.0, None)
        else:
            scores += number_scores(OWN_NUMBER, label, scale.raw(part[:, 0]), victim, 0.0, {})
    read = {label: softmax(every[label]) for label in victim.schema.with_classes(every)}
    return [*scores, _mean_score(read, victim)] if len(read) > 1 else scores


def _mean_score(read: Mapping[str, FloatArray], victim: Dataset) -> Score:
    """The share of a record's labels that are read right, over all records (§4.2 of the paper of ``phase``)."""
    right = np.stack([metrics.correct(victim.utility[label], part) for label, part in read.items()])  # (labels, N)
    most = [np.bincount(victim.utility[label]).max() / len(victim) for label in read]
    each = right.mean(axis=0)
    return Score(
        attack=OWN,
        threat="utility",
        metric=MEAN_ACCURACY,
        better_for_owner="higher",
        value=float(each.mean()),
        ci=mean_interval(each, victim.ids),
        baseline=float(np.mean(most)),
        control=None,
        n=len(victim),
        seconds=0.0,
        limits=(0.0, 1.0),
        people=len(np.unique(victim.ids)),
        each=each,
        whose=victim.ids,
    )


def fresh_scores(
    owner: Release,
    codes: IntArray,
    victim_release: Release,
    victim: Dataset,
    label: str,
    steps: int,
    seed: int,
    control: Values,
    clean: FloatArray | None = None,
) -> list[Score]:
    """A classifier (a regression of a number) trained on the owner's release with the label's ``codes`` for so many
    steps, and tested on the victims' release: its scores of utility and, for classes, of fairness.

    And on ``clean``, the victims' representations without any noise, if they are given.
    """
    started = time.perf_counter()
    taught, scale = lesson(label, codes, victim.schema)
    width = victim.schema.width(label)
    network = fit_classifier(owner.payload, taught, width, steps, derive_seed(seed, "fresh", label))
    logits = forward_in_batches(network, as_tensor(victim_release.payload)).numpy()
    seconds = time.perf_counter() - started
    if scale is None:
        scores = answer_scores(FRESH, label, softmax(logits), victim, seconds, control)
    else:
        scores = number_scores(FRESH_NUMBER, label, scale.raw(logits[:, 0]), victim, seconds, control)
    if clean is not None:
        logits = forward_in_batches(network, as_tensor(clean)).numpy()
        name = CLEAN if scale is None else CLEAN_NUMBER
        scores += _answered(name, label, logits, victim, seconds, control, scale)
    return scores


def _answered(
    task: str,
    label: str,
    answer: FloatArray,
    victim: Dataset,
    seconds: float,
    control: Values,
    scale: NumberScale | None,
) -> list[Score]:
    """What a further learner's answer is worth: class scores, or a number on this scale."""
    if scale is not None:
        return number_scores(task, label, scale.raw(answer[:, 0]), victim, seconds, control, primary=False)
    accuracy = control.get("accuracy")
    return classification_scores(task, label, softmax(answer), victim, seconds, accuracy, primary=False)


def softmax(logits: FloatArray) -> FloatArray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def answer_scores(
    task: str,
    label: str,
    probabilities: FloatArray,
    victim: Dataset,
    seconds: float,
    control: Values,
    *,
    primary: bool = True,
) -> list[Score]:
    """What a receiver's class probabilities are worth, and how groups fare with them."""
    useful = classification_scores(
        task, label, probabilities, victim, seconds, control.get("accuracy"), primary=primary
    )
    return [*useful, *fairness_scores(task, label, probabilities, victim, control, primary=primary)]


def as_control(scores: list[Score]) -> Values:
    """What the same classifier gets from raw records, by metric and, for fairness, by "metric:private label"."""
    return {s.metric if s.group is None else f"{s.metric}:{s.group}": s.value for s in scores}


def classification_scores(
    task: str,
    label: str,
    probabilities: FloatArray,
    victim: Dataset,
    seconds: float,
    control: float | None,
    *,
    primary: bool = True,
) -> list[Score]:
    """The scores of class probabilities (N, classes) for a utility label; the accuracy ranks if ``primary``."""
    truth, people = victim.utility[label], len(np.unique(victim.ids))
    majority = np.zeros_like(probabilities)
    majority[:, np.bincount(truth).argmax()] = 1.0
    baseline = {m.metric: m.value for m in measure_classification(truth, majority, victim, better_for_owner="higher")}

    def score(m: Measured) -> Score:
        return Score(
            attack=task,
            threat="utility",
            metric=m.metric,
            better_for_owner="higher",
            value=m.value,
            ci=m.ci,
            baseline=baseline[m.metric],
            control=control if m.metric == "accuracy" else None,
            n=len(victim),
            seconds=round(seconds, 3),
            primary=primary and m.primary,
            target=label,
            limits=m.limits,
            people=people,
            each=m.each,
            whose=victim.ids,
        )

    measured = measure_classification(truth, probabilities, victim, better_for_owner="higher")
    return [score(m) for m in measured if m.metric != "advantage"]
