"""Bad input: one sentence that names the place and the remedy, the right exit code, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from desk import PEOPLE, Call

FIT = ("fit", "ran", "--quiet", "--out", "new")
INCOME = ("--utility", "income")
LABEL = ("--utility", "label")
SWEEP = ("sweep", "ran", *PEOPLE, "--quiet", "--out", "new")
RELEASE = ("release", "run", "--unaudited", "--quiet", "--out", "new")
STUDY = ("reproduce", "ran-figure3", "--quiet", "--out", "new")

DATA = {
    "a missing file": ((*FIT, "--data", "nobody.csv", *INCOME), "nobody.csv|does not exist|check the path"),
    "a file of an unknown type": ((*FIT, "--data", "notes.txt", *INCOME), "notes.txt|no readable table|a header"),
    "an infinite number in CSV": ((*FIT, "--data", "infinite.csv", *INCOME), "infinite.csv|'height'|line 9|remove"),
    "NaN in npz": ((*FIT, "--data", "nan.npz", *LABEL), "nan.npz|'x'|row 5|remove"),
    "infinity in npz": ((*FIT, "--data", "inf.npz", *LABEL), "inf.npz|'x'|row 5|remove"),
    "infinity in Parquet": ((*FIT, "--data", "inf.parquet", *LABEL), "inf.parquet|'b'|row 5|remove"),
    "a text where a number is asked for": (
        (*FIT, "--data", "people.csv", "--utility", "income > 3"),
        "people.csv|'income'|line 2|not a number",
    ),
    "no records": ((*FIT, "--data", "empty.csv", *INCOME), "empty.csv|no records|at least one"),
    "too few records": ((*FIT, "--data", "two.csv", *INCOME), "two|split has only the class|use more records"),
    "one class only": ((*FIT, "--data", "one-class.csv", *INCOME), "one-class|'low'|'income'|another label"),
    "no label": ((*FIT, "--data", "people.csv"), "people|--utility"),
    "an unwritable folder, fit": (("fit", "ran", *PEOPLE, "-q", "--out", "people.csv/run"), "people.csv/run|--out"),
    "an unwritable folder, release": (
        ("release", "run", "--unaudited", "-d", "people.csv", "-q", "--out", "people.csv/release"),
        "people.csv/release|--out",
    ),
    "an unwritable folder, sweep": (
        ("sweep", "ran", *PEOPLE, "--knob", "lam=0.1,0.2", "-q", "--out", "people.csv/sweep"),
        "people.csv/sweep|--out",
    ),
    "an unwritable folder, demo": (("demo", "-q", "--out", "people.csv/demo"), "people.csv/demo|--out"),
    "an unwritable folder, reproduce": (
        ("reproduce", "ran-figure3", "-d", "digits", "--scale", "smoke", "-q", "--out", "people.csv/study"),
        "people.csv/study|--out",
    ),
    "an unwritable file, report": (("report", "audited", "--out", "people.csv/page.html"), "people.csv|path"),
    "a used folder, fit": (("fit", "ran", *PEOPLE, "-q", "--out", "run"), "run already holds a run|--out|--resume"),
    "a used folder, sweep": (("sweep", "ran", *PEOPLE, "--knob", "lam=0,1", "-q", "--out", "sounds"), "sounds|--out"),
    "a used folder, release": (
        ("release", "run", "--unaudited", "-d", "people.csv", "-q", "--out", "sounds"),
        "sounds|choose another folder",
    ),
    "a used folder, demo": (("demo", "-q", "--out", "sounds"), "sounds|--out"),
    "another configuration with --resume": (
        ("fit", "ran", *PEOPLE, "--set", "epochs=1", "--set", "lam=0.5", "-q", "--out", "run", "--resume"),
        "params.lam: 0.1 there, 0.5 now|--out",
    ),
    "an interrupted run, audit": (("audit", "interrupted", "-q"), "interrupted|fit --config|--resume"),
    "an interrupted run, release": (
        ("release", "interrupted", "--unaudited", "-d", "people.csv", "-q", "--out", "new"),
        "interrupted|fit --config|--resume",
    ),
    "an interrupted run, report": (("report", "interrupted"), "interrupted|not audited|sfumato audit"),
    "an unaudited run, report": (("report", "run"), "run|not audited|sfumato audit"),
    "an audited run, audit": (("audit", "audited", "-q"), "audited|--again"),
    "no run, audit": (("audit", "nowhere", "-q"), "nowhere|not a run folder"),
    "no run, release": (("release", "nowhere", "-d", "people.csv", "--out", "new", "-q"), "nowhere|not a run folder"),
    "no run, report": (("report", "nowhere"), "nowhere|not a folder"),
    "an image of another size": (
        ("release", "picture-run", "--unaudited", "-d", "pictures18.npz", "-q", "--out", "new"),
        "pictures18.npz|'image'|18",
    ),
    "a label that training never saw": (
        (*RELEASE, "--data", "stranger.csv", "--labels"),
        "stranger.csv|'income'|line 5|'medium'|remove the row",
    ),
    "a column that is missing at release": ((*RELEASE, "--data", "no-age.csv"), "no-age.csv|'age'|columns of training"),
    "a number that became text": ((*RELEASE, "--data", "foreign.csv"), "foreign.csv|'age'|line 7|'forty'"),
    "a file that is no longer there, at release": ((*RELEASE, "--data", "nobody.csv"), "nobody.csv|does not exist"),
    "an empty file, at release": ((*RELEASE, "--data", "empty.csv"), "empty.csv|no records"),
    "a configuration that is not there": ((*FIT, "--config", "nobody.toml"), "nobody.toml does not exist"),
}

USAGE = {
    "a mistyped column": ((*FIT, "--data", "people.csv", "--utility", "incom"), "people.csv 'incom'|'income'"),
    "a mistyped record column": ((*FIT, "--data", "people.csv", *INCOME, "--x", "agee"), "'agee'|'age'"),
    "a mistyped id column": ((*FIT, "--data", "people.csv", *INCOME, "--id", "jobs"), "'jobs'|'job'"),
    "an encoder that does not fit": (
        ("fit", "dnn", "--data", "pictures8.npz", *LABEL, "--set", "architecture=lenet", "-q", "--out", "new"),
        "dnn|encoder|(1, 8, 8)",
    ),
    "a mistyped parameter": ((*FIT, *PEOPLE, "--set", "epoch=3"), "ran 'epoch'|'epochs'"),
    "a parameter of another type": ((*FIT, *PEOPLE, "--set", "epochs=x"), "--set epochs=x|whole number"),
    "a parameter without a value": ((*FIT, *PEOPLE, "--set", "lam"), "--set lam|name=value"),
    "a parameter out of range": ((*FIT, *PEOPLE, "--set", "lam=2"), "ran: lam|[0, 1]|2.0"),
    "a parameter that is no number": ((*FIT, *PEOPLE, "--set", "lam=nan"), "ran: lam|[0, 1]|nan"),
    "the seed as a parameter": ((*FIT, *PEOPLE, "--set", "seed=2"), "--seed"),
    "a mistyped mechanism": (("fit", "rann", *PEOPLE, "-q"), "mechanism 'rann'|'ran'"),
    "no mechanism": (("fit", "-q"), "which mechanism|sfumato fit"),
    "no data": ((*FIT,), "which data|--data"),
    "a mistyped data set": ((*FIT, "--data", "digit"), "data set 'digit'|'digits'"),
    "a mistyped effort": (("audit", "run", "--effort", "smok", "-q"), "effort 'smok'|'smoke'"),
    "a mistyped geometry": (("audit", "run", "--geometry", "umpa", "-q"), "geometry 'umpa'|'umap'"),
    "a mistyped study": (("reproduce", "ran-figure33", "-q"), "study 'ran-figure33'|'ran-figure3'"),
    "a mistyped scale": ((*STUDY, "--scale", "smok"), "scale 'smok'|'smoke'"),
    "a data set that a study does not have": ((*STUDY, "--data", "adult"), "ran-figure3 'adult'|digits"),
    "a mistyped knob": ((*SWEEP, "--knob", "lamb=0.1,0.2"), "ran 'lamb'|'lam'"),
    "a knob without values": ((*SWEEP, "--knob", "lam"), "--knob lam|low:high:count"),
    "a knob with half a range": ((*SWEEP, "--knob", "lam=0:1"), "--knob lam=0:1|low:high:count"),
    "a knob range of one point": ((*SWEEP, "--knob", "lam=0:1:1"), "lam=0:1:1|count ≥ 2"),
    "a knob with words": ((*SWEEP, "--knob", "lam=a,b"), "--knob lam=a,b|a,b,c"),
    "a knob out of range": ((*SWEEP, "--knob", "lam=0.1,7"), "ran: lam|[0, 1]|7.0"),
    "a broken value of a whole knob": ((*SWEEP, "--knob", "k=1,1.5"), "--knob k=1,1.5|whole number"),
    "a knob that is no number": ((*SWEEP, "--knob", "architecture=1"), "ran 'architecture'|lam"),
    "a knob value twice": ((*SWEEP, "--knob", "lam=0.1,0.1"), "'ran-lam-0.1'|differ"),
    "a mistyped command": (("fitt",), "'fitt'|'fit'"),
    "a mistyped sub-command": (("data", "shw"), "'shw'|'show'"),
    "a mistyped option": ((*FIT, "--limt", "3"), "--limt|--limit"),
    "a limit that is too small": ((*FIT, *PEOPLE, "--limit", "3"), "--limit|30"),
    "a missing argument": (("audit",), "RUN|sfumato audit -h"),
}


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() if file.is_file() else b"" for file in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(
    ("args", "said", "code"),
    [pytest.param(args, said, 3, id=name) for name, (args, said) in DATA.items()]
    + [pytest.param(args, said, 2, id=name) for name, (args, said) in USAGE.items()],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    desk: Path, call: Call, args: tuple[str, ...], said: str, code: int
) -> None:
    before = everything(desk)
    ended = call(*args)
    assert ended.code == code, ended
    assert ended.out == ""
    assert ended.err.startswith("sfumato: ")
    assert ended.err.count("\n") == 1, "one sentence"
    assert len(ended.err) < 400
    assert all(words in ended.err for words in said.split("|")), ended.err
    assert everything(desk) == before


CONFIGS = {
    "not TOML": ("[run", 3, "not valid TOML"),
    "not text": (b"\xff\xfe", 3, "not valid TOML"),
    "an unknown table": ("[extra]\n", 2, "[extra]|[run], [data] and [params]"),
    "a table that is a number": ("run = 3\n", 2, "[run]|table"),
    "a mistyped key": ('[run]\nmechanisn = "ran"\n', 2, "[run]|'mechanisn'|'mechanism'"),
    "a mechanism that is a number": ("[run]\nmechanism = 3\n", 2, "mechanism|text|3"),
    "a negative seed": ('[run]\nmechanism = "ran"\nseed = -1\n', 2, "seed|whole number|-1"),
    "a seed that is no number": ('[run]\nmechanism = "ran"\nseed = false\n', 2, "seed|whole number|False"),
    "a label that is a number": ('[data]\nsource = "people.csv"\nutility = 3\n', 2, "utility|list|3"),
    "a mistyped parameter": ("[params]\nepoch = 3\n", 2, "'epoch'|'epochs'"),
    "a text for a number": ('[params]\nlam = "x"\n', 2, "ran: lam|number|'x'"),
    "a broken whole number": ("[params]\nepochs = 1.5\n", 2, "ran: epochs|whole number|1.5"),
    "a start that is gone": ('[run]\nstart = "ran-lam-0.1"\n', 3, "ran-lam-0.1|gone|sweep"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_wrong_configuration_is_one_sentence(desk: Path, call: Call, name: str) -> None:
    text, code, said = CONFIGS[name]
    (desk / "mine.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = call(*FIT, *PEOPLE, "--config", "mine.toml")
    assert (ended.code, ended.err.count("\n")) == (code, 1), ended
    assert all(words in ended.err for words in said.split("|")), ended.err
    assert not (desk / "new").exists()


def cut(file: Path, share: float = 0.5) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])


BROKEN = {
    "a truncated checkpoint": ("checkpoint/encoder.safetensors", 0.5),
    "an empty checkpoint": ("checkpoint/encoder.safetensors", 0.0),
    "a truncated mechanism.json": ("mechanism.json", 0.5),
    "a truncated schema": ("schema.json", 0.5),
    "a truncated status": ("status.json", 0.5),
    "a truncated configuration": ("config.toml", 0.4),
}


@pytest.mark.parametrize("command", [("audit", "run", "-q"), (*RELEASE, "--data", "people.csv")], ids=lambda c: c[0])
@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_run_is_one_sentence_that_names_the_file(
    desk: Path, call: Call, name: str, command: tuple[str, ...]
) -> None:
    file, share = BROKEN[name]
    if (command[0], file) == ("release", "config.toml"):
        pytest.skip("a release needs no configuration")
    cut(desk / "run" / file, share)
    ended = call(*command)
    assert (ended.code, ended.err.count("\n"), ended.out) == (3, 1, ""), ended
    assert f"run/{file}" in ended.err
    assert not (desk / "new").exists()
    assert not (desk / "run" / "scores.json").exists()


@pytest.mark.parametrize("file", ["mechanism.json", "schema.json"])
@pytest.mark.parametrize("text", ["{}", "[]", '{"mechanism": "ran"}'])
def test_json_of_another_form_is_one_sentence(desk: Path, call: Call, file: str, text: str) -> None:
    (desk / "run" / file).write_text(text)
    ended = call("audit", "run", "-q")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "run" in ended.err


def test_weights_of_another_run_are_refused(desk: Path, call: Call) -> None:
    weights = Path("checkpoint/encoder.safetensors")
    (desk / "run" / weights).write_bytes((desk / "picture-run" / weights).read_bytes())
    ended = call("audit", "run", "-q")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "do not fit" in ended.err


@pytest.mark.parametrize("text", ['{"mechanism":', "{}", '{"mechanism": "ran", "data": 3}'])
def test_damaged_scores_are_one_sentence_in_a_report(desk: Path, call: Call, text: str) -> None:
    (desk / "audited" / "scores.json").write_text(text)
    ended = call("report", "audited")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "audited" in ended.err
    assert not (desk / "audited" / "report.html").exists()


def test_data_that_changed_since_the_fit_are_refused(desk: Path, call: Call) -> None:
    (desk / "people.csv").write_bytes((desk / "stranger.csv").read_bytes())
    ended = call("audit", "run", "--jobs", "1", "-q")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "people.csv has changed" in ended.err


def test_records_in_another_order_are_refused_since_victims_might_have_been_trained_on(desk: Path, call: Call) -> None:
    head, *rows = (desk / "people.csv").read_text().splitlines(keepends=True)
    (desk / "people.csv").write_text(head + "".join(reversed(rows)))
    ended = call("audit", "run", "--jobs", "1", "-q")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "data have changed" in ended.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_sentence(desk: Path, call: Call) -> None:
    (desk / "locked").mkdir(mode=0o500)
    ended = call("fit", "ran", *PEOPLE, "-q", "--out", "locked/run")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
