"""What the five papers say: their claims word by word, their figures, and where each equation, table and figure went.

One TOML file a paper, and nothing of a paper is quoted from anywhere else::

    title = "…"
    authors = "…"

    [[claim]]
    id = "ran-more-accurate"
    where = "§3.1, Fig. 3"
    quote = "…"               # the paper's own words
    asks = "…"                # what a study measures for it, and what has to come out
    studies = ["ran-figure3"]
    flaw = "…"                # only where a proof does not go through: why, in one sentence
    check = "tests/…::test_…" # what shows it

    [[item]]                  # every equation, algorithm, table and figure
    where = "Eq. 4"
    says = "…"
    code = ["sfumato.mechanisms.ran.mechanism:RAN"]
    studies = ["ran-figure3"]
    claims = ["ran-more-accurate"]
    data = "…"                # the data set that it is about, where it is one
    note = "…"                # why nothing is run, or what differs

    [figures."Table 1"]       # numbers as printed, in one unit
    columns = ["private", "utility"]
    linear = [0.687, 0.899]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sfumato.core.errors import RuleBroken

PAPERS = ("ran", "filter", "phase", "synth", "ars")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper; ``flaw`` says why its proof does not go through, ``check`` what shows that."""

    id: str
    where: str
    quote: str
    asks: str
    studies: tuple[str, ...] = ()
    flaw: str = ""
    check: str = ""


@dataclass(frozen=True)
class Item:
    """One equation, algorithm, table or figure: the code that has it and the studies that run it, or why none does."""

    where: str
    says: str
    code: tuple[str, ...] = ()
    studies: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    data: str = ""
    note: str = ""


@dataclass(frozen=True)
class Paper:
    """What one paper says."""

    name: str
    title: str
    authors: str
    claims: Mapping[str, Claim]
    items: tuple[Item, ...]
    figures: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Table → row → column → number."""

    def figure(self, table: str, row: str, column: str) -> float:
        """A number as the paper prints it."""
        try:
            return self.figures[table][row][column]
        except KeyError:
            raise RuleBroken(f"the paper of {self.name} has no figure for '{column}' of '{row}' in {table}.") from None

    def has(self, table: str, row: str, column: str) -> bool:
        """Whether the paper prints that number."""
        return column in self.figures.get(table, {}).get(row, {})

    def figure_or_none(self, table: str, row: str, column: str) -> float | None:
        """A number as the paper prints it; None where it prints none."""
        return self.figures[table][row][column] if self.has(table, row, column) else None


@cache
def paper(name: str) -> Paper:
    """The paper of a mechanism, by its short name."""
    text = (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    said = tomllib.loads(text)
    claims = [Claim(**{**claim, "studies": tuple(claim.get("studies", ()))}) for claim in said.get("claim", [])]
    lists = ("code", "studies", "claims")
    items = tuple(Item(**{**item, **{k: tuple(item.get(k, ())) for k in lists}}) for item in said.get("item", []))
    return Paper(
        name=name,
        title=said["title"],
        authors=said["authors"],
        claims={claim.id: claim for claim in claims},
        items=items,
        figures={table: _numbers(rows) for table, rows in said.get("figures", {}).items()},
    )


def _numbers(rows: Mapping[str, list[float | str]]) -> dict[str, dict[str, float]]:
    """Row → column → number; an empty string stands where the paper prints none."""
    columns = [str(column) for column in rows["columns"]]
    return {
        row: {c: float(v) for c, v in zip(columns, values, strict=True) if v != ""}
        for row, values in rows.items()
        if row != "columns"
    }


@cache
def claim(id: str) -> Claim:
    """A claim by its id, which begins with the paper's name."""
    found = paper(id.split("-", maxsplit=1)[0]).claims.get(id) if id.split("-", maxsplit=1)[0] in PAPERS else None
    if found is None:
        raise RuleBroken(f"no paper makes a claim called '{id}'.")
    return found
