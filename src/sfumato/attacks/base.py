"""The contract of an attack: the subclass guesses, the base class checks access, scores and compares.

Three rules. The truth reaches only the scorer. An attack must beat its baseline where there is no defence. Every
figure has a baseline (no release), a control (no defence) and an interval.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform, final

import numpy as np
import numpy.typing as npt

from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import RuleBroken
from sfumato.core.intervals import Interval, bootstrap, mean_interval, share_interval
from sfumato.core.knowledge import Knowledge, Truth, guessing
from sfumato.core.origin import by_frequency
from sfumato.core.release import Release
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import Direction

Guess = npt.NDArray[Any]


@dataclass(frozen=True)
class Measured:
    """One metric of a guess, before it is compared with baseline and control; ``each`` is its value for each record.

    ``target`` is what it is about where an attack has several, ``n`` how many there were if not one for each guess.
    """

    metric: str
    better_for_owner: Direction
    value: float
    ci: Interval
    limits: tuple[float, float]
    primary: bool = False
    each: metrics.Values | None = field(default=None, repr=False)
    target: str | None = None
    note: str = ""
    n: int | None = None

    @property
    def key(self) -> str:
        """What tells it from the other figures of its guess."""
        return metric_key(self.metric, self.target)


@dataclass(frozen=True)
class Outcome:
    """What an attack achieved, and its guess for the gallery."""

    scores: tuple[Score, ...]
    guess: Guess = field(repr=False)
    keys: tuple[str, ...] = ()

    def values(self) -> dict[str, float]:
        """Metric → value, to serve as the control of the same attack elsewhere."""
        return {key: score.value for key, score in self.by_key().items()}

    def by_key(self) -> dict[str, Score]:
        """The scores by the keys under which their controls are looked for."""
        return dict(zip(self.keys, self.scores, strict=True))


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
class Attack(ABC):
    """Hyper-parameters are annotated fields, keyword-only; an attack keeps nothing between two victims."""

    name: ClassVar[str]
    threat: ClassVar[str]
    """The name of a registered threat (``core.threats``)."""
    title: ClassVar[str] = ""
    """How a report calls it; its name, if empty."""
    how: ClassVar[str] = ""
    """What it does, in a few words beside what it rebuilt."""
    version: ClassVar[int] = 1
    """Raised whenever its figures change."""
    wants_repeats: ClassVar[bool] = False
    """Whether it compares several releases of the same victims (``knowledge.repeats``)."""
    one_by_one: ClassVar[bool] = False
    """Whether each victim costs it as much as the first: an audit shows it some of them."""
    slow: ClassVar[bool] = False
    """Whether it trains for long: where attacks run side by side, it is begun early."""
    grants: ClassVar[tuple[str, ...]] = ()
    """Secrets of the victims that it is told (``knowledge.granted``): an upper bound."""
    yardstick: ClassVar[bool] = False
    """Whether it also measures what the mechanism's encoder gives away without noise."""
    follows: ClassVar[str | None] = None
    """The utility label from whose correlation alone the guess follows: then its figure is a floor."""
    undefended: ClassVar[Mapping[str, float]] = {}
    """Its figures without a defence, where they need no measuring: a secret that is known is known."""
    known_baseline: ClassVar[Mapping[str, float]] = {}
    """Its figures without a release, where they need no measuring: nobody is told from held-out people by nothing."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    @classmethod
    def suite(cls, schema: Schema) -> list[Attack]:  # noqa: ARG003 — an attack on labels has one for each
        """The attacks of this class that an audit of records of this schema runs, for attacks from plugins."""
        return [cls()]

    def target(self) -> str | None:
        """The private label that is attacked, if the threat has one."""
        return None

    def obstacle(self, knowledge: Knowledge) -> str | None:
        """Why this attack cannot be run with this knowledge, or None."""
        return "needs query access to the protected pipeline" if knowledge.query is None else None

    def expected(self, release: Release, knowledge: Knowledge) -> int:
        """How many guesses there must be: one for each released record, unless the threat asks about others."""
        return len(release)

    @abstractmethod
    def guess(self, release: Release, knowledge: Knowledge) -> Guess:
        """The attacker's answer for every released record. The victims' truth is out of reach here."""

    @abstractmethod
    def trivial(self, knowledge: Knowledge, n: int) -> Guess:
        """The best answer without any release."""

    def trivials(self, knowledge: Knowledge, n: int) -> list[Guess]:
        """Answers without any release: for each metric the best of them is the baseline."""
        return [self.trivial(knowledge, n)]

    @abstractmethod
    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        """The metrics of a guess; called by the scorer only."""

    @final
    def __call__(
        self,
        release: Release,
        knowledge: Knowledge,
        truth: Truth,
        *,
        control: Mapping[str, float] | None = None,
        encoder_control: Mapping[str, float] | None = None,
    ) -> Outcome:
        """Guess, score, and set beside it what a guesser without the release and the controls get."""
        obstacle = self.obstacle(knowledge)
        if obstacle is not None:
            raise RuleBroken(f"{self.name} {obstacle}.")
        shared = set(knowledge.auxiliary.ids.tolist()) & set(truth.open().ids.tolist())
        if shared:
            raise RuleBroken(f"{self.name}: {len(shared)} victims are in the attacker's auxiliary data.")
        started = time.perf_counter()
        n = self.expected(release, knowledge)
        with guessing():
            guess = self.guess(release, knowledge)
            trivials = self.trivials(knowledge, n)
        seconds = time.perf_counter() - started
        if len(guess) != n or not np.isfinite(guess).all():
            raise RuleBroken(f"{self.name} must give one finite guess for each of the {n} records.")
        victim = truth.open()
        people = len(np.unique(victim.ids)) if n == len(victim) else None
        baseline = _best_of_each([self.measure(trivial, truth) for trivial in trivials])

        def of_victims(measured: Measured) -> bool:
            return measured.each is not None and len(measured.each) == len(victim)

        measured = self.measure(guess, truth)
        scores = tuple(
            Score(
                attack=self.name,
                threat=self.threat,
                metric=m.metric,
                better_for_owner=m.better_for_owner,
                value=m.value,
                ci=m.ci,
                baseline=self.known_baseline.get(m.metric, baseline[m.key].value),
                control=(control or {}).get(m.key),
                n=n if m.n is None else m.n,
                seconds=round(seconds, 3),
                primary=m.primary,
                target=m.target or self.target(),
                limits=m.limits,
                attack_version=self.version,
                follows=self.follows,
                encoder_control=(encoder_control or {}).get(m.key),
                people=people if m.n is None else None,
                note=m.note,
                each=m.each,
                whose=victim.ids if of_victims(m) else None,
                rows=truth.rows if of_victims(m) else None,
                guessed=baseline[m.key].each,
            )
            for m in measured
        )
        return Outcome(scores, guess, tuple(m.key for m in measured))

    def params(self) -> dict[str, Any]:
        """The hyper-parameters."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @property
    def identity(self) -> str:
        """What its figures hang on: hyper-parameters and version."""
        return f"{self!r} v{self.version}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params().items())})"


class ReconstructionAttack(Attack):
    """The guess is the record itself, (N, *shape) in [0, 1]."""

    threat = "reconstruction"

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """The mean auxiliary record: the best constant under squared error."""
        mean = knowledge.auxiliary.x.mean(axis=0, dtype=np.float64).astype(np.float32)
        return np.broadcast_to(mean, (n, *mean.shape))

    def trivials(self, knowledge: Knowledge, n: int) -> list[Guess]:
        """And, for records with categories, the most frequent one: the best constant where whole records count."""
        own = knowledge.auxiliary
        if not _has_categories(own.schema):
            return super().trivials(knowledge, n)
        frequent = own.x[by_frequency(own.x)[0][0]]
        return [*super().trivials(knowledge, n), np.broadcast_to(frequent, (n, *frequent.shape))]

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        measured, looks = measure_reconstruction(truth.open(), guess), truth.likeness(guess)
        if looks is None:
            return measured
        return [*measured, measure_mean("identity", "lower", looks, truth.open(), (-1.0, 1.0))]


class AttributeAttack(Attack):
    """The guess is a probability for every class of one private label, (N, classes)."""

    threat = "attribute"
    label: str

    def target(self) -> str:
        return self.label

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """The class shares of the auxiliary data: always the majority class."""
        classes = len(knowledge.auxiliary.schema.classes(self.label))
        counts = np.bincount(knowledge.auxiliary.label(self.label), minlength=classes)
        return np.broadcast_to((counts / counts.sum()).astype(np.float32), (n, classes))

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        victim = truth.open()
        return measure_classification(victim.label(self.label), guess, victim, better_for_owner="lower")


class ReidentificationAttack(Attack):
    """The guess is, for every released record, a position among ``knowledge.candidates``."""

    threat = "reidentification"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or ("needs candidates" if knowledge.candidates is None else None)

    def trivial(self, knowledge: Knowledge, n: int) -> IntArray:
        """Without the release every candidate is as good: −1, scored as 1/N."""
        return np.full(n, -1, dtype=np.int64)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        positions = truth.positions()
        found = np.where(guess == -1, 1.0 / len(positions), guess == positions).astype(np.float64)
        interval = share_interval(found, truth.open().ids)
        return [Measured("rate", "lower", float(found.mean()), interval, (0.0, 1.0), primary=True, each=found)]


def metric_key(metric: str, target: str | None) -> str:
    """A metric, and what it is about where that is not the attack's own target."""
    return f"{metric}|{target}" if target else metric


def _best_of_each(guesses: Sequence[Sequence[Measured]]) -> dict[str, Measured]:
    """For each metric what the guess gets that is worst for the owner."""
    return {
        found[0].key: (min if found[0].better_for_owner == "higher" else max)(found, key=lambda one: one.value)
        for found in zip(*guesses, strict=True)
    }


def _has_categories(schema: Schema) -> bool:
    return schema.kind == "table" and any(column.kind == "categorical" for column in schema.columns)


def measure_reconstruction(victim: Dataset, guess: FloatArray) -> list[Measured]:
    """Errors and likeness of rebuilt records; the mean squared error ranks."""
    measured = [
        measure_mean("mse", "higher", metrics.mse(victim.x, guess), victim, (0.0, 1.0), primary=True),
        measure_mean("l1", "higher", metrics.l1(victim.x, guess), victim, (0.0, 1.0)),
        measure_mean("psnr", "lower", metrics.psnr(victim.x, guess), victim, (0.0, metrics.PSNR_CAP)),
    ]
    if _has_categories(victim.schema):
        right = metrics.categories_right(victim.x, guess, victim.schema.columns)
        measured.append(measure_mean("category-accuracy", "lower", right, victim, (0.0, 1.0)))
        whole = metrics.records_right(victim.x, guess, victim.schema.columns)
        measured.append(measure_mean("whole-record", "lower", whole, victim, (0.0, 1.0)))
    if victim.schema.kind in ("image", "audio"):
        measured.append(measure_mean("ssim", "lower", metrics.ssim(victim.x, guess), victim, (-1.0, 1.0)))
    return measured


def measure_classification(
    truth: IntArray, scores: FloatArray, data: Dataset, *, better_for_owner: Direction
) -> list[Measured]:
    """Accuracy, advantage over the majority guess, balanced accuracy and AUROC of class scores.

    For an attack on a label the advantage ranks; for a utility task the accuracy does.
    """
    right = metrics.correct(truth, scores)
    majority = float(np.bincount(truth).max() / len(truth))
    accuracy = Measured(
        "accuracy",
        better_for_owner,
        float(right.mean()),
        share_interval(right, data.ids),
        (0.0, 1.0),
        primary=better_for_owner == "higher",
        each=right,
    )
    low, high = accuracy.ci
    n, unit = len(truth), (0.0, 1.0)

    balanced = metrics.balanced_accuracy_statistic(truth, scores)
    area = metrics.auroc_statistic(truth, scores)
    every = np.ones(n)
    return [
        accuracy,
        Measured(
            "advantage",
            better_for_owner,
            accuracy.value - majority,
            (low - majority, high - majority),
            (-1.0, 1.0),
            primary=better_for_owner == "lower",
        ),
        Measured(
            "balanced-accuracy", better_for_owner, balanced(every), bootstrap(balanced, n, data.ids, limits=unit), unit
        ),
        Measured(
            "auroc", better_for_owner, area(every), bootstrap(area, n, data.ids, resamples=200, limits=unit), unit
        ),
    ]


def measure_mean(
    metric: str,
    better_for_owner: Direction,
    values: metrics.Values,
    data: Dataset,
    limits: tuple[float, float],
    *,
    primary: bool = False,
) -> Measured:
    """The mean of one value a record, with the interval by subjects."""
    interval = mean_interval(values, data.ids, limits)
    return Measured(metric, better_for_owner, float(values.mean()), interval, limits, primary, values)
