"""Inference: the attacker knows every column of a person but one and reads that one from the release.

A number counts as found within 5 % of the population on either side. What holds for everybody can be inferred about
held-out people as well; only what is right more often about members is leakage.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from sfumato.attacks.base import Guess, Measured
from sfumato.attacks.coded_rows import distances, one_hot
from sfumato.attacks.held_out import EXCESS, HeldOutAttack, candidates_of, held_out_scores
from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

WITHIN = 0.05
_MOST = 20_000
"""Rows from which trees learn."""
_TREES = 20
_COMMON = 30


class InferenceAttack(HeldOutAttack):
    """The guess is a value for each candidate and target column, (N, targets).

    ``targets`` are the places and names of the columns in question, ``numbers`` which of them are numbers. With
    ``apart`` each of them ranks for itself, too.
    """

    threat = "inference"
    targets: tuple[int, ...] = ()
    numbers: tuple[bool, ...] = ()
    names: tuple[str, ...] = ()
    apart: bool = False
    with_auxiliary = False

    def obstacle(self, knowledge: Knowledge) -> str | None:
        few = len(knowledge.columns) < 2
        return super().obstacle(knowledge) or ("needs two columns" if few else None)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return np.asarray(self.answers(release.payload, candidates_of(knowledge).x, knowledge), dtype=np.float32)

    @abstractmethod
    def answers(self, released: FloatArray, points: FloatArray, knowledge: Knowledge) -> FloatArray:
        """A value for each point and target; a point's own values of a target must not be used for it."""

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """The middle of the population, or its most frequent category: that takes no release."""
        points = candidates_of(knowledge).x
        best = [
            0.5 if number else float(_frequent(points[:, place]))
            for place, number in zip(self.targets, self.numbers, strict=True)
        ]
        return np.broadcast_to(np.array(best, dtype=np.float32), (n, len(best)))

    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        return np.asarray(self._right(guess, truth).mean(axis=1))

    def of_each(self, guess: Guess, truth: Truth) -> dict[str | None, Values]:
        right = self._right(guess, truth.open())
        found: dict[str | None, Values] = {None: right.mean(axis=1)}
        if self.apart:
            found |= {name: right[:, place] for place, name in enumerate(self.names)}
        return found

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        members = truth.members() == 1
        right = self._right(guess, truth.open())
        confidence = 1.0 - (1.0 - self.confidence) / len(self.targets) if self.apart else self.confidence
        each = [
            held_out_scores(right[:, place], members, confidence, target=name, primary=self.apart)
            for place, name in enumerate(self.names)
        ]
        most = max((found[0] for found in each), key=lambda one: one.value)
        note = f"mean of {len(each)} columns; most for {most.target}" if len(each) > 1 else ""
        whole = held_out_scores(right.mean(axis=1), members, self.confidence, note=note)
        return [*whole, *(one for found in each for one in found if self.apart or one.metric == EXCESS)]

    def _right(self, guess: Guess, truth: Dataset) -> Values:
        own = truth.x[:, list(self.targets)]
        near = np.abs(own - guess) <= WITHIN
        return np.where(np.array(self.numbers), near, own == np.rint(guess)).astype(np.float64)


class NearestRows(InferenceAttack):
    """What the ``k`` nearest released rows have there: the most frequent category, the median number."""

    k: int = 1

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"infer-nearest-{self.k}"

    @property
    def title(self) -> str:  # type: ignore[override]
        return "Nearest row" if self.k == 1 else f"{self.k} nearest rows"

    def answers(self, released: FloatArray, points: FloatArray, knowledge: Knowledge) -> FloatArray:
        k = min(self.k, len(released))
        found = np.empty((len(points), len(self.targets)), dtype=np.float32)
        for rows, apart in distances(points, released, knowledge.columns):
            for at, place in enumerate(self.targets):
                there, here = released[:, place], points[rows, place]
                number = knowledge.columns[place].number
                own = np.abs(here[:, None] - there) if number else (here[:, None] != there)
                known = apart - own
                if k == 1:
                    found[rows, at] = there[known.argmin(axis=1)]
                    continue
                voters = there[np.argpartition(known, k - 1, axis=1)[:, :k]]
                found[rows, at] = np.median(voters, axis=1) if number else _votes(voters)
        return found


class Trees(InferenceAttack):
    """Fully grown random trees learn the column from the others on the release; for a number they regress."""

    name = "infer-trees"
    title = "Trees"
    how = "fully grown trees that learn the column on the release"

    def answers(self, released: FloatArray, points: FloatArray, knowledge: Knowledge) -> FloatArray:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        seed = derive_seed(knowledge.seed, self.name) % 2**32
        rows = released[np.sort(np.random.default_rng(seed).permutation(len(released))[:_MOST])]
        found = np.empty((len(points), len(self.targets)), dtype=np.float32)
        for at, place in enumerate(self.targets):
            inputs, asked = (_without(part, knowledge.columns, place) for part in (rows, points))
            wanted = rows[:, place]
            if knowledge.columns[place].number:
                model = ExtraTreesRegressor(_TREES, max_features="sqrt", random_state=seed)
            else:
                wanted = _common(wanted)
                model = ExtraTreesClassifier(_TREES, random_state=seed)
            found[:, at] = model.fit(inputs, wanted).predict(asked)
        return found


def _without(rows: FloatArray, columns: Sequence[CodedColumn], place: int) -> FloatArray:
    """All columns but one, and but its companion."""
    hidden = {place, *(at for at, one in enumerate(columns) if one.companion and one.name == columns[place].name)}
    kept = [at for at in range(len(columns)) if at not in hidden]
    return one_hot(rows[:, kept], [columns[at] for at in kept])


def _common(codes: FloatArray) -> FloatArray:
    """Codes with all but the most frequent ones replaced by the most frequent: trees pay for every class."""
    values, counts = np.unique(codes, return_counts=True)
    kept = values[np.argsort(-counts, kind="stable")[:_COMMON]]
    return np.where(np.isin(codes, kept), codes, kept[0])


def _frequent(values: FloatArray) -> float:
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()])


def _votes(voters: FloatArray) -> FloatArray:
    """The most frequent value of each row, (N,)."""
    same = (voters[:, :, None] == voters[:, None, :]).sum(axis=2)
    return np.take_along_axis(voters, same.argmax(axis=1)[:, None], axis=1)[:, 0]
