"""Two processes fit one mechanism together, each on its share of every batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import RunFolder
from sfumato.mechanisms import mechanism_class, names
from sfumato.workflow import fit_run, load_run, resolve
from sfumato.workflow.fitting import splits_of

DATA = {"source": "digits", "utility": ["odd"], "private": ["ge5"], "limit": 800}
FIT = ["--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", "800", "--set", "epochs=3"]


@dataclass(frozen=True)
class Together:
    folder: Path
    said: str
    complained: str
    code: int


def _together(folder: Path, words: list[str]) -> Together:
    script = Path(__file__).with_name("together.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SFUMATO_STATE": str(folder / "state")}
    done = subprocess.run(
        [*command, str(folder), *words], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    return Together(folder, done.stdout, done.stderr, done.returncode)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    folder = tmp_path_factory.mktemp("together")
    measured = _together(folder, [])
    assert measured.code == 0, measured.complained
    found = _together(folder, ["fit", "ran", *FIT, "--out", str(folder / "run"), "--device", "cpu"])
    assert found.code == 0, found.complained
    return found


def test_a_step_by_two_processes_is_the_step_on_the_whole_batch(together: Together) -> None:
    for name in ("2-True.json", "2-False.json"):
        found = json.loads((together.folder / name).read_text())
        assert found["together"] == pytest.approx(found["alone"], abs=1e-6)
        assert found["level"] == pytest.approx([0.5, 0.5]), "measured by one as 0, by the other as 1"


def test_one_of_the_processes_writes_and_speaks(together: Together) -> None:
    assert together.said.count("fitted on") == 1
    assert RunFolder.open(together.folder / "run").done
    assert json.loads((together.folder / "run" / "env.json").read_text())["used"]["processes"] == 2


def test_two_processes_reach_what_one_reaches(together: Together) -> None:
    config = resolve("ran", DATA, {"epochs": 3}, seed=0)
    alone = fit_run(config, together.folder / "alone")
    victim = splits_of(config).victim
    shares = []
    for fitted in (alone, load_run(together.folder / "run")):
        scores = fitted.predict(fitted.transform(victim.x))  # type: ignore[attr-defined]
        shares.append(float((scores.argmax(1) == victim.utility["odd"]).mean()))
    assert min(shares) > 0.8 and abs(shares[0] - shares[1]) < 0.08, shares


def test_what_does_not_come_apart_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.core import ranks

    monkeypatch.setattr(ranks, "count", lambda: 2)
    apart = [name for name in names() if mechanism_class(name).by_shares]
    assert {"ran", "phase", "dnn"} <= set(apart) and not {"synth", "filter", "ars"} & set(apart)
    with pytest.raises(UsageError, match="synth is fitted in one process"):
        fit_run(resolve("synth", DATA, {}, seed=0), tmp_path / "synth")
    with pytest.raises(UsageError, match="--resume goes on in one process"):
        fit_run(resolve("ran", DATA, {}, seed=0), tmp_path / "ran", resume=True)
    assert not list(tmp_path.iterdir())


def test_other_commands_are_not_started_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.cli.options import machine

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "2")
    with pytest.raises(UsageError, match="without torchrun"):
        machine("cpu")
