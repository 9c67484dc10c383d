"""The threats, in one place: what is asked, by which metric, and how a person should read the answer."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Threat:
    """One question of an audit.

    title             in headings
    sentence          what the adversary does, and how to read the figure
    baseline          what a guesser without the release does
    control           what is attacked where nothing is defended; "" where an attack of this kind has no control
    metric            ranks the attacks of this threat
    better_for_owner  the direction of that metric
    atlas             the technique of MITRE ATLAS that it is; "" for none
    aisvs             the requirements of OWASP AISVS that a figure is evidence for; "" for none
    also              a second metric whose leakage counts if it is larger; "" for none
    number_metric, number_also  the same where the label is a number, in the same direction; "" where it cannot be one
    verb              completes "the best attack … with MSE 0.03"; {target} is a label, {d} the rows of a message
    attack            the kind of attack within a sentence
    aim               completes "the best attack on …"
    graded            whether leakage can be stated as a share of what an undefended release gives away
    """

    name: str
    title: str
    sentence: str
    metric: str
    better_for_owner: Direction
    baseline: str
    control: str
    verb: str = "reaches"
    attack: str = ""
    aim: str = ""
    graded: bool = True
    also: str = ""
    number_metric: str = ""
    number_also: str = ""
    atlas: str = ""
    aisvs: str = ""

    @property
    def explanation(self) -> str:
        """The sentence, with baseline and control."""
        ends = [
            f"the baseline {self.baseline}" if self.baseline else "",
            self.control and f"the control {self.control}",
        ]
        said = "; ".join(end for end in ends if end)
        text = f"{self.sentence} {said[0].upper()}{said[1:]}." if said else self.sentence
        return f"{text} {self.tags}." if self.tags else text

    def beside(self, metric: str) -> str:
        """The second metric of a score by ``metric``."""
        return self.number_also if metric == self.number_metric else self.also

    @property
    def tags(self) -> str:
        """What others call it."""
        named = (("MITRE ATLAS", self.atlas), ("OWASP AISVS", self.aisvs))
        return ", ".join(f"{who} {tag}" for who, tag in named if tag)

    @property
    def kind(self) -> str:
        """The kind of attack within a sentence."""
        return self.attack or self.name

    @property
    def object(self) -> str:
        """What an attack of this kind is on, within a sentence."""
        return self.aim or self.name

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Threat:
        known = {field.name for field in fields(cls)}
        return cls(**{name: found for name, found in value.items() if name in known})


@cache
def ours() -> Mapping[str, Threat]:
    """The threats that sfumato brings, in order of importance."""
    table = tomllib.loads(files("sfumato.core").joinpath("threats.toml").read_text(encoding="utf-8"))
    return {value["name"]: Threat.from_json(value) for value in table["threat"]}


_plugged: dict[str, Threat] = {}


def _known() -> dict[str, Threat]:
    return {**ours(), **_plugged}


def known_threats() -> tuple[str, ...]:
    """The names of all threats, ours and those of plugins, in order of importance."""
    return tuple(_known())


def register(threat: Threat) -> Threat:
    """Make a threat known, after those that are. Of two with one name the first counts."""
    return ours().get(threat.name) or _plugged.setdefault(threat.name, threat)


def threat(name: str) -> Threat:
    """The threat of that name; one that nobody has registered says only that."""
    unknown = Threat(name, name, f"Attacks of the kind “{name}”.", "", "lower", "", "")
    return _known().get(name.partition(":")[0], unknown)


def title(key: str) -> str:
    """ "attribute:sex" as "Attribute (sex)"."""
    name, _, target = key.partition(":")
    return f"{threat(name).title} ({target})" if target else threat(name).title


def rank(key: str) -> tuple[int, str]:
    """The order of importance of a threat or of a threat against a label; those of plugins come last."""
    name = key.partition(":")[0]
    known = list(_known())
    return (known.index(name) if name in known else len(known), key)


def described(names: Iterable[str]) -> dict[str, Any]:
    """The threats of those names as JSON, to be stored with scores: a reader need not have the plugin."""
    return {name: threat(name).to_json() for name in dict.fromkeys(names)}


UTILITY, FAIRNESS, INFORMATION, FIDELITY = "utility", "fairness", "information", "fidelity"
RECONSTRUCTION, LIST, ATTRIBUTE = "reconstruction", "list-reconstruction", "attribute"
RECONSTRUCTION_WITH_LABELS, ATTRIBUTE_WITH_LABELS = "reconstruction-with-labels", "attribute-with-labels"
LINKAGE, MEMBERSHIP, CLAIM = "linkage", "membership", "differential-privacy"
