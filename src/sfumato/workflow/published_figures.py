"""Which figures of an audit may leave with a release: none of a person and, of a dp release, none that is exact.

A promise of differential privacy is about the payload. Whatever was measured on the records themselves, without noise,
is outside of it. Of such a release all figures are therefore cut to two significant digits, intervals outwards, and no
number of people or records leaves. A gate reads the same figures, so that whoever verifies a release comes to the same
result as its owner.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score
from sfumato.core.threats import MEMBERSHIP, described
from sfumato.core.traits import Traits
from sfumato.core.usefulness import useless

DIGITS = 2
"""Significant digits of figures that stand beside a promise."""
_COUNTS = ("n", "people")
_EXACT = ("value", "baseline", "control", "own_control", "encoder_control", "leakage", "encoder_leakage", "score")
_INTERVALS = ("ci", "leakage_ci")
_OF_THE_OWNER = ("seconds", "id")
_FLOOR_METRICS = ("accuracy", "r2")


def seen_by_others(scores: Mapping[str, Any], promise: Guarantee) -> dict[str, Any]:
    """The scores of an audit as others may see them beside this promise: the same ones, if it is no dp promise."""
    if promise.kind != "dp":
        return dict(scores)
    return {
        **scores,
        "utility": [_cut(one) for one in scores["utility"]],
        "worst": {key: _cut(one) for key, one in scores["worst"].items()},
        "attacks": [_cut(one) for one in scores.get("attacks", ())],
        "exposure": {key: _groups(one) for key, one in scores.get("exposure", {}).items()},
        "skipped": [{**one, "reason": re.sub(r"\d[\d,.]*", "…", one["reason"])} for one in scores["skipped"]],
    }


def audit_of_release(scores: Mapping[str, Any], promise: Guarantee, traits: Traits) -> dict[str, Any]:
    """What ``release.json`` says of the audit."""
    seen = seen_by_others(scores, promise)
    primary = [score for score in seen["attacks"] if score["primary"]]
    tried = {(score["attack"], score["attack_version"]): score for score in primary}
    utility = [_figure(score) for score in seen["utility"]]
    return {
        "traits": dict(seen["traits"]),
        "audited": {name: seen["audited"][name] for name in ("sfumato", "weights")},
        "effort": {name: value for name, value in seen["effort"].items() if isinstance(value, int)},
        "utility": utility,
        "useless": list(useless(map(Score.from_json, utility), students=traits.synthetic)),
        "worst": {threat: _figure(score) for threat, score in seen["worst"].items()},
        "membership": [
            _figure(cut) for raw, cut in zip(scores["attacks"], seen["attacks"], strict=True) if _beside_bounds(raw)
        ],
        "floors": [_figure(s) for s in floors(seen["attacks"])],
        "exposure": {key: _of_nobody(one) for key, one in seen["exposure"].items()},
        "attacks": [
            {"attack": name, "version": version, "threat": score["threat"], "target": score["target"]}
            for (name, version), score in tried.items()
        ],
        "skipped": [dict(one) for one in seen["skipped"]],
        "threats": described(score["threat"] for score in primary),
    }


def _beside_bounds(score: Mapping[str, Any]) -> bool:
    """Whether a figure may stand beside what a promise leaves to attackers: a rate of true positives at few false ones
    needs so many people outside the data that one of them is a false one."""
    if score["threat"] != MEMBERSHIP or score["primary"]:
        return False
    rate = re.fullmatch(r"tpr-at-([\d.]+)-fpr", score["metric"])
    return rate is None or float(rate[1]) / 100 * int(score["n"]) / 2 >= 1.0


def floors(attacks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What follows from a utility label alone, by the metric that ranks and by the one that people read."""
    return [s for s in attacks if s.get("follows") and (s["primary"] or s["metric"] in _FLOOR_METRICS)]


def _figure(score: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in score.items() if name not in _OF_THE_OWNER}


def _of_nobody(exposed: Mapping[str, Any]) -> dict[str, Any]:
    """Groups and shares of people, without the persons who leak most."""
    return {
        "attack": exposed["attack"],
        "metric": exposed["metric"],
        "groups": [dict(group) for group in exposed["groups"]],
        "share_above": dict(exposed["share_above"]),
    }


def _groups(exposed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: exposed[name] for name in ("attack", "metric") if name in exposed},
        "groups": [_cut(group) for group in exposed["groups"]],
        **({"share_above": _cut(exposed["share_above"])} if "share_above" in exposed else {}),
    }


def _cut(figure: Mapping[str, Any]) -> dict[str, Any]:
    """A score, group or share without counts and without digits that would tell them."""
    kept = {name: value for name, value in figure.items() if name not in _COUNTS}
    for name in kept.keys() & {*_EXACT, "share"}:
        kept[name] = _rounded(kept[name], ROUND_HALF_EVEN)
    for name in kept.keys() & set(_INTERVALS):
        if kept[name] is not None:
            low, high = kept[name]
            kept[name] = [_rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING)]
    return kept


def _rounded(value: Any, way: str) -> Any:
    """A number, cut; anything else (a class name, nothing) as it is."""
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - DIGITS + 1), rounding=way))
