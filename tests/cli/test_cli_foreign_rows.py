"""``audit --release --owner``: what is missing or too much is said in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.foreign_audit import release_alone
from sfumato.core.errors import UsageError

RELEASE = [Path("r.csv")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"--owner": "a.csv"}, "--owner needs --holdout FILE: people who were not used"),
        ({"--holdout": "a.csv"}, "--holdout needs --owner FILE"),
        ({}, "say which records the release was made of"),
        ({"--owner": "a.csv", "--holdout": "b.csv", "--records": "c.npz"}, "--records goes with"),
    ],
)
def test_a_wrong_call_is_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        release_alone(given, RELEASE, [], again=False, student=None)


def test_a_run_and_a_release_are_not_audited_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either a run or a release"):
        release_alone({"--owner": "a.csv", "--holdout": "b.csv"}, RELEASE, [tmp_path], again=False, student=None)


def test_owner_and_holdout_are_enough_and_no_releases() -> None:
    given = {"--owner": "a.csv", "--holdout": "b.csv", "--private": ["x"]}
    assert release_alone(given, RELEASE, [], again=False, student=None) == RELEASE
    typed = [Path("a.csv"), Path("b.csv"), Path("s.csv")]
    assert release_alone(given, RELEASE, typed, again=False, student=None) == [*RELEASE, Path("s.csv")]
