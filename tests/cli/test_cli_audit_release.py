"""``sfumato audit --release --records``: from two files to a run folder; what is typed wrongly is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from desk import Call

AUDIT = ("audit", "--release", "vectors.npz", "--records", "originals.npz", "--effort", "smoke", "-q")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6))
    np.savez("originals.npz", x=x, sex=(x[:, 0] > 0).astype(int))
    np.savez("vectors.npz", v=x @ rng.normal(size=(6, 4)))
    np.savez("short.npz", v=x[:50])
    return tmp_path


def test_audit_of_payloads_prints_scores_and_who_is_worst_off(files: Path, call: Call) -> None:
    ended = call(*AUDIT, "--private", "sex", "--out", "run")
    assert ended.code == 0, ended.err
    assert "reconstruction" in ended.out
    assert "worst off, reconstruction" in ended.out
    assert "not run: reid-query (needs payloads of records of its choice" in ended.out
    assert "next: sfumato report run" in ended.out
    assert call("report", "run").code == 0
    assert "--records originals.npz" in (files / "run" / "README.md").read_text()


WRONG = {
    "no records": (("audit", "--release", "vectors.npz"), 2, "--records"),
    "a run as well": ((*AUDIT, "--", "somewhere"), 2, "unknown data set 'somewhere'"),
    "a second audit": ((*AUDIT, "--again"), 2, "--again"),
    "a pipeline without places": ((*AUDIT, "--pipeline", "true"), 2, "{in} and {out}"),
    "no such label": ((*AUDIT, "--private", "sexx"), 2, "'sex'"),
    "fewer payloads": (("audit", "--release", "short.npz", *AUDIT[3:]), 3, "50 payloads"),
    "no such file": (("audit", "--release", "nowhere.npz", *AUDIT[3:]), 3, "does not exist"),
    "three releases": ((*AUDIT, "--release", "short.npz", "--release", "short.npz"), 2, "two of the same"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_typed_wrongly_is_one_sentence_and_nothing_is_written(case: str, files: Path, call: Call) -> None:
    typed, code, said = WRONG[case]
    ended = call(*typed)
    assert ended.code == code, ended.err
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not (files / "runs").exists()
