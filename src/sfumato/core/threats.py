"""The threats, in one place: what is asked, by which metric, and how a person should read the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
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

    @property
    def explanation(self) -> str:
        """The sentence, with baseline and control."""
        ends = [
            f"the baseline {self.baseline}" if self.baseline else "",
            self.control and f"the control {self.control}",
        ]
        said = "; ".join(end for end in ends if end)
        return f"{self.sentence} {said[0].upper()}{said[1:]}." if said else self.sentence

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


_RAW = "attacks a release with no defence"
_KNOWN: dict[str, Threat] = {}


def register(threat: Threat) -> Threat:
    """Make a threat known, after those that are. Of two with one name the first counts."""
    return _KNOWN.setdefault(threat.name, threat)


def threat(name: str) -> Threat:
    """The threat of that name; one that nobody has registered says only that."""
    unknown = Threat(name, name, f"Attacks of the kind “{name}”.", "", "lower", "", "")
    return _KNOWN.get(name.partition(":")[0], unknown)


def title(key: str) -> str:
    """ "attribute:sex" as "Attribute (sex)"."""
    name, _, target = key.partition(":")
    return f"{threat(name).title} ({target})" if target else threat(name).title


def rank(key: str) -> tuple[int, str]:
    """The order of importance of a threat or of a threat against a label; those of plugins come last."""
    name = key.partition(":")[0]
    return (list(_KNOWN).index(name) if name in _KNOWN else len(_KNOWN), key)


def described(names: Iterable[str]) -> dict[str, Any]:
    """The threats of those names as JSON, to be stored with scores: a reader need not have the plugin."""
    return {name: threat(name).to_json() for name in dict.fromkeys(names)}


UTILITY, INFORMATION, FIDELITY = "utility", "information", "fidelity"
RECONSTRUCTION, LIST, ATTRIBUTE = "reconstruction", "list-reconstruction", "attribute"
MEMBERSHIP, CLAIM = "membership", "differential-privacy"

for _threat in (
    Threat(
        UTILITY,
        "Utility",
        "What others can still do: a classifier reads the allowed label from the release.",
        "accuracy",
        "higher",
        "always guesses the most frequent class",
        "reads the raw record",
        graded=False,
    ),
    Threat(
        RECONSTRUCTION,
        "Reconstruction",
        "An adversary who holds other records of the same kind learns to turn the release back into the record.",
        "mse",
        "higher",
        "always answers the mean record",
        _RAW,
        verb="rebuilds records with",
    ),
    Threat(
        LIST,
        "List reconstruction",
        "A message holds d records, and an adversary who cannot tell which one it was sent for may name d of them: "
        "the best guess counts.",
        "mse",
        "higher",
        "names d typical records without the message",
        "attacks messages with no secret rotation",
        verb="rebuilds records in the best of its {d} guesses with",
        aim="records by a list of d guesses",
    ),
    Threat(
        ATTRIBUTE,
        "Attribute",
        "An adversary learns to read a private label from the release. Advantage is how much more often it is right "
        "than a guesser.",
        "advantage",
        "lower",
        "always guesses the most frequent class",
        _RAW,
        verb="reads the private label {target} with",
        aim="the private label {target}",
    ),
    Threat(
        "reidentification",
        "Re-identification",
        "An adversary says which known record a released one belongs to; the rate is how often that is right.",
        "rate",
        "lower",
        "picks a candidate at random",
        _RAW,
        verb="links released records to known ones with",
    ),
    Threat(
        "row",
        "Which row",
        "An adversary who is given the d records behind a message says which of them it was sent for; the rate is how "
        "often that is right.",
        "rate",
        "lower",
        "gets 1/d",
        "attacks messages with no secret rotation",
        verb="tells the record from the decoys in its message with",
        attack="row-naming",
        aim="which row is the record",
    ),
    Threat(
        "result",
        "Result",
        "Does the cloud learn the result that it computes? An adversary reads the utility label from the message and "
        "from what the cloud makes of it. Advantage is how much more often it is right than a guesser.",
        "advantage",
        "lower",
        "always guesses the most frequent class",
        _RAW,
        verb="reads the result {target} with",
        attack="result-reading",
        aim="result of {target}",
    ),
    Threat(
        "key",
        "Key",
        "An adversary estimates the secret direction in which the record was turned. The error is an angle between 0 "
        "and π; where opposite directions count as one, at most π/2.",
        "angle",
        "higher",
        "guesses uniformly and errs by π/2 on average",
        "attacks messages with no secret rotation",
        verb="estimates the secret direction with",
        attack="key-guessing",
        aim="the key",
    ),
    Threat(
        "mask",
        "Mask",
        "An adversary says which dimensions of its representations a party perturbs. The overlap is the share that it "
        "gets right.",
        "overlap",
        "lower",
        "tosses a coin and gets half",
        "is told the mask",
    ),
    Threat(
        MEMBERSHIP,
        "Membership",
        "An adversary who sees the synthetic records and holds other real ones says which of the records shown to it "
        "the model was learnt from. Advantage is 2·AUROC − 1: how much more often a member looks more like one than a "
        "stranger does.",
        "advantage",
        "lower",
        "guesses",
        "attacks a release of the owner’s records themselves",
        verb="tells the owner's records from others with",
    ),
    Threat(
        CLAIM,
        "Differential privacy",
        "An auditor who sees every noisy answer that the method was given tells two data sets apart that differ in one "
        "record. The figure is the ε that any honest claim must reach, with 95 % confidence: above the claimed ε it "
        "refutes the claim, below it it proves nothing. The interval ends at the claim.",
        "epsilon-lower-bound",
        "lower",
        "",
        "is the most that so many transcripts could have shown",
        attack="canary",
        graded=False,
    ),
    Threat(
        INFORMATION,
        "Mutual information",
        "How many nats the release and a label share: an estimate without an attacker, so it ranks nothing and bounds "
        "nothing.",
        "nats",
        "lower",
        "is the estimate for shuffled labels, the error that chance alone makes",
        "",
        graded=False,
    ),
    Threat(
        FIDELITY,
        "Fidelity",
        "How much the synthetic records are like real ones that the model has not seen; it ranks nothing.",
        "",
        "higher",
        "is records drawn uniformly from the domain",
        "is the owner’s records themselves",
        graded=False,
    ),
):
    register(_threat)
OURS = frozenset(_KNOWN)
"""The threats that sfumato brings; others come from plugins."""
