"""``synth-flaw``: the paper's noise layer does not keep the ε that it claims; a DP-SGD step does."""

from __future__ import annotations

import time
from typing import Any

import torch

from sfumato import load_splits
from sfumato.auditing.flaw import Finding, blank_batches, natural_batches, sound_steps
from sfumato.core.errors import unknown
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.studies.base import Row

NAME = "synth-flaw"
TITLE = "The noise layer's proof, counted"
STATEMENT = (
    "Theorem 2 (weight updates are as private as the noisy output) is false for every layer before the noise: the ε "
    "that gradients betray is above the one that is claimed. It stays below in a DP-SGD step with the same claim."
)
DELTA = 1e-5
OTHERS = 32
"""The paper's batch."""
DRAWS = {"smoke": 300, "cpu": 2000, "full": 2000}
SEEDS = {"smoke": 1, "cpu": 1, "full": 5}
_BLANK, _NATURAL, _SOUND = (1.0, 10.0, 100.0), (4.0, 16.0), (1.0, 4.0, 16.0)


def run(
    *, scale: str = "cpu", seed: int = 0, source: str = "digits", progress: Progress = no_progress
) -> dict[str, Any]:
    """The study's JSON; ``paper`` is the claimed ε of one step and ``ours`` the lower bound of the true one.

    A record is drawn for each seed, and the smallest bound over the seeds is shown.
    """
    if scale not in DRAWS:
        raise unknown("scale", scale, DRAWS)
    started, draws = time.perf_counter(), DRAWS[scale]
    seeds = list(range(seed, seed + SEEDS[scale]))
    pictures = torch.tensor(load_splits(source, limit=1500, seed=seed).owner.x)
    findings: list[list[Finding]] = []
    for number, one in enumerate(seeds):
        order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(one))
        others, record = pictures[order[:OTHERS]], pictures[order[OTHERS : OTHERS + 1]]
        many: dict[str, Any] = {"draws": draws, "delta": DELTA, "seed": one}
        found = [finding for sigma in _BLANK for finding in blank_batches(record, sigma=sigma, **many)]
        found += [finding for sigma in _NATURAL for finding in natural_batches(others, record, sigma=sigma, **many)]
        found += [sound_steps(others, record, sigma=sigma, **many) for sigma in _SOUND]
        findings.append(found)
        progress(number + 1, len(seeds), {"bound": max(finding.bound for finding in found)})
    return {
        "study": NAME,
        "data": source,
        "scale": scale,
        "seeds": seeds,
        "seconds": round(time.perf_counter() - started, 1),
        "statement": STATEMENT,
        "rows": [_row(same).to_json() for same in zip(*findings, strict=True)],
    }


def _row(same: tuple[Finding, ...]) -> Row:
    """One test at one noise over all seeds: a refutation has to come every time, and so has a bound that is kept."""
    bounds = [finding.bound for finding in same]
    sound = same[0].test == "best"
    return Row(
        name=_name(same[0]),
        metric="epsilon lower bound",
        better="lower",
        paper=same[0].claimed,
        ours=max(bounds) if sound else min(bounds),
        ci=(min(bounds), max(bounds)),
        holds=all(finding.refutes != sound for finding in same),
    )


_TESTS = {
    "zero": "blank batch, gradient not zero",
    "span": "natural batch, gradient outside the others' span",
    "linear": "natural batch, linear test",
    "best": "natural batch, best test",
}


def _name(finding: Finding) -> str:
    share = f"{finding.hits}/{finding.draws} with, {finding.alarms}/{finding.draws} without"
    return f"{finding.layer}, σ = {finding.sigma:g}: {_TESTS[finding.test]} ({share})"
