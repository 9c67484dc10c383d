"""Tables that are unlike a textbook's: the audit neither invents leakage there nor misses copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import audit_release
from sfumato.auditing import SMOKE
from sfumato.testing.made_up_people import made_up_people

PEOPLE = 160
QUICK = replace(SMOKE, suspects=400, predicates=80)
Table = dict[str, np.ndarray]


def binary(seed: int) -> Table:
    """Ten answers of yes or no that depend on each other."""
    rng = np.random.default_rng(seed)
    healthy = rng.random(PEOPLE)
    return {f"q{place}": (rng.random(PEOPLE) < 0.2 + 0.6 * healthy).astype(int) for place in range(10)}


def numeric(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    size = rng.normal(size=PEOPLE)
    return {name: np.round(size + rng.normal(0, 0.5, PEOPLE), 3) for name in "abcdef"}


def duplicated(seed: int) -> Table:
    """Few kinds of people, each of them many times."""
    rng = np.random.default_rng(seed)
    kinds = made_up_people(12, 99)
    rows = rng.integers(0, 12, PEOPLE)
    return {name: values[rows] for name, values in kinds.items() if name != "income"}


def with_constants(seed: int) -> Table:
    return {**made_up_people(PEOPLE, seed), "country": np.full(PEOPLE, "NL"), "unit": np.full(PEOPLE, 3.7)}


def one_column(seed: int) -> Table:
    return {"weight": made_up_people(PEOPLE, seed)["weight"]}


def of_persons(seed: int) -> Table:
    """Four visits of each person, who hardly changes; ``who`` names the people, and nobody is in two files."""
    people = made_up_people(PEOPLE // 4, seed)
    visits = {name: np.repeat(values, 4) for name, values in people.items()}
    visits["weight"] = visits["weight"] + np.random.default_rng(seed).integers(-1, 2, PEOPLE) / 10
    return {**visits, "who": np.repeat([f"p{seed}-{number}" for number in range(PEOPLE // 4)], 4)}


ODD: dict[str, Callable[[int], Table]] = {
    "binary columns alone": binary,
    "numbers alone": numeric,
    "many equal rows": duplicated,
    "columns with one value": with_constants,
    "a single column": one_column,
    "several rows of a person": of_persons,
}


def audited(release: Table, owner: Table, holdout: Table, seed: int = 0) -> dict[str, Any]:
    named = "who" if "who" in owner else None
    return audit_release(release, owner=owner, holdout=holdout, id=named, effort=QUICK, seed=seed)


def ranking(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [score for score in found["attacks"] if score["primary"]]


@pytest.mark.parametrize("case", ODD)
def test_a_release_of_nobody_shows_nothing(case: str) -> None:
    found = audited(*(ODD[case](seed) for seed in (3, 4, 5)))
    scores = ranking(found)
    held = [score["ci"][0] <= 0.0 <= score["ci"][1] for score in scores]
    assert sum(held) >= 0.94 * len(held), [s for s, held in zip(scores, held, strict=True) if not held]
    for question, score in found["worst"].items():
        assert score["leakage"] is None or score["leakage_ci"][0] <= 0.05, question
    for score in found["attacks"]:
        assert score["ci"][0] <= score["value"] <= score["ci"][1]
        assert score["control"] is None or np.isfinite(score["control"])


@pytest.mark.parametrize("case", ODD)
def test_copies_are_found_or_said_not_to_be_gradable(case: str) -> None:
    """Where held-out people have the same rows as members, nobody can be told from them: no leakage is printed."""
    owner, holdout = (ODD[case](seed) for seed in (3, 4))
    release = {name: values[::-1] for name, values in owner.items() if name != "who"}
    found = audited(release, owner, holdout)
    graded = {question: score["leakage"] for question, score in found["worst"].items() if score["leakage"] is not None}
    if case == "many equal rows":
        assert all(score["ci"][0] <= 0.05 for score in ranking(found))
        return
    assert {"membership", "copies"} <= set(graded)
    assert all(leakage >= 0.95 for leakage in graded.values()), graded


def test_what_everybody_shares_is_left_out_and_said() -> None:
    found = audited(*(with_constants(seed) for seed in (3, 4, 5)))
    reasons = {one["attack"]: one["reason"] for one in found["skipped"]}
    assert reasons["column country"] == reasons["column unit"] == "everybody has the same value"
    assert not [score for score in found["attacks"] if score["target"] in ("country", "unit")]


def test_rows_of_one_person_count_once_and_stay_on_one_side() -> None:
    """Otherwise an interval is too narrow, and an attacker knows other visits of the strangers but not of members."""
    found = audited(*(of_persons(seed) for seed in (3, 4, 5)))
    people = PEOPLE // 4
    for score in found["attacks"]:
        if score["threat"] == "membership":
            assert score["n"] == people + people // 2
    exposed = found["exposure"]["membership"]["most_exposed"]
    assert all(one["id"].startswith("p4-") for one in exposed)
    assert len({one["id"] for one in exposed}) == len(exposed)


def test_a_release_that_names_the_owners_people_is_told() -> None:
    owner, holdout, nobody = (of_persons(seed) for seed in (3, 4, 5))
    found = audited({**nobody, "who": owner["who"]}, owner, holdout)
    assert any("'who', with 40 of the owner's 40 people and 0 held-out ones" in note for note in found["notes"])
    assert not any("who" in note for note in audited(nobody, owner, holdout)["notes"])


@pytest.mark.parametrize("cut", ["one file after the other", "at random", "each from one"])
def test_row_numbers_tell_the_files_apart_and_are_left_out(cut: str) -> None:
    tables = [made_up_people(PEOPLE, seed) for seed in (3, 4, 5)]
    numbers = np.arange(2 * PEOPLE)
    if cut == "at random":
        numbers = np.random.default_rng(0).permutation(numbers)
    if cut == "each from one":
        numbers %= PEOPLE
    for table, part in zip(tables, (numbers[:PEOPLE], numbers[PEOPLE:], np.sort(numbers[:PEOPLE])), strict=True):
        table["number"] = part
    found = audited(tables[2], tables[0], tables[1])
    assert any("column number counts rows or people: it is left out" in note for note in found["notes"])
    assert "column number" in {one["attack"] for one in found["skipped"]}
    assert all(score["leakage_ci"][0] <= 0.05 for score in found["worst"].values())


def test_a_release_of_the_held_out_people_leaks_nothing_and_is_told() -> None:
    owner, holdout = (made_up_people(PEOPLE, seed) for seed in (3, 4))
    found = audited(holdout, owner, holdout)
    assert any("were the two exchanged?" in note for note in found["notes"])
    for question, score in found["worst"].items():
        assert score["leakage"] == 0.0 or score["leakage"] is None, question
