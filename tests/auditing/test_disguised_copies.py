"""Copies of the owner's rows in disguise are found, and a release of other people is not taken for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import audit_release
from sfumato.auditing import SMOKE
from sfumato.testing.made_up_people import made_up_people

PEOPLE = 240
COPIES = replace(SMOKE, threats=("copies",))
MEMBERS = replace(SMOKE, threats=("membership",), suspects=2 * PEOPLE)


def noisy_copies(table: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    numbers = ("age", "weight", "pressure", "income")
    return table | {name: table[name] + rng.normal(0.0, 1e-9, PEOPLE) for name in numbers}


def half_blank(table: dict[str, Any]) -> dict[str, Any]:
    blank = np.random.default_rng(1).random((len(table), PEOPLE)) < 0.5
    return {
        name: [None if gone else value for gone, value in zip(row, values.tolist(), strict=True)]
        for row, (name, values) in zip(blank, table.items(), strict=True)
    }


def with_units(table: dict[str, Any]) -> dict[str, Any]:
    return table | {name: [f"{value} {name[0]}" for value in table[name]] for name in ("age", "income")}


def among_others(table: dict[str, Any]) -> dict[str, Any]:
    """One owner's row in ten of a release whose other rows are put together from other people's."""
    rng = np.random.default_rng(2)
    others = [made_up_people(PEOPLE, 50 + part) for part in range(9)]
    mixed = [{name: rng.permutation(values) for name, values in one.items()} for one in others]
    return {name: np.concatenate([values, *(one[name] for one in mixed)]) for name, values in table.items()}


def in_other_columns(table: dict[str, Any]) -> dict[str, Any]:
    return {name.title() + " ": table[name] for name in sorted(table)}


DISGUISES = {
    "noise of a billionth": (noisy_copies, 0.9),
    "half of all cells blank": (half_blank, 0.3),
    "units behind the numbers": (with_units, 0.9),
    "nine strangers beside each": (among_others, 0.9),
    "columns in another order with other capitals": (in_other_columns, 0.9),
}


@pytest.mark.parametrize("case", DISGUISES)
def test_disguised_copies_are_found(case: str) -> None:
    disguise, least = DISGUISES[case]
    owner, holdout = (made_up_people(PEOPLE, seed) for seed in (1, 2))
    found = audit_release(disguise(dict(owner)), owner=owner, holdout=holdout, effort=COPIES)
    worst = found["worst"]["copies"]
    assert worst["leakage"] >= least and worst["leakage_ci"][0] > 0.1


def test_one_person_among_strangers_is_the_most_exposed() -> None:
    owner, holdout, nobody = (made_up_people(PEOPLE, seed) for seed in (1, 2, 3))
    release = {name: np.concatenate([nobody[name], np.repeat(owner[name][7:8], 50)]) for name in owner}
    found = audit_release(release, owner=owner, holdout=holdout, effort=COPIES)
    assert found["exposure"]["copies"]["most_exposed"][0]["id"] == "owner, row 8"


def test_noise_around_the_held_out_people_is_told_as_well() -> None:
    owner, holdout = (made_up_people(PEOPLE, seed) for seed in (1, 2))
    found = audit_release(noisy_copies(dict(holdout)), owner=owner, holdout=holdout, effort=MEMBERS)
    assert any("take held-out people for the owner's" in note for note in found["notes"])
    assert found["worst"]["membership"]["leakage"] == 0.0


def test_wide_cells_say_nothing_by_how_they_are_made_narrow() -> None:
    """Components that had seen the held-out people would tell them from the owner's beside a release of nothing."""
    rng = np.random.default_rng(4)
    owner, holdout = ({"x": rng.random((80, 64))} for _ in range(2))
    effort = replace(SMOKE, threats=("membership", "copies"), suspects=160)
    found = audit_release({"x": np.zeros((80, 64))}, owner=owner, holdout=holdout, effort=effort)
    for question in ("membership", "copies"):
        assert found["worst"][question]["leakage_ci"][0] == 0.0, question
        assert found["worst"][question]["leakage"] < 0.35, question
