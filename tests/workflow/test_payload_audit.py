"""Payloads that somebody else made: attacks win where nothing is defended, and all is lined up or refused."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.auditing import SMOKE
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json
from sfumato.report import build_report
from sfumato.workflow.payload_audit import audit_payloads

COUNT = 300
FAST = replace(SMOKE, attack_epochs=1, attack_steps=30, candidates=60)
TOLD = {"utility": "job", "private": "sex", "effort": FAST}
Arrays = dict[str, Any]


def people(seed: int = 0, records: int = 1) -> Arrays:
    """Rows of twelve numbers that six hidden ones explain, two labels read from these, and whose each row is."""
    rng = np.random.default_rng(seed)
    hidden = np.repeat(rng.normal(size=(COUNT // records, 6)), records, axis=0)
    x = hidden @ rng.normal(size=(6, 12)) + 0.3 * rng.normal(size=(COUNT, 12))
    person = [f"p{row // records:03d}" for row in range(COUNT)]
    return {
        "x": x,
        "job": (hidden[:, 0] > 0).astype(int),
        "sex": np.where(hidden[:, 1] > 0, "f", "m"),
        "person": np.array(person),
    }


def features(records: Arrays, width: int = 8) -> Any:
    return records["x"] @ np.random.default_rng(9).normal(size=(12, width))


def leaks(found: dict[str, Any]) -> dict[str, float]:
    return {threat: score["leakage"] for threat, score in found["worst"].items()}


def not_run(found: dict[str, Any]) -> dict[str, str]:
    return {one["attack"]: one["reason"] for one in found["skipped"]}


def test_plain_features_leak_by_their_pairs_alone_and_what_needs_queries_is_not_run() -> None:
    found = audit_payloads(features(people()), people(), **TOLD)
    assert leaks(found)["reconstruction"] > 0.9
    assert leaks(found)["attribute:sex"] > 0.6
    assert leaks(found)["reidentification"] > 0.9
    assert "--pipeline" in not_run(found)["reid-query"]
    assert "--id" in not_run(found)["people with several records"]
    assert {one["attack_version"] for one in found["attacks"]} >= {1}


def test_payloads_that_are_the_records_leak_everything() -> None:
    records = people()
    found = audit_payloads(records["x"], records, **TOLD)
    assert found["traits"]["gives_records"]
    assert leaks(found)["reconstruction"] >= 0.95
    assert leaks(found)["reidentification"] >= 0.95
    assert found["worst"]["attribute:sex"]["leakage_ci"][1] >= 0.95


def test_payloads_that_have_nothing_to_do_with_the_records_leak_nothing() -> None:
    worse = 0
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=(COUNT, 8))
        found = audit_payloads(noise, people(seed), seed=seed, **TOLD)
        assert all(score["leakage_ci"][0] <= 0.02 for score in found["worst"].values())
        worse += any(one["worse"] for part in found["exposure"].values() for one in part["groups"])
    assert worse <= 1  # chance calls a group worse in one audit of forty


def test_a_function_that_can_be_asked_lets_every_attack_query() -> None:
    records = people()
    for seed, pipeline in enumerate(
        (features, lambda rows: features(rows) + np.random.default_rng().normal(size=(COUNT, 8)))
    ):
        found = audit_payloads(pipeline(records), records, pipeline=pipeline, **TOLD)
        assert "reid-query" not in not_run(found)
        assert found["traits"]["randomised"] == bool(seed)
        assert leaks(found)["reidentification"] > 0.4


def test_a_pipeline_with_a_new_secret_in_every_run_is_attacked_by_the_pairs_of_the_release() -> None:
    def anew(rows: Arrays) -> Any:
        return rows["x"] @ np.linalg.qr(np.random.default_rng().normal(size=(12, 12)))[0]

    found = audit_payloads(anew(people()), people(), pipeline=anew, **TOLD)
    assert "share nothing" in not_run(found)["reid-query"]
    assert leaks(found)["reconstruction"] > 0.9


def test_a_pipeline_that_made_another_release_is_refused() -> None:
    records = people()
    with pytest.raises(DataError, match="not those of the release"):
        audit_payloads(features(records) ** 3, records, pipeline=features, **TOLD)


def test_two_releases_of_the_same_people_are_linked_whatever_their_forms() -> None:
    records = people(records=2)
    other = np.tanh(features(records, 20) / 3)
    found = audit_payloads([features(records), other], records, id="person", **TOLD)
    assert found["worst"]["linkage"]["value"] > 0.3
    assert {"link-align", "link-decode"} <= {s["attack"] for s in found["attacks"] if s["threat"] == "linkage"}


def test_payloads_in_another_order_are_lined_up_by_id_and_missing_ones_left_out() -> None:
    records = people()
    order = np.random.default_rng(3).permutation(COUNT)[:250]
    release = {"v": features(records)[order], "person": records["person"][order]}
    said: list[str] = []
    found = audit_payloads(release, records, id="person", say=said.append, **TOLD)
    assert leaks(found)["reconstruction"] > 0.9
    assert "50 records have no payload" in said[0]


def test_a_table_with_the_records_columns_is_compared_in_their_units() -> None:
    pandas = pytest.importorskip("pandas")
    records = people()
    frame = pandas.DataFrame(records["x"], columns=[f"c{i}" for i in range(12)])
    frame["town"] = np.where(records["x"][:, 0] > 0, "north", "south")
    noised = frame.copy()
    noised.iloc[:, :12] += np.random.default_rng(1).normal(0, 5, (COUNT, 12))
    told = frame.assign(job=records["job"], sex=records["sex"])
    found = audit_payloads(noised, told, **TOLD)
    assert found["traits"]["gives_records"]
    assert "reid-encode" not in not_run(found)


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "more payloads than records": (lambda r: features(r)[:200], lambda r: r, "200 payloads.*300 records.*--id"),
    "one row": (
        lambda r: features(r)[:1],
        lambda r: {name: values[:1] for name, values in r.items()},
        "1 records.*needs 30",
    ),
    "a payload of NaN": (lambda r: np.where(np.arange(COUNT)[:, None] == 7, np.nan, features(r)), lambda r: r, "row 7"),
    "a stranger's payload": (
        lambda r: {"v": features(r), "person": np.where(r["person"] == "p005", "nobody", r["person"])},
        lambda r: r,
        "'nobody'.*no record",
    ),
    "two payloads of one person": (
        lambda r: {"v": features(r), "person": np.where(r["person"] == "p005", "p006", r["person"])},
        lambda r: r,
        "2 payloads of 'p006'",
    ),
    "people in another order": (
        lambda r: {"v": features(r)[::-1], "person": r["person"][::-1]},
        lambda r: people(records=2),
        "row 0.*one order",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_lined_up_is_one_clear_sentence(case: str, tmp_path: Path) -> None:
    release, of, said = BROKEN[case]
    made = people(records=2) if "another order" in case else people()
    with pytest.raises(DataError, match=said) as refused:
        audit_payloads(release(made), of(made), id="person", out=tmp_path / "run", **TOLD)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


PROTECT = """
import sys, numpy
given = numpy.load(sys.argv[1])
rows = given["x"] @ numpy.random.default_rng(9).normal(size=(12, 8))
numpy.savez(sys.argv[2], v=rows, person=given["person"])
"""
COMMANDS: dict[str, tuple[str, type[Exception], str]] = {
    "no place for the result": ("cat {in}", UsageError, r"lacks \{out\}"),
    "an open quote": ("cat '{in} {out}", UsageError, "cannot be read"),
    "no such program": ("no-such-program {in} {out}", UsageError, "no program 'no-such-program'"),
    "a failure": ("PYTHON -c 'print(1/0)' {in} {out}", DataError, "exit code 1: ZeroDivisionError"),
    "no result": ("true {in} {out}", DataError, "wrote nothing"),
    "too slow": ("PYTHON -c 'import time; time.sleep(60)' {in} {out}", DataError, "longer than 1 s"),
    "another shape": ("cp {in} {out}", DataError, "payloads of shape"),
    "fewer rows": ("PYTHON fewer.py {in} {out}", DataError, "299 payloads, the release 300"),
    "NaN": ("PYTHON broken.py {in} {out}", DataError, "the pipeline's output|NaN"),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    records = people()
    np.savez("originals.npz", **records)
    np.savez("vectors.npz", v=features(records), person=records["person"])
    Path("protect.py").write_text(PROTECT)
    Path("fewer.py").write_text(
        PROTECT.replace("v=rows, person=given", "v=rows[1:], person=given").replace('n"])', 'n"][1:])')
    )
    Path("broken.py").write_text(PROTECT.replace("v=rows", "v=rows + numpy.nan"))
    return tmp_path


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_cannot_stand_for_the_pipeline_is_one_clear_sentence(case: str, desk: Path) -> None:
    command, kind, said = COMMANDS[case]
    command = command.replace("PYTHON", shlex.quote(sys.executable))
    with pytest.raises(kind, match=said) as refused:
        audit_payloads(
            "vectors.npz", "originals.npz", id="person", pipeline=command, pipeline_seconds=1 if "slow" in case else 60,
            out="run", **TOLD,
        )  # fmt: skip
    assert "\n" not in str(refused.value)
    assert not (desk / "run").exists()


def test_a_command_is_run_and_kept_out_of_the_run_folder_and_its_report(desk: Path) -> None:
    command = f"{shlex.quote(sys.executable)} protect.py {{in}} {{out}} --token=hunter2"
    found = audit_payloads("vectors.npz", "originals.npz", id="person", pipeline=command, out="run", **TOLD)
    assert leaks(found)["reidentification"] > 0.9
    assert read_json(desk / "run" / "scores.json") == json.loads(json.dumps(found))
    page = build_report([Path("run")], desk / "page.html")
    assert "Who is worst off" in page.read_text()
    exposed = found["exposure"]["reconstruction"]["most_exposed"][0]["id"]
    assert exposed in page.read_text()
    assert exposed not in (desk / "run" / "README.md").read_text()  # the card may leave
    assert not any(b"hunter2" in file.read_bytes() for file in (desk / "run").rglob("*") if file.is_file())
    with pytest.raises(DataError, match="already holds a run"):
        audit_payloads("vectors.npz", "originals.npz", out="run", **TOLD)
