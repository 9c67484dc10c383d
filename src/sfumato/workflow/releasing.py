"""From a fitted run folder and any amount of data to a release folder, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, RuleBroken, UsageError
from sfumato.core.guarantee import ONE_ROW, SEVERAL_ROWS, Guarantee
from sfumato.core.release import Release, row_digests, unchanged_row
from sfumato.core.run_folder import RunFolder, atomic, sweep
from sfumato.core.schema import Schema
from sfumato.data import decode_table, stream
from sfumato.data.encoding.images import png
from sfumato.data.encoding.tables import Unseen
from sfumato.data.numeric_labels import as_column
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import NeedsSecret, ReleasesWhole
from sfumato.workflow.record_spool import spooled
from sfumato.workflow.release_folder import close_release
from sfumato.workflow.repeated_records import RepeatedRecords, Warn
from sfumato.workflow.secret_marks import is_marked, keep_mark, secret_mark
from sfumato.workflow.signing import check_key
from sfumato.workflow.spent_budget import Account, BudgetLedger, Charge
from sfumato.workflow.warrant import NO_POLICY, Evidence, Warrant, cleared

BATCH_ROWS = 4096
PAYLOAD = "payload"
RELEASED = "release.parquet"
_UNSEEN = "No audit attacked these labels: sfumato audit attacks what leaves without --labels-unprotected."


def release_run(
    path: Path,
    source: str,
    out: Path,
    *,
    labels: bool = False,
    unprotected: bool = False,
    ledger: Path | None = None,
    unseen: bool = False,
    warrant: Warrant = NO_POLICY,
    say: Callable[[int], None] = lambda _: None,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Release ``source`` through the mechanism in ``path`` as ``out/release.parquet``, with its card and papers.

    A run releases if its audit counts and the policy of the ``warrant``, or the one that was put to the run before, is
    passed (``workflow.warrant``); what lies beside the payload is in ``workflow.release_folder``.

    Records stream through; only what counts their copies stays in memory. With ``labels`` the utility labels go along,
    if the guarantee covers them or promises nothing; with ``unprotected`` in any case, and the card begins with that.
    Private labels are read only if the mechanism needs them, and never written. A mechanism that hides the result
    releases no labels. The card's guarantee is that of this release: a condition that does not hold for these records
    leaves nothing promised. The folder appears when it is complete. ``say`` hears the number of records done,
    ``warn`` what the owner should know. What a proven (ε, δ) spends on these records is noted in the ``ledger`` of the
    data, by default beside them. With ``unseen`` a category that training never saw counts as missing instead of
    stopping the release, where a missing value can be represented; the card says how many did.

    Raises:
        GateFailed: No audit counts or the policy is not passed, and the warrant does not say ``unaudited``.
    """
    terms = terms_of(path, labels=labels, unprotected=unprotected)
    evidence = terms.cleared(path, warrant)
    mechanism, traits = terms.mechanism, terms.mechanism.traits
    digest, rows, seen = hashlib.sha256(), 0, WholeFile(terms.promised)
    shape: tuple[int, ...] = ()
    with writable(out) as part:
        writer = None
        counted = Unseen() if unseen else None
        batches = stream(
            source,
            mechanism.schema_,
            batch_rows=BATCH_ROWS,
            utility=terms.labels,
            private=traits.reads_private,
            unseen=counted,
        )
        with _releases(mechanism, seen.watched(batches), terms.labels, part) as releases:
            for release in releases:
                seen.broken |= release.guarantee.broken()
                table = as_table(release.payload, release.utility, mechanism.schema_, records=traits.gives_records)
                if writer is None:
                    writer = written_to(part / RELEASED, table.schema)
                writer.write_table(table)
                digest.update(row_digests(release.payload))
                rows, shape = rows + len(release), release.payload.shape[1:]
                say(rows)
            if writer is None:
                raise DataError(f"{source} holds no records.")
            writer.close()
            kept = terms.kept(seen, warn)
            facts = terms.facts(kept, rows, shape, digest.hexdigest())
            if counted:
                many = ", ".join(f"{number:,} of '{column}'" for column, number in counted.items())
                warn(sentence := f"values that training never saw counted as missing: {many}")
                facts = {**facts, "warnings": [*facts["warnings"], f"{sentence}."], "unseen": dict(counted)}
            account = charged(kept, source, out, ledger)
            record = close_release(part, facts, mechanism, kept, evidence, warrant, account)
            charge(kept, source, out, ledger, warn)
        keep_mark(path, terms.mark)
    return {"release": str(out), **record}


class WholeFile:
    """What the records of a release, all together, say against its promise."""

    def __init__(self, promised: Guarantee) -> None:
        self.repeated, self.broken = RepeatedRecords(), dict[str, str]()
        self.one_row = any(one.name == ONE_ROW.name for one in promised.conditions)
        self._people: set[int] = set()

    def watched(self, batches: Iterable[Dataset]) -> Iterator[Dataset]:
        for batch in batches:
            self.repeated.add(batch)
            if self.one_row and batch.named:
                found = {hash(person) for person in batch.ids.tolist()}
                self.broken |= {} if self._people.isdisjoint(found) else {ONE_ROW.name: SEVERAL_ROWS}
                self._people |= found
            yield batch


@dataclass(frozen=True)
class ReleaseTerms:
    """What may leave of a run, and what is promised about it; ``mark`` is the device's secret, if one is needed."""

    mechanism: Mechanism
    promised: Guarantee
    labels: bool
    mark: str | None

    def kept(self, seen: WholeFile, warn: Warn) -> Guarantee:
        """The promise of this release, once all records are known."""
        if (sentence := seen.repeated.sentence(self.mechanism.traits)) is not None:
            warn(sentence)
        return self.promised.of_release(self.leaving, seen.broken)

    @property
    def leaving(self) -> list[str]:
        """The labels that go along."""
        return list(self.mechanism.schema_.utility) if self.labels else []

    def cleared(self, path: Path, warrant: Warrant) -> Evidence:
        """What the run brings to this release; raises ``GateFailed`` before a record is read."""
        check_key(warrant.key)
        return cleared(path, warrant, self.labels, self.promised.of_release(self.leaving))

    def facts(self, kept: Guarantee, rows: int, shape: tuple[int, ...], digest: str) -> dict[str, Any]:
        """What ``release.json`` says of the payload and its promise."""
        return {
            "warnings": [*kept.warnings, *([_UNSEEN] if kept.in_clear else [])],
            "mechanism": self.mechanism.name,
            "rows": rows,
            "payload_shape": list(shape),
            "digest": digest,
            "labels": self.leaving,
            **({} if self.mark is None else {"secret": self.mark}),
            "guarantee": kept.to_json(),
        }


def terms_of(path: Path, *, labels: bool, unprotected: bool) -> ReleaseTerms:
    """What a release of the run in ``path`` may hold; what it may not is refused before a record is read."""
    RunFolder.open(path)
    mechanism = load_mechanism(path)
    traits = mechanism.traits
    if traits.synthetic:
        raise UsageError(f"{path} draws records of its own: say how many with --rows, and leave out --data.")
    mark = None
    if isinstance(mechanism, NeedsSecret):
        mark = secret_mark(path)
        mechanism.check_writing(again=is_marked(path))
    promised, labels = mechanism.guarantee(), labels or unprotected
    if labels and traits.hides_result:
        raise UsageError(f"{mechanism.name} hides the label as well; beside a message it would tell whose it is.")
    if labels and promised.proven and not (promised.covers.labels or unprotected):
        raise UsageError(
            f"the guarantee of {path} does not cover labels: leave out --labels, or say --labels-unprotected to let "
            "them leave in clear, outside of the promise."
        )
    if labels and PAYLOAD in mechanism.schema_.utility:
        raise DataError(f"the utility label '{PAYLOAD}' has the name of the payload's column: rename it and fit again.")
    return ReleaseTerms(mechanism, promised, labels, mark)


def written_to(path: Path, schema: Any) -> Any:
    """A writer of payloads, which are noise to a compressor."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False)


def charge(promise: Guarantee, source: str, out: Path, file: Path | None, warn: Warn) -> None:
    """Note what the noise of this release spends on the records in it, before anything leaves."""
    account, spent = BudgetLedger.of(source, file) if promise.kind == "dp" else None, _charge(promise, out)
    if account is not None and spent is not None:
        for sentence in account.charge(spent):
            warn(sentence)


def charged(promise: Guarantee, source: str, out: Path, file: Path | None) -> Account | None:
    """The account of the records as it will be once this release is noted; None where there is none."""
    ledger, spent = BudgetLedger.of(source, file) if promise.kind == "dp" else None, _charge(promise, out)
    if ledger is None or spent is None:
        return None
    account = ledger.account()
    return Account({**account.spent, "": spent}, account.cap)


def _charge(promise: Guarantee, out: Path) -> Charge | None:
    if promise.epsilon is None or promise.delta is None:
        return None
    return Charge(f"the release into {out}", str(out), promise.epsilon, promise.delta, promise.covers.unit)


@contextmanager
def _releases(
    mechanism: Mechanism, batches: Iterator[Dataset], labels: bool, folder: Path
) -> Iterator[Iterator[Release]]:
    """What leaves, some records at a time; what the device must remember of it is kept when the block ends well."""
    if not isinstance(mechanism, ReleasesWhole):
        fewest = mechanism.traits.smallest_batch
        yield (mechanism.release(batch, labels=labels) for batch in never_fewer(batches, fewest))
        return
    with spooled(batches, mechanism.schema_, folder) as (x, origin):
        if len(x) == 0:
            yield iter(())
            return
        with mechanism.whole(x, origin, folder) as payloads:
            yield _changed(mechanism, payloads, x)


def _changed(mechanism: Mechanism, payloads: Iterator[FloatArray], x: FloatArray) -> Iterator[Release]:
    """Releases in which no record stands as it was."""
    done = 0
    for payload in payloads:
        if (row := unchanged_row(payload, x[done : done + len(payload)])) is not None:
            raise RuleBroken(f"{mechanism.name} released a raw record unchanged, in row {done + row}.")
        done += len(payload)
        yield Release(mechanism.name, payload, mechanism.guarantee())


@contextmanager
def writable(out: Path) -> Iterator[Path]:
    """A new folder that becomes ``out`` if all goes well; what cannot be written is a ``DataError``."""
    if out.exists():
        raise DataError(f"{out} already exists: choose another folder.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        sweep(out)
        with atomic(out) as part:
            part.mkdir()
            yield part
    except OSError as error:
        raise DataError(f"cannot write {out} ({error.strerror or error}): choose another --out.") from None


def never_fewer(batches: Iterable[Dataset], fewest: int) -> Iterator[Dataset]:
    """The same records; a last batch that is too small for a release joins the one before it."""
    waiting: Dataset | None = None
    for batch in batches:
        if waiting is not None and len(batch) < fewest:
            waiting = waiting.joined(batch)
            continue
        if waiting is not None:
            yield waiting
        waiting = batch
    if waiting is not None:
        yield waiting


def as_table(payload: FloatArray, labels: Mapping[str, IntArray], schema: Schema, *, records: bool) -> Any:
    """The payload as one fixed-size list a record (``records``: in the data's own columns); labels by class name, or as
    numbers."""
    import pyarrow as pa

    columns = _columns(payload, schema) if records else {PAYLOAD: _lists(payload)}
    for label, codes in labels.items():
        scale = schema.numbers.get(label)
        columns[label] = pa.array(np.array(schema.classes(label))[codes]) if scale is None else as_column(codes, scale)
    return pa.table(columns)


def _lists(payload: FloatArray) -> Any:
    import pyarrow as pa

    flat = np.ascontiguousarray(payload).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), flat.size // len(payload))


def _columns(payload: FloatArray, schema: Schema) -> dict[str, Any]:
    """Records as they came: table columns and vectors in their own units, pictures as PNG; other kinds as lists in
    [0, 1]."""
    import pyarrow as pa

    if schema.is_vectors:
        low, high = (np.array([getattr(column, end) for column in schema.columns]) for end in ("low", "high"))
        return {schema.x_columns[0]: _lists((low + payload * (high - low)).astype(np.float32))}
    if schema.kind == "table":
        decoded = decode_table(payload, schema)
        return {name: decoded.column(name).combine_chunks() for name in decoded.column_names}
    if schema.kind == "image":
        pictures = [{"bytes": png(record), "path": None} for record in payload]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        return {schema.x_columns[0]: pa.array(pictures, kind)}
    return {PAYLOAD: _lists(payload)}
