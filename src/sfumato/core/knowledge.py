"""What the adversary is granted, and the truth that only the scorer may open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import RuleBroken

if TYPE_CHECKING:
    from torch import nn

Query = Callable[[Dataset], FloatArray]
"""Records and labels of the attacker's own → payload, with fresh randomness (noise, keys, masks) on every call."""


@dataclass(frozen=True)
class Opened:
    """A rotated release with the secrets of the device that made it: payload[n] = key[n] · features of rows[n].

    payload  (N, d, …), as it leaves
    key      (N, d, d), orthogonal
    rows     (N, d), positions among the released records: first the record itself, then its decoys
    """

    payload: FloatArray
    key: FloatArray
    rows: IntArray


OwnDevice = Callable[[Dataset], Opened]
"""The attacker's own records through a device of its own, whose keys and decoys it knows."""

Participant = Callable[[Dataset, FloatArray], FloatArray]
"""The attacker as one of the parties: records of its own and one mask a record (N, h) → what it would share."""

_guessing: ContextVar[bool] = ContextVar("guessing", default=False)


@dataclass(frozen=True)
class Knowledge:
    """The adversary's side of the threat model.

    auxiliary   records and labels of other subjects, never the victims'
    query       the protected pipeline as a black box; None if it cannot be called
    encoder     the public encoder's weights and architecture; None if they stay with the owner
    randomised  whether two queries of one record differ
    own_device  the same with the secrets of each release, for a pipeline with keys; None without keys
    cloud       the public network that works on the payload; None if there is none
    repeats     further releases of the victims by their own device, in the victims' order
    line_ups    (N, d, *shape), the records behind each release's d rows, in an order that says nothing
    candidates  the victims in question as raw records with all their labels, the private ones included (the strongest
                line-up), in an order and under ids that say nothing; for a synthetic release, records of which half
                were the owner's
    participant the attacker as one of the parties, with a substitute decoder of its own; None without masks
    masks       (N, h), the mask under which each victim was released: granted to the upper bound alone
    parties     how many parties released the victims, by turns: everybody sees who shared what
    secret      what stays unknown (keys, masks …), for the card
    """

    auxiliary: Dataset
    query: Query | None = None
    encoder: nn.Module | None = None
    randomised: bool = False
    own_device: OwnDevice | None = None
    cloud: nn.Module | None = None
    repeats: tuple[FloatArray, ...] = ()
    line_ups: FloatArray | None = None
    candidates: Dataset | None = None
    participant: Participant | None = None
    masks: FloatArray | None = None
    parties: int = 1
    secret: tuple[str, ...] = ()
    seed: int = 0


class Truth:
    """The victims' records, where each stands among the candidates or in its line-up, the keys or masks of their
    release, and which of them the owner's data held.

    Opening it while an attack guesses raises ``RuleBroken``.
    """

    def __init__(
        self,
        victim: Dataset,
        positions: IntArray | None = None,
        *,
        keys: FloatArray | None = None,
        members: IntArray | None = None,
        masks: FloatArray | None = None,
    ) -> None:
        self.__victim = victim
        self.__positions = positions
        self.__keys = keys
        self.__members = members
        self.__masks = masks

    def open(self) -> Dataset:
        """The victims, for the scorer."""
        _refuse_while_guessing()
        return self.__victim

    def positions(self) -> IntArray:
        """The place of each victim among the candidates or in its line-up, for the scorer."""
        _refuse_while_guessing()
        if self.__positions is None:
            raise RuleBroken("there are no candidates in this truth.")
        return self.__positions

    def keys(self) -> FloatArray:
        """The key of each victim's release, (N, d, d), for the scorer."""
        _refuse_while_guessing()
        if self.__keys is None:
            raise RuleBroken("there are no keys in this truth.")
        return self.__keys

    def masks(self) -> FloatArray:
        """The mask of each victim's release, (N, h), for the scorer."""
        _refuse_while_guessing()
        if self.__masks is None:
            raise RuleBroken("there are no masks in this truth.")
        return self.__masks

    def members(self) -> IntArray:
        """1 for each candidate that was among the owner's records, 0 for the others, for the scorer."""
        _refuse_while_guessing()
        if self.__members is None:
            raise RuleBroken("there are no members in this truth.")
        return self.__members


def _refuse_while_guessing() -> None:
    if _guessing.get():
        raise RuleBroken("an attack tried to read the victims' truth while guessing; only the scorer may.")


@contextmanager
def guessing() -> Iterator[None]:
    """While this is entered, every ``Truth`` stays shut."""
    token = _guessing.set(True)
    try:
        yield
    finally:
        _guessing.reset(token)
