"""Run folders from the outside: repeat, resume, go on, release."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from desk import PEOPLE, QUICK, TINY, Call, people, write_csv

from sfumato.auditing import effort
from sfumato.cli.main import run
from sfumato.data import load
from sfumato.mechanisms import load_mechanism
from sfumato.workflow import auditing, fitting, releasing

WEIGHTS = Path("checkpoint/encoder.safetensors")


def weights(run: Path | str) -> bytes:
    return (Path(run) / WEIGHTS).read_bytes()


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        ("ran", ("people.csv", "--utility", "income", "--private", "sex", "--limit", "60", "--seed", "3")),
        ("dnn-resized", ("people.csv", "--utility", "rich=income in {high}", "--x", "age", "--x", "height")),
        ("noisy", ("pictures16.npz", "--utility", "label")),
    ],
)
def test_a_recorded_configuration_gives_the_same_mechanism_again(
    desk: Path, call: Call, mechanism: str, data: tuple[str, ...]
) -> None:
    assert call("fit", mechanism, "--data", *data, *QUICK, "--out", "a").code == 0
    assert call("fit", "--config", "a/config.toml", "--out", "b").code == 0
    assert weights("a") == weights("b")
    assert (desk / "a/config.toml").read_text() == (desk / "b/config.toml").read_text()


def test_what_is_typed_overrides_the_configuration(desk: Path, call: Call) -> None:
    ended = call("fit", "--config", "run/config.toml", "-s", "lam=0.5", "--seed", "7", "--out", "new", "--json")
    config = ended.json()["config"]
    assert (config["params"]["lam"], config["run"]["seed"], config["params"]["epochs"]) == (0.5, 7, 1)


def test_resume_finishes_an_interrupted_run_and_leaves_a_finished_one_alone(desk: Path, call: Call) -> None:
    finish = ("fit", "--config", "interrupted/config.toml", "--out", "interrupted", "--resume")
    assert call(*finish).code == 0
    assert weights("interrupted") == weights("run")
    written = (desk / "interrupted" / WEIGHTS).stat().st_mtime_ns
    assert call(*finish).code == 0
    assert (desk / "interrupted" / WEIGHTS).stat().st_mtime_ns == written


def test_resume_of_nothing_is_refused(desk: Path, call: Call) -> None:
    ended = call("fit", "ran", *PEOPLE, *QUICK, "--resume", "--out", "typo")
    assert ended.code == 3 and "nothing to resume in typo: leave out --resume" in ended.err
    assert not (desk / "typo").exists()


def test_a_run_killed_before_its_first_epoch_can_be_resumed(desk: Path, call: Call) -> None:
    (desk / "young").mkdir()
    (desk / "young/config.toml").write_bytes((desk / "run/config.toml").read_bytes())
    assert call("fit", "--config", "run/config.toml", "--out", "young", "--resume").code == 0
    assert weights("young") == weights("run")


def test_a_refused_fit_does_not_block_its_folder(desk: Path, call: Call) -> None:
    assert call("fit", "ran", "--data", "people.csv", "--out", "new").code == 3
    assert call("fit", "ran", *PEOPLE, *QUICK, "--out", "new").code == 0


def test_a_second_audit_needs_again_and_gives_the_same_scores(desk: Path, call: Call) -> None:
    first = call("audit", "run", "--effort", "smoke", "--json").json()
    assert call("audit", "run", "--effort", "smoke").code == 3
    second = call("audit", "run", "--effort", "smoke", "--again", "--json").json()
    for scores in (first, second):
        for score in (*scores["utility"], *scores["attacks"], *scores["worst"].values()):
            score.pop("seconds")
    assert first == second


ONE = ("--effort", "smoke", "--jobs", "1")
SWEEP = ("sweep", "ran", *PEOPLE, *QUICK, "--knob", "lam=0.5,0.3,0.1", *ONE, "--out", "s")


@pytest.fixture(scope="module")
def _swept(_desk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, which is made once."""
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(_desk / "people.csv", folder)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.chdir(folder)
        patch.setitem(effort._NAMED, "smoke", TINY)
        patch.setattr(sys, "argv", ["sfumato", *SWEEP])
        run()
    assert not ended.value.code
    return folder / "s"


@pytest.fixture
def swept(desk: Path, _swept: Path) -> Path:
    """A copy of it, as the folder ``s`` of the desk."""
    return Path(shutil.copytree(_swept, desk / "s"))


def test_a_later_point_of_a_sweep_can_be_repeated_from_its_configuration(swept: Path, call: Call) -> None:
    assert call("fit", "--config", "s/points/ran-lam-0.1/config.toml", "--out", "again").code == 0
    assert weights("again") == weights(swept / "points/ran-lam-0.1")


def test_an_interrupted_sweep_goes_on_without_doing_finished_points_again(
    desk: Path, _swept: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = desk / "whole"
    shutil.copytree(_swept, whole)
    finished = call(*SWEEP[:-1], "whole", "--json").json()
    real, audits = auditing.opened, []

    def interrupted(*args: object, **options: object) -> object:
        audits.append(args)
        if len(audits) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "opened", interrupted)
    stopped = call(*SWEEP, "--quiet")
    assert (stopped.code, stopped.err.count("\n"), stopped.out) == (130, 1, "")
    resumed = call(*SWEEP, "--json").json()
    assert len(audits) == 4, "one finished, one interrupted, two after that"
    assert call(*SWEEP, "--json").json() == resumed
    assert len(audits) == 4
    values = [
        [[score["value"] for score in point["attacks"]] for point in result["points"]] for result in (finished, resumed)
    ]
    assert values[0] == values[1]
    assert resumed["front"] == finished["front"]
    for point in ("ran-lam-0.3", "ran-lam-0.1"):
        assert weights(f"s/points/{point}") == weights(whole / "points" / point)


def test_a_sweep_folder_takes_no_other_sweep(swept: Path, call: Call) -> None:
    for other in (("--seed", "1"), ("--set", "k=2"), ("--knob", "lam=0.5,0.2"), ("--effort", "cpu")):
        ended = call(*SWEEP, "--quiet", *other)
        assert (ended.code, ended.err.count("\n")) == (3, 1), ended
        assert "--out" in ended.err


def test_only_the_own_knob_starts_warm(desk: Path, swept: Path, call: Call) -> None:
    assert 'start = "ran-lam-0.5"' in (swept / "points/ran-lam-0.3/config.toml").read_text()
    assert "start" not in (swept / "points/ran-lam-0.5/config.toml").read_text()
    other = ("sweep", "dnn-resized", *PEOPLE, *QUICK, "--knob", "components=2,4", *ONE, "--out", "c")
    points = call(*other, "--json").json()["points"]
    assert [point["point"] for point in points] == ["dnn-resized-components-2", "dnn-resized-components-4"]
    assert "start" not in (desk / "c/points/dnn-resized-components-4/config.toml").read_text()


def released(folder: str | Path) -> np.ndarray:
    column = pq.read_table(Path(folder) / "release.parquet")["payload"]
    return np.stack([np.asarray(row.as_py(), dtype=np.float32) for row in column])


def test_a_release_holds_the_payload_and_nothing_else(desk: Path, call: Call) -> None:
    card = call("release", "run", "--unaudited", "--data", "people.csv", "--out", "new", "--json").json()
    table = pq.read_table("new/release.parquet")
    assert table.column_names == ["payload"]
    assert card["labels"] == []
    files = ["README.md", "SHA256SUMS", "croissant.json", "release.json", "release.parquet"]
    assert sorted(file.name for file in (desk / "new").iterdir()) == files
    payload = (desk / "new" / "release.parquet").read_bytes()
    for secret in (b"age", b"height", b"clerk", b"people", b"sex", b"income"):
        assert secret not in payload
    beside = b"".join((desk / "new" / name).read_bytes() for name in files[:-1])
    for secret in (b"height", b"clerk", b"low", b"people.csv"):  # the card names the labels, and no other column
        assert not re.search(rb"\b" + secret + rb"\b", beside), secret
    raw = load("people.csv", schema=load_mechanism(desk / "run").schema_).x
    payload = released("new")
    assert not any(np.isin(record, payload).all() for record in raw.reshape(len(raw), -1))


def test_labels_leave_only_when_asked_for_and_never_the_private_ones(desk: Path, call: Call) -> None:
    card = call("release", "run", "--unaudited", "--data", "people.csv", "--labels", "--out", "new", "--json").json()
    table = pq.read_table("new/release.parquet")
    assert table.column_names == ["payload", "income"]
    assert table["income"].to_pylist() == [row[4] for row in people()]
    assert card["labels"] == ["income"]


def test_a_release_without_labels_needs_no_label_column(desk: Path, call: Call) -> None:
    write_csv(desk / "bare.csv", [row[:3] for row in people()], ("age", "height", "job"))
    assert call("release", "run", "--unaudited", "--data", "bare.csv", "--out", "new").code == 0
    assert len(released("new")) == 90


def test_a_streamed_release_is_the_transform_of_the_whole(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "BATCH_ROWS", 7)
    card = call("release", "picture-run", "--unaudited", "--data", "pictures16.npz", "--out", "new", "--json").json()
    mechanism = load_mechanism(desk / "picture-run")
    whole = mechanism.transform(load("pictures16.npz", schema=mechanism.schema_).x)
    assert card["payload_shape"] == list(whole.shape[1:])
    assert card["rows"] == len(whole)
    np.testing.assert_allclose(released("new"), whole.reshape(len(whole), -1), atol=1e-6)


def test_a_release_whose_last_batch_fails_leaves_nothing(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "BATCH_ROWS", 8)
    write_csv(desk / "late.csv", [*people(60), ["inf", *people(1)[0][1:]]])
    before = sorted(desk.rglob("*"))
    ended = call("release", "run", "--unaudited", "--data", "late.csv", "--out", "new", "--quiet")
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "line 62" in ended.err
    assert sorted(desk.rglob("*")) == before


def test_an_interrupted_release_leaves_nothing_and_can_be_repeated(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(desk.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(releasing, "as_table", interrupted)
        assert call("release", "run", "--unaudited", "--data", "people.csv", "--out", "new").code == 130
    assert sorted(desk.rglob("*")) == before
    assert call("release", "run", "--unaudited", "--data", "people.csv", "--out", "new").code == 0


def test_the_data_are_not_read_before_the_folder_is_known_to_be_free(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "load_splits", lambda **_: pytest.fail("read the data"))
    assert call("fit", "ran", *PEOPLE, "--out", "run").code == 3
