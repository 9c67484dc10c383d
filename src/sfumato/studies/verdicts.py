"""From figures to verdicts: of one row, and of one claim over all rows that speak of it.

A verdict needs three things: a statement of the paper (``Asked``), a scale that warrants it, and an interval that lies
wholly on one side of what was asked. Where one is missing, nothing is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.studies.papers import Claim

HOLDS = "holds"
FAILS = "does not hold"
ADAPTIVE = "holds in the paper's setting, but not under an adaptive attacker"
FLAWED = "proof does not go through"
TESTED = "holds, shown by a test"
OPEN = "not settled at this scale"
STATUSES = (HOLDS, ADAPTIVE, FAILS, FLAWED, TESTED, OPEN)

Setting = Literal["paper", "adaptive"]


@dataclass(frozen=True)
class Asked:
    """What a claim of a paper asks of a figure: to lie above, or below, a bound.

    ``setting`` is whose attacker the figure is from: the paper's own, or the worst of the suite. ``unless`` says why
    this run cannot settle it, where it cannot ("the original network errs 37 %, the paper's 20 %").
    """

    claim: str
    side: Literal["above", "below"]
    bound: float
    setting: Setting = "paper"
    unless: str = ""


def verdict(asked: Asked | None, ci: tuple[float, float] | None, scale: str) -> str | None:
    """What a figure with this interval says; None where no claim was put to it."""
    if asked is None:
        return None
    if scale == "smoke" or asked.unless or ci is None:
        return OPEN
    wholly_above, wholly_below = ci[0] > asked.bound, ci[1] < asked.bound
    held, refuted = (wholly_above, wholly_below) if asked.side == "above" else (wholly_below, wholly_above)
    return HOLDS if held else FAILS if refuted else OPEN


@dataclass(frozen=True)
class Status:
    """What is known of a claim on one data set, and the stored row that decided it (None: nothing was run yet).

    ``remark`` is what was found beside it, where one of the two settings is not settled or was not measured.
    """

    status: str
    data: str
    result: Mapping[str, Any] | None = None
    row: Mapping[str, Any] | None = None
    remark: str = ""


Found = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A stored result and one of its rows."""
_BROKEN = "an adaptive attacker breaks it"
_UNMEASURED = "the paper's own setting was not measured"
_KEPT = "it holds in the paper's setting"


def statuses(claim: Claim, results: Iterable[Mapping[str, Any]]) -> list[Status]:
    """The status of a claim on every data set on which a stored study put it to a figure.

    A claim that is put to no study is one that a test of this repository shows, or refutes (``flaw``).
    """
    found: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for result in results:
        for row in result["rows"]:
            if row.get("claim") == claim.id:
                found.setdefault(result["data"], []).append((result, row))
    if not found:
        return [Status(FLAWED if claim.flaw else TESTED if claim.check and not claim.studies else OPEN, "")]
    return [_status(claim, data, rows) for data, rows in found.items()]


def _status(claim: Claim, data: str, rows: list[Found]) -> Status:
    """The paper's own setting comes first: what an adaptive attacker breaks may hold for the paper's own.

    An adaptive attacker that fails settles the claim alone, as it is the best of a suite that has the paper's; one that
    succeeds says nothing of the paper's setting.
    """
    theirs = [one for one in rows if one[1]["setting"] == "paper"]
    worst = [one for one in rows if one[1]["setting"] == "adaptive"]

    def first(among: list[Found], verdict: str) -> Found | None:
        return next((one for one in among if one[1]["verdict"] == verdict), None)

    if claim.flaw:
        return Status(FLAWED, data, *rows[0])
    refuted, unsettled = first(theirs, FAILS), first(theirs, OPEN)
    broken, in_doubt = first(worst, FAILS), first(worst, OPEN)
    if refuted:
        return Status(FAILS, data, *refuted)
    if unsettled:
        return Status(OPEN, data, *unsettled, _BROKEN if broken else "")
    if broken and theirs:
        return Status(ADAPTIVE, data, *broken)
    if broken:
        return Status(OPEN, data, *broken, f"{_BROKEN}; {_UNMEASURED}")
    if in_doubt:
        return Status(OPEN, data, *in_doubt, _KEPT if theirs else _UNMEASURED)
    return Status(HOLDS, data, *rows[0])
