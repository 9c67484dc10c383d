"""What commands print: JSON alone on stdout, the log on stderr, help that works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from desk import PEOPLE, QUICK, Call

_REAL = os.environ.get("SFUMATO_DATA", "")
SCORE = {"attack", "threat", "metric", "better_for_owner", "value", "ci", "baseline", "control", "n", "seconds"}
COMMANDS = ("demo", "fit", "release", "audit", "sweep", "report", "reproduce", "data")


@pytest.mark.parametrize(
    "command", [(), *((name,) for name in COMMANDS), *(("data", n) for n in ("list", "show", "check"))]
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_prints_and_exits_with_zero(call: Call, command: tuple[str, ...], flag: str) -> None:
    ended = call(*command, flag)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(" ".join(("Usage: sfumato", *command)))
    assert "\\" not in ended.out, "defaults and limits stand in plain brackets"


def test_help_says_what_an_argument_means(call: Call) -> None:
    assert "or one of a plugin" in call("fit", "-h").out
    assert "must not exist" in call("share", "app", "-h").out


def test_without_arguments_the_help_is_printed(call: Call) -> None:
    ended = call()
    assert "Traceback" not in ended.err
    for command in COMMANDS:
        assert f"  {command} " in ended.out + ended.err


def test_the_version_is_printed(call: Call) -> None:
    assert call("--version").out.startswith("sfumato ")


def test_fit_prints_its_run_and_configuration_as_json(desk: Path, call: Call) -> None:
    ended = call("fit", "ran", *PEOPLE, *QUICK, "--out", "new", "--json")
    found = ended.json()
    assert found["run"] == "new"
    assert set(found["config"]) == {"run", "data", "params"}
    assert ended.err == "ran: fit\n"


def test_audit_prints_scores_as_json(desk: Path, call: Call) -> None:
    ended = call("audit", "run", "--effort", "smoke", "--json")
    found = ended.json()
    assert set(found) >= {"run", "mechanism", "data", "guarantee", "utility", "fairness", "attacks", "worst"}
    assert (found["run"], found["mechanism"], found["data"]) == ("run", "ran", "people")
    labelled = {"reconstruction-with-labels", "attribute-with-labels:sex"}
    assert set(found["worst"]) == {"reconstruction", "reidentification", "attribute:sex", "membership", *labelled}
    assert found["repeated"] == [], "features that never change are not averaged"
    for score in (*found["utility"], *found["attacks"], *found["worst"].values()):
        assert set(score) >= SCORE
        assert score["ci"][0] <= score["value"] <= score["ci"][1]
    assert "inverse-residual" in ended.err


def test_release_report_sweep_and_reproduce_print_json_alone(desk: Path, call: Call) -> None:
    card = call("release", "run", "--unaudited", "-d", "people.csv", "--out", "r", "--json").json()
    assert set(card) >= {"release", "unaudited", "warnings", "mechanism", "rows", "payload_shape", "digest"}
    assert set(card) >= {"guarantee", "labels", "about", "audit", "gate", "bounds", "spent", "valid_until", "payload"}
    assert call("report", "audited", "--json").json() == {"report": "audited/report.html"}
    sweep = call(
        "sweep", "dnn", *PEOPLE, "--knob", "epochs=1", "--effort", "smoke", "--jobs", "1", "--out", "s", "--json"
    ).json()
    assert set(sweep) == {"points", "front"}
    assert sweep["front"] == ["dnn-epochs-1"]
    assert "ran-figure3" in [study["name"] for study in call("reproduce", "--json").json()["studies"]]


def test_data_commands_print_json_alone(desk: Path, call: Call) -> None:
    listed = call("data", "list", "--json").json()
    assert {"name", "kind", "size", "utility", "private", "where", "licence"} <= set(listed[0])
    shown = call("data", "show", *PEOPLE[1:], "--json").json()
    assert (shown["records"], shown["kind"]) == (90, "table")
    fine = call("data", "check", *PEOPLE[1:], "--json")
    assert (fine.code, fine.json()["errors"]) == (0, 0)
    bad = call("data", "check", "infinite.csv", "--utility", "incom", "--json")
    assert (bad.code, bad.json()["errors"]) == (3, 2)
    assert set(bad.json()["problems"][0]) == {"severity", "where", "what", "remedy"}


def test_check_names_every_problem_once(desk: Path, call: Call) -> None:
    ended = call("data", "check", "infinite.csv", "--utility", "incom")
    assert ended.code == 3
    assert [line.count("error") for line in ended.out.splitlines()] == [1, 1]
    assert ended.err.startswith("sfumato: infinite.csv: 2 errors")


def test_the_log_goes_to_stderr_and_quiet_silences_it(desk: Path, call: Call) -> None:
    loud = call("fit", "ran", *PEOPLE, *QUICK, "--out", "loud")
    quiet = call("fit", "ran", *PEOPLE, *QUICK, "--out", "still", "--quiet")
    assert (loud.out.replace("loud", "still"), loud.err) == (quiet.out, "ran: fit\n")
    assert quiet.err == ""
    for command in (
        ("audit", "still", "--effort", "smoke"),
        ("release", "still", "--unaudited", "-d", "people.csv", "--out", "r"),
        ("sweep", "ran", *PEOPLE, *QUICK, "--knob", "lam=0.1", "--effort", "smoke", "--jobs", "1", "--out", "s"),
    ):
        ended = call(*command, "--quiet")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out


def test_tables_are_never_cut_off_where_they_are_piped(desk: Path, call: Call) -> None:
    ended = call("audit", "run", "--effort", "smoke")
    for word in ("reidentification", "inverse-residual", "attribute: sex", "probe-linear", "own classifier"):
        assert word in ended.out
    for word in (
        "attribute-with-labels: sex",
        "label-only",
        "probe-residual+labels",
        "label-mean",
        "floor of sex: acc",
    ):
        assert word in ended.out, "labels may leave, and be read"
    assert "\x1b" not in ended.out + ended.err, "no colours where nobody can see them"
    assert "licence" in call("data", "list").out
    assert "ran-figure3" in call("reproduce").out


KINDS = {
    "table": PEOPLE,
    "audio": ("--data", "sounds", "--utility", "class"),
    "image": ("--data", "pictures16.npz", "--utility", "label"),
    "adult": ("--data", "adult", "--limit", "300"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_commands_serve_every_kind_of_data(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "adult":
        if not (Path(_REAL) / "adult").is_dir() or not _REAL:
            pytest.skip("SFUMATO_DATA has no adult")
        monkeypatch.setenv("SFUMATO_DATA", _REAL)
    data = KINDS[kind]
    assert call("data", "check", data[1], *(data[2:] if "--limit" not in data else ())).code == 0
    assert call("fit", "ran", *data, *QUICK, "--out", "new").code == 0
    scores = call("audit", "new", "--effort", "smoke", "--json").json()
    assert {"reconstruction", "reidentification"} <= set(scores["worst"])
    assert call("release", "new", "--unaudited", *data[:2], "--labels", "--out", "out").code == 0
    assert call("report", "new").code == 0
    assert "ran on" in (desk / "new" / "README.md").read_text()
