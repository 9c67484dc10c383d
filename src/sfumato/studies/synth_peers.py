"""``synth-peers``: students of our synthetic tables beside students of other synthesizers' tables, in the same run.

Everyone gets the same training records, ε, δ and number of rows to draw, and is tested on the same held-out records by
the same students. Models of categories (MST, AIM and the private GANs) get every column cut into bins by the declared
domain alone, as their authors advise; CTGAN, which is not private, gets the values. All have their library's settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import load
from sfumato.auditing.students import LOGISTIC, TREES, fit_student
from sfumato.auditing.utility import classification_scores
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import unknown
from sfumato.core.randomness import derive_seed
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.studies.base import Measurement
from sfumato.studies.peers import PEERS, run_peer
from sfumato.studies.peers.peer_tables import as_codes, as_values, from_codes, from_values
from sfumato.studies.rows import Row, over_seeds, plain_row

LABEL = "income"
DELTA = 1e-5
OURS, REAL = "synth", "real"
METHODS = ("tree", "marginals")
"""Ours that make tables; both are told the label."""
STUDENTS = (TREES, LOGISTIC)
METRICS = ("accuracy", "auroc")


@dataclass(frozen=True)
class PeerEffort:
    """How much of the comparison to run."""

    epsilons: tuple[float, ...]
    peers: tuple[str, ...]
    limit_seconds: float
    repeats: int
    """Runs of ours with fresh noise; peers run once."""


EFFORTS = {
    "smoke": PeerEffort((1.0,), ("mst",), 300.0, 1),
    "cpu": PeerEffort((0.5, 1.0, 3.0, 10.0), ("mst",), 600.0, 5),
    "full": PeerEffort((0.5, 1.0, 3.0, 10.0), tuple(PEERS), 3600.0, 5),
}

LIMITS = {"smoke": 3000}
"""Training records, and as many to test on."""

Say = Callable[[str], None]


def rows(
    *,
    data: str = "adult",
    scale: str = "cpu",
    limit: int | None = None,
    seed: int = 0,
    out: Path = Path("runs/synth-peers"),
    say: Say = lambda _: None,
    **_: Any,
) -> list[Row]:
    """The comparison's rows; every finished part is kept in ``out`` and not run again."""
    if scale not in EFFORTS:
        raise unknown("scale", scale, EFFORTS)
    effort = EFFORTS[scale]
    train = load(data, utility=LABEL, private=(), part="train", limit=limit, seed=seed)
    test = load(data, utility=LABEL, private=(), part="test", limit=limit, seed=seed)
    return compared(train, test, effort, seed=seed, out=out, say=say)


def compared(train: Dataset, test: Dataset, effort: PeerEffort, *, seed: int, out: Path, say: Say) -> list[Row]:
    """As ``rows``, for any records with a label ``income``."""
    found: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for epsilon in effort.epsilons:
        for method, repeat in product(METHODS, range(effort.repeats)):
            name = f"{OURS}-{method}-{epsilon:g}-{repeat}"
            result = _kept(out / f"{name}.json", partial(_ours, train, test, method, epsilon, seed + repeat))
            found.setdefault((f"{OURS}, {method}", epsilon), []).append(result)
            say(_sentence(name, result))
    for peer in effort.peers:
        for epsilon in effort.epsilons if PEERS[peer].private else effort.epsilons[:1]:
            name = f"{peer}-{epsilon:g}" if PEERS[peer].private else peer
            make = partial(_theirs, train, test, peer, epsilon, effort.limit_seconds, out, seed)
            result = _kept(out / f"{name}.json", make)
            found[peer, epsilon if PEERS[peer].private else None] = [result]
            say(_sentence(name, result))
            if "failed" in result:
                break  # a larger budget takes longer, not shorter
    found[REAL, None] = [_kept(out / "real.json", partial(_scored, train.x, train.utility[LABEL], test, seed))]
    return _rows(found)


def _kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if path.exists():
        return dict(read_json(path))
    result = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, result)
    return result


def _ours(train: Dataset, test: Dataset, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    started = time.perf_counter()
    drawn = Synth(method=method, epsilon=epsilon, delta=DELTA, seed=seed).fit(train).sample(len(train))
    seconds = time.perf_counter() - started
    return {"seconds": seconds, **_scored(drawn.x, drawn.utility[LABEL], test, seed)}


def _theirs(
    train: Dataset, test: Dataset, name: str, epsilon: float, limit: float, out: Path, seed: int
) -> dict[str, Any]:
    import pyarrow.parquet as pq

    coded = PEERS[name].wants == "codes"
    table = as_codes(train, LABEL) if coded else as_values(train, LABEL)
    source = out / ("train-codes.parquet" if coded else "train-values.parquet")
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, source)
    texts = table.column_names if coded else _texts(train)
    target = out / f"{name}-{epsilon:g}.parquet"
    outcome = run_peer(name, epsilon, source, target, limit, texts=texts, delta=DELTA, seed=seed)
    if outcome.path is None:
        return {"seconds": outcome.seconds, "failed": outcome.failed}
    drawn = pq.read_table(outcome.path)
    x, y = from_codes(drawn, train.schema, LABEL, seed) if coded else from_values(drawn, train.schema, LABEL)
    return {"seconds": outcome.seconds, **_scored(x, y, test, seed)}


def _texts(data: Dataset) -> list[str]:
    return [*(column.name for column in data.schema.columns if column.kind == "categorical"), LABEL]


def _scored(x: FloatArray, y: IntArray, test: Dataset, seed: int) -> dict[str, Any]:
    """Accuracy and AUROC of every student on the held-out records, each with its interval."""
    scores: dict[str, Any] = {}
    for student in STUDENTS:
        chance = derive_seed(seed, "peers", student)
        guess = fit_student(student, x, y, len(test.schema.classes(LABEL)), 1, 1, chance)(test.x)
        for score in classification_scores(student, LABEL, guess, test, 0.0, None):
            if score.metric in METRICS:
                scores[f"{student} {score.metric}"] = [score.value, *score.ci]
    majority = float(np.bincount(test.utility[LABEL]).max() / len(test))
    return {"scores": scores, "records": len(test), "majority": majority}


def _sentence(name: str, result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"{name}: {result['failed']}"
    accuracy, auroc = (result["scores"][f"{TREES} {metric}"][0] for metric in METRICS)
    return f"{name}: accuracy {accuracy:.4f}, AUROC {auroc:.4f} with {TREES}, {result['seconds']:.0f} s"


def _title(name: str, epsilon: float | None) -> str:
    title = PEERS[name].title if name in PEERS else "the real records" if name == REAL else name
    return title if epsilon is None else f"{title}, ε = {epsilon:g}"


def _rows(found: dict[tuple[str, float | None], list[dict[str, Any]]]) -> list[Row]:
    """Of several runs the mean, with an interval for what differs between runs and between test records."""
    return [
        row
        for (name, epsilon), results in found.items()
        for row in over_seeds([_run_rows(_title(name, epsilon), result) for result in results])
    ]


def _run_rows(title: str, result: dict[str, Any]) -> list[Row]:
    if "failed" in result:
        return [plain_row(f"{title}: {result['failed']}", "seconds", "lower", result["seconds"])]
    rows = []
    for student in STUDENTS:
        for metric in METRICS:
            value, low, high = result["scores"][f"{student} {metric}"]
            share = result["majority"] if metric == "accuracy" else None
            name, n = f"{title}: {student}, {metric}", result["records"]
            rows.append(Row(name, metric, "higher", None, value, (low, high), n=n, majority=share))
    if "seconds" in result:
        rows.append(plain_row(f"{title}: to learn and draw", "seconds", "lower", result["seconds"]))
    return rows


STUDY = Measurement(
    name="synth-peers",
    family="synth-peers",
    title="Synthetic tables of several makers, students on real records",
    about=(
        "Students of synthetic tables by several makers at the same (ε, δ), on real test records of Adult, and the "
        "time that it takes to learn and draw. The paper has no tables."
    ),
    data=("adult",),
    run=rows,
    limits=LIMITS,
)
