"""Results of a run with several parties, as stored in ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.run_folder import atomic

RIGHT = "right"
"""File in a party's folder of a run: which of its held-out records the model gets right, in their order."""


@dataclass(frozen=True)
class PartyResult:
    """One party: whether its representations were accepted, its traffic, and its accuracy.

    ``status`` is ``shared``, ``trained`` (FedAvg) or ``excluded``. ``reason`` says why the party was excluded, or why
    it reported nothing at the end. ``accuracy`` is for the first utility label, on the party's own held-out records.
    """

    name: str
    status: str
    reason: str = ""
    rows: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    accuracy: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ShareResult:
    """A run of publish, share and learn. ``accuracy`` is the parties' mean, weighted by held-out records.

    ``bytes_up`` counts the serialised messages sent by the parties, ``bytes_down`` those sent to them, and
    ``by_phase`` both for each kind of message.
    """

    mode: str
    initiator: str
    encoder: str
    parties: tuple[PartyResult, ...]
    accuracy: float | None
    bytes_up: int
    bytes_down: int
    by_phase: Mapping[str, Mapping[str, int]]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShareResult:
        """Read what ``to_json`` returned."""
        return cls(**{**value, "parties": tuple(PartyResult(**party) for party in value["parties"])})

    @property
    def shared(self) -> tuple[str, ...]:
        """The parties whose representations were accepted."""
        return tuple(party.name for party in self.parties if party.status == "shared")


@dataclass(frozen=True)
class Round:
    """One round of federated averaging: the accuracy after it, and the training traffic up to and including it."""

    number: int
    accuracy: float | None
    bytes_up: int
    bytes_down: int


@dataclass(frozen=True)
class FedResult:
    """Federated averaging on the same parties, by Flower's own strategy.

    ``bytes_up`` and ``bytes_down`` count training only; ``bytes_evaluation`` counts the messages that measure the
    accuracy of each round. ``epsilon`` comes from Flower's accountant and holds for the model updates (δ = ``delta``,
    one party added or removed); it is None without noise.
    """

    strategy: str
    rounds: tuple[Round, ...]
    parties: tuple[PartyResult, ...]
    accuracy: float | None
    bytes_up: int
    bytes_down: int
    bytes_evaluation: int
    epsilon: float | None
    delta: float | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FedResult:
        """Read what ``to_json`` returned."""
        parties = tuple(PartyResult(**party) for party in value["parties"])
        return cls(**{**value, "parties": parties, "rounds": tuple(Round(**one) for one in value["rounds"])})


def write_right(out: Path, right: npt.NDArray[np.bool_], number: int = 0) -> None:
    """Keep which held-out records are right (after round ``number`` of federated averaging)."""
    out.mkdir(parents=True, exist_ok=True)
    with atomic(out / f"{RIGHT}-{number}.npy") as part, part.open("wb") as file:
        np.save(file, right, allow_pickle=False)


def read_right(folder: Path, number: int = 0) -> npt.NDArray[np.bool_]:
    """Which held-out records of all parties are right, party after party, from a simulation's folder ``out``."""
    parties = sorted((folder / "parties").iterdir(), key=lambda one: int(one.name.rpartition("-")[2]))
    files = [file for party in parties for file in sorted((party / "shared").glob(f"*/{RIGHT}-{number}.npy"))]
    return np.concatenate([np.load(file, allow_pickle=False) for file in files])
