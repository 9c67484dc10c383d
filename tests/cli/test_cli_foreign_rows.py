"""``audit --release --owner``: what is missing or too much is said in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.foreign_audit import release_alone
from sfumato.core.errors import UsageError


@pytest.mark.parametrize(
    ("given", "run", "said"),
    [
        ({"--owner": "a.csv"}, None, "--owner needs --holdout FILE: people who were not used"),
        ({"--holdout": "a.csv"}, None, "--holdout needs --owner FILE"),
        ({}, None, "say which records the release was made of"),
        ({"--owner": "a.csv", "--holdout": "b.csv", "--records": "c.npz"}, None, "--records goes with"),
        ({"--owner": "a.csv", "--holdout": "b.csv"}, Path("runs/x"), "either a run or a release"),
    ],
)
def test_a_wrong_call_is_one_sentence(given: dict[str, Any], run: Path | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        release_alone(given, run, again=False, student=None)


def test_owner_and_holdout_are_enough() -> None:
    given = {"--owner": "a.csv", "--holdout": "b.csv", "--private": ["x"]}
    release_alone(given, None, again=False, student=None)
    with pytest.raises(UsageError):
        release_alone({**given, "--holdout": None}, None, again=False, student=None)
