"""``sfumato share``: what is laid down is complete, and a wrong call is one sentence."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sfumato.cli import main
from sfumato.core import compute
from sfumato.core.compute import Compute, using
from sfumato.parties import app_files, simulation
from sfumato.parties.results import FedResult, PartyResult, Round, ShareResult
from sfumato.parties.run_terms import Terms


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sfumato", *words])
    with pytest.raises(SystemExit) as end:
        main.run()
    return int(end.value.code or 0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_split_prints_the_folders(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert (
        call(monkeypatch, "share", "split", "-d", "digits", "-k", "2", "--limit", "100", "--out", "cut", "--json") == 0
    )
    assert json.loads(capsys.readouterr().out) == {"parties": ["cut/party-0", "cut/party-1"]}
    assert {file.name for file in (here / "cut" / "party-1").iterdir()} == {
        "train.parquet", "test.parquet", "schema.json", "party.toml", "secret",
    }  # fmt: skip


def test_the_app_is_what_flower_asks_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "share", "app", "laid", "-k", "4", "--set", "epsilon=0.5", "--out", "result") == 0
    project = tomllib.loads((here / "laid" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    terms = Terms.from_run_config(project["config"])
    assert (terms.parties, dict(terms.params), terms.out) == (4, {"epsilon": 0.5}, str(here / "result"))
    code = ""
    for side in ("serverapp", "clientapp"):
        module, _, name = project["components"][side].partition(":")
        code += f"import {module} as m; assert type(m.{name}).__name__.lower() == '{side}'\n"
    assert subprocess.run([sys.executable, "-c", code], cwd=here / "laid", check=False).returncode == 0


def test_terms_survive_the_run_configuration() -> None:
    terms = Terms(out="x", mode="vertical", params={"latent": 3}, labels="b", timeout=5.0, record="r")
    assert Terms.from_run_config(terms.to_run_config()) == terms


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "-d", "digits", "--mode", "diagonal"), "unknown mode 'diagonal'"),
        (("simulate", "-d", "digits", "--set", "epsilon=-1", "--out", "new"), "epsilon"),
        (("simulate", "-d", "digits", "--set", "lam=0.5,0.1", "--out", "new"), "add up to 1"),
        (("simulate", "-d", "digits", "--wire", "int3", "--out", "new"), "unknown wire"),
        (("simulate", "-d", "digits", "--learner", "oracle", "--out", "new"), "unknown learner"),
        (("simulate", "-d", "digits", "-k", "1", "--out", "new"), "parties"),
        (("fedavg", "-d", "digits", "--dp", "1"), "noise,clip"),
        (("fedavg", "-d", "digits", "--dp", "0,1"), "above 0"),
        (("app", "new", "--set", "epsilom=1"), "did you mean 'epsilon'"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_leaves_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, words: tuple[str, ...], said: str
) -> None:
    assert call(monkeypatch, "share", *words) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not list(here.iterdir())


def test_without_flower_the_extra_is_named(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("flwr"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert call(monkeypatch, "share", "simulate", "-d", "digits", "--quiet") == 2
    assert "pip install 'sfumato[parties]'" in capsys.readouterr().err
    assert not list(here.iterdir())


def test_results_are_shown_as_a_table_or_as_json(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    good = PartyResult("north", "shared", "", 10, 100, 200, 0.5, {"held-out": 3.0})
    bad = PartyResult("south", "excluded", "it is gone (share)")
    result = ShareResult("horizontal", "north", "e", (good, bad), 0.5, 100, 200, {"share": {"up": 1, "down": 2}}, 1.0)
    assert ShareResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    monkeypatch.setattr(simulation, "simulate", lambda *_, **__: result)
    assert call(monkeypatch, "share", "simulate", "-d", "digits", "-q") == 0
    shown = capsys.readouterr().out
    assert "it is gone (share)" in shown and "accuracy 0.5000, 100 bytes up, 200 bytes down" in shown
    fed = FedResult("dp-fedavg", (Round(1, 0.25, 7, 8),), (good,), 0.25, 7, 8, 9, 3.0, 1e-5, 1.0)
    assert FedResult.from_json(json.loads(json.dumps(fed.to_json()))) == fed
    monkeypatch.setattr(simulation, "fedavg", lambda *_, **__: fed)
    assert call(monkeypatch, "share", "fedavg", "-d", "digits", "--dp", "1,0.5", "-q") == 0
    assert "ε = 3 per party" in capsys.readouterr().out


def test_parties_say_that_they_compute_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ShareResult("horizontal", "north", "e", (), 0.5, 1, 2, {}, 1.0)
    for name, found in (("need_flower", None), ("split_parties", ()), ("simulate_folder", result.to_json())):
        monkeypatch.setattr(simulation, name, lambda *_, found=found, **__: found)
    for precision, told in (("bf16", 1), ("fp32", 0)):
        said: list[str] = []
        with using(Compute(precision=precision)):
            simulation.simulate("digits", parties=2, say=said.append)
        assert sum("--precision changes nothing here" in line for line in said) == told


def test_the_chosen_device_reaches_every_party(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    chosen: list[str] = []

    def run(*_: object, **__: object) -> FedResult:
        chosen.append(compute.device())
        return FedResult("fedavg", (), (), 0.5, 1, 2, 3, None, 1e-5, 1.0)

    monkeypatch.setattr(simulation, "fedavg", run)
    assert call(monkeypatch, "share", "fedavg", "-d", "digits", "--device", "cpu", "-q") == 0
    assert chosen == ["cpu"]
    seen: dict[str, str] = {}

    class HeardOf(Exception):
        pass

    def told(_home: Path, **more: str) -> None:
        seen.update(more)
        raise HeardOf

    monkeypatch.setattr(simulation, "environment", told)
    with using(replace(Compute(), device="cpu")), pytest.raises(HeardOf):
        simulation.simulate_folder(here, Terms(out=str(here / "server")))
    assert seen["SFUMATO_DEVICE"] == "cpu"
    if not torch.cuda.is_available():
        capsys.readouterr()
        assert call(monkeypatch, "share", "simulate", "-d", "digits", "--device", "cuda", "-q", "--out", "new") == 2
        assert "cuda" in capsys.readouterr().err and not (here / "new").exists()


def test_a_folder_that_is_used_is_not_written_to(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (here / "full").mkdir()
    (here / "full" / "note").write_text("mine")
    assert call(monkeypatch, "share", "simulate", "-d", "digits", "-q", "--out", "full") == 3
    assert "already used" in capsys.readouterr().err
    assert app_files.PACKAGE not in {file.name for file in (here / "full").iterdir()}
