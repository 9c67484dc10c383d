"""A run folder says its format: older ones are read as far as they go, newer ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sfumato
from sfumato.core.errors import DataError
from sfumato.core.run_folder import FORMAT
from sfumato.report import build_report
from sfumato.testing import TINY
from sfumato.workflow import audit_run, fit_run, resolve

DATA = {"source": "digits", "utility": ["odd"], "private": ["ge5"], "limit": 300}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "dnn"
    fit_run(resolve("dnn", DATA, {"epochs": 1}, seed=0), folder)
    return folder


def rewrite(file: Path, **changes: object) -> None:
    value = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: found for key, found in value.items() if found is not None}))


def test_load_run_gives_the_fitted_mechanism(run: Path) -> None:
    mechanism = sfumato.load_run(str(run))
    assert mechanism.name == "dnn"
    assert mechanism.transform(np.zeros((3, 1, 28, 28), np.float32)).shape[0] == 3
    assert json.loads((run / "status.json").read_text()) == {"state": "done", "format": FORMAT}
    assert json.loads((run / "mechanism.json").read_text())["traits"] == mechanism.traits.to_json()


def test_load_run_of_anything_else_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a run folder"):
        sfumato.load_run(tmp_path)


@pytest.mark.parametrize("older", [None, 2])
def test_folder_of_an_older_format_is_loaded_but_not_audited(run: Path, older: int | None) -> None:
    before = [(file, file.read_text()) for file in (run / "status.json", run / "mechanism.json")]
    rewrite(run / "status.json", format=older)
    rewrite(run / "mechanism.json", traits=None)
    assert sfumato.load_run(run).traits.role == "baseline"
    with pytest.raises(DataError, match="cut owner, attacker and victims in another way: it can release records"):
        audit_run(run, effort=TINY)
    for file, text in before:
        file.write_text(text)


def test_scores_of_an_older_audit_are_renewed_before_a_report(run: Path) -> None:
    audit_run(run, effort=TINY)
    rewrite(run / "scores.json", traits=None)
    with pytest.raises(DataError, match=r"audited by an older sfumato: run `sfumato audit .* --again` first"):
        build_report([run], run / "report.html")
    audit_run(run, effort=TINY, again=True)
    assert build_report([run], run / "report.html").is_file()


def test_folder_of_a_newer_format_is_refused(run: Path) -> None:
    before = (run / "status.json").read_text()
    rewrite(run / "status.json", format=FORMAT + 1)
    with pytest.raises(
        DataError, match=rf"newer sfumato \(format {FORMAT + 1}, this one reads up to {FORMAT}\): upgrade"
    ):
        sfumato.load_run(run)
    (run / "status.json").write_text(before)
