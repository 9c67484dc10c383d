"""What a mechanism may be able to do beyond releasing. An audit asks for a capability, never for a class or a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Opened, Participant, Query

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from sfumato.core.guarantee import Guarantee
    from sfumato.core.origin import Origin
    from sfumato.core.schema import Schema
    from sfumato.mechanisms.ars.column_blocks import Block
    from sfumato.mechanisms.halves import Halves
    from sfumato.mechanisms.synth.methods.method import Method
    from sfumato.privacy.discrete_gaussian import Noise
    from sfumato.privacy.ledger import Ledger
    from sfumato.privacy.query_counter import Records


@runtime_checkable
class Classifies(Protocol):
    """Has a cloud half that reads utility labels from a payload: the first one, or all of them."""

    def predict(self, payload: FloatArray) -> FloatArray | None:
        """Class scores (N, Σ classes), label by label (``Schema.by_label``); None where there is no classifier."""


@runtime_checkable
class Answers(Protocol):
    """Gets its answer back encrypted: only the owner can read what the cloud computed."""

    def answer(self, data: Dataset, *, seed: int | None = None) -> FloatArray:
        """Class scores (N, Σ classes), label by label, after the whole round trip."""


@runtime_checkable
class HasEncoder(Protocol):
    """Runs a network on the device that everybody knows, attackers included."""

    def public_encoder(self) -> nn.Module | None:
        """The network from record to payload, before any noise; None where this setting keeps it secret."""


@runtime_checkable
class HasDecoder(Protocol):
    """Comes with a public decoder: a receiver can look at the payload as a record."""

    def decode(self, payload: FloatArray) -> FloatArray | None:
        """The payload as records (N, *shape) in [0, 1]; None where this setting has no way back."""


@runtime_checkable
class HasCloud(Protocol):
    """Has a public network that works on the payload away from the device."""

    def public_cloud(self) -> nn.Module:
        """That network."""


@runtime_checkable
class HasHalves(Protocol):
    """Can be shipped: networks for the device and for the receiver that draw nothing by themselves."""

    def halves(self) -> Halves:
        """The halves; a ``UsageError`` says why these settings have none."""


@runtime_checkable
class Keyed(Protocol):
    """Protects records with secrets (a key, a mask …) that an attacker may try to find."""

    def secrets(self, data: Dataset, *, seed: int) -> Mapping[str, npt.NDArray[np.floating]]:
        """The secrets behind ``release(data, seed=seed)`` by name, one row a record; for the scorer alone."""


@runtime_checkable
class Rotates(Protocol):
    """Turns d rows of features by a secret orthogonal key, and turns the cloud's answer back."""

    def opened(self, data: Dataset, *, seed: int) -> Opened:
        """The release of ``data`` for this seed, with its keys and with who stands in each message."""

    def visits(self, batches: Sequence[Dataset], *, pool: Dataset | None = None, seed: int) -> tuple[Opened, ...]:
        """What one device makes of these batches, one after the other; the first is ``opened`` for this seed.

        With ``pool`` decoys come from there, and positions from N on are the pool's.
        """

    def read(self, sent: Opened, keys: FloatArray | None = None) -> FloatArray:
        """Class scores, label by label, of what the cloud makes of ``sent``, read with its keys or with others."""


@runtime_checkable
class HasParticipants(Protocol):
    """Is run by several parties under secret masks, so that an attacker may be one of them."""

    @property
    def turns(self) -> int:
        """How many parties release records by turns, each under its own mask; 1 if all release a part of each."""

    def participant(self, data: Dataset, *, seed: int) -> Participant | None:
        """Somebody with ``data`` as a further party, who may choose its masks; None in a setting without masks."""


@runtime_checkable
class HasBlocks(Protocol):
    """Tells what each of several parties holds of a record."""

    blocks_: tuple[Block, ...]
    """One for each party, or a single one where each holds whole records: every K-th of the owner's."""


@runtime_checkable
class HasDevice(Protocol):
    """Makes masks or noise from a secret that its device keeps, so that an attacker may use the same device."""

    def same_device(self, *, seed: int) -> Query | None:
        """The device behind ``release(data, seed=seed)``, for records of somebody else; None if it keeps no secret."""


@runtime_checkable
class Repeats(Protocol):
    """Keeps something secret from one release of a record to the next."""

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        """Further payloads of the same records, as their own device would make them one after the other."""


@runtime_checkable
class Samples(Protocol):
    """Draws synthetic records."""

    def sample(self, rows: int, *, given: Mapping[str, str] | None = None, seed: int | None = None) -> Dataset:
        """``rows`` synthetic records with their labels; ``given`` fixes a class: {"digit": "3"}."""

    def spent(self) -> Mapping[str, object]:
        """The ledger: every question to the private records, and what all of them cost."""


@runtime_checkable
class SpendsByFit(Protocol):
    """Spends a privacy budget on the owner's records while it is fitted."""

    def spends(self) -> tuple[float, float]:
        """ε and δ of a fit with these hyper-parameters."""


@runtime_checkable
class LearnsByCounter(Protocol):
    """Learns from the noisy answers of a query counter alone, so that an auditor can listen to every question."""

    schema_: Schema
    epsilon: float
    delta: float
    labels: str
    sizes_: tuple[int, ...]
    ledger_: Ledger
    method_: Method

    def guarantee(self) -> Guarantee:
        """What is claimed."""

    def records(self, data: Dataset) -> Records:
        """The records as the counter holds them."""

    def noise(self) -> Noise:
        """The generator of the noise that protects a run."""


@runtime_checkable
class ReleasesWhole(Protocol):
    """Hides records among one another, so that all of them must be known before the first one leaves."""

    def whole(self, x: FloatArray, origin: Origin, folder: Path) -> AbstractContextManager[Iterator[FloatArray]]:
        """The payloads of checked records in their order, some at a time; ``folder`` has room for nameless files.

        What the device must remember of them is kept when the block ends well.
        """


@runtime_checkable
class NeedsSecret(Protocol):
    """Cannot write a release without a secret that outlives the process."""

    def check_writing(self, *, again: bool = False) -> None:
        """Raise an error if a release that is written now could not keep what it promises.

        ``again`` says that the same run was released before, under the same secret.
        """
