"""Tables from the noisy two-way tables of all columns: no label is needed, and no column counts more than another.

Every record is cut into bins, one a column; it falls into one cell of each table that is asked for. Two questions:

1. ``columns``: one table a column, over fine cells declared in public, says how cells are joined into bins;
2. ``pairs``: the tables of all pairs of columns, those with more to say measured with less noise.

All tables of a question are one answer: with wₜ the weight of table t and Σ wₜ² = 1, a record moves the answer by
√(Σ wₜ²) = 1 in L2, the sensitivity, and table t has noise σ/wₜ. Weights of the second question follow from the answer
to the first. An ensemble of mixtures of products is fitted to the answers, and its rows are its counts, rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.errors import DataError, UsageError
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.column_cells import cells_of
from sfumato.mechanisms.synth.consistent_marginals import Codes, Doubles, Pair, nearest
from sfumato.mechanisms.synth.fixed_sums import keep_sums
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.mechanisms.synth.product_mixture import FEWEST, Ensemble, Masks, Tables, enough
from sfumato.mechanisms.synth.rounded_rows import rounded_rows
from sfumato.mechanisms.synth.softmax_regression import GRADIENT, Logistic, NewtonSteps, spread
from sfumato.mechanisms.synth.structural_zeros import boxes, signatures
from sfumato.mechanisms.synth.table_bins import Bins
from sfumato.privacy.ledger import Ask, calibrated
from sfumato.privacy.query_counter import Counter, Records, deviations

COLUMNS, PAIRS = "columns", "pairs"
SHARES = {COLUMNS: 0.06, PAIRS: 0.94, GRADIENT: 1.5}
"""Parts of the budget, relative to each other; without a label there is no gradient."""
MEMBERS = 8
_WIDE = 400
"""Columns of more bins in all get fewer mixtures: the time of a fit grows with their square."""
COMPONENTS = (16, 22, 30, 42, 60, 85, 120)
STEPS = 1500
_TRIAL_STEPS = 800
_DRAWN = 20_000
"""Records that are drawn for the regression's curvature."""
_ROUNDS = 40
_CLEAR = 2.0
"""A cell of a pair has something to say if it would hold so many σ, were its columns independent."""
_MORE = 2.0 / 3.0
"""A table is weighted by so much a power of how many of its cells have something to say."""
_MOST_NUMBERS = 4_000_000


class Marginals(Method):
    """Every pair of columns alike; a label, if there is one, is one more column."""

    name = "marginals"
    kinds = ("table",)
    labels = ("data", "none")

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.cells = cells_of(task.schema)
        self.boxes = boxes(task.schema, self.cells, task.classes)
        kinds = tuple(signatures(self.boxes, place) for place in range(len(self.cells)))
        self.bins = Bins(self.cells, kinds)
        self.most = (*self.bins.most, *((task.classes,) if task.classes > 1 else ()))
        self.pairs = tuple(combinations(range(len(self.most)), 2))
        numbers = sum(self.most[i] * self.most[j] for i, j in self.pairs)
        if numbers > _MOST_NUMBERS:
            raise UsageError(
                f"synth: marginals would count {numbers:,} cells of pairs, at most {_MOST_NUMBERS:,} are possible: "
                "leave out columns (--x) or merge classes."
            )
        self.members = max(1, min(MEMBERS, MEMBERS * _WIDE**2 // sum(self.most) ** 2))
        self.model = _StoredMixture(self.members * (COMPONENTS[-1] + FEWEST * len(self.boxes)), self.most)
        columns = self.most[: len(self.cells)]
        self.teacher = Logistic(columns, task.classes, NewtonSteps()) if task.classes > 1 else None

    def plan(self, records: int) -> tuple[Ask, ...]:
        asks = [Ask("columns", COLUMNS, SHARES[COLUMNS])]
        if self.pairs:
            asks.append(Ask("records", PAIRS, SHARES[PAIRS]))
        if self.teacher is not None:
            asks.append(self.teacher.ask(SHARES[GRADIENT]))
        return tuple(asks)

    def learn(self, counter: Counter, progress: Progress) -> None:
        plan = calibrated(self.plan(0), self.task.epsilon, self.task.delta)
        noise = {ask.name: ask.noise for ask in plan}
        ones = self._columns(counter, noise[COLUMNS])
        sizes = tuple(len(counts) for counts, _ in ones)
        pairs = self._pairs(counter, noise[PAIRS], ones) if self.pairs else {}
        tables = Tables(sizes, ones, pairs, self._masks() if self.task.schema.rules else None)
        steps, seed = self.task.steps or STEPS, self.task.seed
        components = enough(tables, COMPONENTS, min(steps, _TRIAL_STEPS), seed, 2)
        found = Ensemble(tables, components, self.members, seed).fit(steps)
        self.model.fill(found, sizes)
        if self.teacher is not None:
            drawn = torch.as_tensor(self.model.draw(_DRAWN, torch.Generator().manual_seed(seed), {}))[:, :-1]

            def bins(records: Records) -> Tensor:
                return self._codes(records)[:, :-1]

            self.teacher.learn(counter, bins, drawn, found.count, noise[GRADIENT], progress)

    def _columns(self, counter: Counter, noise: float) -> tuple[tuple[Doubles, Doubles], ...]:
        """Noisy counts of each column's bins, with their deviations; the bins follow from them."""
        counts = [one.count for one in self.cells] + list(self.most[len(self.cells) :])
        weights = [math.sqrt(count) for count in counts]

        def places(records: Records) -> Tensor:
            return torch.stack([*(one.code(records.x) for one in self.cells), *self._labels(records)], dim=1)

        found = counter.tables(COLUMNS, places, counts, weights)
        each = deviations(weights, noise)
        cells = zip(found, each, strict=True)
        return tuple(
            self.bins.join(place, table, float(deviation))
            if place < len(self.cells)
            else (table, np.full(len(table), deviation))
            for place, (table, deviation) in enumerate(cells)
        )

    def _masks(self) -> Masks:
        """The boxes in bins, (boxes, S): a bin's cells are all alike to the rules."""
        firsts = [np.unique(self.bins.of(place), return_index=True)[1] for place in range(len(self.cells))]
        firsts += [np.arange(size) for size in self.most[len(self.cells) :]]
        return np.stack(
            [np.concatenate([side[cells] for side, cells in zip(box, firsts, strict=True)]) for box in self.boxes]
        )

    def _labels(self, records: Records) -> list[Tensor]:
        return [records.y] if self.task.classes > 1 else []

    def _codes(self, records: Records) -> Tensor:
        """The bins of each record, with its class if there are classes, (n, columns)."""
        columns = [self.bins.code(place, records.x) for place in range(len(self.cells))]
        return torch.stack([*columns, *self._labels(records)], dim=1)

    def _pairs(
        self, counter: Counter, noise: float, ones: tuple[tuple[Doubles, Doubles], ...]
    ) -> dict[Pair, tuple[Doubles, float]]:
        sizes = torch.tensor([len(counts) for counts, _ in ones])
        left, right = (torch.tensor(side) for side in zip(*self.pairs, strict=True))

        def places(records: Records) -> Tensor:
            codes = self._codes(records)
            return codes[:, left] * sizes[right] + codes[:, right]

        weights = self._weights(ones, noise)
        found = counter.tables(PAIRS, places, (sizes[left] * sizes[right]).tolist(), weights)
        return {
            (i, j): (table.reshape(int(sizes[i]), int(sizes[j])), float(deviation))
            for (i, j), table, deviation in zip(self.pairs, found, deviations(weights, noise), strict=True)
        }

    def _weights(self, ones: tuple[tuple[Doubles, Doubles], ...], noise: float) -> list[float]:
        """By how many cells of a pair would rise above the noise if its columns were independent."""
        count = max(float(np.mean([counts.sum() for counts, _ in ones])), 1.0)
        alone = [nearest(counts, count) for counts, _ in ones]
        usual = _CLEAR * noise * math.sqrt(len(self.pairs))
        cells = [np.minimum(1.0, np.outer(alone[i], alone[j]) / count / usual).sum() for i, j in self.pairs]
        return [max(float(cell), 1e-6) ** (_MORE / 2.0) for cell in cells]  # wₜ² is a table's part of the budget

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        return self.sample_given(rows, generator, {}, only)

    def sample_given(
        self, rows: int, generator: torch.Generator, values: Mapping[str, str], only: int | None = None
    ) -> tuple[Tensor, Tensor]:
        fixed = {}
        for name, value in values.items():
            place = [one.column.name for one in self.cells].index(name)
            fixed[place] = self.bins.of(place)[[self._code(place, value)]]
        if self.teacher is None or only is None:
            return self._labelled(rows, generator, fixed, values)
        pieces: list[tuple[Tensor, Tensor]] = []
        for _ in range(_ROUNDS):
            x, y = self._labelled(max(rows, 1024), generator, fixed, values)
            pieces.append((x[y == only], y[y == only]))
            if sum(len(part) for _, part in pieces) >= rows:
                break
        else:  # the regression hardly ever says this class: take what the mixture draws for it
            bins = torch.as_tensor(self.model.draw(rows, generator, {**fixed, len(self.cells): np.array([only])}))
            pieces.append((self._records(bins, generator, values), torch.full((rows,), only)))
        x, y = (torch.cat([piece[side] for piece in pieces])[:rows] for side in (0, 1))
        return x, y

    def _labelled(
        self, rows: int, generator: torch.Generator, fixed: Mapping[int, Codes], values: Mapping[str, str]
    ) -> tuple[Tensor, Tensor]:
        bins = torch.as_tensor(self.model.draw(rows, generator, fixed))
        x = self._records(bins, generator, values)
        if self.teacher is None:
            return x, torch.zeros(rows, dtype=torch.int64)
        codes = bins[:, : len(self.cells)]
        if self.task.schema.sums:  # which moved numbers
            codes = self._codes(Records(x, bins[:, -1]))[:, :-1]
        return x, spread(self._allowed(codes, self.teacher.probabilities(codes)), generator)

    def _allowed(self, codes: Tensor, chances: Tensor) -> Tensor:
        """The chances of the classes (n, classes), without those that rules forbid beside these bins (n, columns)."""
        if all(box[-1].all() for box in self.boxes):
            return chances
        able = torch.zeros_like(chances, dtype=torch.bool)
        starts = np.concatenate([[0], np.cumsum([self.bins.used(place) for place in range(len(self.cells))])])
        for mask in torch.as_tensor(self._masks()):
            inside = mask[codes + torch.as_tensor(starts[:-1])].all(dim=1)
            able |= inside[:, None] & mask[int(starts[-1]) :]
        kept = torch.where(able, chances.clamp(min=1e-12), torch.zeros_like(chances))
        return kept / kept.sum(dim=1, keepdim=True)

    def _code(self, place: int, value: str) -> int:
        """The cell of a category."""
        column = self.cells[place].column
        return len(column.categories) if value == column.MISSING else column.categories.index(value)

    def _records(self, bins: Tensor, generator: torch.Generator, values: Mapping[str, str]) -> Tensor:
        """Encoded records with these bins, (n, columns) → (n, D), and with these categories."""
        raw, missing = {}, {}
        for place, cells in enumerate(self.cells):
            codes = self.bins.cell(place, bins[:, place], generator)
            if cells.column.name in values:
                codes = torch.full_like(codes, self._code(place, values[cells.column.name]))
            raw[cells.column.name], missing[cells.column.name] = cells.draw(codes, generator)
        keep_sums(self.task.schema.sums, self.task.schema.columns, raw, missing)
        return torch.cat([one.encode(raw[one.column.name], missing[one.column.name]) for one in self.cells], dim=1)

    def modules(self) -> dict[str, nn.Module]:
        teacher = {} if self.teacher is None else {"teacher": self.teacher}
        return {"bins": self.bins, "model": self.model, **teacher}

    def about(self) -> tuple[str, ...]:
        return ("Columns and pairs of columns are alike; what only three or more columns say together may be lost.",)


class _StoredMixture(nn.Module):
    """A mixture in buffers of fixed shapes: ``weight`` (components,), ``chance`` (components, Σ most bins)."""

    weight: Tensor
    chance: Tensor
    used: Tensor

    def __init__(self, components: int, most: tuple[int, ...]) -> None:
        super().__init__()
        self.most = most
        self.register_buffer("weight", torch.zeros(components))
        self.register_buffer("chance", torch.zeros(components, sum(most)))
        self.register_buffer("used", torch.tensor(most))

    def fill(self, found: Ensemble, sizes: tuple[int, ...]) -> None:
        weight, chance = found.flat()
        self.weight.zero_()[: len(weight)] = weight
        self.chance.zero_()
        self.used.copy_(torch.tensor(sizes))
        begin = 0
        for start, size in zip(np.cumsum([0, *self.most[:-1]]), sizes, strict=True):
            self.chance[: len(weight), start : start + size] = chance[:, begin : begin + size]
            begin += size

    def draw(self, rows: int, generator: torch.Generator, fixed: Mapping[int, Codes]) -> Codes:
        """Bins (rows, columns); the columns in ``fixed`` have one of those bins, by conditioning the mixture on it."""
        weights, chances = self.weight.double().numpy(), self.chance.double().numpy().copy()
        starts = np.concatenate([[0], np.cumsum(self.most)]).astype(np.int64)
        for place, bins in fixed.items():
            part = chances[:, starts[place] : starts[place + 1]]
            kept = np.zeros_like(part)
            kept[:, bins] = part[:, bins]
            likely = kept.sum(axis=1)
            weights = weights * likely
            part[:] = kept / np.maximum(likely, 1e-300)[:, None]
        if not weights.sum() > 0.0:
            raise DataError("synth: the model has no records with these values: the domain's rules may forbid them.")
        return rounded_rows(weights, chances, starts, rows, generator)
