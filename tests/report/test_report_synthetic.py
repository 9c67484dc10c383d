"""What a page and a card say about synthetic records: the claim, what canaries show, members, and where ε went."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import score, utility, verdict_text, write_run

from sfumato.core.errors import DataError
from sfumato.report import render_card
from sfumato.report.collect import collect, read_run
from sfumato.report.verdict import verdict

PROMISE = {
    "kind": "dp",
    "statement": "Proven.",
    "epsilon": 1.0,
    "delta": 1e-5,
    "relation": "add or remove one record",
    "event": {"composed": []},
}


def budget(**more: Any) -> dict[str, Any]:
    event = {"part": "pictures <b>", "name": "second moment", "share": 1.0, "count": 3, "rate": 1.0, "noise": 8.342}
    spent = {"epsilon": 0.99999, "epsilon_rdp": 1.0932, "epsilon_closed_form": 1.0, "delta": 1e-5}
    return {
        "relation": "add or remove one record",
        "target": {"epsilon": 1.0, "delta": 1e-5},
        "spent": spent,
        "state": "complete",
        "bypassed": None,
        "events": [{**event, "asked": 3, "epsilon_alone": 0.415}],
        **more,
    }


def attacks(bound: float, advantage: float = 0.01) -> list[dict[str, Any]]:
    about = {"baseline": 0.0, "half": 0.03}
    found = [
        score("member-nearest", "membership", "advantage", advantage, control=1.0, **about),
        score("member-loss", "membership", "advantage", advantage - 0.02, control=0.2, **about),
        score("member-nearest", "membership", "tpr-at-1-fpr", 0.012, baseline=0.01, control=1.0, primary=False),
        score("canary-worst", "differential-privacy", "epsilon-lower-bound", bound, control=10.9, **about),
        score("canary-one-run", "differential-privacy", "epsilon-lower-bound", 0.0, control=2.3, n=100, **about),
    ]
    return [entry | {"better_for_owner": "lower"} for entry in found]


def fidelity() -> list[dict[str, Any]]:
    return [
        score("fidelity", "fidelity", "precision", 0.62, baseline=0.0, control=0.91, primary=False)
        | {"better_for_owner": "higher"}
    ]


def synth_run(path: Path, epsilon: float = 1.0, *, bound: float = 0.63, advantage: float = 0.01, **more: Any) -> Path:
    records = np.random.default_rng(3).random((2, 8, 1, 8, 8), dtype=np.float32)
    given: dict[str, Any] = {
        "params": {"method": "mixture", "epsilon": epsilon},
        "attacks": attacks(bound, advantage),
        "guarantee": PROMISE | {"epsilon": epsilon},
        "use": [score("student cnn", "utility", "accuracy", 0.95, baseline=0.114, control=0.99, target="digit")],
        "tensors": {"synthetic": records[0], "nearest": records[1]},
        "more_scores": {"information": fidelity()},
    }
    run = write_run(path, "synth", **{**given, **more})
    (run / "budget.json").write_text(json.dumps(budget()))
    return run


def test_the_page_puts_the_lower_bound_beside_the_claim(tmp_path: Path, page: Callable[..., Any]) -> None:
    built = page(synth_run(tmp_path / "r"))
    assert "Claimed, and shown by canaries" in built.visible
    assert "ε = 1, δ = 1e-05" in built.visible and "ε ≥ 0.630" in built.visible
    assert "2,000 trials" in built.visible and "100 canaries" in built.visible
    assert '<span class="badge">refutes the claim</span>' not in built.visible


def test_the_page_lists_every_question_with_its_noise(tmp_path: Path, page: Callable[..., Any]) -> None:
    built = page(synth_run(tmp_path / "r"))
    assert "Where ε went" in built.visible
    for cell in ("second moment", "8.342", "0.415", "pictures &lt;b&gt;"):
        assert cell in built.visible
    assert "1.093 by Rényi divergences" in built.visible


def test_samples_stand_above_the_nearest_real_records_which_are_counted(
    tmp_path: Path, page: Callable[..., Any]
) -> None:
    built = page(synth_run(tmp_path / "r"))
    assert "Samples and the real records nearest to them" in built.visible
    assert "This page embeds 8 real records of the owner’s split" in built.visible


def test_a_refuted_claim_cannot_be_overlooked(tmp_path: Path, page: Callable[..., Any]) -> None:
    published = {"kind": "as-published", "statement": "It looks.", "epsilon": 0.93, "delta": 1e-5}
    run = synth_run(tmp_path / "r", guarantee=published, bound=2.28)
    built = page(run)
    assert '<span class="badge">refutes the claim</span>' in built.visible and "not proven" in built.visible
    found = verdict(collect([run])[0])
    assert any("claimed ε = 0.93 of synth is refuted" in warning for warning in found.warnings)
    assert "REFUTED" in render_card(run)


def test_the_verdict_of_one_run_says_what_students_members_and_canaries_do(tmp_path: Path) -> None:
    text = verdict_text(collect([synth_run(tmp_path / "r")])[0])
    assert "Students of the synthetic records read digit with 95.0 %" in text
    assert "not more private than ε = 0.630" in text and "does not contradict the claimed ε = 1" in text
    assert "No membership attack of this suite does measurably better" in text
    assert "tells the owner's records from others with advantage 0.010" in text


def test_a_weak_attack_that_gets_all_it_can_is_not_called_a_release_without_defence(tmp_path: Path) -> None:
    text = verdict_text(collect([synth_run(tmp_path / "r", advantage=0.3)])[0])
    assert "The release leaks: the attack does better than a guesser who sees nothing." in text


def test_synthetic_records_stand_beside_other_mechanisms(tmp_path: Path, page: Callable[..., Any]) -> None:
    runs = [
        write_run(tmp_path / "ran", "ran"),
        synth_run(tmp_path / "one"),
        synth_run(tmp_path / "three", 3.0, bound=1.9),
    ]
    built = page(*runs)
    assert "does not apply" in built.visible
    shown = "Canaries show ε ≥ 0.630 for synth, ε = 1 (claimed 1) and ε ≥ 1.900 for synth, ε = 3 (claimed 3)."
    assert shown in built.visible
    assert "of the victim split and the owner’s" in built.visible
    assert "Trade-off over ε" in built.visible
    start = built.data["fronts"][0]["start"]
    assert built.data["runs"][start]["title"] == "ran"


def test_only_synthetic_runs_have_their_section(tmp_path: Path, page: Callable[..., Any]) -> None:
    assert "Synthetic records" not in page(write_run(tmp_path / "ran", "ran", use=utility(0.9))).visible


def test_the_card_holds_fidelity_and_the_ledger(tmp_path: Path) -> None:
    text = render_card(synth_run(tmp_path / "r"))
    assert "Likeness of the synthetic records to real ones: precision 62.0 %" in text
    assert "| pictures &lt;b&gt; | second moment | 3 | 1 | 8.342 | 0.415 |" in text
    assert "ε = 1 by PLD, 1.093 by RDP" in text
    assert "Mutual information" not in text


def test_a_ledger_of_another_form_is_named(tmp_path: Path, page: Callable[..., Any]) -> None:
    run = synth_run(tmp_path / "r")
    (run / "budget.json").write_text(json.dumps({"events": []}))
    with pytest.raises(DataError, match="audit it again"):
        read_run(run)
    (run / "budget.json").unlink()
    assert "Where ε went" not in page(run).visible
