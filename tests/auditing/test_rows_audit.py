"""The audit of rows that belong to nobody: what is leaked is found, and what is not is not invented."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import audit_release
from sfumato.attacks.copies.copied_rows import ExactCopies
from sfumato.attacks.registry import rows_suite
from sfumato.attacks.singling_out.predicates import ANYTHING, OneColumn, SeveralColumns, alone, holds
from sfumato.auditing import SMOKE
from sfumato.core.coded_columns import CodedColumn, common_ranks
from sfumato.core.dataset import Dataset
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.schema import Schema
from sfumato.testing.made_up_people import made_up_people

QUESTIONS = ("singling-out", "linkability", "inference", "membership", "copies")
PEOPLE = 240
QUICK = replace(SMOKE, suspects=400, predicates=150)
ASKED = ("diagnosis", "age")


def audited(release: Any, owner: Any, holdout: Any, **options: Any) -> dict[str, Any]:
    return audit_release(release, owner=owner, holdout=holdout, effort=QUICK, **{"private": ASKED, **options})


@pytest.fixture(scope="module")
def people() -> list[dict[str, np.ndarray]]:
    return [made_up_people(PEOPLE, seed) for seed in range(3)]


@pytest.fixture(scope="module")
def copied(people: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    owner, holdout, _ = people
    order = np.random.default_rng(0).permutation(PEOPLE)
    return audited({name: values[order] for name, values in owner.items()}, owner, holdout)


def test_a_release_of_the_owners_rows_leaks_everything_by_every_question(copied: dict[str, Any]) -> None:
    assert set(copied["worst"]) == {*QUESTIONS, "inference:diagnosis", "inference:age"}
    for question in QUESTIONS:
        score = copied["worst"][question]
        assert score["leakage"] >= 0.95 and score["leakage_ci"][0] > 0.4, question
        assert score["baseline"] == 0.0 and score["control"] > 0.1 and score["attack_version"] == 2


def test_a_release_of_other_people_leaks_nothing_by_any_attack() -> None:
    held, asked = 0, 0
    for seed in range(2):
        owner, holdout, nobody = (made_up_people(PEOPLE, 100 + 3 * seed + part) for part in range(3))
        for score in audited(nobody, owner, holdout, seed=seed)["attacks"]:
            if score["primary"]:
                asked += 1
                held += score["ci"][0] <= 0.0 <= score["ci"][1]
    assert asked >= 40 and held >= 0.92 * asked


def test_every_attack_wins_where_the_owners_rows_are_released(copied: dict[str, Any]) -> None:
    sure = [
        s for s in copied["attacks"] if s["primary"] and s["attack"] not in ("single-one-column", "infer-nearest-10")
    ]
    assert all(score["value"] > 0.0 for score in copied["attacks"] if score["primary"])
    for score in sure:
        assert score["ci"][0] > 0.0, score["attack"]


def test_what_holds_for_everybody_is_no_leakage(people: list[dict[str, np.ndarray]]) -> None:
    """A column that follows from another one is inferred for anybody, and nothing is leaked by that."""
    more = [{**table, "half": np.where(table["age"] < 54, "young", "old")} for table in people]
    found = audited(more[2], more[0], more[1], private=("half",))
    rates = {s["metric"]: s for s in found["attacks"] if s["attack"] == "infer-trees" and s["target"] == "half"}
    assert rates["rate"]["value"] > rates["rate"]["baseline"] + 0.2
    assert rates["excess"]["ci"][0] <= 0.0 <= rates["excess"]["ci"][1]
    assert "inference:half" in found["worst"] and "inference" in found["worst"]


def test_the_order_of_the_rows_changes_nothing(people: list[dict[str, np.ndarray]]) -> None:
    owner, holdout, nobody = people
    turned = {name: values[::-1] for name, values in nobody.items()}
    values = [[score["value"] for score in audited(release, owner, holdout)["attacks"]] for release in (nobody, turned)]
    assert values[0] == values[1]


def scene(
    released: np.ndarray, people: np.ndarray, columns: tuple[CodedColumn, ...]
) -> tuple[Release, Knowledge, Truth]:
    schema = Schema("table", (people.shape[1],))
    candidates = Dataset(people.astype(np.float32), schema, name="candidates")
    auxiliary = Dataset(np.zeros((0, people.shape[1]), np.float32), schema, name="auxiliary")
    members = (np.arange(len(people)) < len(people) // 2).astype(np.int64)
    known = Knowledge(auxiliary=auxiliary, candidates=candidates, columns=columns)
    return Release("r", released.astype(np.float32), empirical("")), known, Truth(candidates, members=members)


def test_one_column_with_many_values_does_not_supply_all_predicates() -> None:
    rng = np.random.default_rng(0)
    columns = (CodedColumn("id-like"), CodedColumn("a", 500), CodedColumn("b", 500), CodedColumn("c", 500))
    rows = np.concatenate([rng.random((400, 1)), rng.integers(0, 500, (400, 3))], axis=1)
    release, known, _ = scene(rows, rows, columns)
    predicates = OneColumn(asked=200).guess(release, known)
    said = (predicates[:, :, 0] != ANYTHING[0]).sum(axis=0)
    assert said[0] <= 50 and (said[1:] >= 25).all()


def test_fewer_predicates_than_asked_are_counted_as_they_are() -> None:
    columns = (CodedColumn("sex", 2), CodedColumn("smoker", 2))
    rows = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    release, known, truth = scene(rows, rows, columns)
    outcome = OneColumn(asked=100)(release, known, truth)
    found = next(score for score in outcome.scores if score.metric == "excess")
    assert found.n == 0 and not found.primary and "0 of 100 predicates found" in found.note
    assert found.ci == (-1.0, 1.0)  # nothing is known: neither safe nor leaking


def test_categories_that_only_the_release_has_match_nobody_and_hide_nothing(
    people: list[dict[str, np.ndarray]],
) -> None:
    owner, holdout, _ = people
    invented = np.array([f"never {row}" for row in range(PEOPLE)])
    spoiled = {**owner, "town": np.where(np.arange(PEOPLE) % 2 == 0, invented, owner["town"])}
    found = audited(spoiled, owner, holdout)
    assert found["worst"]["copies"]["leakage"] > 0.4
    assert found["worst"]["membership"]["leakage"] > 0.9
    assert found["worst"]["inference"]["leakage"] > 0.4


def test_noise_instead_of_records_is_not_called_broken_and_does_not_leak(people: list[dict[str, np.ndarray]]) -> None:
    """Rows of a very private mechanism look like nobody: an audit that expects utility would refuse them."""
    owner, holdout, nobody = people
    rng = np.random.default_rng(5)
    noise = {name: rng.permutation(values) for name, values in nobody.items()}
    found = audited(noise, owner, holdout)
    for question in QUESTIONS:
        assert found["worst"][question]["leakage_ci"][0] == 0.0, question


def test_a_predicate_is_true_of_what_it_says() -> None:
    predicates = np.tile(np.array(ANYTHING, dtype=np.float32), (2, 2, 1))
    predicates[0, 0] = (0.2, 0.4)
    predicates[1, 1] = (3.0, 3.0)
    rows = np.array([[0.3, 3.0], [0.5, 3.0], [0.4, 1.0]], dtype=np.float32)
    assert holds(predicates, rows).tolist() == [[True, False, True], [True, True, False]]
    assert alone(holds(predicates, rows)).tolist() == [False, False]


def test_ranks_of_equal_values_are_equal_in_every_part() -> None:
    first, second = common_ranks([np.array([1.0, 5.0, np.nan]), np.array([5.0, 9.0])])
    assert first[1] == second[0] and first[0] < first[1] < second[1] and first[2] == 0.5


def test_copies_of_held_out_people_by_chance_are_subtracted() -> None:
    columns = (CodedColumn("sex", 2), CodedColumn("smoker", 2))
    rows = np.random.default_rng(1).integers(0, 2, (400, 2)).astype(float)
    release, known, truth = scene(rows[:100], rows, columns)
    scores = {score.metric: score for score in ExactCopies()(release, known, truth).scores}
    assert scores["rate"].value == 1.0 and scores["rate-held-out"].value == 1.0
    assert scores["excess"].value == 0.0 and scores["excess"].ci[0] < 0.0 < scores["excess"].ci[1]


def test_a_sure_leak_is_not_hidden_by_an_attack_that_found_more_by_luck() -> None:
    """One in fifteen of the owner's rows is released as it is: equal rows are sure, those of rare people are few."""
    owner, holdout = (made_up_people(300, seed) for seed in (1, 2))
    release = {name: values[:20] for name, values in owner.items()}
    found = audit_release(release, owner=owner, holdout=holdout, effort=replace(QUICK, threats=("copies",)))
    surest = max(score["leakage_ci"][0] for score in found["attacks"] if score["primary"])
    assert surest > 0.02
    worst = found["worst"]["copies"]
    assert worst["leakage_ci"][0] == surest <= worst["leakage"] <= worst["leakage_ci"][1]


def test_of_very_many_columns_some_are_asked_for() -> None:
    columns = tuple(CodedColumn(f"gene {place}") for place in range(1000))
    asked = next(attack for attack in rows_suite(columns) if attack.threat == "inference")
    assert len(set(asked.targets)) == 60 and max(asked.targets) > 900
    named = (*columns, CodedColumn("ill", 2, private=True))
    assert next(attack for attack in rows_suite(named) if attack.threat == "inference").names == ("ill",)


def test_every_attack_has_a_name_of_its_own_and_a_question() -> None:
    suite = rows_suite((CodedColumn("age"), CodedColumn("sex", 2)))
    names = [attack.name for attack in suite]
    assert len(set(names)) == len(names) and {attack.threat for attack in suite} == set(QUESTIONS)
    assert isinstance(suite[1], SeveralColumns)
