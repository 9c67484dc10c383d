"""What a release promises, and on what authority: a guarantee is never louder than its proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sfumato.core.errors import RuleBroken

GuaranteeKind = Literal["dp", "anonymity", "empirical", "as-published"]


@dataclass(frozen=True)
class Guarantee:
    """A statement about a release.

    dp            proven (ε, δ) for the neighbouring ``relation``; ``event`` is what the accountant composed
    anonymity     the record is one of ``1/anonymity`` equally likely ones, under ``conditions``
    empirical     measured by attacks only: no ε can be stored
    as-published  a paper's (ε, δ) that is *not proven*; ``statement`` says why
    """

    kind: GuaranteeKind
    statement: str
    epsilon: float | None = None
    delta: float | None = None
    relation: str | None = None
    event: Mapping[str, Any] | None = None
    anonymity: float | None = None
    conditions: tuple[str, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Guarantee:
        return cls(**{**value, "conditions": tuple(value.get("conditions", ()))})


def empirical(statement: str) -> Guarantee:
    """A guarantee that rests on measurement alone."""
    return Guarantee(kind="empirical", statement=statement)
