"""The studies of `ars`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.auditing.alone import ALONE_RAW, ALONE_SHARE, INITIATOR
from sfumato.auditing.mask_overlap import largest_changes
from sfumato.auditing.utility import CLEAN
from sfumato.core.dataset import Splits
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.studies import ars, ars_base, ars_columns, ars_drawings, ars_labels
from sfumato.studies.ars_alone import alone_rows
from sfumato.studies.ars_masks import binomial_tail
from sfumato.studies.verdicts import OPEN, Asked


def score(attack: str, metric: str, value: float, **more: Any) -> dict[str, Any]:
    return {
        "attack": attack,
        "metric": metric,
        "value": value,
        "ci": [value, value],
        "better_for_owner": "higher",
        "primary": attack == "fresh classifier" and metric == "accuracy",
        "control": None,
        **more,
    }


def point(params: dict[str, Any], right: float, **errors: float) -> dict[str, Any]:
    attacks = [score(name.replace("_", "-"), "mse", value, control=0.012) for name, value in errors.items()]
    name = "-".join(str(value) for value in params.values())
    return {
        "point": name,
        "params": params,
        "attacks": attacks,
        "utility": [score("fresh classifier", "accuracy", right)],
    }


def with_errors(epsilon: float, **errors: list[float]) -> dict[str, Any]:
    """A published point with the error of each victim, by attack."""
    means = {name: sum(each) / len(each) for name, each in errors.items()}
    found = point({"variant": "published", "epsilon": epsilon}, 0.9, **means)
    return {**found, "each": {f"{name.replace('_', '-')}||mse": np.array(each) for name, each in errors.items()}}


def test_error_rises_for_the_papers_attacker_and_not_for_the_worst() -> None:
    none = with_errors(0.0, sdec_own_mask=[0.01, 0.02, 0.03], sdec_read_mask=[0.01, 0.01, 0.01])
    noise = with_errors(1.0, sdec_own_mask=[0.05, 0.06, 0.08], sdec_read_mask=[0.01, 0.01, 0.01])
    theirs, worst = ars._rises([noise, none])
    assert theirs.ours == pytest.approx((0.04 + 0.04 + 0.05) / 3)
    assert theirs.asked == Asked("ars-error-rises", "above", 0.0, "paper")
    assert (worst.ours, worst.asked) == (0.0, Asked("ars-error-rises", "above", 0.0, "adaptive"))


def test_records_whose_noise_stays_within_epsilon_are_counted(digits: Splits) -> None:
    few = digits.owner.sample(120, 0)
    made = ARS(variant="published", epsilon=0.5, epochs=1, latent=16, seed=0).fit(few)
    moved = largest_changes(made, few, 0)
    assert moved.shape == (120,) and (moved <= 0.5 * 1.0001).all() and moved.max() > 0.4


def test_multiple_of_the_error_without_noise_is_a_ratio_over_the_same_victims() -> None:
    none = with_errors(0.0, sdec=[0.01, 0.02, 0.03])
    noise = with_errors(1.0, sdec=[0.02, 0.04, 0.06])
    row = ars._times("twice", noise, none)
    assert row.ours == pytest.approx(2.0)
    assert row.ci == pytest.approx((2.0, 2.0)), "every victim's error doubles: nothing varies"
    assert row.to_json("cpu")["verdict"] is None, "no claim, no verdict"


def shared(variant: str, epsilon: float, right: list[int]) -> dict[str, Any]:
    """A point of several parties: which victims the pool's classifier gets right; the party alone gets half of them."""
    learners = {CLEAN: right, ALONE_RAW: [1, 0] * (len(right) // 2), ALONE_SHARE: right, INITIATOR: right}
    utility = [score(who, "accuracy", sum(hits) / len(hits), target="digit") for who, hits in learners.items()]
    return {
        "point": f"ars-{variant}-epsilon-{epsilon:g}",
        "params": {"variant": variant, "epsilon": epsilon},
        "utility": [score("fresh classifier", "accuracy", 0.9, target="digit"), *utility],
        "each": {f"{who}|digit|accuracy": np.array(hits, dtype=float) for who, hits in learners.items()},
    }


def test_the_pool_is_put_to_a_party_alone_over_the_same_victims() -> None:
    points = [shared(v, e, [1, 1, 1, 0]) for v, e in (("published", 0.0), ("published", 2.0), ("hardened", 1.0))]
    rows = alone_rows([point({"way": "pca"}, 0.9), *points], unless="few")
    names = [row.name for row in rows]
    assert names.count(f"a party {ALONE_RAW}") == 1 and len(set(names)) == len(names) == 1 + 3 * 3
    gains = {row.name.split(":")[0]: row for row in rows if "less" in row.name}
    assert [row.ours for row in gains.values()] == [0.25] * 3, "three of four are right, of one party alone two"
    first = gains["ars-published-epsilon-0"]
    assert first.asked == Asked("ars-more-data", "above", 0.0, unless="few")
    assert gains["ars-published-epsilon-2"].asked is gains["ars-hardened-epsilon-1"].asked is None


def test_by_columns_the_pool_reads_protected_latents() -> None:
    columns = shared("hardened", 1.0, [1, 1, 1, 0])
    columns["params"]["split"] = "columns"
    columns["each"]["fresh classifier|digit|accuracy"] = np.array([1.0, 1.0, 1.0, 1.0])
    (gain,) = (row for row in alone_rows([columns]) if "less" in row.name)
    assert gain.ours == 0.5 and "protected latents" in gain.name, "nobody has the others' clean latents"


def test_a_party_alone_has_no_rows_where_nobody_shares() -> None:
    assert alone_rows([point({"variant": "published", "epsilon": 0.0}, 0.9)]) == []


def noised(params: dict[str, Any], right: float, *errors: float) -> dict[str, Any]:
    """A point with one attacker and its error of each victim."""
    return {**point(params, right, sdec=sum(errors) / len(errors)), "each": {"sdec||mse": np.array(errors)}}


def supervised(epsilon: float, right: float, *errors: float) -> dict[str, Any]:
    return noised({"way": "uniform", "learns": "labels", "epsilon": epsilon}, right, *errors)


def test_uniform_noise_on_a_supervised_encoder_is_not_the_papers_baseline() -> None:
    plain = noised({"way": "uniform", "epsilon": 1.0}, 0.8, 0.01, 0.02)
    assert ars_base.is_variant(plain, "uniform") and not ars_base.is_variant(supervised(1.0, 0.8, 0.1), "uniform")
    ours = noised({"variant": "published", "epsilon": 1.0}, 0.85, 0.03, 0.05)
    (row,) = ars._beside_uniform([plain, supervised(1.0, 0.84, 0.9, 0.9), ours])
    assert row.ours == pytest.approx((0.02 + 0.03) / 2)


def test_hardened_is_put_to_the_strongest_noise_on_a_supervised_encoder_that_serves_no_worse() -> None:
    hardened = noised({"variant": "hardened", "epsilon": 1.0}, 0.9, 0.05, 0.07)
    others = [supervised(0.5, 0.95, 0.01, 0.02), supervised(1.0, 0.9, 0.04, 0.05), supervised(2.0, 0.89, 0.9, 0.9)]
    (row,) = ars._beside_supervised([hardened, *others])
    assert row.ours == pytest.approx((0.01 + 0.02) / 2) and row.asked is None, "the paper has no hardened variant"
    assert ars._beside_supervised([hardened, others[2]]) == []


def labelled(answers: list[int], lam: str = "1,0,0", person: list[int] | None = None) -> dict[str, Any]:
    """A point of faces with what the paper's classifier takes each victim for."""
    seen = score("probe-mlp", "accuracy", 0.5, target="Male", threat="attribute")
    each = {"probe-mlp|Male|answer": np.array(answers), "probe-mlp|Male|accuracy": np.ones(len(answers))}
    if person is not None:
        each["probe-mlp|Male|accuracy|person"] = np.array(person)
    params = {"variant": "published", "epsilon": 1.0, "lam": lam}
    return {"point": lam, "params": params, "seed": 0, "attacks": [seen], "each": each}


def test_share_of_predictions_that_equal_r_is_counted_from_the_answers() -> None:
    code = ars_labels.target(0, "Male", 2)
    faces = labelled([0, 0, 0, 1], person=[7, 7, 8, 8])
    hits, whose = ars_labels.equal_to_target(faces, faces["attacks"][0])
    assert hits.tolist() == ([1, 1, 1, 0] if code == 0 else [0, 0, 0, 1])
    assert whose is not None and whose.tolist() == [7, 7, 8, 8]


def test_what_lambda_adds_is_over_the_same_victims() -> None:
    code = ars_labels.target(0, "Male", 2)
    none = labelled([1 - code] * 10 + [code] * 10)
    pushed = labelled([1 - code] * 5 + [code] * 15, lam="0,1,0")
    theirs, best = ars_labels._weighed(pushed, none)
    assert theirs.ours == best.ours == 0.25
    assert theirs.ci is not None and theirs.ci[0] > 0.0, "unpaired shares of 20 victims would not settle it"
    assert theirs.asked == Asked("ars-attribute-weight", "above", 0.0, "paper")
    assert best.asked == Asked("ars-attribute-weight", "above", 0.0, "adaptive")


def test_likeness_at_one_epsilon_is_never_settled() -> None:
    faces = point({"variant": "published", "epsilon": 1.0}, 0.9, sdec_own_mask=0.05)
    faces["attacks"] += [score("sdec-own-mask", metric, 5.0) for metric in ("psnr", "ssim")]
    put = [row for row in ars._table2("celeba", [faces]) if row.asked is not None]
    mix = {**faces, "params": {**faces["params"], "lam": "0.5,0.25,0.25"}}
    put += [row for row in ars_labels._table4("celeba", [mix]) if row.asked is not None]
    assert [row.asked.claim for row in put if row.asked] == ["ars-lower-psnr"] * 2 + ["ars-both-attacks"] * 2
    assert {row.to_json("cpu")["verdict"] for row in put} == {OPEN}


def test_figures_are_drawn_from_scores(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    mixes = [labelled([0, 1, 1, 0], lam) for lam in ("1,0,0", "0,1,0")]
    for result in mixes:
        result["attacks"].append(score("probe-mlp", "accuracy", 0.6, target="Smiling", threat="attribute"))
        result["each"] |= {f"probe-mlp|Smiling|{what}": np.array([0, 1, 1, 1]) for what in ("answer", "accuracy")}
        result["utility"] = [score("fresh classifier", "accuracy", 0.8)]
    points = [with_errors(e, sdec_own_mask=[0.02 + e, 0.03]) for e in (0.0, 1.0)]
    points.append(supervised(1.0, 0.9, 0.04, 0.05))
    for number, (draw, results) in enumerate(
        [
            (ars_drawings.draw_figure4, points),
            (ars_labels._draw_figure7, mixes),
            (ars_labels._draw_figure8, mixes),
            (ars_labels._draw_figure8, [*mixes, {**mixes[0], "params": {**mixes[0]["params"], "epsilon": 2.0}}]),
        ]
    ):
        draw("celeba", results, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


def test_r_is_the_class_that_the_mechanism_draws() -> None:
    from sfumato import load_splits
    from sfumato.mechanisms.ars.mechanism import ARS

    splits = load_splits("digits", utility=["digit"], private=["ge5"], limit=300)
    mechanism = ARS(variant="published", epochs=1, seed=3).fit(splits.owner)
    assert mechanism.parties_[0].attributes["ge5"][1] == ars_labels.target(3, "ge5", 2)


def test_f1_follows_from_accuracy_balanced_accuracy_and_share() -> None:
    # 75 of 100 are frequent; 70 of them and 15 of the others are right: TP 70, FP 10, FN 5
    utility = [
        score("fresh classifier", "accuracy", 0.85, baseline=0.75),
        score("fresh classifier", "balanced-accuracy", (70 / 75 + 15 / 25) / 2, baseline=0.5),
    ]
    assert ars_columns._f1(utility) == pytest.approx(2 * 70 / (2 * 70 + 10 + 5))


def test_chance_of_a_lucky_mask_is_what_the_paper_says() -> None:
    assert binomial_tail(256, 0.75) == pytest.approx(2.449e-16, rel=1e-3)
    assert binomial_tail(4, 0.75) == 5 / 16
    assert binomial_tail(10, 0.0) == 1.0
