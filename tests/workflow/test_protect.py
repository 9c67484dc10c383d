"""``sfumato protect``: a goal becomes a gated release, or is refused for the right reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato
from sfumato.auditing import SMOKE
from sfumato.core.errors import DataError, UsageError
from sfumato.core.policy import Policy, policy_of
from sfumato.core.run_folder import read_json, read_tensors
from sfumato.workflow.gate import gate_folder
from sfumato.workflow.protect import Protected, SearchTerms, protect
from sfumato.workflow.protect.candidate_search import Standings
from sfumato.workflow.protect.goal import goal_of
from sfumato.workflow.protect.label_floors import label_floors

TINY = replace(
    SMOKE, attack_epochs=1, attack_steps=8, attack_width=8, inverted=4, inversion_steps=4, task_epochs=1, task_steps=40,
    candidates=20, repeats=1, averages=(), suspects=60,
)  # fmt: skip
DIGITS: dict[str, Any] = {"utility": ["odd"], "private": ["ge5"], "limit": 400}
LOOSE = policy_of(["reconstruction=100%"], ["balanced-accuracy=0.55"])


def pursued(out: Path, policy: Policy, *, most: int = 1, **options: Any) -> Protected:
    terms = SearchTerms(seconds=options.pop("seconds", 300.0), most=most, effort=TINY)
    return protect("digits", out, policy, terms=terms, **{**DIGITS, **options})


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> tuple[Protected, Path]:
    """A goal that one cheap candidate meets."""
    out = tmp_path_factory.mktemp("protect") / "outbox"
    return pursued(out, LOOSE), out


def test_a_goal_that_can_be_met_ends_in_a_release_with_its_evidence(met: tuple[Protected, Path]) -> None:
    found, out = met
    assert found.passed and found.release == out / "release" and all(one["passed"] for one in found.content["checks"])
    record = read_json(out / "release" / "release.json")
    assert record["gate"]["passed"] and record["tuning"].startswith("Chosen by sfumato protect among 1 candidates")
    assert "| Settings | Chosen by sfumato protect among 1" in (out / "release" / "README.md").read_text()
    assert (
        (out / "release" / "README.md").is_file()
        and (out / "report.html").is_file()
        and (out / "candidates.html").is_file()
    )
    assert gate_folder(out / "winner", LOOSE).passed


def test_the_final_figures_are_of_people_whom_the_search_never_saw(met: tuple[Protected, Path]) -> None:
    data: dict[str, Any] = {"source": "digits", **DIGITS}
    search, final, whole = (sfumato.load_splits(**data, held_out=part) for part in ("search", "final", None))
    assert search.owner.digest == final.owner.digest == whole.owner.digest
    for part in ("attacker", "victim"):
        seen, unseen, every = (set(one.parts[part].ids.tolist()) for one in (search, final, whole))
        assert not seen & unseen and seen | unseen == every
    folder = Path(str(met[0].candidates[0]["folder"]))
    held_out = [_data_of(where)["held_out"] for where in (folder, met[1] / "winner")]
    assert held_out == ["search", "final"]


def _data_of(folder: Path) -> dict[str, Any]:
    import tomllib

    found: dict[str, Any] = tomllib.loads((folder / "config.toml").read_text())["data"]
    return found


def test_the_command_repeats_the_winner(met: tuple[Protected, Path], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from sfumato.cli.main import app

    words = met[0].command.split()
    again = [*words[1 : words.index("--out")], "--out", str(tmp_path / "again"), "--quiet"]
    result = CliRunner().invoke(app, again)
    assert result.exit_code == 0, result.output
    for file in (met[1] / "winner" / "checkpoint").glob("*.safetensors"):
        ours, theirs = read_tensors(file), read_tensors(tmp_path / "again" / "checkpoint" / file.name)
        assert all(np.array_equal(ours[name].numpy(), theirs[name].numpy()) for name in ours)


def test_a_second_run_prints_the_stored_result_and_another_goal_is_refused(met: tuple[Protected, Path]) -> None:
    found, out = met
    assert pursued(out, LOOSE).to_json() == json.loads(json.dumps(found.to_json()))
    with pytest.raises(DataError, match="a search for another goal"):
        pursued(out, policy_of(["reconstruction=90%"], ["balanced-accuracy=0.55"]))


class Stopped(Exception):
    """Somebody pressed Ctrl-C."""


def test_an_interrupted_search_goes_on_and_tries_nothing_twice(tmp_path: Path) -> None:
    def stop(now: Standings) -> None:
        if len(now.attempted) == 1 and now.trying:
            raise Stopped

    policy = policy_of(["attribute=0%"], ["balanced-accuracy=0.5"])
    with pytest.raises(Stopped):
        pursued(tmp_path / "out", policy, most=2, watch=stop)
    (first,) = tmp_path.glob("out/candidates/*/attempt.json")
    before = first.read_bytes()
    found = pursued(tmp_path / "out", policy, most=2)
    assert first.read_bytes() == before
    assert len(found.candidates) == 2 == len({one["candidate"] for one in found.candidates})


def test_a_goal_that_cannot_be_met_names_the_nearest_and_the_step(tmp_path: Path) -> None:
    found = pursued(tmp_path / "out", policy_of(["reconstruction=1%"], ["balanced-accuracy=0.5"]), leaves="records")
    assert not found.passed and found.release is None and not (tmp_path / "out" / "release").exists()
    assert found.content["nearest"][0]["candidate"].startswith("noisy")
    step = found.content["relax"][0]
    assert step["limit"].startswith("max reconstruction") and float(step["to"].rstrip("%")) > 1


def test_a_limit_below_what_the_useful_label_tells_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    policy = policy_of(["attribute:ge5=20%"], ["accuracy=0.99"])
    data: dict[str, Any] = {"utility": ["circle"], "private": ["ge5"]}
    found = pursued(tmp_path / "out", policy, **{**data, "limit": 5000})
    goal = goal_of(policy, {"source": "digits", **data})
    (floor,) = label_floors(sfumato.load_splits("digits", **data), goal)
    if floor.sure_leakage > 0.2:
        assert not found.passed and found.content["cost"]["fits"] == 0
    assert floor.sure_leakage <= floor.leakage <= 1.0


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (policy_of(["attribute=10%"]), {}, "nothing is to stay useful"),
        (policy_of([], ["accuracy=0.7"]), {}, "nothing is to stay hidden"),
        (policy_of(["attribute:sex=10%"], ["accuracy=0.7"]), {}, "unknown private label 'sex'"),
        (policy_of(["attribute=10%"], ["accuracy:even=0.7"]), {}, "unknown utility label 'even'"),
        (policy_of(["attribute=10%"], ["accuracy=0.7"]), {"private": []}, "name it with --private"),
        (policy_of(["attribute=10%"], ["r2=0.7"]), {}, "'odd' is classes"),
        (policy_of(["attribute=10%"], ["accuracy=0.7"]), {"utility": ["digit"]}, "'ge5' follows from 'digit'"),
        (policy_of(["attribute=10%"], ["accuracy=0.7"]), {"leaves": "row"}, "did you mean 'rows'"),
        (
            policy_of(["attribute=10%"], ["accuracy=0.7"], require="dp"),
            {"leaves": "features"},
            "no mechanism fits this goal",
        ),
        (policy_of(["attribute=10%"], ["accuracy=0.7"]), {"seconds": 0.001}, "shorter than one fit"),
    ],
)
def test_a_goal_that_makes_no_sense_is_one_clear_sentence(
    policy: Policy, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        pursued(tmp_path / "out", policy, most=3, **options)


@pytest.mark.slow
def test_a_private_goal_is_one_fit_that_the_plan_announces(tmp_path: Path) -> None:
    said: list[str] = []
    policy = policy_of(["epsilon=8", "membership=100%"], ["accuracy=0.2"], require="dp")
    found = pursued(tmp_path / "out", policy, say=said.append, limit=3000)
    assert said[0].startswith("one private fit of synth spends ε = 8")
    assert found.content["cost"]["fits"] == 1 and "nothing is chosen" in said[1]
