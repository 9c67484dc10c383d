"""Leakage by hand: 0 % is the guesser, 100 % the best undefended attack of the same question."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.leakage import leakage, with_leakage
from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import Threat, described, rank, register, threat, title


def score(attack: str, value: float, *, control: float | None, baseline: float | None = 0.08, **more: Any) -> Score:
    given: dict[str, Any] = {
        "threat": "reconstruction",
        "metric": "mse",
        "better_for_owner": "higher",
        "ci": (value - 0.01, value + 0.01),
        "n": 10,
        "seconds": 0.0,
        "primary": True,
    }
    return Score(attack=attack, value=value, baseline=baseline, control=control, **{**given, **more})


@pytest.mark.parametrize(
    ("value", "baseline", "undefended", "expected"),
    [
        (0.08, 0.08, 0.0, 0.0),
        (0.0, 0.08, 0.0, 1.0),
        (0.02, 0.08, 0.0, 0.75),
        (0.1, 0.08, 0.0, 0.0),
        (0.3, 0.1, 0.5, 0.5),
    ],
)
def test_leakage_is_the_way_from_guesser_to_undefended(
    value: float, baseline: float, undefended: float, expected: float
) -> None:
    assert leakage(value, baseline, undefended) == pytest.approx(expected)


def test_the_best_undefended_attack_is_the_measure_for_all_attacks_of_a_threat() -> None:
    weak, strong = with_leakage([score("weak", 0.04, control=0.04), score("strong", 0.05, control=0.0)])
    assert weak.leakage == pytest.approx(0.5)  # its own control would say 100 %
    assert strong.leakage == pytest.approx(0.375)
    assert weak.leakage_ci == pytest.approx((0.375, 0.625))


def test_an_attack_without_a_control_is_measured_by_another_one() -> None:
    alone, _ = with_leakage([score("alone", 0.04, control=None), score("other", 0.05, control=0.0)])
    assert alone.leakage == pytest.approx(0.5)


def test_the_control_is_the_best_undefended_attack_whichever_won() -> None:
    weak, strong = with_leakage([score("weak", 0.04, control=0.04), score("strong", 0.05, control=0.01)])
    assert (weak.control, strong.control) == (0.01, 0.01)
    assert (weak.own_control, strong.own_control) == (0.04, 0.01)


def label_scores(attack: str, advantage: float, auroc: float, *, controls: tuple[float, float]) -> list[Score]:
    common: dict[str, Any] = {"threat": "attribute", "target": "sex", "better_for_owner": "lower"}
    return [
        score(attack, advantage, control=controls[0], baseline=0.0, metric="advantage", **common),
        score(attack, auroc, control=controls[1], baseline=0.5, metric="auroc", **{**common, "primary": False}),
    ]


def test_leakage_of_a_label_is_by_advantage_or_by_auroc_whichever_is_worse() -> None:
    """Classes 0.76 to 0.24: nobody is right more often than the majority guess, and the ranking is half known."""
    scores = with_leakage(
        [
            *label_scores("by-rank", 0.0, 0.7, controls=(0.1, 0.9)),
            *label_scores("by-guess", 0.02, 0.55, controls=(0.2, 0.8)),
        ]
    )
    ranked, _, guessed, _ = scores
    assert (ranked.leakage, ranked.leakage_by) == (pytest.approx(0.5), "auroc")  # (0.7 − 0.5) / (0.9 − 0.5)
    assert (guessed.leakage, guessed.leakage_by) == (pytest.approx(0.125), "auroc")
    assert worst_by_threat(scores)["attribute:sex"].attack == "by-rank"  # by advantage alone the other one


def test_an_advantage_that_leaks_more_than_the_auroc_counts() -> None:
    (found, _) = with_leakage(label_scores("a", 0.15, 0.55, controls=(0.2, 0.9)))
    assert (found.leakage, found.leakage_by) == (pytest.approx(0.75), "advantage")


def test_the_share_of_the_same_encoder_stands_beside_that_of_raw_records() -> None:
    (found,) = with_leakage([replace(score("a", 0.06, control=0.0), encoder_control=0.04)])
    assert (found.leakage, found.encoder_leakage) == (pytest.approx(0.25), pytest.approx(0.5))


def test_a_score_of_an_older_run_has_its_own_control() -> None:
    stored = score("a", 0.04, control=0.01).to_json()
    del stored["own_control"]
    assert Score.from_json(stored).own_control == 0.01


def test_labels_are_questions_of_their_own() -> None:
    common: dict[str, Any] = {
        "threat": "attribute",
        "metric": "advantage",
        "better_for_owner": "lower",
        "baseline": 0.0,
    }
    sex, age = with_leakage(
        [score("a", 0.1, control=0.4, target="sex", **common), score("a", 0.1, control=0.2, target="age", **common)]
    )
    assert (sex.leakage, age.leakage) == (pytest.approx(0.25), pytest.approx(0.5))


@pytest.mark.parametrize("control", [None, 0.08, 0.09])
def test_no_leakage_is_stated_where_no_undefended_attack_wins(control: float | None) -> None:
    (found,) = with_leakage([score("a", 0.04, control=control)])
    assert found.leakage is None and found.leakage_ci is None


def test_no_leakage_is_stated_without_a_baseline_or_where_the_threat_is_not_graded() -> None:
    bound = score(
        "canary-worst", 0.5, control=4.0, threat="differential-privacy", baseline=0.0, better_for_owner="lower"
    )
    assert [s.leakage for s in with_leakage([score("a", 0.04, control=0.0, baseline=None), bound])] == [None, None]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_leakage_lies_between_0_and_1_and_grows_with_the_attack(
    value: float, baseline: float, undefended: float
) -> None:
    if abs(undefended - baseline) < 1e-6:
        return
    found = leakage(value, baseline, undefended)
    assert 0.0 <= found <= 1.0
    nearer = value + 0.5 * (undefended - value)
    assert leakage(nearer, baseline, undefended) >= found - 1e-9


def test_a_stored_score_is_read_back() -> None:
    (one,) = with_leakage([score("a", 0.04, control=0.0)])
    assert Score.from_json(one.to_json()).leakage_ci == one.leakage_ci
    assert one.to_json()["attack_version"] == 1 and math.isclose(one.to_json()["leakage"], 0.5)


def test_a_threat_of_a_plugin_is_known_after_it_is_registered_and_comes_last() -> None:
    ink = Threat("ink-of-tests", "Ink", "How much ink.", "ink-error", "higher", "guesses", "sees the picture")
    assert threat("ink-of-tests").metric == "" and title("ink-of-tests:page") == "ink-of-tests (page)"
    assert register(ink) is ink and register(Threat.from_json(ink.to_json())) is ink
    assert title("ink-of-tests:page") == "Ink (page)"
    assert rank("ink-of-tests") > rank("differential-privacy") > rank("reconstruction")
    assert threat("ink-of-tests").explanation == "How much ink. The baseline guesses; the control sees the picture."
    assert described(["ink-of-tests"])["ink-of-tests"]["title"] == "Ink"


def test_of_attacks_that_leak_nothing_the_one_that_could_leak_most_counts() -> None:
    """An attack that found hardly anything to say must not hide one of which much less is known."""
    narrow = Score("narrow", "copies", "excess", "lower", 0.0, (-0.001, 0.001), 0.0, 0.5, 9, 0.0, primary=True)
    wide = replace(narrow, attack="wide", value=-0.003, ci=(-0.03, 0.026))
    for scores in ((narrow, wide), (wide, narrow)):
        assert worst_by_threat(with_leakage(scores))["copies"].attack == "wide"
