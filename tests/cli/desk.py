"""What lies on the desk (tables, images and sounds with and without faults, some runs), and how a command ends."""

from __future__ import annotations

import csv
import json
import math
import wave
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.auditing.effort import SMOKE
from sfumato.core.run_folder import FORMAT
from sfumato.workflow import audit_run, fit_run, resolve

HEADER = ("age", "height", "job", "sex", "income")
PEOPLE = ("--data", "people.csv", "--utility", "income", "--private", "sex")
QUICK = ("--set", "epochs=1")
TINY = replace(SMOKE, attack_epochs=1, attack_width=8, attack_steps=8, inverted=8, inversion_steps=4, task_steps=30)
"""What ``--effort smoke`` means at the desk: here it is asked what commands do, not how well attacks guess."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What stdout holds, which must be strict JSON and nothing else."""
        return json.loads(self.out, parse_constant=_not_json)


def _not_json(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


Call = Callable[..., Outcome]


def people(rows: int = 90) -> list[list[str]]:
    """Numbers, categories and missing values in all three ways of writing them."""
    rng = np.random.default_rng(0)
    return [
        [
            str(rng.integers(18, 90)) if i % 20 else "",
            f"{rng.normal(170 + 10 * (i % 3 > 0), 10):.1f}" if i % 17 else "nan",
            str(rng.choice(["cook", "clerk", "?"])),
            "fm"[i % 2],
            ("low", "high", "high")[i % 3],
        ]
        for i in range(rows)
    ]


def with_cell(row: int, column: str, value: str) -> list[list[str]]:
    """The people with one cell changed."""
    rows = people()
    rows[row][HEADER.index(column)] = value
    return rows


def write_csv(path: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def write_sounds(folder: Path, each: int = 30) -> None:
    """Tones of two pitches, a sub-folder a class."""
    rng = np.random.default_rng(0)
    for name, hertz in (("low", 220.0), ("high", 880.0)):
        (folder / name).mkdir(parents=True)
        for i in range(each):
            time = np.arange(2000) / 8000
            tone = np.sin(2 * math.pi * hertz * rng.uniform(0.9, 1.1) * time) * 0.8
            with wave.open(str(folder / name / f"{i:02}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(8000)
                file.writeframes((tone * 32767).astype("<i2").tobytes())


def set_up(folder: Path) -> None:
    """Everything; the runs refer to the data by relative path."""
    write_csv(folder / "people.csv", people())
    write_csv(folder / "infinite.csv", with_cell(7, "height", "inf"))
    write_csv(folder / "stranger.csv", with_cell(3, "income", "medium"))
    write_csv(folder / "foreign.csv", with_cell(5, "age", "forty"))
    write_csv(folder / "one-class.csv", [[*row[:4], "low"] for row in people()])
    write_csv(folder / "two.csv", people(2))
    write_csv(folder / "empty.csv", [])
    write_csv(folder / "no-age.csv", [row[1:] for row in people()], HEADER[1:])
    (folder / "notes.txt").write_text("hello")

    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.random((60, 4)).astype(np.float32)
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        bad = x.copy()
        bad[5, 1] = value
        np.savez(folder / f"{name}.npz", x=bad, label=y)
        columns = {"a": pa.array(x[:, 0]), "b": pa.array(bad[:, 1]), "label": pa.array(y)}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    for side in (16, 18, 8):
        pixels = rng.integers(0, 256, (60, side, side)).astype(np.uint8)
        np.savez(folder / f"pictures{side}.npz", image=pixels, label=y)
    write_sounds(folder / "sounds")

    data = {"source": "people.csv", "utility": ["income"], "private": ["sex"]}
    for name in ("run", "audited"):
        fit_run(resolve("ran", data, {"epochs": 1}, seed=0), Path(name))
    audit_run(Path("audited"), effort=TINY)
    pictures = {"source": "pictures16.npz", "utility": ["label"]}
    fit_run(resolve("dnn", pictures, {"epochs": 1}, seed=0), Path("picture-run"))
    interrupted = folder / "interrupted"
    fit_run(resolve("ran", data, {"epochs": 1}, seed=0), Path("interrupted"))
    (interrupted / "status.json").write_text(json.dumps({"state": "running", "format": FORMAT}))
