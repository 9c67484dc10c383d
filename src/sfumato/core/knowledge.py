"""What the adversary is granted, and the truth that only the scorer may open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import RuleBroken

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
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


@dataclass(frozen=True)
class Later:
    """What the victims' device sent after their release.

    payload   (M, d, …), the victims' own messages in their order, or all messages where nobody knows whose is whose
    line_ups  (N, d, *shape), the records behind the victims' first messages, as they are encoded by now
    """

    payload: FloatArray
    line_ups: FloatArray


OwnDevice = Callable[[Dataset], Opened]
"""The attacker's own records through a device of its own, whose keys and decoys it knows."""

Participant = Callable[[Dataset, FloatArray], FloatArray]
"""The attacker as one of the parties: records of its own and one mask a record (N, h) → what it would share."""


@dataclass(frozen=True)
class Model:
    """What anybody can do with what was fitted to the owner's records.

    query    records → payload
    predict  payload → class scores of the first utility label, (N, classes), or the number that it is, (N, 1); None
             without a public classifier
    decode   payload → records; None without a public decoder
    """

    query: Query
    predict: Callable[[FloatArray], FloatArray] | None = None
    decode: Callable[[FloatArray], FloatArray] | None = None


Refit = Callable[[Dataset, int], Model]
"""Records and a seed → the same mechanism, fitted to them instead of the owner's."""


@dataclass(frozen=True)
class OtherRelease:
    """A release of other records of the victims, under pseudonyms.

    payload  (M, …), as it leaves
    people   (M,), whose record each is: 0 … people − 1, numbers that say nothing
    query    the pipeline that made it; None if it is the one that made the victims' release
    """

    payload: FloatArray
    people: IntArray
    query: Query | None = None


@dataclass(frozen=True)
class PublicView:
    """How an embedding that anybody can compute sees the records, where a payload may be of an unknown one.

    own         (n, E), of the attacker's own records, in their order
    candidates  (M, E), of what may be behind a payload, in the order of the candidates
    """

    own: FloatArray
    candidates: FloatArray


Remake = Callable[[IntArray, int], FloatArray]
"""Places among the candidates and the how-manieth it is → coded rows of another release by the maker of this one, of
these candidates and a random half of all other people."""

Likeness = Callable[[Dataset, FloatArray], "npt.NDArray[np.float64]"]
"""Victims and a guess of the record of each → how much it looks like its person, by the person's other records."""

_guessing: ContextVar[bool] = ContextVar("guessing", default=False)


@dataclass(frozen=True)
class Knowledge:
    """The adversary's side of the threat model.

    auxiliary   records and labels of other subjects, never the victims'
    query       the protected pipeline as a black box; None if it cannot be called
    encoder     the public encoder's weights and architecture; None if they stay with the owner
    randomised  whether two queries of one record differ
    same_device the attacker's own records through the victims' device, with its secret, as another user of it would;
                None where no secret is kept
    own_device  the same with the secrets of each release, for a pipeline with keys; None without keys
    cloud       the public network that works on the payload; None if there is none
    repeats     further releases of the victims by their own device, in the victims' order
    line_ups    (N, d, *shape), the records behind each release's d rows, in an order that says nothing
    later       what the victims' device sent after their release; None if nobody saw it
    candidates  the victims in question as raw records with all their labels, the private ones included (the strongest
                line-up), in an order and under ids that say nothing; for a synthetic release, records of which half
                were the owner's
    public      the attacker's own records and the candidates in an embedding that anybody can compute; None if no such
                view was given
    linked      a release of other records of the same people, for linkage; None where nobody has two
    model       what is public of what was fitted to the owner's records, where membership is in question
    refit       fits others like it to records of the attacker's choice; None where that costs too much
    remake      makes other releases of rows as this one was made; None where nobody can call the maker
    participant the attacker as one of the parties, with a substitute decoder of its own; None without masks
    unknown     names of the secrets behind the victims' release, which the attacker may try to find
    granted     secrets behind the victims' release by name (a mask (N, h) …): for upper bounds alone
    columns     of a release whose rows belong to nobody in particular: what each number of a row is; then ``auxiliary``
                and ``candidates`` are coded alike
    parties     how many parties released the victims, by turns: everybody sees who shared what
    """

    auxiliary: Dataset
    query: Query | None = None
    encoder: nn.Module | None = None
    randomised: bool = False
    same_device: Query | None = None
    own_device: OwnDevice | None = None
    cloud: nn.Module | None = None
    repeats: tuple[FloatArray, ...] = ()
    line_ups: FloatArray | None = None
    later: Later | None = None
    candidates: Dataset | None = None
    public: PublicView | None = None
    linked: OtherRelease | None = None
    model: Model | None = None
    refit: Refit | None = None
    remake: Remake | None = None
    participant: Participant | None = None
    unknown: tuple[str, ...] = ()
    granted: Mapping[str, FloatArray] = field(default_factory=dict)
    columns: tuple[CodedColumn, ...] = ()
    parties: int = 1
    seed: int = 0


class Truth:
    """The victims' records, where each stands among the candidates or in its line-up, the secrets behind their
    release by name (one row a record), which of the candidates the owner's data held, and how to tell whether a rebuilt
    record looks like its person. ``rows`` are the places of these records among all victims of the audit, so that two
    attacks are compared over the same ones: None where these are all, in their order, and −1 where nobody can say.

    Opening it while an attack guesses raises ``RuleBroken``.
    """

    def __init__(
        self,
        victim: Dataset,
        positions: IntArray | None = None,
        *,
        secrets: Mapping[str, FloatArray] | None = None,
        members: IntArray | None = None,
        likeness: Likeness | None = None,
        rows: IntArray | None = None,
    ) -> None:
        self.__victim = victim
        self.rows = rows
        self.__positions = positions
        self.__secrets = dict(secrets or {})
        self.__members = members
        self.__likeness = likeness

    def open(self) -> Dataset:
        """The victims, for the scorer."""
        _refuse_while_guessing()
        return self.__victim

    def positions(self) -> IntArray:
        """The place of each victim among the candidates or in its line-up, for the scorer."""
        return _known(self.__positions, "candidates")

    def secret(self, name: str) -> FloatArray:
        """The secret of that name behind each victim's release, (N, …), for the scorer."""
        return _known(self.__secrets.get(name), f"secret '{name}'")

    def members(self) -> IntArray:
        """1 for each candidate that was among the owner's records, 0 for the others, for the scorer."""
        return _known(self.__members, "members")

    def likeness(self, guess: FloatArray) -> npt.NDArray[np.float64] | None:
        """How much each guess looks like its person, for the scorer; None where nobody can say."""
        _refuse_while_guessing()
        return None if self.__likeness is None else self.__likeness(self.__victim, guess)


T = TypeVar("T")


def _known(value: T | None, what: str) -> T:
    _refuse_while_guessing()
    if value is None:
        raise RuleBroken(f"this truth holds no {what}.")
    return value


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
