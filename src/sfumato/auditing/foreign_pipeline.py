"""A pipeline that somebody else made, as far as an attacker can ask it: by pairs that are known, or by running it.

A run sends *all* records through the pipeline, as the release was made, so that what depends on the whole file (means,
principal components, a key) is as it was for the victims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import DataError, Unanswered
from sfumato.core.origin import hash_rows

Rows = npt.NDArray[np.intp]
Rerun = Callable[[], FloatArray]
"""All records once more → their payloads, in the records' order."""
Manner = Literal["pairs", "fixed", "random", "anew"]

_SAME = 1e-5
"""Numbers that agree to this part of the release's deviation are equal: the rest is arithmetic."""
_MOST_CHECKED = 2_000
_BEYOND = 2.0
"""Standard errors beyond the largest of so many correlations that chance makes."""
PAIRS_ONLY = (
    "needs payloads of records of its choice: give the command that makes them (--pipeline 'command {in} {out}')"
)
MADE_ANEW = (
    "needs payloads of records of its choice, and two runs of the pipeline share nothing that could be compared: "
    "the attacks use the pairs of this release"
)


@dataclass
class ForeignPipeline:
    """What an attacker may ask.

    data     all records, in their order
    payload  (N, …), the release
    own      rows of the attacker's records: of these he has the pairs
    rerun    sends all records through the pipeline; None if it cannot be run
    most     runs, beside the release; further questions get the same answers in turn
    """

    data: Dataset
    payload: FloatArray
    own: Rows
    rerun: Rerun | None
    most: int
    manner: Manner = field(init=False)

    def __post_init__(self) -> None:
        self._runs: list[FloatArray] = []
        self._asked = np.zeros(len(self.data), dtype=np.int64)
        self._mine = np.zeros(len(self.data), dtype=bool)
        self._mine[self.own] = True
        self._rows = _Finder(self.data)
        self.manner = self._manner()
        self.most = min(self.most, 1) if self.manner == "fixed" else self.most

    @property
    def randomised(self) -> bool:
        """Whether another question about the same record gets another answer."""
        return self.manner == "random"

    def query(self, data: Dataset) -> FloatArray:
        """Payloads of these records: the pairs of the release first, then those of further runs.

        Raises:
            Unanswered: Nobody can say what the pipeline would make of one of them.
        """
        rows = self._rows(data)
        known = self._mine[rows]
        if not known.all() and self.manner in ("pairs", "anew"):
            raise Unanswered(PAIRS_ONLY if self.manner == "pairs" else MADE_ANEW)
        turn = self._asked[rows].copy()
        self._asked[rows] += 1
        if not self.randomised:
            answers = self.payload[rows]
            if not known.all():
                answers[~known] = self._run(1)[rows[~known]]
            return np.asarray(answers)
        which = np.where(known, turn % (self.most + 1), 1 + turn % self.most)
        answers = np.empty((len(rows), *self.payload.shape[1:]), dtype=np.float32)
        for number in np.unique(which):
            here = which == number
            answers[here] = (self.payload if number == 0 else self._run(int(number)))[rows[here]]
        return answers

    def _run(self, number: int) -> FloatArray:
        assert self.rerun is not None  # a pipeline that is pairs alone has refused before
        while len(self._runs) < number:
            self._runs.append(self.rerun())
        return self._runs[number - 1]

    def _manner(self) -> Manner:
        """How the pipeline answers, by two runs of it."""
        if self.rerun is None:
            return "pairs"
        first, second = self._run(1), self._run(2)
        if not _equal(first, second, self.payload):
            runs = (self.payload, first, second)
            return "random" if _go_together(runs) else "anew"
        if _equal(first, self.payload, self.payload):
            return "fixed"
        flat = np.abs(first - self.payload).reshape(len(first), -1).max(axis=1)
        row = int(np.argmax(flat > _SAME * _deviation(self.payload)))
        raise DataError(
            f"the pipeline gives the same payloads in every run, and not those of the release (record {row} of "
            f"{self.data.name} is the first that differs): give the command that made the release, or leave out "
            "--pipeline."
        )


class _Finder:
    """Which row of a data set each of some records is: by subject and content, else by content and labels."""

    def __init__(self, data: Dataset) -> None:
        self._places: dict[bytes, list[int]] = {}
        self._likely: dict[bytes, int] = {}
        for row, (whose, what) in enumerate(zip(*_keys(data), strict=True)):
            self._places.setdefault(whose, []).append(row)
            self._likely.setdefault(what, row)

    def __call__(self, data: Dataset) -> Rows:
        turn: dict[bytes, int] = {}
        rows = np.empty(len(data), dtype=np.intp)
        for number, (whose, what) in enumerate(zip(*_keys(data), strict=True)):
            known = self._places.get(whose)
            if known is None:
                if what not in self._likely:
                    raise Unanswered(
                        "needs payloads of records that it makes up, and the pipeline only knows the given ones"
                    )
                rows[number] = self._likely[what]
                continue
            place = turn.get(whose, 0)  # copies of one record by one person: one after the other
            turn[whose] = place + 1
            rows[number] = known[place % len(known)]
        return rows


def _keys(data: Dataset) -> tuple[list[bytes], list[bytes]]:
    contents = [row.tobytes() for row in hash_rows(data.x)]
    labels = [codes for _, codes in sorted({**data.utility, **data.private}.items())]
    told = [np.asarray([codes[row] for codes in labels], dtype=np.int64).tobytes() for row in range(len(data))]
    whose = [content + str(id).encode() for content, id in zip(contents, data.ids.tolist(), strict=True)]
    return whose, [content + b"\0" + said for content, said in zip(contents, told, strict=True)]


def _deviation(payload: FloatArray) -> float:
    return float(payload.std()) or 1.0


def _equal(one: FloatArray, other: FloatArray, payload: FloatArray) -> bool:
    return bool(np.abs(one - other).max() <= _SAME * _deviation(payload))


def _go_together(runs: tuple[FloatArray, ...]) -> bool:
    """Whether some number of the payload is alike in several runs, and none is reversed, by their correlations."""
    flat = [run[:_MOST_CHECKED].reshape(min(len(run), _MOST_CHECKED), -1).astype(np.float64) for run in runs]
    flat = [run - run.mean(axis=0) for run in flat]
    found = []
    for one, other in combinations(flat, 2):
        scale = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
        moving = scale > 0
        found.append((one * other).sum(axis=0)[moving] / scale[moving] * np.sqrt(len(one)))  # N(0, 1) by chance
    z = np.concatenate(found)
    limit = _BEYOND + np.sqrt(2 * np.log(max(2, len(z))))
    return bool(len(z) and z.max() > limit and z.min() > -limit)
