"""A lower bound of ε for the paper's noise layer, whose answers do not show what leaks: its gradients do.

Where all other records are blank, the gradient of the layers before the noise is exactly 0 in every step without the
record, and not 0 in a step that has drawn it. A record is drawn at least once in T steps of rate q with probability
1 − (1 − q)^T, so that is how often a run with it is told from a run without it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from sfumato.auditing.domain_records import heaviest
from sfumato.auditing.noise_layer_flaw import blank_batches
from sfumato.core.randomness import derive_seed
from sfumato.privacy.lower_bounds import epsilon_lower_bound

if TYPE_CHECKING:
    from sfumato.mechanisms.capabilities import LearnsByCounter

_FEWEST, _MOST = 200, 2000


def layer_bound(mechanism: LearnsByCounter, seed: int) -> tuple[float, float, int]:
    """The lower bound that runs with and without the heaviest record show, the most that so many could, and how many.

    Runs are as many as it takes to refute the claimed ε, within reason.
    """
    seed = derive_seed(seed, "noise layer")
    ask = next(ask for ask in mechanism.ledger_.plan if ask.kind == "sum" and ask.count > 1)
    runs = int(min(_MOST, max(_FEWEST, 20.0 * math.exp(min(mechanism.epsilon, 10.0)))))
    record = torch.as_tensor(heaviest(mechanism.schema_, 1))
    found = blank_batches(record, sigma=ask.noise, draws=runs, delta=mechanism.delta, seed=seed % 2**31)
    best = max(found, key=lambda finding: finding.bound)
    drawn = 1.0 - (1.0 - ask.rate) ** ask.count
    hits = int(np.random.default_rng(seed).binomial(best.hits, drawn))
    value = epsilon_lower_bound(hits, runs, best.alarms, runs, mechanism.delta)
    return value, epsilon_lower_bound(runs, runs, 0, runs, mechanism.delta), 2 * runs
