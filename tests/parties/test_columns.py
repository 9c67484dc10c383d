"""Vertical: each party has columns of its own, and an encoder that it keeps."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hall import RUN, SMALL, Hall, meet, outcome

from sfumato.core.errors import DataError, UsageError
from sfumato.parties.partition import split_parties
from sfumato.parties.run_terms import Terms
from sfumato.parties.server import serve


@pytest.fixture
def duo(tmp_path: Path) -> list[Path]:
    """200 people: age, job and sum with one party (and the label), hours and town with the other."""
    rng = np.random.default_rng(0)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "job", "hours", "town", "income", "sex"])
        for _ in range(200):
            age, hours = int(rng.integers(18, 80)), int(rng.integers(10, 60))
            rich = "high" if age + hours > 80 else "low"
            writer.writerow([age, "abc"[rng.integers(3)], hours, "uvw"[rng.integers(3)], rich, "fm"[rng.integers(2)]])
    source = str(tmp_path / "people.csv")
    return split_parties(
        source, tmp_path / "cut", parties=2, vertical=True, utility=["income"], private=["sex"], repeatable=True
    )


@pytest.mark.parametrize("variant", ["published", "hardened"])
def test_columns_are_joined_and_the_labels_come_from_one_party(duo: list[Path], tmp_path: Path, variant: str) -> None:
    hall = meet(duo, tmp_path, mode="vertical", params={**SMALL, "variant": variant})
    result = outcome(tmp_path)
    assert result.shared == ("party-0", "party-1") and result.encoder == ""
    tables = [pq.read_table(tmp_path / name / str(RUN) / "shared.parquet") for name in result.shared]
    assert tables[0].equals(tables[1])
    assert tables[0].column_names == [*(f"z{i}" for i in range(16)), "income"]
    assert tables[0].num_rows == pq.read_metadata(duo[0] / "train.parquet").num_rows
    assert [party.accuracy is not None for party in result.parties] == [True, False]
    for message in hall.seen:
        assert "encoder" not in message.content, "an encoder left its party"
    shares = [m.content["shared"] for m in hall.seen if "shared" in m.content and "about" in m.content]
    assert [set(share) for share in shares] == [{"z", "held-out"}] * 2


def test_a_vertical_cut_gives_columns_to_one_party_only_and_labels_to_the_first(duo: list[Path]) -> None:
    first, second = (set(pq.read_table(folder / "train.parquet").column_names) for folder in duo)
    assert first & second == {"record"}
    assert {"income", "sex"} <= first and not {"income", "sex"} & second
    assert (first | second) == {"age", "job", "hours", "town", "income", "sex", "record"}


def test_unaligned_ids_end_the_run_before_anything_is_shared(duo: list[Path], tmp_path: Path) -> None:
    table = pq.read_table(duo[1] / "train.parquet")
    pq.write_table(table.take(np.r_[1, 0, 2 : table.num_rows]), duo[1] / "train.parquet")
    hall = Hall(duo, tmp_path)
    terms = Terms(out=str(tmp_path / "server"), mode="vertical", params=SMALL, parties=2, wait=0.1)
    with pytest.raises(DataError, match="not aligned"):
        serve(hall, terms, str(RUN))
    assert {m.metadata.message_type for m in hall.seen} == {"query.hello"}
    assert all("people:" not in str(dict(m.content)) for m in hall.seen), "an id crossed"


def test_the_digest_of_the_ids_depends_on_the_run(duo: list[Path], tmp_path: Path) -> None:
    found = set()
    for run in ("1", "2"):
        hall = Hall(duo, tmp_path / run)
        terms = Terms(
            out=str(tmp_path / run / "server"), mode="vertical", params=SMALL, parties=2, wait=0.1, timeout=0.2
        )
        serve(hall, terms, run)
        found |= {m.content["hello"]["ids"] for m in hall.seen if "hello" in m.content}
    assert len(found) == 2


def test_terms_that_change_after_the_hello_are_refused(duo: list[Path], tmp_path: Path) -> None:
    with (duo[1] / "party.toml").open("a") as file:
        file.write("least_epsilon = 0.5\n")
    hall = meet(duo, tmp_path, mode="vertical")
    question = next(m for m in hall.seen if m.metadata.message_type == "query.share" and m.metadata.dst_node_id == 2)
    question.content["terms"]["params"] = json.dumps({**SMALL, "epsilon": 0.0})
    assert dict(hall.app(question, hall.nodes[2]).content["refused"])["why"] == "terms"


def test_labels_go_to_runs_that_the_party_takes_part_in_only(duo: list[Path], tmp_path: Path) -> None:
    hall = meet(duo, tmp_path, mode="vertical")
    question = next(m for m in hall.seen if m.metadata.message_type == "query.labels")
    with (duo[0] / "party.toml").open("r+") as file:
        text = file.read().replace('"vertical", ', "")
        file.seek(0)
        file.write(text)
        file.truncate()
    assert dict(hall.app(question, hall.nodes[1]).content["refused"])["why"] == "terms"


def test_a_vertical_run_without_labels_is_an_error(duo: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'party-1' should provide the labels but has none"):
        meet(duo, tmp_path, mode="vertical", labels="party-1")


def test_pictures_have_no_columns_to_share_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a table"):
        split_parties("digits", tmp_path / "x", parties=2, vertical=True, utility=["digit"], limit=100)
