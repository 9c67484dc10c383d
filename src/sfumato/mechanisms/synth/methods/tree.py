"""Tables from noisy counts: a tree of pairs for the records, a softmax regression for their labels.

Every record is cut into bins, one a column. It adds one to one cell of each table that is asked for, so a table has
sensitivity 1, and T tables are T Gaussian mechanisms. Four questions, in this order:

1. ``histograms`` of numeric columns and of those with many categories decide how fine cells are joined into bins;
2. ``pairs``: the tables (i, j, class) of all pairs of columns say which depend on each other: the tree (Chow and Liu);
3. ``tables``: those of the tree's edges once more, with less noise: p(x | class) = Π p(xᵢ | x of its parent, class);
4. ``gradient``: labels of drawn records come from a regression, which needs far fewer counts than tables do.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.errors import UsageError
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.column_cells import Cells, cells_of
from sfumato.mechanisms.synth.consistent_marginals import (
    Averages,
    Codes,
    Doubles,
    dependence,
    fitted,
    merged,
    nearest,
    pooled,
    shares_within,
    spanning_tree,
)
from sfumato.mechanisms.synth.fixed_sums import keep_sums
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.mechanisms.synth.softmax_regression import GRADIENT, Logistic, NewtonSteps, spread
from sfumato.privacy.ledger import Ask, Plan, calibrated
from sfumato.privacy.query_counter import Counter, Groups, Records

HISTOGRAMS, PAIRS, TABLES = "histograms", "pairs", "tables"
SHARES = {HISTOGRAMS: 0.05, PAIRS: 0.15, TABLES: 0.20, GRADIENT: 0.60}
BINS, MOST_BINS = 20, 36
"""Bins of a numeric column, about; of any column, at most."""
NARROW = 20
"""A column with no more cells than this keeps them as they are."""
_MOST_NUMBERS = 4_000_000
_DRAWN = 20_000
"""Records that are drawn for the regression's curvature."""
_DOUBT = 4.0
"""An edge counts by its dependence less so many standard deviations of it."""
_ROUNDS = 40


class Tree(Method):
    """The default for tables."""

    name = "tree"
    kinds = ("table",)
    labels = ("data", "none")

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        if task.schema.rules:
            raise UsageError("synth: tree cannot keep the domain's rules: use method=marginals.")
        self.cells = cells_of(task.schema)
        self.sizes = tuple(min(one.count, MOST_BINS) for one in self.cells)
        self.wide = tuple(place for place, one in enumerate(self.cells) if one.count > NARROW)
        self.pairs = tuple(combinations(range(len(self.cells)), 2))
        numbers = task.classes * sum(self.sizes[i] * self.sizes[j] for i, j in self.pairs)
        if numbers > _MOST_NUMBERS:
            raise UsageError(
                f"synth: tree would count {numbers:,} cells of pairs, at most {_MOST_NUMBERS:,} are possible: "
                "leave out columns (--x) or merge classes."
            )
        self.model = _Model(self.cells, self.sizes, task.classes)
        self.teacher = Logistic(self.sizes, task.classes, NewtonSteps(steps=task.steps or NewtonSteps.steps))

    def plan(self, records: int) -> tuple[Ask, ...]:
        asks = [Ask("bins", HISTOGRAMS, SHARES[HISTOGRAMS], len(self.wide))] if self.wide else []
        if self.pairs:
            asks.append(Ask("records", PAIRS, SHARES[PAIRS], len(self.pairs)))
        asks.append(Ask("records", TABLES, SHARES[TABLES], len(self.cells)))
        if self.task.classes > 1:
            asks.append(self.teacher.ask(SHARES[GRADIENT]))
        return tuple(asks)

    def least(self, plan: Plan) -> float:
        return next(2.0 * ask.noise for ask in plan if ask.name == TABLES)

    def learn(self, counter: Counter, progress: Progress) -> None:
        plan = calibrated(self.plan(0), self.task.epsilon, self.task.delta)
        noise = {ask.name: ask.noise for ask in plan}  # every table has sensitivity 1: its σ
        self._bins(counter, noise)
        asked = self._pairs(counter, noise)
        order = self._tree(asked, noise)
        count = self._tables(counter, noise, asked, order)
        if self.task.classes > 1:
            generator = torch.Generator().manual_seed(self.task.seed)
            drawn, _ = self.model.draw(_DRAWN, generator)
            self.teacher.learn(counter, self._codes, drawn, count, noise[GRADIENT], progress)

    def _codes(self, records: Records) -> Tensor:
        """The bins of each record, (n, columns)."""
        return torch.stack([self.model.bin(place, records.x) for place in range(len(self.cells))], dim=1)

    def _count(self, counter: Counter, name: str, places: tuple[int, ...], sizes: tuple[int, ...]) -> Doubles:
        """The noisy table (classes, *sizes) of the bins of these columns."""
        shape = (self.task.classes, *sizes)

        def group(records: Records) -> Tensor:
            code = records.y
            for place, size in zip(places, sizes, strict=True):
                code = code * size + self.model.bin(place, records.x)
            return code

        answer = counter.sums(name, _ones, 1.0, groups=group, size=int(np.prod(shape)))
        return answer.reshape(shape)

    def _bins(self, counter: Counter, noise: dict[str, float]) -> None:
        for place in self.wide:
            cells = self.cells[place]
            counts = counter.sums(HISTOGRAMS, _ones, 1.0, groups=_cell_of(cells), size=cells.count)[:, 0]
            self.model.join(place, counts, noise[HISTOGRAMS])

    def _pairs(self, counter: Counter, noise: dict[str, float]) -> dict[tuple[int, int], Doubles]:
        used = self.model.used()
        return {(i, j): self._count(counter, PAIRS, (i, j), (used[i], used[j])) for i, j in self.pairs}

    def _tree(self, asked: dict[tuple[int, int], Doubles], noise: dict[str, float]) -> list[tuple[int, int]]:
        """The columns with their parents, the same for all classes: one class alone would say too little."""
        if not asked:
            return [(0, -1)]
        totals, ones = self._margins(asked, noise).clean()
        scores = {}
        for (i, j), table in asked.items():
            found = [
                dependence(one, np.outer(ones[i][code], ones[j][code]) / totals[code], noise[PAIRS])
                for code, one in enumerate(table)
            ]
            value, variance = (sum(part) for part in zip(*found, strict=True))
            scores[i, j] = value - _DOUBT * float(np.sqrt(variance))
        return spanning_tree(scores, len(self.cells))

    def _margins(self, asked: dict[tuple[int, int], Doubles], noise: dict[str, float]) -> _Margins:
        margins = _Margins(self.model.used(), self.task.classes)
        for pair, table in asked.items():
            margins.add(pair, table, noise[PAIRS])
        return margins

    def _tables(
        self,
        counter: Counter,
        noise: dict[str, float],
        asked: dict[tuple[int, int], Doubles],
        order: list[tuple[int, int]],
    ) -> float:
        """Ask for the tree's tables, fill the model, and say how many records there are, about."""
        used, margins, found = self.model.used(), self._margins(asked, noise), {}
        for column, parent in order:
            places = (column,) if parent < 0 else (parent, column)
            table = self._count(counter, TABLES, places, tuple(used[place] for place in places))
            margins.add(places, table, noise[TABLES])
            if parent >= 0:
                both = Averages(table.shape)
                both.add(table, noise[TABLES])
                before = asked[min(places), max(places)]
                both.add(before if parent < column else before.swapaxes(1, 2), noise[PAIRS])
                found[column] = both.mean
        totals, ones = margins.clean()
        self.model.fill(order, totals, ones, found)
        return float(totals.sum())

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        if only is None or self.task.classes == 1:
            return self._labelled(rows, generator)
        pieces: list[tuple[Tensor, Tensor]] = []
        for _ in range(_ROUNDS):
            x, y = self._labelled(max(rows, 1024), generator)
            pieces.append((x[y == only], y[y == only]))
            if sum(len(part) for _, part in pieces) >= rows:
                break
        else:  # the regression hardly ever says this class: take what the class's own tree draws
            pieces.append(
                (self._records(self.model.draw(rows, generator, only)[0], generator), torch.full((rows,), only))
            )
        x, y = (torch.cat([piece[side] for piece in pieces])[:rows] for side in (0, 1))
        return x, y

    def _labelled(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        bins, y = self.model.draw(rows, generator)
        x = self._records(bins, generator)
        if self.task.classes > 1:
            if self.task.schema.sums:
                bins = self._codes(Records(x, y))
            y = spread(self.teacher.probabilities(bins), generator)
        return x, y

    def _records(self, bins: Tensor, generator: torch.Generator) -> Tensor:
        """Encoded records with these bins, (n, columns) → (n, D)."""
        raw, missing = {}, {}
        for place, cells in enumerate(self.cells):
            codes = self.model.cell(place, bins[:, place], generator)
            raw[cells.column.name], missing[cells.column.name] = cells.draw(codes, generator)
        keep_sums(self.task.schema.sums, self.task.schema.columns, raw, missing)
        return torch.cat([one.encode(raw[one.column.name], missing[one.column.name]) for one in self.cells], dim=1)

    def modules(self) -> dict[str, nn.Module]:
        return {"model": self.model, **({"teacher": self.teacher} if self.task.classes > 1 else {})}

    def about(self) -> tuple[str, ...]:
        return (
            "Only pairs of columns along a tree, and each column with the labels, are alike; other relations are not.",
        )


class _Margins:
    """What all tables together say of single columns and of the classes."""

    def __init__(self, used: list[int], classes: int) -> None:
        self.totals = Averages((classes,))
        self.ones = [Averages((classes, size)) for size in used]

    def add(self, places: tuple[int, ...], table: Doubles, deviation: float) -> None:
        """Take in a table (classes, *bins of these columns)."""
        shape = table.shape[1:]
        cells = float(np.prod(shape))
        self.totals.add(table.sum(axis=tuple(range(1, table.ndim))), deviation * np.sqrt(cells))
        for axis, place in enumerate(places, start=1):
            others = tuple(other for other in range(1, table.ndim) if other != axis)
            self.ones[place].add(table.sum(axis=others), deviation * np.sqrt(cells / table.shape[axis]))

    def clean(self) -> tuple[Doubles, list[Doubles]]:
        """Records of each class (classes,), at least one; in each column's bins (classes, bins), adding up to it."""
        totals = np.maximum(self.totals.mean, 1.0)
        return totals, [
            np.stack([nearest(row, total) for row, total in zip(one.mean, totals, strict=True)]) for one in self.ones
        ]


class _Model(nn.Module):
    """Bins and the tree, in buffers whose shapes the declared columns decide.

    For column i: ``bin_i`` (cells) is each cell's bin, ``share_i`` (cells) how likely a cell is in its bin, ``table_i``
    (classes, parent's bins, bins) the chances of its bins given the parent's. ``order`` lists columns, parents first.
    """

    shares: Tensor
    order: Tensor
    parents: Tensor

    def __init__(self, cells: tuple[Cells, ...], sizes: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.cells, self.classes = cells, classes
        self.register_buffer("shares", torch.full((classes,), 1.0 / classes, dtype=torch.float64))
        self.register_buffer("order", torch.arange(len(cells)))
        self.register_buffer("parents", torch.full((len(cells),), -1))
        for place, (one, size) in enumerate(zip(cells, sizes, strict=True)):
            above = max((other for at, other in enumerate(sizes) if at != place), default=1)
            self.register_buffer(f"bin_{place}", torch.arange(one.count).clamp(max=size - 1))
            self.register_buffer(f"share_{place}", torch.ones(one.count, dtype=torch.float64))
            self.register_buffer(f"table_{place}", torch.full((classes, above, size), 1.0 / size, dtype=torch.float64))

    def used(self) -> list[int]:
        """How many bins each column has."""
        return [int(self.get_buffer(f"bin_{place}").max()) + 1 for place in range(len(self.cells))]

    def bin(self, place: int, x: Tensor) -> Tensor:
        return self.get_buffer(f"bin_{place}")[self.cells[place].code(x)]

    def join(self, place: int, counts: Doubles, deviation: float) -> None:
        """Join the cells of a column by their noisy counts."""
        one = self.cells[place]
        bins = _joined(one, counts, deviation)
        self.get_buffer(f"bin_{place}").copy_(torch.as_tensor(bins))
        self.get_buffer(f"share_{place}").copy_(torch.as_tensor(shares_within(counts, bins, one.widths())))

    def fill(
        self, order: list[tuple[int, int]], totals: Doubles, ones: list[Doubles], tables: dict[int, Doubles]
    ) -> None:
        """Take in the tree, records per class, columns (classes, bins) and tables (classes, parent's bins, bins)."""
        self.shares.copy_(torch.as_tensor(totals / totals.sum()))
        self.order.copy_(torch.tensor([column for column, _ in order]))
        for column, parent in order:
            self.parents[column] = parent
            chances = self.get_buffer(f"table_{column}").zero_()
            for code, total in enumerate(totals):
                alone = ones[column][code]
                table = alone[None, :]
                if parent >= 0:
                    table = fitted(nearest(tables[column][code], total), ones[parent][code], alone)
                rows = torch.as_tensor(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12))
                chances[code, :, : rows.shape[1]] = torch.as_tensor(alone / alone.sum())
                chances[code, : len(rows), : rows.shape[1]] = rows

    def draw(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        """Bins (rows, columns) and classes (rows,) of so many records."""
        if only is None:
            y = torch.multinomial(self.shares, rows, replacement=True, generator=generator)
        else:
            y = torch.full((rows,), only)
        bins = torch.zeros(rows, len(self.cells), dtype=torch.int64)
        for column in self.order.tolist():
            parent = int(self.parents[column])
            above = bins[:, parent] if parent >= 0 else torch.zeros_like(y)
            heights = self.get_buffer(f"table_{column}").cumsum(dim=2)[y, above]  # (rows, bins)
            pick = torch.rand(rows, 1, dtype=torch.float64, generator=generator) * heights[:, -1:]
            bins[:, column] = (heights <= pick).sum(dim=1).clamp(max=heights.shape[1] - 1)
        return bins, y

    def cell(self, place: int, bins: Tensor, generator: torch.Generator) -> Tensor:
        """A cell in each of these bins."""
        of, share = self.get_buffer(f"bin_{place}"), self.get_buffer(f"share_{place}")
        order = torch.argsort(of, stable=True)
        heights = share[order].cumsum(dim=0)
        whole = torch.zeros(int(of.max()) + 1, dtype=torch.float64).index_add_(0, of, share).cumsum(dim=0)
        begin = torch.cat([torch.zeros(1, dtype=torch.float64), whole])
        pick = begin[bins] + torch.rand(len(bins), dtype=torch.float64, generator=generator) * (
            begin[bins + 1] - begin[bins]
        )
        return order[torch.searchsorted(heights, pick, right=True).clamp(max=len(order) - 1)]


def _cell_of(cells: Cells) -> Groups:
    return lambda records: cells.code(records.x)


def _ones(records: Records) -> Tensor:
    return torch.ones(len(records), 1)


def _joined(cells: Cells, counts: Doubles, deviation: float) -> Codes:
    """The bin of each cell: a number's ends and gaps by themselves, its middle joined; rare categories pooled."""
    if not cells.ordered:
        return pooled(counts, deviation, MOST_BINS)
    bins: Codes = np.arange(cells.count, dtype=np.int64)
    if cells.ordered > 2:
        last = cells.ordered - 1
        inner = merged(counts[1:last], deviation, BINS, MOST_BINS - 3)
        bins[1:last] = 1 + inner
        bins[last:] = 2 + inner.max() + np.arange(cells.count - last)
    return bins
