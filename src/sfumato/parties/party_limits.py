"""What a party accepts from a server and an initiator: a floor in its own units, and a range for every setting.

The floor is a *signal*: the width of what leaves of a record over the square of its noise, h / ε². Hardened ``ars``
keeps every record's signal-to-noise ratio below it, whatever the encoder (``mechanisms.ars.hardened``), so that at most
0.72 · h / ε² bits leave of a record. Signals of several runs add up: independent noise averages out in exactly this
unit. ε alone is no floor, because 4,096 numbers with ε on each are one number with ε / 64.

No answer depends on a record or a private label, so a refusal tells a server nothing but this party's terms.
"""

from __future__ import annotations

import fcntl
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.errors import UsageError, unknown
from sfumato.core.run_folder import read_json, write_json

Accepted = tuple[float, float] | str | bool
"""From a low to a high number, or one value only."""

LEAST_EPSILON = 1.0
MOST_SIGNAL = 64.0
"""The defaults of ``ars``, 64 numbers with ε = 1: what its audits measured. Once."""
VARIANT = "hardened"
ACCEPTS: Mapping[str, Accepted] = {
    "latent": (1, 1024), "keep": (0, 1024), "n": (10, 100), "masked": True, "strength": (0.1, 10.0),
    "rate": (1e-3, 1e-2), "epochs": (5, 200), "batch": (16, 1024),
    "architecture": "auto", "likelihood": "auto", "gamma": (0.1, 10.0), "kappa": (0.0, 100.0),
    "lipschitz": (0.01, 100.0), "budget": (300.0, 1e9), "divergence": "kl", "beta": (0.0, 0.3),
    "steps": (1000, 100_000), "adversary_steps": (8, 20),
}  # fmt: skip
"""Not weaker than the mechanisms' defaults, and not many times their work."""
SENT = "sent"
"""Folder beside the party's secret with the signal that left under each encoder."""


@dataclass(frozen=True)
class PartyLimits:
    """``variant`` None accepts each; a setting that ``accepts`` does not name may have any value."""

    least_epsilon: float
    most_signal: float
    variant: str | None
    accepts: Mapping[str, Accepted]

    @classmethod
    def chosen(cls, choices: Mapping[str, Any]) -> PartyLimits:
        """The limits in a ``party.toml``; a ``seed`` makes it an experiment, in which only what is named is limited."""
        safe = cls(LEAST_EPSILON, MOST_SIGNAL, VARIANT, ACCEPTS)
        default = cls(0.0, math.inf, None, {}) if "seed" in choices else safe
        return cls(
            float(choices.get("least_epsilon", default.least_epsilon)),
            float(choices.get("most_signal", default.most_signal)),
            choices.get("variant", default.variant),
            {**default.accepts, **{name: _accepted(name, given) for name, given in choices.get("accepts", {}).items()}},
        )

    def check(self, offered: Mapping[str, Any], name: str) -> None:
        """Raise ``UsageError`` for settings that are weaker than this party's own, or not in its ranges."""
        for setting, value in offered.items():
            accepted = self.accepts.get(setting)
            if accepted is not None and not _is_accepted(value, accepted):
                raise UsageError(
                    f"{setting}={value} is not what {name} accepts, {_said(accepted)} (see its party.toml)."
                )

    def check_noise(self, epsilon: float, width: int, variant: str, name: str) -> None:
        """Raise ``UsageError`` for less noise than this party's floor, or another variant."""
        if self.variant not in (None, variant):
            raise UsageError(f"variant={variant} is not the one that {name} requires, {self.variant}.")
        if not epsilon >= self.least_epsilon:  # NaN is refused, too
            raise UsageError(f"epsilon={epsilon:g} is below least_epsilon={self.least_epsilon:g} of {name}.")
        if not signal(width, epsilon) <= self.most_signal:
            raise UsageError(
                f"{width} numbers with epsilon={epsilon:g} have a signal of {signal(width, epsilon):g}, above "
                f"most_signal={self.most_signal:g} of {name}: fewer numbers or more noise."
            )


def signal(width: int, epsilon: float) -> float:
    """h / ε²: the most signal, in units of the noise, with which a record can leave."""
    return width / epsilon**2 if epsilon > 0.0 else math.inf


def spend(folder: Path, release: str, amount: float, limits: PartyLimits, name: str) -> None:
    """Note that the records leave with this signal, or raise ``UsageError`` if all runs together pass the limit.

    ``release`` names encoder and secret: under the same ones records leave as they did before, which adds nothing. Runs
    that ask at once take turns.
    """
    notes = folder / SENT
    notes.mkdir(exist_ok=True)
    with (notes / ".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        left = {note.stem: float(read_json(note)["signal"]) for note in notes.glob("*.json")}
        total = math.fsum({release: amount, **left}.values())
        if not total <= limits.most_signal:
            raise UsageError(
                f"with this run a signal of {total:g} would have left {name}, above most_signal="
                f"{limits.most_signal:g}: its records were shared before, and noise averages out. Raise most_signal in "
                "party.toml if that may be."
            )
        if release not in left:
            write_json(notes / f"{release}.json", {"signal": amount})


def tested_once(folder: Path, release: str, name: str) -> None:
    """Note that a classifier is tested under this encoder, or raise ``UsageError`` if one was, in whatever run."""
    note = folder / SENT / f"{release}.tested"
    try:
        note.parent.mkdir(exist_ok=True)
        note.touch(0o600, exist_ok=False)
    except FileExistsError:
        raise UsageError(
            f"{name} has tested a classifier under this encoder before, and every test tells exact figures about its "
            "held-out records: start a run with a new encoder."
        ) from None


def check_limits(choices: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for limits in a ``party.toml`` that are none."""
    for key in ("least_epsilon", "most_signal"):
        if not choices.get(key, 0.0) >= 0.0:
            raise UsageError(f"party.toml: {key} must be a number from 0 on.")
    if choices.get("variant", VARIANT) not in (VARIANT, "published"):
        raise unknown("variant in party.toml", choices["variant"], (VARIANT, "published"))
    for setting in choices.get("accepts", {}):
        if setting not in ACCEPTS:
            raise unknown("setting in [accepts] of party.toml", setting, ACCEPTS)
    PartyLimits.chosen(choices)


def _accepted(setting: str, given: Any) -> Accepted:
    """One value, or [low, high]."""
    if isinstance(given, list) and len(given) == 2 and all(_is_number(each) for each in given) and given[0] <= given[1]:
        return float(given[0]), float(given[1])
    if _is_number(given):
        return float(given), float(given)
    if isinstance(given, (str, bool)):
        return given
    raise UsageError(f"party.toml: [accepts] {setting} must be a value or [low, high].")


def _is_accepted(value: Any, accepted: Accepted) -> bool:
    if isinstance(accepted, tuple):
        return _is_number(value) and accepted[0] <= value <= accepted[1]
    return bool(value == accepted)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _said(accepted: Accepted) -> str:
    return f"{accepted[0]:g} … {accepted[1]:g}" if isinstance(accepted, tuple) else str(accepted)
