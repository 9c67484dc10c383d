"""FedAvg and DP-FedAvg with Flower's own strategies: the baseline for sharing representations."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from flwr.serverapp import NeighboringRelation, PrivacyConfig, RdpAccountant, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg, Strategy

from sfumato.core.errors import DataError
from sfumato.core.randomness import derive_seed
from sfumato.parties.flower_records import config
from sfumato.parties.local_training import first_arrays
from sfumato.parties.participants import Roll
from sfumato.parties.party_folder import SIMULATED
from sfumato.parties.results import FedResult, PartyResult, Round
from sfumato.parties.run_terms import Terms
from sfumato.parties.weight_precision import PreciseGrid

DELTA = 1e-5


def average(roll: Roll, terms: Terms) -> FedResult:
    """Run ``terms.rounds`` rounds on all present parties; with ``terms.noise`` the server clips and adds noise."""
    started = time.monotonic()
    hello = next(iter(roll.members.values()))
    grid, parties = roll.grid, len(roll.present)
    grid.only = list(roll.present)
    plain = FedAvg(
        min_train_nodes=parties,
        min_evaluate_nodes=parties,
        min_available_nodes=parties,
        weighted_by_key="one" if terms.noise > 0 else "num-examples",  # the noise assumes equal weights
    )
    if os.environ.get(SIMULATED):  # only in experiments: noise that protects someone must not be repeatable
        np.random.seed(derive_seed(terms.seed, "fedavg", "noise") % 2**32)  # Flower draws its noise from numpy
    strategy: Strategy = plain
    accountant = None
    if terms.noise > 0:
        accountant = RdpAccountant(
            PrivacyConfig(DELTA, parties, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION)
        )
        strategy = DifferentialPrivacyServerSideFixedClipping(
            plain, terms.noise, terms.clip, parties, accountant=accountant
        )
    settings = {"epochs": terms.epochs, "batch": terms.batch, "rate": terms.rate, "wire": terms.wire}
    traffic: list[tuple[int, int]] = []

    def note(_number: int, _arrays: Any) -> None:
        traffic.append((grid.total(grid.up, kind="train"), grid.total(grid.down, kind="train")))

    first = first_arrays(hello.size, len(next(iter(hello.utility.values()))), terms.seed)
    shapes = {name: tuple(array.shape) for name, array in first.items()}
    found = strategy.start(
        grid if terms.wire == "float32" else PreciseGrid(grid, terms.wire, shapes),
        first,
        terms.rounds,
        terms.timeout,
        train_config=config(settings),
        evaluate_config=config({"wire": terms.wire}),
        evaluate_fn=note,
    )
    accuracy = {
        number: float(metrics["accuracy"])  # type: ignore[arg-type]
        for number, metrics in found.evaluate_metrics_clientapp.items()
    }
    if not accuracy:
        raise DataError("no party answered, so nothing was trained: see the parties' own logs for the reason.")
    rounds = tuple(
        Round(number, accuracy.get(number), *traffic[number])
        for number in range(1, min(len(traffic), terms.rounds + 1))
    )
    return FedResult(
        strategy="dp-fedavg" if terms.noise > 0 else "fedavg",
        rounds=rounds,
        parties=tuple(
            PartyResult(
                name=roll.name(node),
                status="trained" if node in roll.present else "excluded",
                reason=roll.excluded.get(node, ""),
                rows=roll.members[node].rows if node in roll.members else 0,
                bytes_up=grid.total(grid.up, kind="train", node=node),
                bytes_down=grid.total(grid.down, kind="train", node=node),
            )
            for node in (*roll.present, *roll.excluded)
        ),
        accuracy=accuracy[max(accuracy)],
        bytes_up=grid.total(grid.up, kind="train"),
        bytes_down=grid.total(grid.down, kind="train"),
        bytes_evaluation=grid.total(grid.up, kind="evaluate") + grid.total(grid.down, kind="evaluate"),
        epsilon=None if accountant is None else float(accountant.get_epsilon(DELTA)),
        delta=DELTA if terms.noise > 0 else None,
        seconds=round(time.monotonic() - started, 3),
    )
