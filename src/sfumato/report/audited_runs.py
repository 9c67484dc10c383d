"""What a page or a card may show of audited runs: plain values, already checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import ATTRIBUTE, CLAIM, LIST, MEMBERSHIP, OURS, RECONSTRUCTION, rank
from sfumato.core.traits import Traits

Floats = npt.NDArray[np.float32]

SHOWN_THREATS = 4  # at a glance


@dataclass(frozen=True)
class Gallery:
    """The same few victims: the record, what was released for it, that decoded, and what each attack rebuilt.

    ``lists`` holds attacks that name several records for each: (records, guesses, *shape). Where the release is
    ``synthetic``, these are samples of it, and the originals the owner's records nearest to them.
    """

    originals: Floats
    release: Floats | None
    recon: Mapping[str, Floats]
    decoded: Floats | None = None
    lists: Mapping[str, Floats] = field(default_factory=dict)
    synthetic: Floats | None = None


@dataclass(frozen=True)
class Colouring:
    """One label of the victims that are shown as points."""

    classes: tuple[str, ...]
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Features:
    """Released features as points, with the labels that were kept; ``label`` is the main one."""

    points: tuple[tuple[float, float, float], ...]
    label: str
    colours: Mapping[str, Colouring]
    method: str = "pca"


@dataclass(frozen=True)
class Confusion:
    """What the best attack on a private label took for what: the truth in rows, the guess in columns."""

    attack: str
    classes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Reading:
    """How often the answer was right, with its 95 % interval."""

    accuracy: float
    ci: tuple[float, float]


@dataclass(frozen=True)
class WrongKey:
    """What a key is worth: accuracy with keys that are off by each angle, 0 first, and with a key drawn uniformly."""

    d: int
    n: int
    chance: float
    angles: tuple[float, ...]
    curve: tuple[Reading, ...]
    uniform: Reading


@dataclass(frozen=True)
class Asked:
    """One line of the ledger: a question to the private records, how often and with how much noise it was asked."""

    part: str
    name: str
    count: int
    rate: float
    noise: float
    epsilon: float


@dataclass(frozen=True)
class Budget:
    """Where ε went: every question, and what all of them come to by two accountants."""

    relation: str
    epsilon: float
    epsilon_rdp: float
    delta: float
    bypassed: str | None
    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Run:
    """One audited run folder. ``name`` is its folder without what lies above it; ``setting`` tells it from
    other runs of its mechanism ("" where it is the only one)."""

    name: str
    mechanism: str
    traits: Traits
    data: str
    config: Mapping[str, Any]
    config_text: str
    schema: Schema
    guarantee: Guarantee
    utility: tuple[Score, ...]
    attacks: tuple[Score, ...]
    worst: Mapping[str, Score]
    titles: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    confusion: Mapping[str, Confusion] = field(default_factory=dict)
    information: tuple[Score, ...] = ()
    wrong_key: WrongKey | None = None
    budget: Budget | None = None
    gallery: Gallery | None = None
    features: Features | None = None
    env: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 0
    setting: str = ""

    @property
    def title(self) -> str:
        return f"{self.mechanism}, {self.setting}" if self.setting else self.mechanism

    @property
    def defended(self) -> bool:
        return not self.traits.unprotected

    @property
    def rotated(self) -> bool:
        """Whether several records share a message under a secret key, so that only its owner can read the answer."""
        return self.traits.rows_per_message > 1

    @property
    def synthetic(self) -> bool:
        """Whether the release holds synthetic records, which belong to no victim."""
        return self.traits.synthetic

    @property
    def d(self) -> int:
        """How many records share a message."""
        return self.traits.rows_per_message

    def called(self, attack: str) -> tuple[str, str]:
        """What a report calls an attack, and what it does."""
        return self.titles.get(attack, (attack, ""))

    @property
    def labels(self) -> tuple[str, ...]:
        """The utility labels, in the order of the configuration."""
        return self._named("utility", self.schema.utility)

    @property
    def private(self) -> tuple[str, ...]:
        """The private labels, in the order of the configuration."""
        return self._named("private", self.schema.private)

    def _named(self, role: str, known: Iterable[str]) -> tuple[str, ...]:
        return tuple(str(name) for name in self.config.get("data", {}).get(role) or known)

    @property
    def params(self) -> Mapping[str, Any]:
        """The hyper-parameters, without the path of the run that this one builds on."""
        return {name: value for name, value in self.config.get("params", {}).items() if name != "base"}

    @property
    def scores(self) -> tuple[Score, ...]:
        return (*self.utility, *self.attacks, *self.information)

    @property
    def use(self) -> Score | None:
        """The best primary utility score of the first utility label: what others can do with the release."""
        return self.reads(self.labels[0] if self.labels else None) or _best(self.utility)

    def reads(self, label: str | None) -> Score | None:
        """The best primary utility score of a label; a score without a target is about the first one."""
        first = self.labels[0] if self.labels else None
        return _best([s for s in self.utility if (s.target or first) == label])

    def leak(self, label: str) -> Score | None:
        """The accuracy of the best attack on a private label, or its advantage where no accuracy was stored."""
        of_label = [s for s in self.attacks if (s.threat, s.target) == (ATTRIBUTE, label)]
        accuracies = [s for s in of_label if s.metric == "accuracy"]
        return max(accuracies, key=lambda s: s.value, default=self.worst.get(f"attribute:{label}"))

    def judged(self, key: str) -> Score:
        """The score that a run is judged by: of a single guess and a list of guesses, what is worse for the owner."""
        score, listed = self.worst[key], self.worst.get(LIST)
        if key != RECONSTRUCTION or listed is None or listed.metric != score.metric:
            return score
        return min(score, listed, key=owner_gain)

    @property
    def seed(self) -> str:
        return str(self.config.get("run", {}).get("seed", "not recorded"))

    @property
    def picture_attack(self) -> str | None:
        """The attack whose reconstructions are shown: the worst one, if its pictures were kept."""
        if self.gallery is None or not self.gallery.recon:
            return None
        worst = self.worst.get(RECONSTRUCTION)
        if worst is not None and worst.attack in self.gallery.recon:
            return worst.attack
        return next(iter(self.gallery.recon))


@dataclass(frozen=True)
class Group:
    """The runs on one data set with one schema: what may be compared with one another."""

    data: str
    schema: Schema
    runs: tuple[Run, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The mechanisms, in listing order."""
        return tuple(dict.fromkeys(run.mechanism for run in self.runs))

    @property
    def threats(self) -> tuple[str, ...]:
        """Keys of ``worst`` over all runs, the main threat first."""
        keys = dict.fromkeys(key for run in self.runs for key in run.worst)
        return tuple(sorted(keys, key=rank))

    @property
    def glanced(self) -> tuple[str, ...]:
        """The threats at a glance: the main ones, the one of synthetic records, and those of plugins."""
        main = {*self.threats[:SHOWN_THREATS], MEMBERSHIP} - {CLAIM}
        return tuple(key for key in self.threats if key in main or key.partition(":")[0] not in OURS)

    @property
    def private(self) -> tuple[str, ...]:
        """The private labels that were attacked."""
        return tuple(key.removeprefix("attribute:") for key in self.threats if key.startswith("attribute:"))

    def of(self, method: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.mechanism == method)

    @property
    def controls(self) -> tuple[Run, ...]:
        """What hides nothing on purpose: first the raw latent that others protect, then the raw record."""
        order = ("latent", "record")
        return tuple(sorted((r for r in self.runs if not r.defended), key=lambda r: order.index(r.traits.unprotected)))

    def raw_latent(self) -> Run | None:
        """The run whose release is the latent that others protect."""
        return next((run for run in self.controls if run.traits.unprotected == "latent"), None)

    def representative(self, method: str) -> Run:
        """The run with the best accuracy within a method (the first of equals)."""
        return max(self.of(method), key=lambda run: run.use.value if run.use else float("-inf"))

    def shown(self, method: str) -> tuple[Run, ...]:
        """The representative of a method and, where private labels are the main threat, what leaks least of them.

        That is its most private run, and one more for every label that no run before has hidden.
        """
        picked = [self.representative(method)]
        if not self.threats or not self.threats[0].startswith("attribute:"):
            return tuple(picked)
        for key in self.threats[:SHOWN_THREATS]:
            strongest = most_private(self.of(method), key)
            hidden = key != self.threats[0] and any(key in run.worst for run in picked)
            if strongest is not None and not hidden and all(strongest is not run for run in picked):
                picked.append(strongest)
        return tuple(picked)


def owner_gain(score: Score) -> float:
    """Larger is better for the owner."""
    return score.value if score.better_for_owner == "higher" else -score.value


def most_private(runs: Iterable[Run], key: str) -> Run | None:
    """The run whose best attack on a threat gets the least (the last of equals); None where none was attacked so."""
    attacked = [run for run in runs if key in run.worst]
    return max(reversed(attacked), key=lambda run: owner_gain(run.judged(key)), default=None)


def in_order(threats: Iterable[str]) -> list[str]:
    """Keys of ``worst`` by name; a list of guesses stands beside the single guess."""
    return sorted(threats, key=lambda key: key.replace(LIST, f"{RECONSTRUCTION}-list"))


def _best(scores: Iterable[Score]) -> Score | None:
    """The highest primary score; the highest of all where none is primary."""
    every = list(scores)
    return max([s for s in every if s.primary] or every, key=lambda s: s.value, default=None)
