"""What each attack and task gets from the raw records; measured once for a data set and kept."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from sfumato.core.dataset import FloatArray
from sfumato.core.run_folder import read_json, write_json

Values = Mapping[str, float]
"""Metric → value."""


class Controls:
    """Shared by several audits of the same splits, effort and seed; with a ``folder``, also by several processes.

    Whoever needs a figure first measures it while the others wait, so that none is measured twice.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._values: dict[str, Values] = {}
        self._folder = folder
        self._answers: dict[str, FloatArray] = {}

    def get(self, key: str, measure: Callable[[], Values]) -> Values:
        if key not in self._values:
            self._values[key] = measure() if self._folder is None else self._shared(self._folder, key, measure)
        return self._values[key]

    def answers(self, key: str, give: Callable[[], FloatArray]) -> FloatArray:
        """Class scores of the victims, (N, classes), by a learner that sees no release."""
        if key not in self._answers:
            self._answers[key] = give()
        return self._answers[key]

    def _shared(self, folder: Path, key: str, measure: Callable[[], Values]) -> Values:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        with file.with_suffix(".lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # a process that dies lets go of it
            if not file.exists():
                write_json(file, {"key": key, "values": dict(measure())})
            found: Values = read_json(file)["values"]
            return found
