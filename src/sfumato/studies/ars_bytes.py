"""``ars-table1``: accuracy and bytes on the wire, counted, beside federated averaging on the same parties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sfumato import load_splits
from sfumato.auditing import CPU, SMOKE, audit
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.parties import FedResult, ShareResult, fedavg, simulate
from sfumato.studies.base import Measurement
from sfumato.studies.rows import Row, plain_row

_SECURE_ML = 0.934
"""The paper quotes SecureML; nothing of it is run here."""
_ARS, _DPFL = 0.928, 0.92
_MEGABYTE = 1e6
_EACH = {"smoke": 150, "cpu": 10_000, "full": 10_000}
_ROUNDS = {"smoke": 2, "cpu": 8, "full": 20}
_THRIFTY = {"latent": 64, "keep": 8, "epsilon": 0.3}
"""A hardened release of eight numbers a record, each of which travels in four bits."""
_DP: dict[str, Any] = {"noise": 1.0, "clip": 1.0}


def rows(
    *, data: str = "mnist", scale: str = "cpu", seed: int = 0, say: Callable[[str], None] = lambda _: None, **_: Any
) -> list[Row]:
    """Five parties. Bytes are those of whole serialised messages in both directions, counted as they passed."""
    common: dict[str, Any] = {"parties": 5, "utility": ["digit"], "private": [], "each": _EACH[scale]}
    common |= {"seed": seed, "say": say}
    few = {"epochs": 2} if scale == "smoke" else {}
    thrifty = simulate(data, params={**_THRIFTY, **few}, wire="uint4", **common)
    whole = simulate(data, params=few, wire="uint8", **common)
    averaged = fedavg(data, rounds=_ROUNDS[scale], **common)
    private = fedavg(data, rounds=_ROUNDS[scale], **_DP, **common)
    found = [
        *_shared("ars, hardened, ε = 0.3, 8 numbers of 4 bits", thrifty),
        _error(data, scale, seed, few),
        *_shared("ars, hardened, ε = 1, 64 numbers of 8 bits", whole),
    ]
    for name, result in (("FedAvg", averaged), ("DP-FedAvg, noise 1, clip 1", private)):
        for one in result.rounds:
            paper = _DPFL if result is private else None
            found.append(_accuracy(f"{name}, round {one.number}: accuracy", one.accuracy or 0.0, paper))
            found.append(_megabytes(f"{name}, round {one.number}: megabytes so far", one.bytes_up + one.bytes_down))
    found.append(_cheaper(thrifty, averaged))
    found.append(_accuracy("SecureML: accuracy, quoted from the paper", _SECURE_ML, _SECURE_ML))
    return found


def _shared(name: str, result: ShareResult) -> list[Row]:
    return [
        _accuracy(f"{name}: accuracy", result.accuracy or 0.0, _ARS),
        _megabytes(f"{name}: megabytes", result.bytes_up + result.bytes_down),
    ]


def _error(data: str, scale: str, seed: int, few: dict[str, Any]) -> Row:
    """What the few numbers still give away: cheap is not safe, and the other setting's figure is in ars-figure4."""
    shares = [5 / 6, 1 / 6] if data == "mnist" else None
    splits = load_splits(
        data, utility=["digit"], private=[], shares=shares, limit=1500 if scale == "smoke" else None, seed=seed
    )
    effort = replace(SMOKE if scale == "smoke" else CPU, threats=("reconstruction",))
    found = audit(ARS(parties=5, seed=seed, **{**_THRIFTY, **few}).fit(splits.owner), splits, effort=effort, seed=seed)
    worst = min((s for s in found.attacks if s.metric == "mse"), key=lambda s: s.value)
    name = f"ars, hardened, ε = 0.3, 8 numbers: error of the worst attacker (mean record: {worst.baseline:.3f})"
    return Row(name, "mse", "higher", None, worst.value, worst.ci)


def _cheaper(ours: ShareResult, theirs: FedResult) -> Row:
    """Our bytes over those of FedAvg's first round that is at least as accurate (its last one, if none is)."""
    enough = [one for one in theirs.rounds if (one.accuracy or 0.0) >= (ours.accuracy or 0.0)]
    one = enough[0] if enough else theirs.rounds[-1]
    ratio = (ours.bytes_up + ours.bytes_down) / (one.bytes_up + one.bytes_down)
    which = "first as accurate" if enough else "the last; none is as accurate"
    name = f"bytes of ars over FedAvg's up to round {one.number} ({which})"
    return plain_row(name, "ratio", "lower", ratio, holds=ratio < 1.0)


def _megabytes(name: str, count: int) -> Row:
    return plain_row(name, "MB", "lower", count / _MEGABYTE)


def _accuracy(name: str, value: float, paper: float | None) -> Row:
    return plain_row(name, "accuracy", "higher", value, paper=paper)


STUDY = Measurement(
    name="ars-table1",
    family="ars-bytes",
    title="Accuracy and bytes beside federated averaging, Table 1",
    about="ars needs fewer bytes than FedAvg and SecureML at a similar accuracy.",
    data=("mnist", "digits"),
    run=rows,
)
