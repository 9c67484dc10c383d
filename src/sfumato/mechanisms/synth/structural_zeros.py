"""What declared rules allow, as boxes: products of allowed cells, one set a column, that do not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from sfumato.core.column_rules import Among, ColumnRule, among
from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema
from sfumato.mechanisms.synth.column_cells import Cells
from sfumato.mechanisms.synth.consistent_marginals import Codes

Bools = npt.NDArray[np.bool_]
Box = tuple[Bools, ...]
"""For each column, which of its cells."""
MOST_BOXES = 64


def boxes(schema: Schema, cells: Sequence[Cells], classes: int) -> list[Box]:
    """Boxes that hold exactly the records that obey the rules; if there are classes, the joint one is the last column.

    A record obeys "if a in A and b in B then c in C" if it is in A × B × C, or not in A, or in A and not in B.
    """
    sizes = [one.count for one in cells] + ([classes] if classes > 1 else [])
    found: list[Box] = [tuple(np.ones(size, dtype=np.bool_) for size in sizes)]
    for rule in schema.rules:
        ways = _ways(rule, schema, cells, sizes)
        met = (tuple(a & b for a, b in zip(box, way, strict=True)) for box, way in product(found, ways))
        found = [box for box in met if all(side.any() for side in box)]
        if not found:
            raise UsageError(f"the domain's rules leave no possible record: no record obeys {rule}, and those before.")
        if len(found) > MOST_BOXES:
            raise UsageError(
                f"synth: the domain's rules cut the records into more than {MOST_BOXES} kinds: declare fewer rules."
            )
    return found


def signatures(found: Sequence[Box], place: int) -> Codes:
    """Cells of a column that no box tells apart have the same number: (cells,)."""
    sides = np.stack([box[place] for box in found])
    return np.asarray(np.unique(sides, axis=1, return_inverse=True)[1]).reshape(-1).astype(np.int64)


def _ways(rule: ColumnRule, schema: Schema, cells: Sequence[Cells], sizes: Sequence[int]) -> list[Box]:
    """The ways to obey one rule, which do not overlap."""
    anything = [np.ones(size, dtype=np.bool_) for size in sizes]

    def narrowed(sides: Mapping[int, Bools]) -> Box:
        return tuple(sides.get(place, side) for place, side in enumerate(anything))

    when, then = (_sides(side, schema, cells, sizes[-1]) for side in (rule.when, rule.then))
    outside = {place: ~side for place, side in then.items()} if rule.exactly else {}
    ways = [narrowed(_both(when, then))]
    before: dict[int, Bools] = {}
    for place, side in when.items():
        ways.append(narrowed(_both(_both(before, {place: ~side}), outside)))
        before = _both(before, {place: side})
    return ways


def _both(some: Mapping[int, Bools], others: Mapping[int, Bools]) -> dict[int, Bools]:
    found = dict(some)
    for place, side in others.items():
        found[place] = found[place] & side if place in found else side
    return found


def _sides(named: Mapping[str, Among], schema: Schema, cells: Sequence[Cells], classes: int) -> dict[int, Bools]:
    """Which cells of each named column are meant."""
    places = {one.column.name: place for place, one in enumerate(cells)}
    found: dict[int, Bools] = {}
    for name, some in named.items():
        if name in places:
            found = _both(found, {places[name]: cells[places[name]].among(some)})
            continue
        names = list(schema.utility)
        codes = np.unravel_index(np.arange(classes), [len(schema.utility[label]) for label in names])
        found = _both(found, {len(cells): among(some, schema.utility[name], codes[names.index(name)])})
    return found
