"""The page: self-contained, escaped, complete."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from report_runs import EMPIRICAL, attribute, gallery, reconstruction, utility, write_run, write_sweep

from sfumato.core.errors import DataError
from sfumato.report import build_report, render_card

HOSTILE = '</script><img src=x onerror="alert(1)">'


def sweep(folder: Path) -> Path:
    return write_sweep(
        folder,
        {
            "none": {"mechanism": "none", "use": utility(0.99), "attacks": reconstruction(1.2e-4)},
            "dnn": {"mechanism": "dnn", "use": utility(0.989), "attacks": reconstruction(0.004)},
            "ran-lam-0.1": {"params": {"lam": 0.1}, "use": utility(0.988), "attacks": reconstruction(0.007)},
            "ran-lam-0.5": {"params": {"lam": 0.5}, "use": utility(0.984), "attacks": reconstruction(0.017)},
            "ran-lam-0.9": {"params": {"lam": 0.9}, "use": utility(0.95), "attacks": reconstruction(0.015)},
        },
    )


def test_the_page_loads_nothing_from_the_network(page, tmp_path):
    text = page(sweep(tmp_path / "s")).text
    assert not re.search(r"""(src|href|action)\s*=\s*["']?\s*(https?:)?//""", text)
    assert "@import" not in text
    assert not re.search(r"url\(", text)
    assert "<link" not in text
    assert "default-src 'none'" in text


def test_the_page_says_how_the_features_were_drawn(page, tmp_path):
    run = write_run(tmp_path / "r")
    assert "in their first three principal components" in page(run).text
    features = json.loads((run / "features.json").read_text())
    (run / "features.json").write_text(json.dumps({**features, "method": "umap"}))
    assert "in a plane by UMAP" in page(run).text


def test_the_policy_allows_exactly_the_scripts_of_the_page(tmp_path):
    out = build_report([write_run(tmp_path / "r")], tmp_path / "r.html")
    text = out.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2 and "connect-src" not in policy.group(1)
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy.group(1)


def test_hostile_names_are_escaped_everywhere(page, tmp_path):
    attacks = [dict(s, attack=HOSTILE) for s in reconstruction(0.01)] + attribute(0.2, target=HOSTILE)
    run = write_run(
        tmp_path / "r",
        HOSTILE,
        data=HOSTILE,
        params={"name": HOSTILE},
        attacks=attacks,
        guarantee=EMPIRICAL | {"statement": HOSTILE, "conditions": [HOSTILE]},
        classes=[HOSTILE] * 10,
    )
    (run / "env.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    built = page(run, title=HOSTILE)
    assert "<img src=x" not in built.text
    assert "onerror=&#34;" in built.visible
    assert built.text.count("</script>") == 3
    markup = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "createContextualFragment")
    assert not any(word in script for word in markup for script in built.scripts), "texts are set as text alone"


def test_baseline_and_control_stand_beside_every_value(page, tmp_path):
    built = page(write_run(tmp_path / "r"))
    row = re.search(r'<tr class="primary worst[^"]*">(.*?)</tr>', built.visible, re.DOTALL)
    assert row is not None
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row.group(1))
    assert cells[3:] == ["0.00680", "[0.00653, 0.00707]", "0.067", "0.0001", "–", "2,000"]
    notes = built.data["fronts"][0]["figures"][0]["figure"]["layout"]["annotations"]
    assert [note["text"] for note in notes] == ["sees nothing (baseline): 0.067", "no defence (control): 0.0001"]


def test_every_point_of_the_front_has_its_pictures(page, tmp_path):
    data = page(sweep(tmp_path / "s")).data
    traces = data["fronts"][0]["figures"][0]["figure"]["data"]
    numbers = [n for trace in traces for n in trace.get("customdata", []) if n is not None]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    for number in numbers:
        rows = data["runs"][number]["rows"]
        assert [row["label"] for row in rows] == ["original", "released", "rebuilt"]
        for row in rows:
            assert len(data["pictures"][row["key"]]) == 8
            assert all(uri.startswith("data:image/png;base64,") for uri in data["pictures"][row["key"]])
        assert rows[-1]["attack"] == "inverse-residual"


def test_the_originals_are_embedded_once(page, tmp_path):
    data = page(sweep(tmp_path / "s")).data
    assert len([key for key in data["pictures"] if key.startswith("originals")]) == 1


def test_every_run_can_be_chosen_by_keyboard(page, tmp_path):
    built = page(sweep(tmp_path / "s"))
    assert re.findall(r'<button type="button" data-run="(\d)">', built.visible) == ["0", "1", "2", "3", "4"]


def test_methods_differ_in_symbol_and_in_dash(page, tmp_path):
    traces = page(sweep(tmp_path / "s")).data["fronts"][0]["figures"][0]["figure"]["data"]
    methods = [trace for trace in traces if "customdata" in trace]
    looks = {(trace["marker"]["symbol"], trace["line"]["dash"]) for trace in methods}
    assert len(looks) == len(methods) == 3
    assert len({trace["marker"]["symbol"] for trace in methods}) == 3


def test_lines_join_only_runs_that_are_not_dominated(page, tmp_path):
    traces = page(sweep(tmp_path / "s")).data["fronts"][0]["figures"][0]["figure"]["data"]
    ran = next(trace for trace in traces if trace["name"] == "ran")
    assert ran["x"] == [0.984, 0.988, None, 0.95]


def test_error_bars_are_the_intervals(page, tmp_path):
    run = write_run(tmp_path / "r", attacks=reconstruction(0.01, relative=0.2))
    trace = page(run).data["fronts"][0]["figures"][0]["figure"]["data"][0]
    assert trace["error_y"]["array"] == pytest.approx([0.002])
    assert trace["error_y"]["arrayminus"] == pytest.approx([0.002])
    assert trace["error_x"]["array"] == pytest.approx([0.004])


def test_an_error_of_zero_is_drawn_at_the_floor_of_the_logarithmic_axis(page, tmp_path):
    folder = write_sweep(
        tmp_path / "s",
        {
            "none": {"mechanism": "none", "attacks": reconstruction(0.0)},
            "dnn": {"mechanism": "dnn", "attacks": reconstruction(0.01)},
        },
    )
    traces = page(folder).data["fronts"][0]["figures"][0]["figure"]["data"]
    assert all(y > 0 for trace in traces for y in trace["y"])


def test_the_wall_shows_the_best_accuracy_of_each_method_and_says_so(page, tmp_path):
    visible = page(sweep(tmp_path / "s")).visible
    names = re.findall(r'<div class="wall-name"><b>(.*?)</b>', visible)
    assert names == ["original", "none", "dnn", "ran"]
    assert "the run with the best accuracy" in visible
    assert re.search(r"<b>ran</b><span class=\"facts\">λ = 0.1", visible)
    assert 'alt="ran, rebuilt record 8"' in visible


def test_signals_are_drawn_as_lines(page, tmp_path):
    built = page(write_run(tmp_path / "r", kind="signal", shape=(3, 64)))
    uri = built.data["pictures"]["rebuilt-0"][0]
    picture = base64.b64decode(uri.removeprefix("data:image/svg+xml;base64,")).decode()
    assert picture.count("<polyline") == 3
    assert '<div class="wall signal">' in built.visible


def test_tables_have_bars_in_the_panel_and_a_sentence_in_place_of_the_wall(page, tmp_path):
    built = page(write_run(tmp_path / "r", kind="table", shape=(12,)))
    uri = built.data["pictures"]["rebuilt-0"][0]
    assert base64.b64decode(uri.removeprefix("data:image/svg+xml;base64,")).decode().count("<rect") == 13
    assert "The records are table rows, which have no picture" in built.visible
    assert '<div class="wall' not in built.visible


def test_audio_is_shown_as_a_picture_with_low_frequencies_at_the_bottom(page, tmp_path):
    from PIL import Image

    tensors = gallery((1, 4, 6))
    tensors["originals"] = np.zeros((8, 1, 4, 6), np.float32)
    tensors["originals"][:, 0, 0] = 1.0  # the lowest band
    built = page(write_run(tmp_path / "r", kind="audio", shape=(1, 4, 6), tensors=tensors))
    uri = next(uris[0] for key, uris in built.data["pictures"].items() if key.startswith("originals"))
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))
    assert pixels[-1].min() == 255
    assert pixels[:-1].max() == 0


def test_several_threats_can_be_chosen_for_the_front(page, tmp_path):
    built = page(write_run(tmp_path / "r", attacks=[*attribute(0.2), *reconstruction(0.01)]))
    assert [f["name"] for f in built.data["fronts"][0]["figures"]] == ["Reconstruction", "Attribute (sex)"]
    axes = [f["figure"]["layout"]["yaxis"]["type"] for f in built.data["fronts"][0]["figures"]]
    assert axes == ["log", "linear"]


def test_different_data_are_not_drawn_in_one_front(page, tmp_path):
    built = page(write_run(tmp_path / "a"), write_run(tmp_path / "b", data="faces"))
    assert len(built.data["fronts"]) == 2
    assert built.visible.count('<h2 class="data"') == 2


def test_runs_of_the_same_folder_name_are_told_apart(page, tmp_path):
    data = page(write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run")).data
    assert [run["title"] for run in data["runs"]] == ["ran, a/run", "ran, b/run"]


def test_the_csv_holds_every_score_and_no_formula(page, tmp_path):
    run = write_run(tmp_path / "r", data="=cmd()")
    rows = list(csv.DictReader(io.StringIO(page(run).data["csv"])))
    assert len(rows) == 7
    assert {row["data"] for row in rows} == {"'=cmd()"}
    judged = [row for row in rows if row["worst"] == "1"]
    assert [(row["attack"], row["metric"], row["baseline"], row["control"]) for row in judged] == [
        ("inverse-residual", "mse", "0.067", "0.0001")
    ]


def test_no_epsilon_is_stated_for_an_empirical_guarantee(page, tmp_path):
    assert "No ε can be stated" in page(write_run(tmp_path / "r")).visible


def test_a_published_epsilon_is_marked_as_not_proven(page, tmp_path):
    claim = {"kind": "as-published", "statement": "The proof has a gap.", "epsilon": 2.0, "delta": 0.0}
    visible = page(write_run(tmp_path / "r", guarantee=claim)).visible
    assert "As published: NOT PROVEN" in visible
    assert "The paper states ε = 2, δ = 0. This is NOT PROVEN." in visible


def test_a_proven_epsilon_comes_with_its_relation_and_conditions(page, tmp_path):
    proof = {
        "kind": "dp",
        "statement": "Proven.",
        "epsilon": 1.0,
        "delta": 1e-5,
        "relation": "add or remove one record",
    }
    proof |= {"event": {"gaussian": 1}, "conditions": ["every record is used once"]}
    visible = page(write_run(tmp_path / "r", guarantee=proof)).visible
    assert "ε = 1, δ = 1e-05, for data sets that are neighbours by: add or remove one record." in visible
    assert "<li>every record is used once [assumed]</li>" in visible
    assert "outside the ledger: the promise is for the release" in visible
    assert "outside the ledger" in render_card(tmp_path / "r")
    assert "Covered: the payload, for one record at a time. Not covered: labels that leave with it," in visible


def test_the_page_says_that_it_embeds_real_records(page, tmp_path):
    assert "This page embeds 8 real records of the victim split" in page(write_run(tmp_path / "r")).visible


def test_the_page_tells_how_to_run_again_without_naming_folders_above_the_run(page, tmp_path):
    built = page(write_run(tmp_path / "my run"))
    assert "sfumato fit ran --config &#39;my run/config.toml&#39; --out again" in built.visible
    assert "torch" in built.visible
    assert str(tmp_path) not in built.text


def test_a_page_without_pictures_or_features_is_still_a_page(page, tmp_path):
    run = write_run(tmp_path / "r")
    for name in ("gallery.safetensors", "features.json", "env.json", "metrics.jsonl"):
        (run / name).unlink()
    built = page(run)
    assert "No run kept reconstructions" in built.visible
    assert built.data["spaces"] == []


def test_an_existing_report_is_replaced_whole(tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    assert build_report([write_run(tmp_path / "r")], out) == out
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_run_without_an_audit_is_told_what_to_do(tmp_path):
    run = write_run(tmp_path / "r", audited=False)
    with pytest.raises(DataError, match=r"sfumato audit .*r"):
        build_report([run], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a run folder"):
        build_report([tmp_path], tmp_path / "r.html")
    with pytest.raises(DataError, match="not a folder"):
        build_report([tmp_path / "absent"], tmp_path / "r.html")
    with pytest.raises(DataError, match="no run folder"):
        build_report([], tmp_path / "r.html")


def test_a_front_cannot_name_folders_outside_of_its_own(tmp_path):
    write_run(tmp_path / "other")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "front.json").write_text(json.dumps({"points": ["../other"]}))
    with pytest.raises(DataError, match="outside"):
        build_report([tmp_path / "s"], tmp_path / "r.html")


def test_too_many_runs_are_refused(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "front.json").write_text(json.dumps({"points": [f"points/{i}" for i in range(61)]}))
    with pytest.raises(DataError, match="at most 60"):
        build_report([folder], tmp_path / "r.html")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("scores.json", "{"),
        ("scores.json", "{}"),
        ("schema.json", "[]"),
        ("features.json", '{"points": [[1, 2, 3]], "labels": [4], "classes": ["a"], "label": "x"}'),
        ("config.toml", "= ="),
        ("gallery.safetensors", "nonsense"),
    ],
)
def test_a_broken_file_is_a_clear_error(tmp_path, file, content):
    run = write_run(tmp_path / "r")
    (run / file).write_text(content)
    with pytest.raises(DataError, match="r"):
        build_report([run], tmp_path / "r.html")


def test_pictures_of_another_shape_than_the_schema_are_refused(tmp_path):
    run = write_run(tmp_path / "r", tensors=gallery((1, 4, 4)))
    with pytest.raises(DataError, match="the schema says"):
        build_report([run], tmp_path / "r.html")
