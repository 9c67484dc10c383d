"""An audit of somebody else's rows makes a run folder like any other, goes on after an interrupt, and is reported."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.auditing import SMOKE
from sfumato.core.errors import DataError
from sfumato.core.run_folder import read_json
from sfumato.report import build_report, render_card
from sfumato.testing.made_up_people import made_up_people
from sfumato.workflow import audit_release_files

QUICK = replace(SMOKE, suspects=200, predicates=60)
KEYS = {"singling-out", "linkability", "inference", "inference:diagnosis", "membership", "copies"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    import pyarrow as pa
    import pyarrow.csv as pc

    folder = tmp_path_factory.mktemp("rows")
    for seed, name in enumerate(("vendor", "train", "control")):
        table = {key: pa.array(values, from_pandas=True) for key, values in made_up_people(80, seed).items()}
        pc.write_csv(pa.table(table), folder / f"{name}.csv")
    return {name: folder / f"{name}.csv" for name in ("vendor", "train", "control")}


def audited(files: dict[str, Path], out: Path, release: str = "vendor", **options: Any) -> dict[str, Any]:
    given = {"private": ["diagnosis"], "effort": QUICK, "out": out, **options}
    return audit_release_files(files[release], str(files["train"]), str(files["control"]), **given)


def test_an_interrupted_audit_goes_on_where_it_was(files: dict[str, Path], tmp_path: Path) -> None:
    out, steps = tmp_path / "run", []

    def until(step: str) -> None:
        steps.append(step)
        if "infer-trees" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audited(files, out, say=until)
    before, again = len(steps), []
    assert not (out / "scores.json").exists() and before > 5
    resumed = audited(files, out, say=again.append)
    assert "infer-trees" in again[0] and not any("single" in step for step in again)
    whole = audited(files, tmp_path / "whole")
    assert set(resumed["worst"]) == KEYS
    assert _figures(resumed) == _figures(whole)
    with pytest.raises(DataError, match="holds a finished audit"):
        audited(files, out)
    page = build_report([out, tmp_path / "whole"], tmp_path / "report.html").read_text()
    for said in ("Singling out", "Linkability", "Inference", "Membership", "Copies", "vendor"):
        assert said in page
    card = render_card(out)
    assert "anonymous" not in (card + str(resumed)).lower()
    assert "sfumato audit --release" in card and "--owner" in card and "--holdout" in card
    assert read_json(out / "status.json")["state"] == "done"


def test_another_audit_is_not_mixed_into_an_interrupted_one(files: dict[str, Path], tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audited(files, tmp_path / "run", say=stop)
    with pytest.raises(DataError, match="was started with another configuration"):
        audited(files, tmp_path / "run", release="control")


def test_bad_files_leave_nothing_behind(files: dict[str, Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(DataError, match="is empty"):
        audited({**files, "vendor": empty}, tmp_path / "run")
    with pytest.raises(DataError, match="are also in"):
        audited({**files, "control": files["train"]}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def _figures(scores: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(s["attack"], s["metric"], s["target"], s["value"], s["leakage"], s["n"]) for s in scores["attacks"]]


def test_the_report_of_several_says_which_leak_and_what_was_not_asked(files: dict[str, Path], tmp_path: Path) -> None:
    audited({**files, "copied": files["train"]}, tmp_path / "copied", release="copied")
    audited(files, tmp_path / "nobody")
    page = build_report([tmp_path / "copied", tmp_path / "nobody"], tmp_path / "report.html").read_text()
    assert "2 releases of" in page and "1 of 2 releases leak" in page
    row = re.search(r">train</a>.*?</tr>", page, re.DOTALL)
    assert row is not None and row[0].count('class="shade-5 sure"') >= 5
    assert page.index(">train</a>") < page.index(">vendor</a>")
    assert "<b>train</b>: " in page and "In vendor no attack finds more than chance may make" in page
    assert "What was not asked" in page and "needs releases of other records by the same maker" in page
    assert "Trade-off" not in page and "Found at 1 % false alarms" in page
    alone = build_report([tmp_path / "copied"], tmp_path / "one.html").read_text()
    assert "It leaks about people whose records were used" in alone and "train, a release of" in alone
    card = render_card(tmp_path / "nobody")
    assert "rows that somebody else made of the records in" in card and "no stated label" not in card
    assert "Not asked:" in card and "member-shadow-ratio" in card
