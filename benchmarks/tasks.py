"""What is measured against its size: each task makes its input once and does its work in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Task:
    """``work(folder, size)`` imports and loads what is not measured, and gives what is.

    ``sizes`` count ``along``; ``few`` are those of a quick try. ``why`` explains a cost that grows faster than its
    size, where it does.
    """

    about: str
    along: str
    sizes: tuple[int, ...]
    few: tuple[int, ...]
    prepare: Callable[[Path, int], object]
    work: Callable[[Path, int], Work]
    why: str = ""


# Records: pictures of 28×28 in a Parquet file, and rows of a table.


def _digits() -> tuple[Any, Any]:
    from sfumato.data import load

    digits = load("digits")
    order = np.random.default_rng(0).permutation(len(digits))  # they lie sorted
    return np.round(digits.x[order] * 255).astype(np.uint8).reshape(len(digits), -1), digits.utility["digit"][order]


def write_pictures(path: Path, records: int) -> Path:
    """So many digits with a label; beyond the embedded ones each is changed in eight places, so that none repeats."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = _digits()
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, records, len(x)):
        many = min(len(x), records - start)
        piece = x[:many].copy()
        if start:
            places = rng.integers(0, piece.shape[1], (many, 8))
            piece[np.arange(many)[:, None], places] = rng.integers(0, 256, (many, 8))
        pixels = pa.FixedSizeListArray.from_arrays(pa.array(piece.reshape(-1)), piece.shape[1])
        table = pa.table({"image": pixels, "digit": pa.array(y[:many])})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


_TABLE = """
[columns.age]
kind = "numeric"
low = 0
high = 99
integer = true

[columns.hours]
kind = "numeric"
low = 0
high = 80
integer = true

[columns.job]
kind = "categorical"
categories = ["clerk", "cook", "driver", "nurse", "teacher"]

[columns.place]
kind = "categorical"
categories = ["north", "east", "south", "west"]

[columns.income]
kind = "categorical"
categories = ["low", "high"]
"""


def write_table(folder: Path, records: int) -> Path:
    """People with an income that follows from age, hours and job; the domain is beside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    age, hours = rng.integers(18, 90, records), rng.integers(0, 70, records)
    job, place = rng.integers(0, 5, records), rng.integers(0, 4, records)
    rich = age + hours + 8 * job + rng.normal(0, 20, records) > 110
    names = ["clerk", "cook", "driver", "nurse", "teacher"], ["north", "east", "south", "west"], ["low", "high"]
    columns: dict[str, Any] = {"age": age, "hours": hours}
    for name, values, codes in zip(("job", "place", "income"), names, (job, place, rich.astype(int)), strict=True):
        columns[name] = np.asarray(values)[codes]
    pq.write_table(pa.table(columns), folder / f"people-{records}.parquet")
    (folder / "domain.toml").write_text(_TABLE)
    return folder / f"people-{records}.parquet"


def _config(mechanism: str, source: Path, **params: Any) -> dict[str, Any]:
    from sfumato.workflow import resolve

    return resolve(mechanism, {"source": str(source), "utility": ["digit"], "private": []}, params, seed=0)


def _fit_small(folder: Path) -> Path:
    """A run on a few pictures, for releases."""
    from sfumato.workflow import fit_run

    if not (folder / "run").exists():
        fit_run(_config("ran", write_pictures(folder / "small.parquet", 1000), epochs=1), folder / "run")
    return folder / "run"


def _prepare_release(folder: Path, records: int) -> None:
    _fit_small(folder)
    write_pictures(folder / f"{records}.parquet", records)


def _release(folder: Path, records: int) -> Work:
    from sfumato.workflow import UNAUDITED, release_run

    def work() -> None:
        with _fresh(folder) as out:
            found = release_run(folder / "run", str(folder / f"{records}.parquet"), out, warrant=UNAUDITED)
            assert found["rows"] == records

    return work


def _prepare_pictures(folder: Path, records: int) -> None:
    write_pictures(folder / f"{records}.parquet", records)


def _fit(folder: Path, records: int) -> Work:
    from sfumato.workflow import fit_run

    config = _config("ran", folder / f"{records}.parquet", epochs=1)

    def work() -> None:
        with _fresh(folder) as out:
            fit_run(config, out)

    return work


def _prepare_audit(folder: Path, records: int) -> None:
    from sfumato.workflow import fit_run

    source = write_pictures(folder / f"{records}.parquet", records)
    fit_run(_config("ran", source, epochs=1), folder / f"run-{records}")


def _audit(folder: Path, records: int) -> Work:
    from sfumato.auditing import SMOKE
    from sfumato.workflow import audit_run

    return lambda: audit_run(folder / f"run-{records}", effort=SMOKE, again=True)


def _synth(folder: Path, records: int) -> Work:
    import sfumato
    from sfumato.mechanisms.synth.mechanism import Synth

    source, domain = folder / f"people-{records}.parquet", folder / "domain.toml"

    def work() -> None:
        data = sfumato.load(source, utility="income", private=(), domain=domain)
        Synth(epsilon=1.0).fit(data).sample(1000)

    return work


# Numbers in a record.

_FIXED, _RELEASES = 384, 5


def _wide(side: int) -> Any:
    from sfumato.core.dataset import Dataset
    from sfumato.core.schema import Schema

    rng = np.random.default_rng(0)
    schema = Schema("image", (1, side, side), utility={"bright": ("no", "yes")})
    y = np.arange(_FIXED) % 2
    x = (rng.random((_FIXED, 1, side, side)) / 2 + y[:, None, None, None] / 2).astype(np.float32)
    return Dataset(x, schema, {"bright": y}, name="noise")


def _side(numbers: int) -> int:
    return round(numbers**0.5)


def _nothing(_folder: Path, _size: int) -> None:
    return None


def _fit_wide(_folder: Path, numbers: int) -> Work:
    from sfumato.mechanisms.ran.mechanism import RAN

    data = _wide(_side(numbers))
    return lambda: RAN(epochs=1).fit(data)


def _prepare_wide(folder: Path, numbers: int) -> None:
    from sfumato.mechanisms.ran.mechanism import RAN

    RAN(epochs=1).fit(_wide(_side(numbers))).save(folder / f"wide-{numbers}")


def _release_wide(folder: Path, numbers: int) -> Work:
    from sfumato.mechanisms import load_mechanism

    data, ran = _wide(_side(numbers)), load_mechanism(folder / f"wide-{numbers}")
    return lambda: [ran.release(data) for _ in range(_RELEASES)]


# Parties, users and points.

_EACH, _WIDTH = 1000, 64


def _pool(folder: Path, parties: int) -> Work:
    """The last phase of ``sfumato share``: stack what the parties sent, store it, and learn from it."""
    from sfumato.parties.pooled_learning import Piece, below, learn, write_shared

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, _WIDTH)).astype(np.float32)

    def piece(number: int) -> Piece:
        y = rng.integers(0, 10, _EACH)
        return Piece(
            f"party-{number}", (centres[y] + rng.normal(size=(_EACH, _WIDTH))).astype(np.float32), {"digit": y}
        )

    pieces = [piece(number) for number in range(parties)]
    held = piece(parties)
    about = {"mechanism": "ars", "guarantee": "", "repeatable": True}

    def work() -> None:
        with _fresh(folder) as out:
            shared = below(pieces)
            write_shared(out, shared, pieces, {"digit": tuple("0123456789")}, about)
            learn(shared.z, shared.labels, held.z, held.labels, "mlp")

    return work


_OWN, _LATENT = 100, 10


def _users(_folder: Path, users: int) -> Work:
    """Linear filters of many users, 100 records each, trained together: as ``sfumato fit filter-linear --users``."""
    import torch

    from sfumato.core.dataset import Dataset
    from sfumato.core.schema import Schema
    from sfumato.mechanisms.filter.many_users import User, fit_together
    from sfumato.mechanisms.filter.mechanism import LinearFilter
    from sfumato.mechanisms.filter.vae import VAE

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    schema = Schema("image", (1, 8, 8), utility={"u": ("a", "b")}, private={"y": ("a", "b")})
    x = rng.random((users * _OWN + 1000, 1, 8, 8)).astype(np.float32)
    u, y = (x[:, 0, 0, 0] > 0.5).astype(np.int64), (x[:, 0, 4, 4] > 0.5).astype(np.int64)
    data = Dataset(x, schema, {"u": u}, {"y": y}, name="made up")
    base = VAE(epochs=1, latent=_LATENT)
    base.schema_ = schema
    base._build(schema)
    chosen = {
        f"user-{n}": User(f"user-{n}", ("y",), ("u",), np.arange(n * _OWN, (n + 1) * _OWN), 10.0) for n in range(users)
    }
    return lambda: fit_together(chosen, data, base, LinearFilter(steps=50, batch=128, adversary_steps=1))


def _sweep(_folder: Path, points: int) -> Work:
    from sfumato.data import load_splits
    from sfumato.mechanisms.ran.mechanism import RAN

    owner = load_splits("digits", utility=["odd"], private=["ge5"], limit=1000, seed=0).owner

    def work() -> None:
        before = None
        for lam in np.geomspace(0.9, 0.01, points):
            before = RAN(lam=float(lam), epochs=4).fit(owner, start=before)

    return work


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """A name for a folder that is gone afterwards."""
    with TemporaryDirectory(dir=folder) as name:
        yield Path(name) / "out"


_RECORDS, _FEW = (1_000, 10_000, 100_000), (200, 800)

TASKS: Mapping[str, Task] = {
    "release": Task(
        "`ran` releases 28×28 pictures from a Parquet file",
        "records", (*_RECORDS, 1_000_000), (500, 2000), _prepare_release, _release,
    ),
    "fit": Task("`ran` is fitted to 28×28 pictures, one epoch", "records", _RECORDS, _FEW, _prepare_pictures, _fit),
    "audit": Task(
        "`ran` is audited at effort smoke", "records", _RECORDS, (400, 800), _prepare_audit, _audit,
    ),
    "synth": Task(
        "`synth` learns a table of five columns",
        "records", (*_RECORDS, 1_000_000), (500, 2000), write_table, _synth,
    ),
    "fit-wide": Task(
        f"`ran` is fitted to {_FIXED} pictures, one epoch",
        "numbers a record", (256, 1024, 4096, 16_384), (256, 1024), _nothing, _fit_wide,
    ),
    "release-wide": Task(
        f"`ran` releases {_FIXED} pictures, {_RELEASES} times",
        "numbers a record", (256, 1024, 4096, 16_384), (256, 1024), _prepare_wide, _release_wide,
    ),
    "pool": Task(
        f"a party stores and learns from what all parties share, {_EACH:,} records each",
        "parties", (2, 4, 8, 16, 32, 64), (2, 4), _nothing, _pool,
    ),
    "users": Task(
        f"linear filters of users with {_OWN} records each, trained together",
        "users", (1, 10, 100, 1_000, 10_000), (1, 10), _nothing, _users,
    ),
    "sweep": Task(
        "`ran` at so many λ, each starting from the last", "points", (1, 2, 4, 8, 16), (1, 2), _nothing, _sweep,
    ),
}  # fmt: skip
