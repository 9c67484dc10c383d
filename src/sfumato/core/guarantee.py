"""What a release promises, for what, and on what authority: a guarantee is never louder than its proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sfumato.core.errors import RuleBroken

GuaranteeKind = Literal["dp", "anonymity", "empirical", "as-published"]
Unit = Literal["record", "person"]
_PROVEN: tuple[GuaranteeKind, ...] = ("dp", "anonymity")


@dataclass(frozen=True)
class Covers:
    """What a promise is about; whatever is not in here is outside of it. The defaults are the least of a promise.

    payload  the payload that leaves
    labels   the utility labels that leave with it
    count    how many records there are
    unit     whose presence or value is hidden: one ``record``, or all records of one ``person``
    repeats  the same records, released again by the same fit
    later    the same records, released after another fit
    """

    payload: bool = True
    labels: bool = False
    count: bool = False
    unit: Unit = "record"
    repeats: bool = False
    later: bool = False

    def __str__(self) -> str:
        """ "the payload, for one record at a time. Not covered: the labels …"."""
        found = {said: bool(getattr(self, name)) for name, said in _SAID.items()}
        inside, outside = ([said for said, covered in found.items() if covered is wanted] for wanted in (True, False))
        beyond = f" Not covered: {', '.join(outside)}." if outside else ""
        return f"{', '.join(inside) or 'nothing'}, for one {self.unit} at a time.{beyond}"


_SAID = {
    "payload": "the payload",
    "labels": "labels that leave with it",
    "count": "the number of records",
    "repeats": "the same records released again",
    "later": "the same records after another fit",
}
NOTHING = Covers(payload=False)


@dataclass(frozen=True)
class Condition:
    """Something that must be true for a promise to hold.

    ``checked`` says that ``Mechanism.release`` looks, each time, where it can; otherwise it is assumed. ``broken`` says
    why it does not hold for one release, and is empty where nothing is known against it.
    """

    name: str
    says: str
    checked: bool = False
    broken: str = ""

    def __str__(self) -> str:
        state = f"NOT MET: {self.broken}" if self.broken else "checked at every release" if self.checked else "assumed"
        return f"{self.says} [{state}]"

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> Condition:
        """A stored condition; older folders hold sentences alone, which were assumed."""
        return cls("", value) if isinstance(value, str) else cls(**value)


SECURE_NOISE = Condition(
    "secure-noise", "noise, keys and decoys come from the operating system's secure source, never from a seed", True
)
ONE_ROW = Condition("one-row", "no person has two rows in the release (seen where a subject column is named)", True)
SEVERAL_ROWS = "somebody has several rows in it, and the promise is for one row"


@dataclass(frozen=True)
class Guarantee:
    """A statement about a release.

    dp            proven (ε, δ) for the neighbouring ``relation``; ``event`` is what the accountant composed
    anonymity     the record is one of ``1/anonymity`` equally likely ones, under ``conditions``
    empirical     measured by attacks only: no ε can be stored, and nothing is covered
    as-published  a paper's (ε, δ) that is *not proven*; ``statement`` says why

    ``covers`` says what the promise is about, ``conditions`` what it rests on, and ``in_clear`` which labels leave
    beside the payload although no promise covers them.
    """

    kind: GuaranteeKind
    statement: str
    epsilon: float | None = None
    delta: float | None = None
    relation: str | None = None
    event: Mapping[str, Any] | None = None
    anonymity: float | None = None
    conditions: tuple[Condition, ...] = ()
    covers: Covers = NOTHING
    in_clear: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        has_epsilon = self.epsilon is not None and self.delta is not None
        if self.kind == "dp" and not (has_epsilon and self.relation and self.event):
            raise RuleBroken("a dp guarantee needs epsilon, delta, the neighbouring relation and the event.")
        if self.kind == "as-published" and not has_epsilon:
            raise RuleBroken("an as-published guarantee needs the paper's epsilon and delta.")
        if self.kind in ("empirical", "anonymity") and (self.epsilon is not None or self.delta is not None):
            raise RuleBroken(f"an {self.kind} guarantee cannot carry an epsilon.")
        if self.kind == "anonymity" and (self.anonymity is None or not self.conditions):
            raise RuleBroken("an anonymity guarantee needs its probability and its conditions.")
        if self.proven != self.covers.payload and self.kind != "as-published":
            raise RuleBroken(f"a guarantee of kind {self.kind} covers {'something' if self.proven else 'nothing'}.")
        if self.proven and any(condition.broken for condition in self.conditions):
            raise RuleBroken("a guarantee with a broken condition promises nothing: make it with without().")

    @property
    def proven(self) -> bool:
        """Whether there is a promise that does not rest on measurement."""
        return self.kind in _PROVEN

    def without(self, broken: Mapping[str, str]) -> Guarantee:
        """What is left for a release that breaks conditions (name → why, a clause): a measurement, and the reason."""
        if not broken:
            return self
        strange = set(broken) - {condition.name for condition in self.conditions}
        if strange:
            raise RuleBroken(f"the guarantee has no condition '{min(strange)}' that could be broken.")
        return Guarantee(
            "empirical",
            f"Nothing is promised, because conditions are not met. If they were: {self.statement}",
            in_clear=self.in_clear,
            conditions=tuple(replace(one, broken=broken.get(one.name, one.broken)) for one in self.conditions),
        )

    def of_release(self, labels: Iterable[str] = (), broken: Mapping[str, str] | None = None) -> Guarantee:
        """The guarantee of one release of given records, with these of their labels beside the payload.

        Its rows can be counted, so that a promise about their number is left out. Labels that are not covered are
        ``in_clear``. If conditions are ``broken`` (name → why, a clause), nothing is promised.
        """
        told = replace(self.beside(labels), covers=replace(self.covers, count=False))
        return told.without(broken or {})

    def beside(self, labels: Iterable[str]) -> Guarantee:
        """The same promise about a payload with these labels beside it."""
        open_ = tuple(labels) if self.proven and not self.covers.labels else ()
        relation = f"{self.relation}, with the same labels" if open_ and self.relation else self.relation
        return replace(self, in_clear=open_, relation=relation)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What every card says first."""
        named = ", ".join(f"'{name}'" for name in self.in_clear)
        clear = f"LABELS ARE OUTSIDE THE PROMISE: {named} leaves in clear beside the payload."
        return ((clear,) if named else ()) + tuple(f"NOT PROMISED: {why}." for why in self.broken().values())

    def broken(self) -> dict[str, str]:
        """The conditions that are known not to hold, and why."""
        return {condition.name: condition.broken for condition in self.conditions if condition.broken}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Guarantee:
        """A stored guarantee; one that does not say what it covers (sfumato 0.1) covers the least."""
        found = value.get("covers")
        covers = (Covers() if value["kind"] in _PROVEN else NOTHING) if found is None else Covers(**found)
        conditions = tuple(Condition.from_json(one) for one in value.get("conditions", ()))
        in_clear = tuple(value.get("in_clear", ()))
        return cls(**{**value, "conditions": conditions, "covers": covers, "in_clear": in_clear})


def empirical(statement: str) -> Guarantee:
    """A guarantee that rests on measurement alone."""
    return Guarantee(kind="empirical", statement=statement)
