"""The last phase at a party: store the shared set as Parquet and train a plain classifier on it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import unknown
from sfumato.core.run_folder import atomic, write_json

LEARNERS = ("mlp", "logistic")
SHARED = "shared.parquet"
OWN = "own.parquet"
CARD = "card.json"
HELD_OUT = "held-out.parquet"
FARTHEST = 5.0
"""Numbers further from the median of their column than so many deviations (by quartiles) count as that far."""


@dataclass(frozen=True)
class Piece:
    """One party's part of the shared set, or the whole set."""

    party: str
    z: FloatArray
    labels: Mapping[str, IntArray]
    held_out: FloatArray | None = None


def check_learner(name: str) -> None:
    """Raise ``UsageError`` for an unknown classifier."""
    if name not in LEARNERS:
        raise unknown("learner", name, LEARNERS)


def write_piece(
    path: Path, z: FloatArray, labels: Mapping[str, IntArray], classes: Mapping[str, Sequence[str]], **more: Any
) -> None:
    """Atomically write representations as columns z0 …, with labels by class name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {f"z{place}": pa.array(z[:, place]) for place in range(z.shape[1])}
    for label, codes in labels.items():
        columns[_free(label, columns)] = pa.array(np.asarray(classes[label])[codes])
    for name, values in more.items():
        columns[_free(name, columns)] = pa.array(values)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as part:
        pq.write_table(pa.table(columns), part)


def read_piece(path: Path, classes: Mapping[str, Sequence[str]]) -> tuple[FloatArray, dict[str, IntArray]]:
    """Read what ``write_piece`` wrote: the representations, and the codes of the labels present."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    width = sum(1 for name in table.column_names if name.startswith("z") and name[1:].isdigit())
    z = np.stack([table.column(f"z{place}").to_numpy() for place in range(width)], axis=1)
    labels = {}
    for label, names in classes.items():
        if label in table.column_names:
            code = {name: place for place, name in enumerate(names)}
            labels[label] = np.array([code[name] for name in table.column(label).to_pylist()], dtype=np.int64)
    return z, labels


def below(pieces: Sequence[Piece]) -> Piece:
    """Stack the records of all parties."""
    labels = {label: np.concatenate([piece.labels[label] for piece in pieces]) for label in pieces[0].labels}
    return Piece("", np.concatenate([piece.z for piece in pieces]), labels)


def beside(pieces: Sequence[Piece]) -> Piece:
    """Join the parties' representations of the same records side by side (vertical)."""
    tests = [piece.held_out for piece in pieces if piece.held_out is not None]
    z = np.concatenate([piece.z for piece in pieces], axis=1)
    return Piece("", z, pieces[0].labels, np.concatenate(tests, axis=1))


def write_shared(
    out: Path, shared: Piece, pieces: Sequence[Piece], classes: Mapping[str, Sequence[str]], about: Mapping[str, Any]
) -> None:
    """Write ``shared.parquet`` with a card and a README; stacked records also get a column ``party``."""
    rows = len(shared.z) == sum(len(piece.z) for piece in pieces)
    party = np.repeat([piece.party for piece in pieces], [len(piece.z) for piece in pieces])
    write_piece(out / SHARED, shared.z, shared.labels, classes, **({"party": party} if rows else {}))
    counts = {piece.party: len(piece.z) if rows else piece.z.shape[1] for piece in pieces}
    _card(out, shared, counts, {**about, "layout": "rows" if rows else "columns"})


def _card(out: Path, shared: Piece, parties: Mapping[str, int], about: Mapping[str, Any]) -> None:
    z, labels = shared.z, list(shared.labels)
    digest = hashlib.sha256(np.ascontiguousarray(z).tobytes()).hexdigest()
    size = {"rows": len(z), "width": z.shape[1], "parties": dict(parties), "labels": labels, "digest": digest}
    write_json(out / CARD, {**about, **size})
    whose = ", ".join(f"{name} ({count:,} {about['layout']})" for name, count in parties.items())
    lines = [
        "# Shared representations",
        "",
        f"`{SHARED}`: {len(z):,} records as {z.shape[1]} numbers each (`z0` …), with {', '.join(labels)}.",
        f"From: {whose}.",
        "",
        f"Mechanism: {about['mechanism']}. {about['guarantee']}",
        "These are not raw records, but they may still reveal something about them; an audit measures how much.",
        f"`{OWN}` is what this party sent; `{HELD_OUT}` holds its own test records after the same pipeline.",
        *(
            ["The noise is repeatable (party.toml sets a seed): this is an experiment, not a release."]
            if about["repeatable"]
            else []
        ),
        "",
        "```python",
        "import pandas as pd",
        f'shared = pd.read_parquet("{SHARED}")',
        f'z = shared[[f"z{{i}}" for i in range({z.shape[1]})]]',
        "```",
        "",
    ]
    with atomic(out / "README.md") as part:
        part.write_text("\n".join(lines))


def predicted(
    z: FloatArray, labels: Mapping[str, IntArray], held_out: FloatArray, learner: str, seed: int = 0
) -> dict[str, IntArray]:
    """Train on the shared set and return what it says of each held-out record, for each label.

    Columns are clipped by their median and quartiles first, so that a few rows of one party do not set all scales.
    """
    return {label: _fitted(learner, seed, z, codes).predict(held_out) for label, codes in labels.items()}


def learn(
    z: FloatArray,
    labels: Mapping[str, IntArray],
    held_out: FloatArray,
    truth: Mapping[str, IntArray],
    learner: str,
    seed: int = 0,
) -> tuple[dict[str, float], dict[str, npt.NDArray[np.bool_]]]:
    """Train on the shared set and test on the party's own held-out records.

    Returns:
        Accuracy, balanced accuracy, and F1 of the most frequent class in the shared set, for each label; and which of
        the held-out records are right.
    """
    from sklearn.metrics import balanced_accuracy_score, f1_score

    found: dict[str, float] = {"rows": len(z), "held-out": len(held_out)}
    known = {label: codes for label, codes in labels.items() if label in truth}
    each = {}
    for label, guess in predicted(z, known, held_out, learner, seed).items():
        right = truth[label]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[f"balanced-accuracy.{label}"] = float(balanced_accuracy_score(right, guess))
        each[label] = guess == right
        found[f"accuracy.{label}"] = float(np.mean(each[label]))
        common = np.bincount(known[label]).argmax()
        found[f"f1.{label}"] = float(f1_score(right == common, guess == common))
    return found, each


def _fitted(learner: str, seed: int, z: FloatArray, codes: IntArray) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

    check_learner(learner)
    model = (
        MLPClassifier((128,), max_iter=30, batch_size=min(200, len(z)), random_state=seed)
        if learner == "mlp"
        else LogisticRegression(max_iter=200)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping after a fixed number of epochs is intended
        clip = FunctionTransformer(np.clip, kw_args={"a_min": -FARTHEST, "a_max": FARTHEST})
        return make_pipeline(RobustScaler(unit_variance=True), clip, StandardScaler(), model).fit(z, codes)


def _free(name: str, columns: Mapping[str, Any]) -> str:
    """Append underscores to a name until no column has it."""
    return name if name not in columns else _free(f"{name}_", columns)


def smallest_codes(codes: IntArray, classes: int) -> npt.NDArray[Any]:
    """Convert codes to the smallest integer type that holds them."""
    return codes.astype(np.uint8 if classes <= 256 else np.uint16 if classes <= 65_536 else np.int64)
