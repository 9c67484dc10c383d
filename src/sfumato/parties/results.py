"""What a run with several parties found, as it stands in ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class PartyResult:
    """One party: whether its representations were accepted, what it sent and got, what it learnt.

    ``status`` is ``shared``, ``trained`` (FedAvg) or ``excluded``; ``reason`` says why it was excluded, or why it
    reported nothing at the end. ``accuracy`` is that of the first utility label on its own held-out records.
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

    ``bytes_up`` left the parties, ``bytes_down`` reached them: serialised messages, counted as they passed.
    ``by_phase`` holds the same counts for each kind of message.
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
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShareResult:
        """Read what ``to_json`` gave."""
        return cls(**{**value, "parties": tuple(PartyResult(**party) for party in value["parties"])})

    @property
    def shared(self) -> tuple[str, ...]:
        """The parties whose representations were accepted."""
        return tuple(party.name for party in self.parties if party.status == "shared")


@dataclass(frozen=True)
class Round:
    """One round of federated averaging: accuracy after it, and the bytes of training up to and with it."""

    number: int
    accuracy: float | None
    bytes_up: int
    bytes_down: int


@dataclass(frozen=True)
class FedResult:
    """Federated averaging by Flower's own strategy on the same parties.

    ``bytes_up`` and ``bytes_down`` are those of training; the messages that only measure the accuracy of each round
    are counted apart, in ``bytes_evaluation``. ``epsilon`` is Flower's accountant's for the model updates
    (δ = ``delta``, one party added or removed), None without noise.
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
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FedResult:
        """Read what ``to_json`` gave."""
        parties = tuple(PartyResult(**party) for party in value["parties"])
        return cls(**{**value, "parties": parties, "rounds": tuple(Round(**one) for one in value["rounds"])})
