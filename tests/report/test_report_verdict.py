"""The verdict says what was measured and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_runs import attribute, latent_run, latent_sweep, reconstruction, score, utility, verdict_text, write_run

from sfumato.report import render_card
from sfumato.report.collect import collect
from sfumato.report.verdict import verdict


def words(*folders: Path) -> str:
    groups = collect(folders)
    assert len(groups) == 1
    return verdict_text(groups[0])


@pytest.fixture
def method(tmp_path):
    def make(name: str, accuracy: float, mse: float, **more) -> Path:
        attacks = reconstruction(mse, **more)
        return write_run(tmp_path / name, name, use=utility(accuracy), attacks=attacks)

    return make


def test_one_run_is_told_with_its_interval_baseline_and_control(tmp_path):
    text = words(write_run(tmp_path / "r"))
    assert text.startswith("Released: ran output for mnist records, audited on 2,000 records.")
    assert "Others read digit with 98.9 % [98.5, 99.3] accuracy (majority guess 11.4 %)." in text
    assert (
        "The best of 2 reconstruction attacks (inverse-residual) rebuilds records with MSE 0.00680 "
        "[0.00653, 0.00707]; a guesser who sees nothing gets 0.067, with no defence the best attack gets 0.0001."
    ) in text
    assert "The release leaks: the attack does better than a guesser who sees nothing." in text
    assert "no ε can be stated" in text


def test_an_attack_at_its_baseline_is_no_proof(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=reconstruction(0.0665)))
    assert "No reconstruction attack of this suite does measurably better" in text
    assert "other attacks may" in text


def test_a_release_at_its_control_is_said_to_leak_as_without_a_defence(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=reconstruction(1.01e-4)))
    assert "as much as a release with no defence" in text


def test_page_and_card_tell_the_floor_several_releases_and_little_effort(tmp_path):
    folder = write_run(tmp_path / "r")
    scores = json.loads((folder / "scores.json").read_text())
    read = score("by-digit", "attribute", "accuracy", 0.6, baseline=0.5, primary=False, target="sex")
    scores["attacks"].append({**read, "follows": "digit"})
    scores["repeated"] = [{**score("probe-residual", "attribute", "advantage", 0.3, target="sex"), "releases": 4}]
    scores["effort"] = {"attack_steps": 60}
    (folder / "scores.json").write_text(json.dumps(scores))
    card = render_card(folder)
    for text in (words(folder), card):
        assert "Floor: whoever reads digit" in text
        assert "Attribute (sex), if every record is released several times" in text and "4 releases give" in text
        assert "took little effort" in text
    scores["effort"] = {"attack_steps": 500}
    (folder / "scores.json").write_text(json.dumps(scores))
    assert "little effort" not in words(folder)


def test_runs_of_different_precision_are_told_apart(tmp_path):
    folders = [write_run(tmp_path / name) for name in ("a", "b")]
    scores = json.loads((folders[1] / "scores.json").read_text())
    (folders[1] / "scores.json").write_text(json.dumps({**scores, "precision": "bf16"}))
    assert "were trained in bf16 and fp32" in words(*folders)
    assert "were trained in" not in words(folders[0])


def test_what_payload_and_labels_together_tell_reads_as_a_sentence(tmp_path):
    labelled = [score("label-only", "attribute-with-labels", "advantage", 0.3, baseline=0.0, control=0.6, target="sex")]
    text = words(write_run(tmp_path / "r", attacks=labelled))
    assert "reads the private label sex from payload and utility labels with advantage 0.300" in text


@pytest.mark.parametrize("mse", [1e-4, 0.0068, 0.067])
def test_nothing_is_ever_called_safe(tmp_path, mse):
    text = words(write_run(tmp_path / "r", attacks=[*reconstruction(mse), *attribute(0.001)])).lower()
    assert not any(word in text for word in ("safe", "secure", "private data is protected", "guaranteed"))


def test_attacks_that_lose_without_a_defence_cannot_be_trusted(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=reconstruction(0.067, control=0.068)))
    assert "The analysis of reconstruction cannot be trusted" in text
    assert "inverse-mirror and inverse-residual" in text


def test_a_single_attack_that_loses_without_a_defence_is_named(tmp_path):
    attacks = reconstruction(0.01)
    attacks[0]["control"] = 0.08
    text = words(write_run(tmp_path / "r", attacks=attacks))
    assert "inverse-mirror does not beat the guesser where nothing is defended" in text
    assert "cannot be trusted" not in text


def test_a_missing_control_is_said(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=reconstruction(0.01, control=None)))
    assert "has no undefended control" in text


def test_a_missing_baseline_is_not_read_as_a_leak(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=reconstruction(0.01, baseline=None)))
    assert "Without a baseline the reconstruction figure cannot be read" in text


def test_a_private_label_is_named(tmp_path):
    text = words(write_run(tmp_path / "r", attacks=attribute(0.32)))
    assert "The best of 2 attribute attacks (probe-mlp) reads the private label sex with advantage 0.320" in text


def test_a_reidentification_rate_is_a_percentage(tmp_path):
    attack = score("reid-query", "reidentification", "rate", 0.12, baseline=0.01, control=0.98)
    text = words(write_run(tmp_path / "r", attacks=[attack]))
    assert "The only reidentification attack (reid-query) links released records to known ones with rate 12.0 %" in text


def test_methods_are_ranked_at_comparable_accuracy(method):
    text = words(method("ran", 0.985, 0.017), method("dnn", 0.989, 0.004), method("noisy", 0.94, 0.05))
    assert text.index("ran: MSE 0.0170") < text.index("dnn: MSE 0.00400")
    assert "Not comparable at this accuracy: noisy reaches 94.0 % at most." in text
    assert "ran is better than dnn under the fresh attacker" in text
    assert "overlap" not in text


def test_overlapping_intervals_leave_the_order_open(method):
    text = words(method("ran", 0.985, 0.0042), method("dnn", 0.989, 0.0041))
    assert "Its interval overlaps that of dnn: the order of these two is not settled." in text
    assert "ran is not shown to be better than dnn under the fresh attacker" in text


def test_ran_that_hides_less_than_dnn_is_said_to_be_not_better(method):
    text = words(method("ran", 0.985, 0.003), method("dnn", 0.989, 0.0041))
    assert "ran is not better than dnn under the fresh attacker" in text


def test_ran_without_comparable_accuracy_is_not_compared_with_dnn(method):
    text = words(method("ran", 0.95, 0.02), method("dnn", 0.989, 0.0041))
    assert "no runs of comparable accuracy" in text


def test_the_undefended_method_is_not_ranked(method):
    text = words(method("none", 0.999, 1e-4), method("dnn", 0.98, 0.004), method("noisy", 0.979, 0.003))
    assert "none: MSE" not in text
    assert "behind a defence is 98.0 %" in text


def test_a_sweep_owns_up_to_picking_its_setting(tmp_path):
    runs = [
        write_run(tmp_path / str(lam), params={"lam": lam}, use=utility(acc), attacks=reconstruction(mse))
        for lam, acc, mse in ((0.1, 0.989, 0.004), (0.5, 0.985, 0.009), (0.9, 0.95, 0.03))
    ]
    text = words(*runs)
    assert "ran, λ = 0.5: MSE 0.00900" in text
    assert "picked on the same records" in text


def test_a_run_without_attacks_says_that_nothing_is_known(tmp_path):
    assert "No attack was run: nothing is known" in words(write_run(tmp_path / "r", attacks=[]))


def test_the_card_states_guarantee_scores_references_and_commands(tmp_path):
    card = render_card(write_run(tmp_path / "r"))
    assert card.startswith("# ran on mnist")
    assert "**Empirical.**" in card
    assert "| Reconstruction | inverse-residual | MSE (higher is better for the owner) | 0.00680 |" in card
    assert "| 0.067 | 0.0001 | – | 2,000 |" in card
    assert "    sfumato fit ran --config r/config.toml --out again" in card


def test_the_card_escapes_what_files_say(tmp_path):
    card = render_card(write_run(tmp_path / "r", data="<b>|`x`\n# y"))
    assert "<b>" not in card
    assert card.splitlines()[0] == "# ran on &lt;b&gt;\\|\\`x\\` \\# y"


def test_the_verdict_ranks_by_the_private_label_where_nothing_else_was_attacked(tmp_path):
    (group,) = collect([latent_sweep(tmp_path / "s")])
    found = verdict(group)
    near, strongest = found.rankings
    assert near.heading.startswith(
        "Within one point of the best accuracy, by what the best attack on the private label"
    )
    assert [item.partition(":")[0] for item in near.items] == ["filter, budget = 10", "filter-linear, budget = 10"]
    assert strongest.heading.startswith("At each method’s most private setting")
    assert [item.partition(":")[0] for item in strongest.items] == [
        "filter, budget = 300",
        "filter-linear, budget = 300",
        "gaussian, budget = 300",
    ]
    assert "how well the records themselves can be rebuilt is not known" in found.lead[0]


def test_the_raw_latent_is_a_reference_and_not_ranked(tmp_path):
    (group,) = collect([latent_sweep(tmp_path / "s")])
    text = verdict_text(group)
    assert "behind a defence is 93.0 % [92.0, 94.0] (filter, budget = 10)" in text
    assert "The raw latent (vae): advantage 0.420 [0.410, 0.430] by probe-mlp, at accuracy 93.0 %" in text
    assert not any(item.startswith("vae") for ranking in verdict(group).rankings for item in ranking.items)


def test_methods_with_one_setting_each_are_all_ranked(tmp_path):
    runs = [
        latent_run(tmp_path / name, name, leak=leak, use=use, budget=300.0)
        for name, leak, use in (("gaussian", 0.7, 0.7), ("filter", 0.6, 0.9))
    ]
    (group,) = collect(runs)
    near, every = verdict(group).rankings
    assert len(near.items) == 1
    assert every.heading.startswith("At any accuracy")
    assert [item.partition(":")[0] for item in every.items] == ["filter", "gaussian"]


def test_one_ranking_is_enough_where_the_most_private_settings_are_comparable(tmp_path):
    (group,) = collect([latent_run(tmp_path / name, name, leak=0.6, use=0.9) for name in ("gaussian", "filter")])
    assert len(verdict(group).rankings) == 1


def test_a_proof_is_told_with_its_epsilon(tmp_path):
    proof = {"kind": "dp", "statement": "Proven.", "delta": 1e-5, "relation": "replace one", "event": {"releases": 1}}
    runs = [
        latent_run(
            tmp_path / str(eps), "gaussian", leak=0.6, use=0.9, budget=1 / eps, guarantee={**proof, "epsilon": eps}
        )
        for eps in (94.4485, 980.0)
    ]
    (group,) = collect([*runs, latent_run(tmp_path / "f", "filter", leak=0.6, use=0.9)])
    assert "differential privacy is proven for gaussian (ε = 94.4 to 980); there is measurement only" in verdict_text(
        group
    )


def test_the_card_has_every_utility_label_and_the_mutual_information(tmp_path):
    card = render_card(latent_run(tmp_path / "r", "filter", leak=0.6, use=0.9, other=0.7))
    assert "| Utility | fresh classifier | accuracy | 90.0 % |" in card
    assert "| Utility (circle) | fresh classifier | accuracy | 70.0 % |" in card
    assert "- ge5 (private): 0.200 \\[0.190, 0.210\\] nats; shuffled labels 0.010" in card
    assert "- odd (utility): 0.500 \\[0.490, 0.510\\] nats; shuffled labels 0.020" in card
    assert "bounds none" in card
    assert "utual information" not in render_card(write_run(tmp_path / "ran", use=utility(0.9)))


def test_the_card_tells_epsilon_delta_and_relation_of_a_proof(tmp_path):
    proof = {"kind": "dp", "statement": "Proven.", "epsilon": 94.4485, "delta": 1e-5, "relation": "replace one record"}
    proof["event"] = {"releases": 1}
    card = render_card(latent_run(tmp_path / "r", "gaussian", leak=0.6, use=0.9, guarantee=proof))
    assert "ε = 94.4485, δ = 1e-05, for data sets that are neighbours by: replace one record." in card


def test_the_card_states_the_floor_of_what_is_served(tmp_path):
    floor = {**score("by-odd", "attribute", "accuracy", 0.582, baseline=0.51, target="ge5"), "follows": "odd"}
    run = write_run(tmp_path / "r", attacks=[*attribute(0.2, "ge5"), {**floor, "primary": False}])
    text = render_card(run)
    assert "Floor: whoever reads odd from the release" in text
    assert "guesses ge5 with accuracy 58.2 %" in text
    assert "No mechanism that serves odd as well can be below." in text
