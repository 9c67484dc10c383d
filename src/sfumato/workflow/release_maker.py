"""The maker of a release of rows, called on other records: a command or a function, and what it has made so far."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sfumato.auditing.result import Say
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.randomness import derive_seed
from sfumato.core.run_folder import read_tensors, write_tensors
from sfumato.data.plain_tables import Given
from sfumato.data.pooled_records import PooledRecords
from sfumato.data.reconciled_tables import Reconciled
from sfumato.workflow.pipeline_command import PipelineCommand

_MADE = "what the pipeline made"
_WORTH_SAYING = 5.0
"""Seconds of one run from which on it is said how long all will take."""


@dataclass
class ReleaseMaker:
    """Makes coded rows of a release of some records. What was made before an audit was interrupted is not made again.

    rows     the place in ``pool`` of each of the owner's, the victims' and the attacker's records
    suffix   of the files that a command writes
    kept     a folder for what was made, while the audit runs; None to keep nothing
    count    how many there will be, for what is said
    """

    pipeline: PipelineCommand | Callable[[Any], Any]
    pool: PooledRecords
    tables: Reconciled
    rows: IntArray
    suffix: str
    seed: int
    count: int
    name: str
    say: Say
    kept: Path | None = None
    _made: dict[int, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = "\0".join(self.pipeline.words) if isinstance(self.pipeline, PipelineCommand) else ""
        self._command = hashlib.scrypt(words.encode(), salt=b"sfumato pipeline", n=2**14, r=8, p=1)

    def __call__(self, places: IntArray, number: int) -> FloatArray:
        if number not in self._made:
            self._made[number] = self._remembered(number, places)
        return self._made[number]

    def _remembered(self, number: int, places: IntArray) -> FloatArray:
        file = None if self.kept is None else self.kept / f"{number}.safetensors"
        asked = self._digest(places)
        if file is not None and file.is_file():
            stored = read_tensors(file)
            if asked in stored:
                return np.asarray(stored[asked].numpy())
        self.say(f"{self.name}: shadow release {number + 1} of {self.count}")
        started = time.perf_counter()
        made = self._make(places, number)
        seconds = time.perf_counter() - started
        if seconds > _WORTH_SAYING and number == 0:
            minutes = seconds * self.count / 60
            self.say(f"{self.name}: it took {seconds:.0f} s, so all will take about {minutes:.0f} min")
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_tensors(file, {asked: torch.as_tensor(made)})
        return made

    def _digest(self, places: IntArray) -> str:
        """By which a stored release is known: the records, and the command, which is not to be read from it."""
        return hashlib.sha256(self._command + np.ascontiguousarray(places, dtype=np.int64).tobytes()).hexdigest()

    def _make(self, places: IntArray, number: int) -> FloatArray:
        """In an order that says nothing: a maker may look at the first rows alone."""
        seed = derive_seed(self.seed, f"maker {number}")
        rows = np.random.default_rng(seed).permutation(self.rows[places])
        if not isinstance(self.pipeline, PipelineCommand):
            return self._coded(self.pipeline(self.pool.take(rows)), seed)
        with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
            asked, target = Path(folder) / f"in{self.pool.suffix}", Path(folder) / f"out{self.suffix}"
            self.pool.write(rows, asked)
            self.pipeline.run(asked, target)
            try:
                return self._coded(target, seed)
            except DataError as error:
                raise DataError(str(error).replace(str(target), _MADE)) from None

    def _coded(self, made: Given, seed: int) -> FloatArray:
        return self.tables.another(made, str(made) if isinstance(made, Path) else _MADE, seed)
