"""The sections about perturbed latents: each appears where there is something to show, with the stored figures."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import attribute, latent_run, latent_sweep, reconstruction, score, write_run, write_sweep

from sfumato.core.errors import DataError
from sfumato.report import render_card
from sfumato.report.collect import collect

HOSTILE = "<img src=x>"


def boards(built: Any) -> dict[str, list[dict[str, Any]]]:
    """The sheets of each board by the heading of its section."""
    headings = re.findall(r'<summary><h2>([^<]*)</h2>(?:(?!</section>).)*?id="board-(\d+)"', built.visible, re.DOTALL)
    return {heading: built.data["boards"][int(number)] for heading, number in headings}


def stored(run: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((run / "scores.json").read_text())
    return value


def rewrite(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


# Without an attack that rebuilds records


def test_no_wall_is_promised_where_no_attack_rebuilt_records(page, tmp_path):
    built = page(latent_sweep(tmp_path / "s"))
    assert "<h2>Wall" not in built.visible
    assert "rebuilt from it" not in built.visible
    assert "to see its releases, decoded" in built.visible
    assert [row["label"] for row in built.data["runs"][0]["rows"]] == ["original", "released", "decoded"]
    assert all(run["absent"] == "" for run in built.data["runs"])
    assert [front["name"] for front in built.data["fronts"][0]["figures"]] == ["Attribute (ge5)"]


def test_at_a_glance_shows_the_most_private_run_of_a_method_too(page, tmp_path):
    visible = page(latent_sweep(tmp_path / "s")).visible
    table = re.search(r'<table class="glance">(.*?)</table>', visible, re.DOTALL)
    assert table is not None
    rows = re.findall(r'<th scope="row">(.*?)</th>', table.group(1))
    assert rows[0] == "vae"
    assert [re.sub("<[^>]*>", " ", row).split()[-1] for row in rows[1:]] == ["10", "300"] * 3
    assert "the run with the best accuracy and the one that leaks least is shown" in visible


def test_a_classifier_without_a_control_is_placed_by_the_fresh_one_s(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    own = score("own classifier", "utility", "accuracy", 0.93, baseline=0.55, target="odd")
    rewrite(run / "scores.json", utility=[own, *stored(run)["utility"]])
    assert "<b>93.0 %</b>" in page(run).visible
    assert "raw 95.0 %" in page(run).visible


def test_runs_that_hide_different_labels_are_told_apart_by_them(tmp_path):
    runs = [latent_run(tmp_path / name, "filter", leak=0.6, use=0.9, private=(name,)) for name in ("Male", "Young")]
    (group,) = collect(runs)
    assert [run.title for run in group.runs] == ["filter, private = Male", "filter, private = Young"]


def test_at_a_glance_shows_a_run_for_each_label_that_is_hidden(tmp_path):
    runs = [latent_run(tmp_path / name, "filter", leak=0.6, use=0.9, private=(name,)) for name in ("Male", "Young")]
    (group,) = collect(runs)
    assert [run.private for run in group.shown("filter")] == [("Male",), ("Young",)]


def test_where_a_filter_found_its_autoencoder_is_no_setting(tmp_path):
    runs = [
        latent_run(tmp_path / f"{i}", "filter", leak=0.6, use=0.9, params={"base": f"{i}/vae", "budget": 10.0 * i})
        for i in (1, 2)
    ]
    (group,) = collect(runs)
    assert [run.setting for run in group.runs] == ["budget = 10", "budget = 20"]


# Trade-off over a parameter


def test_the_trade_off_has_a_panel_for_each_label(page, tmp_path):
    (sheet,) = boards(page(latent_sweep(tmp_path / "s")))["Trade-off over budget"]
    assert [panel["title"] for panel in sheet["panels"]] == [
        "Private label ge5",
        "Utility label odd",
        "Non-target label circle",
    ]
    dashes = [{trace["line"]["dash"] for trace in panel["data"]} for panel in sheet["panels"]]
    assert dashes == [{"solid"}, {"solid"}, {"dash"}]
    assert [entry["name"] for entry in sheet["key"]] == [
        "gaussian",
        "filter-linear",
        "filter",
        "raw latent",
        "guessing",
    ]


def test_the_curves_are_the_stored_accuracies_with_their_intervals(page, tmp_path):
    folder = latent_sweep(tmp_path / "s")
    (sheet,) = boards(page(folder))["Trade-off over budget"]
    traces = [{trace["name"]: trace for trace in panel["data"]} for panel in sheet["panels"]]
    runs = [stored(folder / "points" / f"filter-{i}") for i in range(3)]

    def figure(run: dict[str, Any], part: str, target: str) -> float:
        found = [s["value"] for s in run[part] if (s["metric"], s["target"]) == ("accuracy", target)]
        return max(found)

    assert traces[0]["filter"]["x"] == [10, 100, 300]
    assert traces[0]["filter"]["y"] == [figure(run, "attacks", "ge5") for run in runs]
    assert traces[1]["filter"]["y"] == [figure(run, "utility", "odd") for run in runs]
    assert traces[2]["filter"]["y"] == [figure(run, "utility", "circle") for run in runs]
    assert traces[0]["filter"]["error_y"]["array"] == pytest.approx([0.01] * 3)
    assert traces[0]["filter"]["error_y"]["arrayminus"] == pytest.approx([0.01] * 3)


def test_raw_latent_and_guessing_are_lines_across_the_trade_off(page, tmp_path):
    (sheet,) = boards(page(latent_sweep(tmp_path / "s")))["Trade-off over budget"]
    private = sheet["panels"][0]
    assert [shape["y0"] for shape in private["layout"]["shapes"]] == [0.92, 0.5]
    note = private["note"].replace("\u00a0", " ")
    assert note == "lower is better for the owner (raw latent 92.0 %, guessing 50.0 %)"
    assert private["layout"]["xaxis"]["type"] == "log"
    assert private["layout"]["xaxis"]["ticktext"] == ["10", "100", "300"]


def test_values_that_lie_close_or_at_zero_are_on_a_linear_axis(page, tmp_path):
    runs = [latent_run(tmp_path / str(b), "filter", leak=0.6, use=0.9, params={"beta": b}) for b in (0.0, 0.5)]
    (sheet,) = boards(page(*runs))["Trade-off over β"]
    assert sheet["panels"][0]["layout"]["xaxis"]["type"] == "linear"


def test_a_single_setting_of_each_method_makes_no_curve(page, tmp_path):
    runs = [latent_run(tmp_path / name, name, leak=0.6, use=0.9, budget=300.0) for name in ("gaussian", "filter")]
    assert not any(name.startswith(("Trade-off over", "Mutual")) for name in boards(page(*runs)))


def test_without_a_private_label_there_is_no_trade_off_over_a_parameter(page, tmp_path):
    runs = [write_run(tmp_path / str(lam), params={"lam": lam}) for lam in (0.1, 0.5)]
    assert boards(page(*runs)) == {}


def test_another_seed_is_another_line(page, tmp_path):
    runs = [
        latent_run(tmp_path / f"{seed}-{b}", "filter", leak=0.6, use=0.9, budget=b, seed=seed)
        for seed in (0, 1)
        for b in (10.0, 100.0)
    ]
    (sheet,) = boards(page(*runs))["Trade-off over budget"]
    assert [trace["name"] for trace in sheet["panels"][0]["data"]] == ["filter, seed = 0", "filter, seed = 1"]
    symbols = {trace["marker"]["symbol"] for trace in sheet["panels"][0]["data"]}
    assert len(symbols) == 2


def test_two_parameters_that_were_varied_can_be_chosen(page, tmp_path):
    runs = [
        latent_run(tmp_path / f"{b}-{beta}", "filter", leak=0.6, use=0.9, params={"budget": b, "beta": beta})
        for b, beta in ((10.0, 0.1), (100.0, 0.1), (10.0, 0.9))
    ]
    built = page(*runs)
    assert len(boards(built)["Trade-off over a parameter"]) == 2
    assert '<option value="0" selected>budget</option><option value="1">β</option>' in built.visible


def test_a_sweep_of_ran_with_a_private_label_has_curves_too(page, tmp_path):
    folder = write_sweep(
        tmp_path / "s",
        {
            "none": {"mechanism": "none", "params": {"seed": 0}, "attacks": attribute(0.5)},
            "a": {"params": {"lam": 0.1}, "attacks": [*reconstruction(0.01), *attribute(0.3)]},
            "b": {"params": {"lam": 0.9}, "attacks": [*reconstruction(0.02), *attribute(0.2)]},
        },
    )
    (sheet,) = boards(page(folder))["Trade-off over λ"]
    assert sheet["panels"][0]["data"][0]["y"] == [0.3, 0.2]
    assert sheet["panels"][0]["note"] == "lower is better for the owner (no defence 0.500, guessing 0.000)"


# Confusion matrices


def test_confusion_stands_before_and_at_the_most_private_setting_of_each_method(page, tmp_path):
    built = page(latent_sweep(tmp_path / "s"))
    (sheet,) = boards(built)["What is taken for what: ge5"]
    titles = [panel["title"].replace("\u00a0", " ") for panel in sheet["panels"]]
    assert titles == ["vae", "gaussian, budget = 300", "filter-linear, budget = 300", "filter, budget = 300"]
    assert all(panel["note"].startswith("probe-mlp: accuracy ") for panel in sheet["panels"])
    assert "For each method, the setting that leaks least is shown" in built.visible


def test_each_row_of_a_confusion_matrix_adds_up_to_one(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    (sheet,) = boards(page(run))["What is taken for what: ge5"]
    (heat,) = sheet["panels"][0]["data"]
    assert stored(run)["confusion"]["ge5"]["matrix"] == [[60, 40], [50, 150]]
    assert heat["z"] == [[0.6, 0.4], [0.25, 0.75]]
    assert heat["text"] == [["60 %", "40 %"], ["25 %", "75 %"]]
    assert heat["hovertext"][1][0] == "yes taken for no: 50 of 200"


def test_raw_records_stand_in_for_a_raw_latent(page, tmp_path):
    runs = [latent_run(tmp_path / name, name, leak=0.6, use=0.9) for name in ("none", "filter")]
    (sheet,) = boards(page(*runs))["What is taken for what: ge5"]
    assert [panel["title"] for panel in sheet["panels"]] == ["none", "filter"]


def test_each_private_label_has_its_matrices(page, tmp_path):
    built = page(latent_sweep(tmp_path / "s", private=("Male", "Young")))
    assert len(boards(built)["What is taken for what"]) == 2
    assert '<option value="0" selected>Male</option><option value="1">Young</option>' in built.visible


def test_without_a_confusion_there_is_no_matrix(page, tmp_path):
    built = page(write_run(tmp_path / "r", attacks=[*reconstruction(0.01), *attribute(0.2)]))
    assert "What is taken for what" not in built.visible


def test_a_class_without_records_has_no_shares(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    confusion = {"ge5": {"attack": "probe-mlp", "classes": ["no", "yes"], "matrix": [[3, 1], [0, 0]]}}
    rewrite(run / "scores.json", confusion=confusion)
    (sheet,) = boards(page(run))["What is taken for what: ge5"]
    assert sheet["panels"][0]["data"][0]["z"] == [[0.75, 0.25], [None, None]]


# Several releases of one record


def several(run: Path) -> None:
    """As an audit of means leaves it: leakage 20 % of one release, 40 % of four, 60 % of sixteen."""
    value = stored(run)
    single = value["worst"]["attribute:ge5"]
    graded = [
        {**single, "attack": f"probe-residual-of-{n}", "releases": n, "leakage": share, "leakage_ci": [share, share]}
        for n, share in ((16, 0.6), (4, 0.4))
    ]
    worst = {**value["worst"], "attribute:ge5": {**single, "leakage": 0.2, "leakage_ci": [0.1, 0.3]}}
    rewrite(run / "scores.json", repeated=graded, worst=worst)


def test_leakage_is_drawn_over_the_number_of_releases(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    several(run)
    built = page(run)
    assert "<details open><summary><h2>Several releases of one record</h2>" in built.visible
    (sheet,) = boards(built)["Several releases of one record"]
    (panel,) = sheet["panels"]
    (trace,) = panel["data"]
    assert panel["title"] == "Attribute (ge5)"
    assert (trace["x"], trace["y"]) == ([1, 4, 16], [0.2, 0.4, 0.6])
    assert trace["error_y"]["array"] == pytest.approx([0.1, 0.0, 0.0])
    lines = csv.DictReader(io.StringIO(built.data["csv"]))
    assert [row["releases"] for row in lines if row["attack"].startswith("probe-residual-of")] == ["16", "4"]


def test_nothing_is_drawn_where_several_releases_were_not_attacked(page, tmp_path):
    assert "Several releases" not in page(latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)).visible


# Mutual information


def test_mutual_information_is_drawn_for_each_label(page, tmp_path):
    folder = latent_sweep(tmp_path / "s")
    (sheet,) = boards(page(folder))["Mutual information over budget"]
    assert [panel["title"] for panel in sheet["panels"]] == [
        "Private label ge5",
        "Utility label odd",
        "Non-target label circle",
    ]
    for panel, label in zip(sheet["panels"], ("ge5", "odd", "circle"), strict=True):
        trace = next(trace for trace in panel["data"] if trace["name"] == "filter")
        runs = [stored(folder / "points" / f"filter-{i}") for i in range(3)]
        assert trace["y"] == [s["value"] for run in runs for s in run["information"] if s["target"] == label]
        assert trace["error_y"]["array"] == pytest.approx([0.01] * 3)
    assert sheet["panels"][0]["note"] == "lower is better for the owner (raw latent 0.520, shuffled labels 0.010)"


def test_mutual_information_is_in_the_table_and_the_csv_and_marked_as_no_attack(page, tmp_path):
    built = page(latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9))
    assert "Mutual information (ge5)" in built.visible
    assert "an estimate without an attacker" in built.visible
    lines = [row for row in csv.DictReader(io.StringIO(built.data["csv"])) if row["threat"] == "information"]
    assert [(row["target"], row["better_for_owner"], row["primary"], row["worst"]) for row in lines] == [
        ("ge5", "lower", "0", "0"),
        ("odd", "higher", "0", "0"),
        ("circle", "higher", "0", "0"),
    ]
    assert [float(row["value"]) for row in lines] == pytest.approx([0.2, 0.5, 0.4])
    assert "<h2>Mutual information" not in built.visible


def test_without_an_estimate_there_is_no_mutual_information(page, tmp_path):
    folder = latent_sweep(tmp_path / "s", more_scores={})
    assert "utual information" not in page(folder).visible


# Geometry


def test_the_geometry_shows_the_raw_latent_and_each_method_side_by_side(page, tmp_path):
    built = page(latent_sweep(tmp_path / "s"))
    sheets = boards(built)["Released features, before and after"]
    titles = [panel["title"].replace("\u00a0", " ") for panel in sheets[0]["panels"]]
    assert titles == ["vae", "gaussian, budget = 300", "filter-linear, budget = 300", "filter, budget = 300"]
    assert "in their first two principal components" in built.visible
    assert built.data["spaces"] == []


def test_the_geometry_is_marked_by_the_label_that_is_chosen(page, tmp_path):
    folder = latent_sweep(tmp_path / "s")
    codes = [1] * 10 + [0] * 30
    colours = {
        "odd": {"classes": ["no", "yes"], "codes": [0] * 20 + [1] * 20},
        "ge5": {"classes": ["below", "from 5"], "codes": codes},
    }
    for run in (folder / "points").iterdir():
        rewrite(run / "features.json", colours=colours, labels=[0] * 20 + [1] * 20)
    built = page(folder)
    odd, ge5 = boards(built)["Released features, before and after"]
    assert '<option value="0" selected>odd</option><option value="1">ge5 (private)</option>' in built.visible
    assert [len(trace["x"]) for trace in odd["panels"][0]["data"]] == [20, 20]
    assert [len(trace["x"]) for trace in ge5["panels"][0]["data"]] == [30, 10]
    assert [entry["name"] for entry in ge5["key"]] == ["below", "from 5"]
    points = json.loads((folder / "points" / "vae" / "features.json").read_text())["points"]
    assert ge5["panels"][0]["data"][1]["x"] == pytest.approx([x for x, _, _ in points[:10]], abs=1e-4)
    assert ge5["panels"][0]["note"].replace("\u00a0", " ") == "raw latent, best attack: accuracy 92.0 % [91.0, 93.0]"


def test_private_labels_that_were_left_out_are_not_shown(page, tmp_path):
    folder = latent_sweep(tmp_path / "s")
    for run in (folder / "points").iterdir():
        rewrite(run / "features.json", colours={"odd": {"classes": ["no", "yes"], "codes": [0, 1] * 20}})
    built = page(folder)
    assert len(boards(built)["Released features, before and after"]) == 1
    assert "private ones too" not in built.visible


def test_a_map_by_umap_is_flat_and_named(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    rewrite(run / "features.json", method="umap")
    built = page(run)
    assert "in a plane by UMAP" in built.visible
    assert len(boards(built)["Released features"]) == 3
    assert built.data["spaces"] == []


def test_without_a_raw_latent_principal_components_are_seen_in_space(page, tmp_path):
    built = page(latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9))
    assert len(built.data["spaces"]) == 1
    assert "Released features, before and after" not in built.visible


# Before and after


def rows(visible: str) -> list[str]:
    wall = re.search(r'<h2>Before and after</h2>.*?<div class="wall image">(.*?)</section>', visible, re.DOTALL)
    return re.findall(r'<div class="wall-name"><b>(.*?)</b>', wall.group(1)) if wall else []


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 64, 64)])
def test_decoded_releases_stand_below_the_originals(page, tmp_path, shape):
    built = page(latent_sweep(tmp_path / "s", shape=shape))
    assert rows(built.visible) == [
        "original",
        "vae",
        "gaussian, budget = 10",
        "gaussian, budget = 300",
        "filter-linear, budget = 10",
        "filter-linear, budget = 300",
        "filter, budget = 10",
        "filter, budget = 300",
    ]
    assert "raw latent · ge5 92.0 % · odd 93.0 %" in built.visible
    assert 'alt="filter, budget = 300, decoded record 8"' in built.visible
    assert "This page embeds 8 real records" in built.visible


def test_what_leaves_as_a_record_is_shown_as_it_left(page, tmp_path):
    records = np.random.default_rng(1).random((8, 1, 8, 8), dtype=np.float32)
    tensors = {"originals": records, "release": records * 0.5, "decoded": records * 0.5}
    built = page(latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9, tensors=tensors))
    assert rows(built.visible) == ["original", "filter"]
    assert [row["label"] for row in built.data["runs"][0]["rows"]] == ["original", "released"]


def test_other_records_are_not_put_into_the_same_rows(page, tmp_path):
    runs = [
        latent_run(tmp_path / name, name, leak=0.6, use=0.9, tensors={"originals": x, "release": x, "decoded": x / 2})
        for name, seed in (("vae", 0), ("filter", 1))
        for x in [np.random.default_rng(seed).random((8, 1, 8, 8), dtype=np.float32)]
    ]
    assert rows(page(*runs).visible) == ["original", "vae"]


def test_nothing_decoded_is_no_section(page, tmp_path):
    assert "<h2>Before and after" not in page(write_run(tmp_path / "ran")).visible
    table = {name: np.ones((8, 12), np.float32) for name in ("originals", "release", "decoded")}
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9, kind="table", shape=(12,), tensors=table)
    assert "<h2>Before and after" not in page(run).visible


def test_a_decoded_record_of_another_shape_is_refused(page, tmp_path):
    x = np.ones((8, 1, 8, 8), np.float32)
    tensors = {"originals": x, "release": x, "decoded": x[:, :, :4]}
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9, tensors=tensors)
    with pytest.raises(DataError, match="the schema says"):
        page(run)


# All of it


def test_every_panel_is_there(page, tmp_path):
    built = page(latent_sweep(tmp_path / "s"))
    panels = [panel for sheets in built.data["boards"] for sheet in sheets for panel in sheet["panels"]]
    assert len(panels) == 3 + 4 + 3 + 3 * 4


def test_hostile_names_on_the_boards_cannot_end_the_script_element(page, tmp_path):
    folder = latent_sweep(tmp_path / "s", private=(HOSTILE,))
    for run in (folder / "points").iterdir():
        scores = stored(run)
        scores["confusion"][HOSTILE] |= {"attack": HOSTILE, "classes": [HOSTILE, HOSTILE]}
        rewrite(run / "scores.json", confusion=scores["confusion"])
        colours = {HOSTILE: {"classes": [HOSTILE, HOSTILE], "codes": [0, 1] * 20}}
        rewrite(run / "features.json", colours=colours)
    built = page(folder)
    assert HOSTILE not in built.text
    assert any(HOSTILE in panel["title"] for sheets in built.data["boards"] for panel in sheets[0]["panels"])


@pytest.mark.parametrize(
    "changes",
    [
        {"confusion": {"ge5": {"attack": "a", "classes": ["no"], "matrix": [[1, 2]]}}},
        {"confusion": {"ge5": {}}},
        {"information": [{"attack": "a"}]},
    ],
)
def test_a_broken_audit_is_a_clear_error(page, tmp_path, changes):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    rewrite(run / "scores.json", **changes)
    with pytest.raises(DataError, match="expected form"):
        page(run)


def test_colours_that_do_not_fit_the_points_are_refused(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    rewrite(run / "features.json", colours={"odd": {"classes": ["no"], "codes": [0, 1]}})
    with pytest.raises(DataError, match="do not fit"):
        page(run)


# Fairness


def with_fairness(run: Path) -> None:
    """As an audit leaves it: two gaps of odd by ge5, one of them with a group left out."""
    fair = {"threat": "fairness", "better_for_owner": "lower", "baseline": 0.02, "target": "odd", "group": "ge5"}
    fresh = score("fresh classifier", "fairness", "demographic-parity-gap", 0.1, control=0.3) | fair
    note = "Left out, with fewer than 30 records: ge5 <no>."
    own = score("own classifier", "fairness", "equalised-odds-gap", 0.2, primary=False) | fair | {"note": note}
    rewrite(run / "scores.json", fairness=[fresh, own])


def test_fairness_has_a_folded_table_beside_chance_and_raw_records(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    with_fairness(run)
    built = page(run)
    folded = re.search(r'<details class="fold"><summary>Fairness.*?</details>', built.visible, re.DOTALL)
    assert folded is not None
    assert "<b>0.100</b>" in folded[0] and "chance 0.020, raw 0.300" in folded[0] and "too few records" in folded[0]
    assert "ge5 &lt;no&gt;" in folded[0], "names are escaped"
    assert "Fairness (odd by ge5)" in built.visible
    lines = [row for row in csv.DictReader(io.StringIO(built.data["csv"])) if row["threat"] == "fairness"]
    assert [(row["target"], row["group"], row["worst"], row["leakage"]) for row in lines] == [
        ("odd", "ge5", "0", "")
    ] * 2


def test_the_card_states_the_largest_gap_and_who_was_left_out(tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    with_fairness(run)
    text = render_card(run)
    assert "between groups is 0.200 \\[0.190, 0.210\\] (equalised odds gap of odd by ge5, own classifier)" in text
    assert "by chance 0.020. Left out, with fewer than 30 records" in text


def test_a_run_audited_before_fairness_is_reported_without_it(page, tmp_path):
    run = latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9)
    assert "fairness" not in stored(run)
    assert "Fairness" not in page(run).visible and "Fairness" not in render_card(run)
