"""What the studies of `ars` share. ε is in standard deviations of a latent; 1 stands for the paper's 50."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.studies.rows import Results, Row, Scored, attack_score, difference, lowest
from sfumato.studies.verdicts import Asked, Setting
from sfumato.workflow import Point

PAPERS_ATTACKER, AGNOSTIC, KNOWN, READ = "sdec-own-mask", "sdec-any-mask", "sdec-known-mask", "sdec-read-mask"
FIFTY, HUNDRED = 1.0, 2.0
"""What stands for the paper's ε = 50 and 100."""

EFFORTS: Mapping[str, Effort] = {
    "smoke": SMOKE,
    "cpu": replace(CPU, candidates=300),
    "full": replace(FULL, candidates=1000),
}
FACES: Mapping[str, Effort] = {
    **EFFORTS,
    "cpu": replace(CPU, attack_width=16, attack_steps=250, attack_renewals=6, candidates=300),
}
"""Noise for a face costs ten passes of a convolutional decoder, so an attacker does not draw it for every epoch."""
LIMIT = {"smoke": 1500}
SEEDS = {"smoke": (0,), "cpu": (0, 1, 2), "full": (0, 1, 2)}
FEW_FACES = {"celeba": "too few faces teach the encoder: its latents serve no task as well as the paper's"}
"""Data set → why its accuracies cannot be put to the paper's."""
NO_UNIT = "the paper gives ε no unit: its 50 and 100 may be more or less noise than our 1 and 2"
"""Why a likeness at one ε cannot be put to the paper's."""


def ours(variant: str, epsilon: float, few: Mapping[str, Any], **more: Any) -> Point:
    """One setting of `ars`; its name tells everything but the number of parties."""
    tag = "-".join(filter(None, (variant, *(f"{k}-{v}".replace(",", "-") for k, v in more.items() if k != "parties"))))
    return Point("ars", {"variant": variant, "epsilon": epsilon, **more, **few}, tag=tag)


def is_variant(result: Mapping[str, Any], variant: str) -> bool:
    """Whether a point is of this variant, or of this simple way on an encoder that has seen no label."""
    return not is_supervised(result) and bool(result["params"].get("variant", result["params"].get("way")) == variant)


def is_supervised(result: Mapping[str, Any]) -> bool:
    """Whether a point is a simple way on an encoder that was trained for the utility labels."""
    return bool(result["params"].get("learns") == "labels")


def published(results: Results) -> list[Mapping[str, Any]]:
    """The paper's own points, under a mask, by rising ε."""
    found = [r for r in results if is_variant(r, "published") and r["params"].get("masked", True)]
    return sorted(found, key=lambda r: float(r["params"]["epsilon"]))


def papers_epsilon(epsilon: float) -> str:
    """The column of the paper's tables for an ε of ours."""
    return f"ε = {50 * epsilon:g}"


def worst(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The lowest error of any attack on the records."""
    return lowest(s for s in result["attacks"] if s["metric"] == "mse")


def attackers(result: Mapping[str, Any], metric: str) -> list[tuple[str, Setting, Mapping[str, Any]]]:
    """The paper's attacker, where there is a mask, and the one of the lowest error: name, setting and score."""
    found: list[tuple[str, Setting, Mapping[str, Any] | None]] = [
        ("the paper's attacker", "paper", attack_score(result, PAPERS_ATTACKER, metric)),
        ("the worst attacker", "adaptive", attack_score(result, str(worst(result)["attack"]), metric)),
    ]
    return [(who, setting, score) for who, setting, score in found if score is not None]


def difference_row(name: str, a: Scored, b: Scored, asked: Asked | None = None) -> Row:
    """How much more the first score is, over the same victims."""
    value, interval = difference(a, b)
    score = a[1]
    metric = f"{score['metric']} difference"
    return Row(
        name, metric, score["better_for_owner"], None, value, interval, asked, score.get("n"), score.get("people")
    )
