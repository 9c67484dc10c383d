"""What a page or a card may show of audited runs: plain values, already checked."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import ATTRIBUTE, CLAIM, LIST, MEMBERSHIP, RECONSTRUCTION, ours, rank
from sfumato.core.traits import Traits
from sfumato.report.stored_gates import GateFound

Floats = npt.NDArray[np.float32]

SHOWN_THREATS = 4  # at a glance


@dataclass(frozen=True)
class Gallery:
    """The same few records in every form: as they were, released, decoded, and rebuilt by each attack.

    ``lists`` holds the attacks that name several candidates for each record: (records, guesses, *shape). For a
    synthetic release, ``synthetic`` holds samples and ``originals`` the owner's records nearest to them.
    """

    originals: Floats
    release: Floats | None
    recon: Mapping[str, Floats]
    decoded: Floats | None
    lists: Mapping[str, Floats]
    synthetic: Floats | None


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
    method: str


@dataclass(frozen=True)
class Confusion:
    """How the best attack on a private label confuses its classes: truth in rows, guesses in columns."""

    attack: str
    classes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Reading:
    """How often the answer was right, with its 95 % interval."""

    value: float
    ci: tuple[float, float]
    metric: str = "accuracy"


@dataclass(frozen=True)
class WrongKey:
    """What a key is worth: accuracy with keys off by each angle (0 comes first), and with a uniformly drawn key.

    Means over so many ``labels``.
    """

    d: int
    chance: float
    angles: tuple[float, ...]
    curve: tuple[Reading, ...]
    uniform: Reading
    labels: int = 1


@dataclass(frozen=True)
class LedgerLine:
    """One line of the ledger: a query to the private records, how often it was asked and with how much noise."""

    part: str
    name: str
    count: int
    rate: float
    noise: float
    epsilon: float


@dataclass(frozen=True)
class Budget:
    """Where ε went: every query, and the total of all of them by two accountants."""

    relation: str
    epsilon: float
    epsilon_rdp: float
    delta: float
    bypassed: str | None
    asked: tuple[LedgerLine, ...]


@dataclass(frozen=True)
class Exposed:
    """Who is worst off by one threat: the attack and the metric of its scores, leakage of groups, the share of people
    above a threshold, and the records that leak most."""

    attack: str
    metric: str
    groups: tuple[dict[str, Any], ...]
    share_above: Mapping[str, Any]
    most_exposed: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Run:
    """One audited run folder.

    ``name`` is the folder's name without its parents. ``setting`` tells the run from others of its mechanism; it is
    "" for the only one. ``repeated`` are attacks on means of several releases, ``fairness`` differences between groups;
    ``attack_steps`` is how many steps an attacker's network trained at least, ``precision`` that of networks and
    attackers, ``skipped`` what was not run and why, ``notes`` what has to be said about somebody else's files, and
    ``gate`` the last gate, unless the run was audited again since.
    """

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
    titles: Mapping[str, tuple[str, str]]
    confusion: Mapping[str, Confusion]
    information: tuple[Score, ...]
    wrong_key: WrongKey | None
    budget: Budget | None
    gallery: Gallery | None
    features: Features | None
    env: Mapping[str, Any]
    epochs: int
    repeated: tuple[Score, ...] = ()
    fairness: tuple[Score, ...] = ()
    attack_steps: int | None = None
    precision: str = "fp32"
    exposure: Mapping[str, Exposed] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    gate: GateFound | None = None
    setting: str = ""

    @property
    def title(self) -> str:
        return f"{self.mechanism}, {self.setting}" if self.setting else self.mechanism

    @property
    def unlinked(self) -> bool:
        """Whether these are rows for nobody in particular that somebody else made."""
        recorded = self.config.get("run", {})
        return recorded.get("command") == "audit" and "owner" in recorded

    @property
    def defended(self) -> bool:
        return not self.traits.unprotected

    @property
    def raw_latent(self) -> bool:
        """Whether the release is the unprotected latent that other methods protect."""
        return self.traits.unprotected == "latent"

    @property
    def rotated(self) -> bool:
        """Whether several records share a message under a secret key, so that only its owner can read the answer."""
        return self.d > 1

    @property
    def d(self) -> int:
        """How many records share a message."""
        return self.traits.rows_per_message

    def called(self, attack: str) -> tuple[str, str]:
        """An attack's title in a report, and what it does."""
        return self.titles.get(attack, (attack, ""))

    @property
    def labels(self) -> tuple[str, ...]:
        """The utility labels, in the order of the configuration."""
        return self._named("utility", self.schema.utility)

    @property
    def main_label(self) -> str | None:
        """The first utility label."""
        return self.labels[0] if self.labels else None

    @property
    def private(self) -> tuple[str, ...]:
        """The private labels, in the order of the configuration."""
        return self._named("private", self.schema.private)

    def _named(self, role: str, known: Iterable[str]) -> tuple[str, ...]:
        asked, names = self.config.get("data", {}).get(role) or (), tuple(known)
        return tuple(map(str, asked)) if asked and set(map(str, asked)) <= set(names) else names

    @property
    def params(self) -> Mapping[str, Any]:
        """The hyper-parameters, without the path of the run that this one builds on."""
        return {name: value for name, value in self.config.get("params", {}).items() if name != "base"}

    @property
    def seed(self) -> str:
        return str(self.config.get("run", {}).get("seed", "not recorded"))

    @property
    def commands(self) -> str:
        """The commands that repeat the run, one per line: from its recorded configuration to new scores."""
        recorded = self.config.get("run", {})
        if recorded.get("command") == "audit":
            return self._audited_again(recorded)
        command, mechanism = str(recorded.get("command", "fit")), str(recorded.get("mechanism", self.mechanism))
        first = ["sfumato", command, mechanism, "--config", f"{self.name}/config.toml", "--out", "again"]
        return f"{shlex.join(first)}\nsfumato audit again\nsfumato report again"

    def _audited_again(self, recorded: Mapping[str, Any]) -> str:
        """Of a release that somebody else made: there is nothing to fit."""
        data = self.config.get("data", {})
        words = [word for path in recorded.get("release", ()) for word in ("--release", str(path))]
        rows = [
            word for role in ("owner", "holdout") if role in recorded for word in (f"--{role}", str(recorded[role]))
        ]
        words += [*(rows or ["--records", str(data.get("source", ""))]), "--seed", self.seed]
        for role in ("x", "utility", "private"):
            words += [word for name in _each(data.get(role)) for word in (f"--{role}", name)]
        words += [word for role in ("id", "domain") if data.get(role) for word in (f"--{role}", str(data[role]))]
        if data.get("shares"):
            words += ["--shares", ",".join(f"{share:g}" for share in data["shares"])]
        if recorded.get("pipeline") == "run":
            words += ["--pipeline", "the command, which is not recorded"]
        return f"{shlex.join(['sfumato', 'audit', *words, '--out', 'again'])}\nsfumato report again"

    @property
    def scores(self) -> tuple[Score, ...]:
        return (*self.utility, *self.fairness, *self.attacks, *self.information)

    @property
    def use(self) -> Score | None:
        """The best primary utility score of the main label: what others can do with the release."""
        return self.reads(self.main_label) or _best(self.utility)

    @property
    def use_value(self) -> float:
        """The value of ``use``; −∞ where no utility was measured."""
        return -math.inf if self.use is None else self.use.value

    def reads(self, label: str | None) -> Score | None:
        """The best primary utility score of a label; a score without a target is about the main one."""
        return _best([s for s in self.utility if (s.target or self.main_label) == label])

    def leak(self, label: str) -> Score | None:
        """The accuracy of the best attack on a private label, or its advantage where no accuracy was stored."""
        of_label = [s for s in self.attacks if (s.threat, s.target) == (ATTRIBUTE, label)]
        accuracies = [s for s in of_label if s.metric == "accuracy"]
        return max(accuracies, key=lambda s: s.value, default=self.worst.get(f"attribute:{label}"))

    def primary(self, threat: str) -> dict[str, Score]:
        """The primary score of every attack of one kind, by the attack's name."""
        return {s.attack: s for s in self.attacks if s.primary and s.threat == threat}

    def judged(self, key: str) -> Score:
        """The score that a run is judged by: a single guess or a list of guesses, whichever is worse for the owner."""
        score, listed = self.worst[key], self.worst.get(LIST)
        if key != RECONSTRUCTION or listed is None or listed.metric != score.metric:
            return score
        return min(score, listed, key=owner_gain)

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
    """The runs on one data set with one schema, which may be compared with one another."""

    data: str
    schema: Schema
    runs: tuple[Run, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The mechanisms, in listing order."""
        return tuple(by_method(self.runs))

    @property
    def threats(self) -> tuple[str, ...]:
        """Keys of ``worst`` over all runs, the main threat first."""
        keys = dict.fromkeys(key for run in self.runs for key in run.worst)
        return tuple(sorted(keys, key=rank))

    @property
    def glanced(self) -> tuple[str, ...]:
        """The threats at a glance: the main ones, membership, and those of plugins."""
        main = {*self.threats[:SHOWN_THREATS], MEMBERSHIP} - {CLAIM}
        return tuple(key for key in self.threats if key in main or key.partition(":")[0] not in ours())

    @property
    def private(self) -> tuple[str, ...]:
        """The private labels that were attacked."""
        return tuple(key.removeprefix("attribute:") for key in self.threats if key.startswith("attribute:"))

    def of(self, method: str) -> list[Run]:
        return by_method(self.runs)[method]

    @property
    def controls(self) -> tuple[Run, ...]:
        """The runs that hide nothing on purpose: the raw latent first, then the raw record."""
        return tuple(sorted((run for run in self.runs if not run.defended), key=lambda run: not run.raw_latent))

    def representative(self, method: str) -> Run:
        """The run with the best accuracy within a method (the first of equals)."""
        return max(self.of(method), key=lambda run: run.use_value)

    def shown(self, method: str) -> tuple[Run, ...]:
        """The representative of a method and, where private labels are the main threat, those that leak least.

        These are its most private run, and one more for every label that none of the runs before was attacked on.
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


def _each(names: Any) -> list[str]:
    """One name or several."""
    return [names] if isinstance(names, str) else [str(name) for name in names or ()]


def by_method(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each method, in the order given."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.mechanism, []).append(run)
    return found


def owner_gain(score: Score) -> float:
    """Larger is better for the owner."""
    return score.value if score.better_for_owner == "higher" else -score.value


def most_private(runs: Iterable[Run], key: str) -> Run | None:
    """The run whose best attack on a threat gets the least (the last of equals); None where none was attacked so."""
    attacked = [run for run in runs if key in run.worst]
    return max(reversed(attacked), key=lambda run: owner_gain(run.judged(key)), default=None)


def spread(runs: Sequence[Run], most: int) -> tuple[Run, ...]:
    """At most ``most`` of the runs, evenly spaced; the last one is always among them, the first if there is room."""
    if len(runs) <= most:
        return tuple(runs)
    if most == 1:
        return (runs[-1],)
    return tuple(runs[round(i * (len(runs) - 1) / (most - 1))] for i in range(most))


def in_order(threats: Iterable[str]) -> list[str]:
    """Keys of ``worst`` by name; a list of guesses stands beside the single guess."""
    return sorted(threats, key=lambda key: key.replace(LIST, f"{RECONSTRUCTION}-list"))


def _best(scores: Iterable[Score]) -> Score | None:
    """The highest primary score; the highest of all where none is primary."""
    every = list(scores)
    return max([s for s in every if s.primary] or every, key=lambda s: s.value, default=None)
