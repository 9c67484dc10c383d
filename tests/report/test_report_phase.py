"""Reports about rotated messages: a single guess is never the whole story."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_phase_runs import CONDITIONS, attacks, phase_run, tensors, wrong_key
from report_runs import attribute, reconstruction, utility, verdict_text, write_run

from sfumato.core.errors import DataError
from sfumato.report import build_report, render_card
from sfumato.report.collect import collect
from sfumato.report.verdict import verdict


def section(text: str) -> str:
    found = re.search(r"<h2>Rotated messages</h2>.*?</section>", text, re.DOTALL)
    assert found is not None
    return found.group(0)


def words(*folders: Path) -> str:
    (group,) = collect(folders)
    return verdict_text(group)


def panels(built: Any) -> dict[str, Any]:
    return {panel["title"]: panel for board in built.data["boards"] for sheet in board for panel in sheet["panels"]}


# The message, as the cloud sees it


def test_a_message_shows_all_components_of_a_few_channels_beside_its_record(page, tmp_path):
    text = section(page(phase_run(tmp_path / "r", d=3)).visible)
    rows = re.findall(r"<tr><td><img class=\"record\".*?</tr>", text)
    assert len(rows) == 4
    for row in rows:
        assert row.count('class="components"') == 3
        assert len(re.findall(r"component \d", row)) == 9
    assert "3 components, a message of 3 × 6 × 4 × 4 numbers" in text


@pytest.mark.parametrize(("kind", "shape", "row"), [("signal", (2, 50), (4, 25)), ("table", (5,), (7,))])
def test_messages_of_signals_and_tables_are_strips(page, tmp_path, kind, shape, row):
    run = phase_run(tmp_path / "r", kind=kind, shape=shape, tensors=tensors(2, shape, row))
    text = section(page(run).visible)
    assert 'class="message strips"' in text
    assert ("no wall is drawn" in text) == (kind == "table")


def test_a_large_message_does_not_make_the_page_large(page, tmp_path):
    small = len(page(phase_run(tmp_path / "small")).text)
    row = (16, 16, 16)  # d · K · h · w = 65,536
    large = len(page(phase_run(tmp_path / "large", d=16, tensors=tensors(16, row=row))).text)
    assert large - small < 600_000
    maps = tensors(2, row=(8, 64, 64))
    assert len(page(phase_run(tmp_path / "wide", tensors=maps)).text) - small < 300_000


def test_channels_without_values_are_not_chosen(page, tmp_path):
    kept = tensors(2)
    kept["release"][:, :, :3] = 0
    text = section(page(phase_run(tmp_path / "r", tensors=kept)).visible)
    assert re.findall(r'<th scope="col">(Channel \d) of 6</th>', text) == ["Channel 4", "Channel 5", "Channel 6"]


# What attackers rebuild


@pytest.mark.parametrize("d", [2, 5])
def test_every_strategy_and_every_guess_of_the_list_has_a_row_of_its_own(page, tmp_path, d):
    text = section(page(phase_run(tmp_path / "r", d=d)).visible)
    names = re.findall(r'<div class="wall-name"><b>(.*?)</b>', text)
    assert names == [
        "original",
        "dec(x)",
        "rotation invariants",
        "average of n releases",
        "critic picks the rotation, then decode",
        "intersection of n releases",
        *(f"list decoder, guess {i} of {d}" for i in range(1, d + 1)),
    ]
    pictures = [row.count("<img") for row in re.findall(r'<div class="wall-pictures">(.*?)</div>', text)]
    assert set(pictures) == {8 if d <= 4 else 4}


def test_the_wall_of_methods_and_the_panel_show_the_list_beside_the_single_guess(page, tmp_path):
    built = page(phase_run(tmp_path / "r"))
    rows = [row["label"] for row in built.data["runs"][0]["rows"]]
    assert rows == ["original", "released", "rebuilt", "guess 1 of 2", "guess 2 of 2"]
    assert built.data["runs"][0]["most"] == 4
    wall = built.visible[built.visible.index("Wall of reconstructions") :].partition("</section>")[0]
    assert re.findall(r'<div class="wall-name"><b>(.*?)</b>', wall) == [
        "original",
        "phase",
        "phase, guess 1 of 2",
        "phase, guess 2 of 2",
    ]


def test_a_list_of_another_shape_is_refused(tmp_path):
    kept = tensors(2)
    kept["recon-list/list-decoder"] = kept["recon-list/list-decoder"][:, :, :, :4]
    with pytest.raises(DataError, match="the list of list-decoder"):
        build_report([phase_run(tmp_path / "r", tensors=kept)], tmp_path / "r.html")


# Keys


def test_the_error_of_the_angle_stands_beside_that_of_a_uniform_guess(page, tmp_path):
    built = page(phase_run(tmp_path / "r"))
    panel = panels(built)["Error of the angle"]
    (trace,) = panel["data"]
    assert trace["y"] == [1.1]
    assert trace["error_y"]["array"] == pytest.approx([0.03])
    assert [shape["y0"] for shape in panel["layout"]["shapes"]] == [pytest.approx(math.pi / 2)]
    text = section(built.visible)
    assert '<b>1.100 rad</b> <span class="ci">[1.070, 1.130]</span>' in text
    assert "sees nothing 1.571 rad" in text


def test_accuracy_falls_with_the_angle_between_the_keys_in_one_line_a_run(page, tmp_path):
    built = page(*(phase_run(tmp_path / str(d), d=d) for d in (2, 4)))
    panel = panels(built)["Accuracy against the angle between the keys"]
    assert [trace["name"] for trace in panel["data"]] == ["phase, d = 2", "phase, d = 4"]
    for trace in panel["data"]:
        assert trace["x"] == pytest.approx(np.linspace(0, math.pi, 13))
        assert trace["y"][0] == pytest.approx(0.95)
    assert [shape["y0"] for shape in panel["layout"]["shapes"]] == [0.114]


def test_a_key_drawn_uniformly_is_shown_against_d_beside_the_right_key(page, tmp_path):
    built = page(*(phase_run(tmp_path / str(d), d=d) for d in (2, 4)))
    panel = panels(built)["Accuracy with a key drawn uniformly, against d"]
    found = {(trace["x"][0], round(trace["y"][0], 3), trace["marker"]["symbol"]) for trace in panel["data"]}
    assert {(2.0, 0.95, "circle-open"), (2.0, 0.3, "circle"), (4.0, 0.95, "square-open"), (4.0, 0.2, "square")} == found


def test_each_attack_on_rows_is_held_against_one_in_d(page, tmp_path):
    built = page(*(phase_run(tmp_path / str(d), d=d) for d in (2, 4)))
    panel = panels(built)["Which row is the record"]
    assert {trace["name"]: trace["y"] for trace in panel["data"]} == {
        "rows-key": [0.5, 0.25],
        "rows-decode": [0.504, 0.254],
        "rows-critic": [0.508, 0.258],
    }
    assert [shape["y0"] for shape in panel["layout"]["shapes"]] == [0.5, 0.25]
    assert "1/2 = 50.0 %, 1/4 = 25.0 %" in panel["note"].replace("\u00a0", " ")


def test_the_card_says_what_a_key_is_worth(tmp_path):
    card = render_card(phase_run(tmp_path / "r"))
    assert "right in 95.0 % \\[93.0, 97.0\\] with the right key, in 30.0 % \\[28.0, 32.0\\] with a key drawn" in card
    assert "only the device that holds the key can read it" in card
    assert "Others may use it" not in card


# The verdict and the charts


@pytest.mark.parametrize("single", [0.06, 0.067])
def test_the_verdict_names_the_single_guess_and_the_list_in_one_paragraph(tmp_path, single):
    (group,) = collect([phase_run(tmp_path / "r", single=single)])
    (paragraph,) = (text for text in verdict(group).lead if "reconstruction attack" in text)
    assert f"(inverse-residual) rebuilds records in a single guess with MSE {single:.4f}" in paragraph
    assert "(list-decoder) rebuilds records in the best of its 2 guesses with MSE 0.0200" in paragraph
    assert "Both figures count" in paragraph


def test_a_release_whose_single_guess_fails_is_still_said_to_leak_by_its_list(tmp_path):
    text = words(phase_run(tmp_path / "r", single=0.067))
    assert text.index("No reconstruction attack of this suite") < text.index(
        "The release leaks: the attack does better"
    )
    assert not any(word in text.lower() for word in ("safe", "secure", "guaranteed"))


def test_without_a_list_the_single_guess_is_said_to_be_no_answer(tmp_path):
    run = phase_run(tmp_path / "r", best=None)
    for text in (words(run), render_card(run), words(run, write_run(tmp_path / "ran", use=utility(0.98)))):
        assert "No list of guesses was tried on phase: 2 records share a message" in text


def test_a_single_guess_alone_puts_no_release_first(tmp_path):
    ran = write_run(tmp_path / "ran", use=utility(0.98), attacks=reconstruction(0.04))
    (group,) = collect([ran, phase_run(tmp_path / "phase", single=0.06, best=0.02)])
    ranking = verdict(group).rankings[0]
    assert [item.partition(":")[0] for item in ranking.items] == ["ran", "phase"]
    assert "with a list of 2 guesses, MSE 0.0200 [0.0190, 0.0210] by list-decoder" in ranking.items[1]
    assert any("the worse of both for the owner decides the order" in note for note in ranking.notes)


def test_the_setting_of_a_method_is_not_picked_by_its_single_guess_alone(tmp_path):
    runs = [
        phase_run(tmp_path / "a", d=2, single=0.06, best=0.02),
        phase_run(tmp_path / "b", d=4, single=0.05, best=0.04),
    ]
    (group,) = collect(runs)
    assert verdict(group).rankings[0].items[0].startswith("phase, d = 4")


def test_the_owner_reads_the_answer_and_not_others(tmp_path):
    text = words(phase_run(tmp_path / "r"))
    assert "With its key the device reads digit with 98.0 %" in text
    assert "Others read" not in text


def test_new_threats_have_readable_names_everywhere(page, tmp_path):
    run = phase_run(tmp_path / "r")
    built = page(run)
    names = [figure["name"] for figure in built.data["fronts"][0]["figures"]]
    assert names == [
        "Reconstruction",
        "List reconstruction",
        "Re-identification",
        "Which row",
        "Result (digit)",
        "Key",
    ]
    for name in names:
        assert f'<td class="threat">{name}</td>' in built.visible
    assert "rate of the right row" in built.visible
    assert "angle error, opposites as one" in built.visible
    card = render_card(run)
    assert (
        card.index("| Reconstruction |") < card.index("| List reconstruction |") < card.index("| Re-identification |")
    )
    assert "| Which row | rows-critic | rate of the right row (lower is better for the owner) | 50.8 % |" in card


def test_the_list_stands_beside_the_single_guess_at_a_glance_and_in_the_front(page, tmp_path):
    built = page(phase_run(tmp_path / "r"))
    glance = built.visible[built.visible.index("At a glance") :]
    heads = re.findall(r'<th scope="col">(.*?)</th>', glance[: glance.index("</thead>")])
    assert heads[2:4] == ["Reconstruction", "List reconstruction"]
    traces = {trace["name"]: trace for trace in built.data["fronts"][0]["figures"][0]["figure"]["data"]}
    assert traces["phase"]["y"] == [0.06]
    assert traces["phase, best of a list of d guesses"]["y"] == [0.02]


def test_the_trade_off_over_a_parameter_has_both_guesses_on_one_scale(page, tmp_path):
    built = page(*(phase_run(tmp_path / str(d), d=d, single=0.05 + d / 1000, best=0.04 / d) for d in (2, 4)))
    found = panels(built)
    single, several = found["Reconstruction, a single guess"], found["Reconstruction, the best of d guesses"]
    assert single["data"][0]["y"] == pytest.approx([0.052, 0.054])
    assert several["data"][0]["y"] == pytest.approx([0.02, 0.01])
    assert single["layout"]["yaxis"]["range"] == several["layout"]["yaxis"]["range"]


def test_anonymity_is_told_with_its_share_and_its_conditions(page, tmp_path):
    run = phase_run(tmp_path / "r", d=4)
    built = page(run)
    box = built.visible[built.visible.index('<article class="guarantee anonymity">') :].partition("</article>")[0]
    assert '<span class="badge">one in 4</span>' in box
    assert "guessed right with probability 0.25 if every condition holds" in box
    assert all(f"<li>{condition} [assumed]</li>" in box for condition in CONDITIONS)
    assert '<span class="badge">one in 4</span> under 2 conditions' in section(built.visible)
    assert "anonymity holds under conditions for phase (one in 4)" in built.visible
    card = render_card(run)
    assert "**Anonymity, under conditions: one in 4.**" in card
    assert all(f"- {condition}" in card for condition in CONDITIONS)


def test_a_published_scheme_promises_no_row(page, tmp_path):
    guarantee = {"kind": "empirical", "statement": "Nothing is proven."}
    run = phase_run(tmp_path / "r", guarantee=guarantee, params={"d": 2, "variant": "published"})
    built = page(run, phase_run(tmp_path / "other"))
    assert "no row is promised to stay hidden" in section(built.visible)
    assert (
        "anonymity holds under conditions for some settings of phase (one in 2); there is measurement" in built.visible
    )


# What may be missing


@pytest.mark.parametrize("kept", ["nothing", "no lists", "no messages", "no keys", "empty keys", "no attacks"])
def test_a_run_that_lacks_something_is_still_a_page_and_a_card(page, tmp_path, kept):
    run = phase_run(tmp_path / "r", keys=kept != "no keys")
    if kept == "nothing":
        (run / "gallery.safetensors").unlink()
    changed = {"no lists": "recon-list/list-decoder", "no messages": "release"}
    if kept in changed:
        without = {name: array for name, array in tensors(2).items() if name != changed[kept]}
        run = phase_run(tmp_path / "other", tensors=without)
    scores = json.loads((run / "scores.json").read_text())
    if kept == "empty keys":
        scores["wrong_key"] = {}
    if kept == "no attacks":
        scores |= {"attacks": [], "worst": {}}
    (run / "scores.json").write_text(json.dumps(scores))
    built = page(run)
    text = section(built.visible)
    assert render_card(run)
    assert ("What a key is worth" in text) == (kept not in ("no keys", "empty keys"))
    assert ("What is found out about the key" in text) == (kept != "no attacks")
    assert ("the guesses of the list decoder were not kept" in text) == (kept == "no lists")
    assert ("No run kept its messages." in text) == (kept in ("nothing", "no messages"))


@pytest.mark.parametrize("change", [{"curve": []}, {"angles": [0.0]}, {"uniform": {}}, {"d": "two"}])
def test_broken_accuracies_of_wrong_keys_are_a_clear_error(tmp_path, change):
    run = phase_run(tmp_path / "r", more_scores={"wrong_key": {**wrong_key(), **change}})
    with pytest.raises(DataError, match="expected form"):
        build_report([run], tmp_path / "r.html")


def test_hostile_names_are_plain_text_in_the_section(page, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    entries = attacks(2)
    for entry in entries:
        if entry["threat"] in ("row", "key"):
            entry["attack"] = hostile
    kept = tensors(2) | {f"recon/{hostile}": tensors(2)["originals"]}
    runs = [
        phase_run(tmp_path / str(i), attacks=entries, tensors=kept, params={"d": 2, "variant": f"{i}{hostile}"})
        for i in range(2)
    ]
    built = page(*runs)
    assert "<img src=x" not in built.visible
    assert "<img src=x" not in built.text, "nor in what the script reads"


def test_a_report_without_rotated_messages_has_no_such_section(page, tmp_path):
    run = write_run(tmp_path / "r", attacks=[*reconstruction(0.01), *attribute(0.2)])
    built = page(run)
    assert "Rotated messages" not in built.text
    assert "list of" not in built.visible
    assert "for others (higher is better)" in json.dumps(built.data["fronts"])
