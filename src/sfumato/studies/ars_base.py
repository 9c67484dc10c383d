"""What the studies of `ars` share. ε is in standard deviations of a latent; 1 stands for the paper's 50."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.studies.rows import lowest
from sfumato.workflow import Point

PAPERS_ATTACKER, AGNOSTIC, KNOWN, READ = "sdec-own-mask", "sdec-any-mask", "sdec-known-mask", "sdec-read-mask"

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


def ours(variant: str, epsilon: float, few: Mapping[str, Any], **more: Any) -> Point:
    """One setting of `ars`; its name tells everything but the number of parties."""
    tag = "-".join(filter(None, (variant, *(f"{k}-{v}".replace(",", "-") for k, v in more.items() if k != "parties"))))
    return Point("ars", {"variant": variant, "epsilon": epsilon, **more, **few}, tag=tag)


def is_variant(result: Mapping[str, Any], variant: str) -> bool:
    """Whether a point is of this variant, or of this simple way."""
    return bool(result["params"].get("variant", result["params"].get("way")) == variant)


def worst(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The lowest error of any attack on the records."""
    return lowest(s for s in result["attacks"] if s["metric"] == "mse")
