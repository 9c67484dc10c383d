"""From a fitted run that samples to a synthetic data set that anybody can use at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError
from sfumato.core.release import row_digests
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.data.encoding.images import png
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.capabilities import Samples
from sfumato.workflow.release_folder import close_release
from sfumato.workflow.releasing import as_table, writable
from sfumato.workflow.signing import check_key
from sfumato.workflow.spent_budget import BudgetLedger
from sfumato.workflow.warrant import NO_POLICY, Warrant, cleared

BATCH_ROWS = 4096
_TABLE_ROWS, _TABLE_NUMBERS = 65_536, 2**23
"""Most rows and encoded numbers of a table that are drawn at once: the more, the better they can be rounded."""


def sample_run(
    path: Path,
    rows: int,
    out: Path,
    *,
    given: Mapping[str, str] | None = None,
    pictures: bool = False,
    warrant: Warrant = NO_POLICY,
    ledger: Path | None = None,
    say: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """So many synthetic records of the run in ``path``, in the original columns and types, and a card.

    ``out/release.parquet``, or with ``pictures`` a PNG file for each record and ``labels.csv``. ``given`` asks for one
    class: {"digit": "3"}. The folder appears when it is complete. Drawing costs no budget: draw as often as you like.
    The ``warrant`` says under what authority they leave, and the ``ledger`` what the fit's records have cost in all.

    Raises:
        GateFailed: No audit counts or the policy is not passed, and the warrant does not say ``unaudited``.
    """
    run = RunFolder.open(path)
    mechanism = load_mechanism(path)
    if not isinstance(mechanism, Samples):
        raise UsageError(f"{path} holds '{mechanism.name}', which releases given records: name them with --data.")
    if rows < 1:
        raise UsageError(f"--rows must be at least 1, got {rows}.")
    if pictures and mechanism.schema_.kind != "image":
        raise UsageError(f"--png is for pictures; this run makes {mechanism.schema_.kind} records.")
    mechanism.sample(1, given=given)  # an unknown class is refused before anything is written
    leaving = list(mechanism.schema_.utility) if mechanism.traits.needs_labels else []
    promised = mechanism.guarantee().beside(leaving)
    check_key(warrant.key)
    evidence = cleared(path, warrant, bool(leaving), promised)
    source = run.config()["data"].get("source", ledger)  # a fit on arrays has no file that a ledger lies beside
    books = BudgetLedger.of(source, ledger) if promised.kind == "dp" and source else None
    digest = hashlib.sha256()
    with writable(out) as part:
        write = _write_pictures if pictures else _write_parquet
        write(part, _batches(mechanism, rows, _at_once(mechanism.schema_), given, digest, say))
        facts = {
            "warnings": list(promised.warnings),
            "mechanism": mechanism.name,
            "rows": rows,
            "payload_shape": list(mechanism.schema_.shape),
            "digest": digest.hexdigest(),
            "labels": leaving,
            "given": dict(given or {}),
            "guarantee": promised.to_json(),
            "budget": mechanism.spent(),
        }
        account = None if books is None else books.account()
        record = close_release(part, facts, mechanism, promised, evidence, warrant, account)
    return {"release": str(out), **record}


def _at_once(schema: Schema) -> int:
    """Records drawn at a time."""
    if schema.kind != "table":
        return BATCH_ROWS
    return max(BATCH_ROWS, min(_TABLE_ROWS, _TABLE_NUMBERS // schema.size))


def _batches(
    mechanism: Samples, rows: int, most: int, given: Mapping[str, str] | None, digest: Any, say: Callable[[int], None]
) -> Iterator[Dataset]:
    done = 0
    while done < rows:
        drawn = mechanism.sample(min(most, rows - done), given=given)
        digest.update(row_digests(drawn.x))
        done += len(drawn)
        say(done)
        yield drawn


def _write_parquet(folder: Path, batches: Iterator[Dataset]) -> None:
    import pyarrow.parquet as pq

    writer = None
    for drawn in batches:
        table = as_table(drawn.x, drawn.utility, drawn.schema, records=True)
        writer = writer or pq.ParquetWriter(folder / "release.parquet", table.schema, compression="zstd")
        writer.write_table(table)
    if writer is None:
        raise DataError("nothing was drawn.")
    writer.close()


def _write_pictures(folder: Path, batches: Iterator[Dataset]) -> None:
    """``000000.png`` … and ``labels.csv`` with the columns file and labels; `sfumato` reads such a folder."""
    import csv

    number = 0
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        for drawn in batches:
            if number == 0:
                table.writerow(["file", *drawn.utility])
            names = {label: drawn.schema.classes(label) for label in drawn.utility}
            for row, record in enumerate(drawn.x):
                name = f"{number:06d}.png"
                (folder / name).write_bytes(png(record))
                table.writerow([name, *(names[label][codes[row]] for label, codes in drawn.utility.items())])
                number += 1
