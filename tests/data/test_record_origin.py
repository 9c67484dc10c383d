"""A record's origin: hashes that scaling, refits, formats, chunks and unused columns do not change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.core.dataset import Dataset
from sfumato.core.origin import Origin
from sfumato.data import load, stream

ROWS = {
    "age": [30, 41, 30, 58, 30],
    "town": ["Bern", "Basel", "Bern", "Chur", "Bern"],
    "weight": [61.5, 80.0, 61.5, None, 61.5],
    "ill": ["yes", "no", "yes", "no", "no"],
    "person": ["a", "b", "a", "c", "d"],
}


def _csv(folder: Path, name: str, rows: dict[str, list[object]]) -> Path:
    path = folder / name
    pa.csv.write_csv(pa.table(rows), path)
    return path


def _contents(path: Path, x: tuple[str, ...] = ("age", "town", "weight")) -> list[bytes]:
    return [row.tobytes() for row in load(path, x=list(x), utility="ill").origin.contents]


def test_contents_do_not_depend_on_format_column_order_or_unused_columns(tmp_path: Path) -> None:
    plain = _csv(tmp_path, "plain.csv", ROWS)
    other = _csv(tmp_path, "other.csv", {"unused": list(range(5)), **dict(reversed(ROWS.items()))})
    parquet = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS), parquet)
    assert _contents(plain) == _contents(other) == _contents(parquet)
    assert _contents(plain, ("weight", "age", "town")) == _contents(plain)


def test_contents_do_not_depend_on_the_other_records_or_their_ranges(tmp_path: Path) -> None:
    more = {
        name: [*values, extra] for (name, values), extra in zip(ROWS.items(), (99, "Zug", 0.25, "no", "e"), strict=True)
    }
    assert _contents(_csv(tmp_path, "more.csv", more))[:5] == _contents(_csv(tmp_path, "plain.csv", ROWS))


def test_copies_share_their_content_and_never_their_nonce(tmp_path: Path) -> None:
    data = load(_csv(tmp_path, "plain.csv", ROWS), x=["age", "town", "weight"], utility="ill")
    contents = [row.tobytes() for row in data.origin.contents]
    assert contents[0] == contents[2] == contents[4] and len(set(contents)) == 3
    assert len({row.tobytes() for row in data.origin.nonces}) == 5


def test_a_named_person_keeps_the_nonce_wherever_the_row_stands(tmp_path: Path) -> None:
    one = load(_csv(tmp_path, "one.csv", ROWS), x=["age", "town", "weight"], utility="ill", id="person")
    turned = {name: list(reversed(values)) for name, values in ROWS.items()}
    two = load(_csv(tmp_path, "two.csv", turned), x=["age", "town", "weight"], utility="ill", id="person")
    assert one.named and one.origin.nonces[4].tobytes() == two.origin.nonces[0].tobytes()
    assert Counter(row.tobytes() for row in one.origin.nonces) == Counter(row.tobytes() for row in two.origin.nonces)


def test_contents_survive_chunks_subsets_and_joins(tmp_path: Path) -> None:
    path = _csv(tmp_path, "plain.csv", ROWS)
    data = load(path, x=["age", "town", "weight"], utility="ill")
    pieces = list(stream(path, data.schema, batch_rows=2))
    assert (np.concatenate([piece.origin.contents for piece in pieces]) == data.origin.contents).all()
    both = pieces[0].joined(pieces[1])
    assert (both.origin.contents == data.origin.contents[:4]).all()
    assert (data.take(np.array([3, 1])).origin.contents == data.origin.contents[[3, 1]]).all()


def test_nonces_go_on_counting_over_chunks() -> None:
    x = np.zeros((4, 3), np.float32)
    whole = Origin(x).nonces
    seen: Counter[bytes] = Counter()
    parts = [Origin(x[:2], earlier=seen).nonces, Origin(x[2:], earlier=seen).nonces]
    assert (np.concatenate(parts) == whole).all()


def test_a_picture_from_an_array_and_its_negative_zero_are_one_record() -> None:
    x = np.zeros((2, 1, 4, 4), np.float32)
    x[1] = -0.0
    data = Dataset.from_arrays(x)
    assert (data.origin.contents[0] == data.origin.contents[1]).all()


def test_a_category_written_as_a_number_reads_alike_in_any_company(tmp_path: Path) -> None:
    from sfumato.data.encoding.tables import as_text

    assert as_text(pa.array([5.0, 5.5, None])).to_pylist() == ["5", "5.5", None]
    assert as_text(pa.array([5.0, 6.0])).to_pylist() == ["5", "6"]
