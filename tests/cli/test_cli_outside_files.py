"""Files from outside, and records that would leave as they are: one sentence and an exit code."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from desk import PEOPLE, QUICK, Call
from torch import nn

from sfumato.nets.encoders import ENCODERS

DEEP = 100_000
NESTED = {
    "json": "[" * DEEP + "]" * DEEP,
    "toml": "x = " + "[" * DEEP + "]" * DEEP,
    "dotted": "[" + ".".join("a" * 200) + "]",
}


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("audited/scores.json", NESTED["json"], ("report", "audited")),
        ("audited/metrics.jsonl", NESTED["json"], ("report", "audited")),
        ("audited/config.toml", NESTED["toml"], ("report", "audited")),
        ("run/config.toml", NESTED["toml"], ("audit", "run")),
        ("run/schema.json", '{"a":' * 100 + "1" + "}" * 100, ("audit", "run")),
        ("mine.toml", NESTED["dotted"], ("fit", "--config", "mine.toml")),
        ("domain.toml", NESTED["toml"], ("fit", "dnn", *PEOPLE, "--domain", "domain.toml", "-q")),
    ],
)
def test_deeply_nested_file_is_one_sentence(
    file: str, text: str, command: tuple[str, ...], desk: Path, call: Call
) -> None:
    (desk / file).write_text(text)
    ended = call(*command)
    assert ended.code == 3 and "more than 64 levels in one another" in ended.err and ended.err.count("\n") == 1
    assert file in ended.err


def test_deeply_nested_metadata_of_a_parquet_file_are_passed_over(desk: Path, call: Call) -> None:
    table = pq.read_table(desk / "nan.parquet").select(["a", "label"])
    pq.write_table(table.replace_schema_metadata({"huggingface": NESTED["json"]}), desk / "deep.parquet")
    assert call("data", "show", "deep.parquet", "--utility", "label", "--json").code == 0


def test_broken_json_is_told_apart_from_deep(desk: Path, call: Call) -> None:
    (desk / "audited" / "scores.json").write_text("{")
    assert "is not valid JSON" in call("report", "audited").err


def test_records_that_leave_in_another_shape_are_refused(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS, "flat", lambda shape: nn.Flatten())
    fitted = call(
        "fit", "dnn", "-d", "pictures16.npz", "--utility", "label", "--set", "architecture=flat", *QUICK, "-q"
    )
    assert fitted.code == 0
    ended = call("release", "runs/dnn-pictures16", "--unaudited", "-d", "pictures16.npz", "--out", "r")
    assert ended.code == 1 and "released a raw record unchanged, in row 0" in ended.err
    assert not (desk / "r").exists()
