"""``sfumato gate`` and ``sfumato policy`` on real audits."""

from __future__ import annotations

import json
from pathlib import Path

from desk import Call

AUDITED = "audited"


def test_gate_exits_4_with_one_sentence_and_0_when_all_limits_hold(call: Call, desk: Path) -> None:
    failed = call("gate", AUDITED, "--max", "reconstruction=0%", "--min", "accuracy=0.01")
    assert failed.code == 4
    assert failed.err == f"sfumato: {AUDITED} does not pass the gate: max reconstruction = 0%.\n"
    assert "passed" in failed.out
    passed = call("gate", AUDITED, "--min", "accuracy=0.01", "--json")
    assert passed.code == 0 and passed.json()["passed"] is True
    stored = json.loads((desk / AUDITED / "gate.json").read_text())
    assert stored["passed"] is True and stored["digest"] == passed.json()["digest"]


def test_flags_replace_what_a_policy_file_says_of_the_same(call: Call, desk: Path) -> None:
    Path("p.toml").write_text('version = 1\n[max]\nreconstruction = "0%"\n[min]\naccuracy = 0.01\n')
    assert call("gate", AUDITED, "--policy", "p.toml").code == 4
    assert call("gate", AUDITED, "--policy", "p.toml", "--max", "reconstruction=100%").code == 0


def test_gate_writes_its_documents(call: Call, desk: Path) -> None:
    assert call("gate", AUDITED, "--min", "accuracy=0.01", "--junit", "g.xml", "--statement", "g.json").code == 0
    assert Path("g.xml").read_text().startswith("<?xml")
    assert json.loads(Path("g.json").read_text())["predicate"]["result"] == "PASSED"


def test_policy_check_prints_what_is_asked_or_what_is_wrong(call: Call, desk: Path) -> None:
    Path("p.toml").write_text('version = 1\n[max]\nattribute = "10%"\n')
    assert "max attribute = 10%" in call("policy", "check", "p.toml").out
    Path("p.toml").write_text("version = 1\n")
    assert call("policy", "check", "p.toml").code == 2
    assert call("policy", "check", "nowhere.toml").code == 3


def test_gate_on_what_is_no_audit_says_so(call: Call, desk: Path) -> None:
    for words in (("gate", "."), ("gate", "nowhere"), ("gate", AUDITED)):
        found = call(*words)
        assert found.code in (2, 3) and found.err.count("\n") == 1
