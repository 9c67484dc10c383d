"""``synth-flaw``: the paper's noise layer does not keep the ε that it claims; a DP-SGD step does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sfumato import load_splits
from sfumato.auditing.noise_layer_flaw import Finding, blank_batches, natural_batches, sound_steps
from sfumato.core.errors import unknown
from sfumato.core.randomness import derive_seed
from sfumato.studies.base import Measurement
from sfumato.studies.rows import Row, bound_row
from sfumato.studies.synth import refuted

DELTA = 1e-5
OTHERS = 32
"""The paper's batch."""
DRAWS = {"smoke": 300, "cpu": 2000, "full": 2000}
RECORDS = {"smoke": 1, "cpu": 1, "full": 5}
"""Each among others of its own and with weights of its own; the weakest case is shown."""
_BLANK, _NATURAL, _SOUND = (1.0, 10.0, 100.0), (4.0, 16.0), (1.0, 4.0, 16.0)


def rows(
    *,
    data: str = "digits",
    scale: str = "cpu",
    limit: int = 1500,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **_: Any,
) -> list[Row]:
    """The lower bound of a step's true ε; the claimed one stands in the row's name. It needs no folder."""
    if scale not in DRAWS:
        raise unknown("scale", scale, DRAWS)
    pictures = torch.tensor(load_splits(data, limit=limit, seed=seed).owner.x)
    findings = []
    for number in range(RECORDS[scale]):
        chance = derive_seed(seed, STUDY.name, number)
        order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(chance))
        findings.append(_findings(pictures[order[:OTHERS]], pictures[order[OTHERS]][None], DRAWS[scale], chance))
        say(f"record {number + 1} of {RECORDS[scale]}: ε ≥ {max(finding.bound for finding in findings[-1]):.2f}")
    return [_row(same) for same in zip(*findings, strict=True)]


def _findings(others: torch.Tensor, record: torch.Tensor, draws: int, seed: int) -> list[Finding]:
    many: dict[str, Any] = {"draws": draws, "delta": DELTA, "seed": seed}
    found = [finding for sigma in _BLANK for finding in blank_batches(record, sigma=sigma, **many)]
    found += [finding for sigma in _NATURAL for finding in natural_batches(others, record, sigma=sigma, **many)]
    return found + [sound_steps(others, record, sigma=sigma, **many) for sigma in _SOUND]


def _row(same: tuple[Finding, ...]) -> Row:
    """One test at one noise over all records: the weakest refutation of the noise layer, and the most that a sound
    step shows."""
    sound = same[0].test == "best"
    shown = (max if sound else min)(same, key=lambda finding: finding.bound)
    asked = None if sound else refuted("synth-theorem-2", shown.bound, shown.claimed)
    n = 2 * shown.draws * len(same)
    return bound_row(_name(shown), shown.bound, asked=asked, n=n)


_TESTS = {
    "zero": "blank batch, gradient not zero",
    "span": "natural batch, gradient outside the others' span",
    "linear": "natural batch, linear test",
    "best": "natural batch, best test",
}


def _name(finding: Finding) -> str:
    return f"{finding.layer}, σ = {finding.sigma:g}, claimed ε = {finding.claimed:.4g}: {_TESTS[finding.test]}"


STUDY = Measurement(
    name="synth-flaw",
    family="synth",
    title="The noise layer's proof, counted",
    about=(
        "Counted: how often the gradients of one step tell a batch with a record from the batch without it. From that "
        "follows, with 95 % confidence, a lower bound of the step's ε, beside the claimed one in the row's name. As a "
        "check of the adversary, the same for a step of DP-SGD, which keeps its claim."
    ),
    claims=("synth-theorem-2",),
    data=("digits", "mnist"),
    run=rows,
    limits=dict.fromkeys(DRAWS, 1500),
)
