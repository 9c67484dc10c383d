"""The first screen: the sentence that answers, what became of gates, the leakage matrix; and the sheet to sign."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_runs import attribute, reconstruction, score, utility, write_run, write_sweep

from sfumato.report.collect import collect
from sfumato.report.first_screen import answer
from sfumato.report.leakage_matrix import Matrix, leakage_matrix, shade


def graded(scores: list[dict[str, Any]], share: float, *, sure: bool = True) -> list[dict[str, Any]]:
    """The scores with a leakage; its interval lies above 0 if it is sure."""
    ci = [max(share - 0.05, 0.01) if sure else 0.0, min(share + 0.05, 1.0)]
    return [{**one, "leakage": share, "leakage_ci": ci, "leakage_by": one["metric"]} for one in scores]


def run_leaking(path: Path, mechanism: str, accuracy: float, share: float, **more: Any) -> Path:
    return write_run(path, mechanism, use=utility(accuracy), attacks=graded(reconstruction(0.01), share), **more)


def sentence(*folders: Path) -> str:
    (group,) = collect(folders)
    return "".join(said.text for said in answer(group).sentence)


def chips(*folders: Path) -> list[tuple[str, str]]:
    (group,) = collect(folders)
    return [(chip.state, chip.text) for chip in answer(group).chips]


def matrix(*folders: Path) -> Matrix:
    (group,) = collect(folders)
    return leakage_matrix(group, {run.name: i for i, run in enumerate(group.runs)})


def gated(run: Path, *outcomes: str) -> Path:
    """As ``sfumato gate`` leaves it."""
    checks = [{"asked": f"max reconstruction = {i}%", "outcome": one, "because": "x"} for i, one in enumerate(outcomes)]
    digest = hashlib.sha256((run / "scores.json").read_bytes()).hexdigest()
    passed = set(outcomes) == {"passed"}
    (run / "gate.json").write_text(json.dumps({"passed": passed, "scores": digest, "checks": checks}))
    return run


# The sentence


def test_the_sentence_says_what_is_served_and_what_leaks(tmp_path: Path) -> None:
    text = sentence(run_leaking(tmp_path / "r", "ran", 0.9, 0.31))
    assert text == (
        "ran serves digit at 90.0 % and leaks 31 % of what an undefended release tells to the worst attack on "
        "reconstruction."
    )


def test_the_answer_is_the_best_balance_and_never_an_undefended_run(tmp_path: Path) -> None:
    runs = [
        run_leaking(tmp_path / "none", "none", 0.99, 1.0),
        run_leaking(tmp_path / "useless", "noisy", 0.2, 0.0),
        run_leaking(tmp_path / "good", "ran", 0.9, 0.2),
        run_leaking(tmp_path / "open", "dnn", 0.98, 0.9),
    ]
    assert sentence(*runs).startswith("ran serves digit at 90.0 % and leaks 20 %")


def test_the_worst_question_counts_and_a_private_label_is_told_beside_it(tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.4), *graded(attribute(0.1), 0.1)]
    text = sentence(write_run(tmp_path / "r", attacks=attacks))
    assert "leaks 40 % of what" in text and text.endswith("; 10 % about sex.")


def test_leakage_that_chance_may_have_made_does_not_outweigh_what_is_shown(tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.2), *graded(attribute(0.1), 0.6, sure=False)]
    assert "leaks 20 % of what" in sentence(write_run(tmp_path / "a", attacks=attacks))
    nothing = graded(reconstruction(0.01), 0.2, sure=False)
    text = sentence(write_run(tmp_path / "b", attacks=nothing))
    assert "no attack finds more than chance may make; other attacks may" in text


def test_utility_labels_that_leave_as_well_are_told_apart_from_the_payload(tmp_path: Path) -> None:
    labelled = score("label-only", "attribute-with-labels", "advantage", 0.3, baseline=0.0, control=0.6, target="sex")
    run = write_run(tmp_path / "r", attacks=[*graded(reconstruction(0.01), 0.2), *graded([labelled], 0.7)])
    (group,) = collect([run])
    assert "leaks 20 %" in sentence(run)
    assert "up to 70 % if its utility labels leave as well" in answer(group).how


def test_without_leakage_the_bare_figure_is_told_and_without_attacks_that_nothing_is_known(tmp_path: Path) -> None:
    assert "the best attack gets MSE 0.00680 [0.00653, 0.00707]" in sentence(write_run(tmp_path / "a"))
    assert "nothing is known about what leaks" in sentence(write_run(tmp_path / "b", attacks=[]))


def test_nothing_on_the_first_screen_is_called_safe(page: Callable[..., Any], tmp_path: Path) -> None:
    built = page(run_leaking(tmp_path / "r", "ran", 0.9, 0.0))
    first = built.visible[built.visible.index('<section class="answer"') : built.visible.index("Trade-off</h2>")]
    assert not re.search(r"\b(safe|secure|guaranteed|protected)\b", first.lower())


# Gates


def test_a_gate_that_passed_failed_or_was_not_asked_is_a_chip(tmp_path: Path) -> None:
    run = run_leaking(tmp_path / "r", "ran", 0.9, 0.2)
    assert chips(run) == [("open", "no gate was put to these runs")]
    gated(run, "passed", "failed", "not-shown")
    assert [state for state, _ in chips(run)] == ["passed", "failed", "failed"]


def test_a_question_without_a_limit_is_said_to_be_not_asked(tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.2), *graded(attribute(0.1), 0.1)]
    run = gated(write_run(tmp_path / "r", attacks=attacks), "passed")
    assert ("open", "Attribute (sex)") in chips(run)


def test_a_gate_that_was_about_other_scores_counts_no_more(tmp_path: Path) -> None:
    run = gated(run_leaking(tmp_path / "r", "ran", 0.9, 0.2), "passed")
    stored = json.loads((run / "scores.json").read_text())
    (run / "scores.json").write_text(json.dumps(stored | {"drawn": {}}))
    assert chips(run)[0][0] == "open"


# The matrix


def test_the_matrix_has_a_row_for_each_run_and_a_column_for_each_question(tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.4), *graded(attribute(0.1), 0.03, sure=False)]
    found = matrix(write_run(tmp_path / "a", attacks=attacks), run_leaking(tmp_path / "b", "dnn", 0.98, 0.9))
    assert found.heads == ("Use", "Worst", "Reconstruction", "Attribute (sex)")
    cells = {row.method: [cell.text for cell in row.cells] for row in found.rows}
    assert cells == {"ran": ["98.9 %", "40 %", "40 %", "3 %"], "dnn": ["98.0 %", "90 %", "90 %", "–"]}


def test_only_what_is_shown_to_leak_is_shaded_and_the_more_the_darker(tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.4), *graded(attribute(0.1), 0.9, sure=False)]
    (row,) = matrix(write_run(tmp_path / "a", attacks=attacks)).rows
    assert [cell.shade for cell in row.cells if not cell.plain] == [3, 3, 0]
    assert [shade(share) for share in (0.01, 0.19, 0.2, 0.5, 0.79, 1.0)] == [1, 1, 2, 3, 4, 5]


def test_every_cell_holds_its_figure_and_interval_in_words(page: Callable[..., Any], tmp_path: Path) -> None:
    visible = page(run_leaking(tmp_path / "r", "ran", 0.9, 0.4)).visible
    assert re.search(
        r'<td class="shade-3 sure" data-order="0.4"[^>]*><span>40 %</span> <small>\[35, 45\]</small>', visible
    )


def test_the_group_that_is_worst_off_stands_in_the_matrix(tmp_path: Path) -> None:
    groups = [
        {"column": "sex", "value": value, "people": 50, "leakage": share, "leakage_ci": [0, 1], "worse": worse}
        for value, share, worse in (("F", 0.3, True), ("M", 0.5, False))
    ]
    above = {"threshold": 0.5, "share": 0.1, "people": 100}
    found = {"attack": "a", "metric": "mse", "groups": groups, "share_above": above, "most_exposed": []}
    run = run_leaking(tmp_path / "r", "ran", 0.9, 0.4, more_scores={"exposure": {"reconstruction": found}})
    (row,) = matrix(run).rows
    cell = next(cell for cell in row.cells if cell.head == "Worst group")
    assert (cell.text, cell.ci) == ("30 %", "sex = F"), "of those that are marked as worse than the rest"


def test_a_name_in_the_matrix_leads_to_the_run(page: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", {"a": {"params": {"lam": 0.1}}, "b": {"mechanism": "dnn"}})
    visible = page(folder).visible
    targets = re.findall(r'<th scope="row"><a href="#(run-\d)">', visible)
    assert targets == ["run-0", "run-1"]
    assert all(visible.count(f'id="{target}"') == 1 for target in targets)


# Leakage in the trade-off, and the records


def test_the_trade_off_has_one_scale_for_all_threats(page: Callable[..., Any], tmp_path: Path) -> None:
    attacks = [*graded(reconstruction(0.01), 0.4), *graded(attribute(0.1), 0.1)]
    built = page(write_run(tmp_path / "r", attacks=attacks))
    figures = built.data["fronts"][0]["figures"]
    assert [figure["leakage"]["data"][0]["y"] for figure in figures] == [[0.4], [0.1]]
    assert {tuple(figure["leakage"]["layout"]["yaxis"]["range"]) for figure in figures} == {(-0.04, 1.04)}
    assert '<input type="range" id="front-0-slider" min="0" max="1"' in built.visible


def test_every_attack_that_rebuilt_a_record_can_be_seen(page: Callable[..., Any], tmp_path: Path) -> None:
    built = page(write_run(tmp_path / "r"))
    tiles = [(tile["label"], tile.get("attack")) for tile in built.data["runs"][0]["tiles"]]
    assert tiles == [
        ("original", None), ("released", None), ("rebuilt", "inverse-residual"), ("rebuilt", "inverse-mirror"),
    ]  # fmt: skip
    assert built.data["runs"][0]["tiles"][3]["got"].startswith("MSE 0.00884")


# The sheet to sign


def test_there_is_a_sheet_for_the_answer_first_and_for_every_other_method(
    page: Callable[..., Any], tmp_path: Path
) -> None:
    runs = [run_leaking(tmp_path / "dnn", "dnn", 0.98, 0.9), run_leaking(tmp_path / "ran", "ran", 0.9, 0.2)]
    visible = page(*runs).visible
    sheets = re.findall(r'<article class="sheet" data-sheet="\d"( hidden)?>.*?<h3>(.*?)</h3>', visible, re.DOTALL)
    assert sheets == [("", "ran"), (" hidden", "dnn")]


@pytest.mark.parametrize("said", ["Empirical.", "inverse-residual", "20 % [15, 25]", "FAILED", "Date and signature"])
def test_a_sheet_has_guarantee_attacks_worst_figures_gate_and_fields(
    page: Callable[..., Any], tmp_path: Path, said: str
) -> None:
    visible = page(gated(run_leaking(tmp_path / "r", "ran", 0.9, 0.2), "passed", "failed")).visible
    sheet = visible[visible.index('<article class="sheet"') :].partition("</article>")[0]
    assert said in sheet
    assert "no proof" in sheet
