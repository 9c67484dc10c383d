"""Audits that start at the file: they pass what is sound, and see what goes wrong before, in and after a mechanism."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.auditing.canaries import FILE, NATURAL, WORST, canary_scores, unheard
from sfumato.auditing.effort import Effort
from sfumato.auditing.release_canaries import release_score
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.guarantee import Covers
from sfumato.data import splits
from sfumato.mechanisms.baselines.gaussian_noise import Gaussian
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.privacy.discrete_gaussian import ExactNoise
from sfumato.privacy.query_counter import Records
from sfumato.workflow.fitting import fit_run, neighbour_of, resolve, splits_of

EPSILON = 2.0
QUICK = Effort(draws=10_000, canaries=20)
DOMAIN = """
columns.age = {kind = "numeric", low = 0, high = 9, integer = true}
columns.job = {kind = "categorical", categories = ["a", "b", "c"]}
columns.y = {kind = "categorical", categories = ["n", "y"]}
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 people with one to three rows, and one with a dozen more."""
    folder, rng = tmp_path_factory.mktemp("people"), np.random.default_rng(0)
    whose = [*np.repeat(np.arange(400), rng.integers(1, 4, 400)).tolist(), *[7] * 12]
    rows = [(who, int(rng.integers(0, 9)), "abc"[int(rng.integers(3))], "ny"[int(rng.integers(2))]) for who in whose]
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("who", "age", "job", "y"), *rows])
    (folder / "domain.toml").write_text(DOMAIN)
    return folder


def bounds(people: Path, out: Path, *, id: str | None = None, seed: int = 0) -> dict[str, float]:
    """What canaries show of a `synth` that was fitted from the file."""
    data = {"source": str(people / "people.csv"), "utility": ["y"], "x": ["age", "job"], "id": id}
    data["domain"] = str(people / "domain.toml")
    config = resolve("synth", data, {"epsilon": EPSILON, "steps": 2}, seed=seed)
    parts = splits_of(config)
    mechanism = fit_run(config, out, splits=parts)
    assert isinstance(mechanism, Synth)
    scores = canary_scores(mechanism, parts.owner, QUICK, seed, neighbour_of(config, parts))
    return {score.attack: score.value for score in scores}


@pytest.mark.parametrize("id", [None, "who"])
@pytest.mark.parametrize("seed", [0, 1])
def test_from_the_file_to_the_answers_the_claim_holds(people: Path, tmp_path: Path, id: str | None, seed: int) -> None:
    found = bounds(people, tmp_path / "run", id=id, seed=seed)
    assert all(value < EPSILON for value in found.values()), found
    assert found[FILE] > 0.0 and found[WORST] > 0.2


def test_a_cut_that_one_row_reshuffles_is_seen(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def permuted(keys: Any, shares: Any, seed: int, what: str) -> Any:
        order = np.random.default_rng(seed).permutation(len(keys))
        return np.searchsorted(np.cumsum(shares)[:-1], (order + 0.5) / len(keys)).astype(np.int64)

    monkeypatch.setattr(splits, "placed", permuted)
    found = bounds(people, tmp_path / "run")
    assert found[FILE] > EPSILON > found[WORST], found


def test_people_whose_rows_all_count_are_seen(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = Synth.records

    def unweighed(self: Synth, data: Dataset) -> Records:
        return replace(weighed(self, data), weight=torch.ones(len(data)))

    monkeypatch.setattr(Synth, "records", unweighed)
    found = bounds(people, tmp_path / "run", id="who")
    assert min(found[FILE], found[WORST]) > EPSILON, found


def test_a_generator_that_adds_nothing_is_seen(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactNoise, "whole", lambda _self, values, scale: values)
    found = bounds(people, tmp_path / "run")
    assert min(found[WORST], found[NATURAL], found[FILE]) > EPSILON, found


def test_canaries_hear_every_answer_or_say_how_many(fitted: dict[str, Any]) -> None:
    mechanism = fitted["synth"]
    every = sum(ask.count for ask in mechanism.ledger_.plan)
    assert unheard(mechanism, Effort(questions=every)) is None
    assert unheard(mechanism, Effort(questions=8)) == f"8 of {every} answers are heard at this effort"


@pytest.fixture(scope="module")
def noisy(fitted: Any, parity: Splits) -> Gaussian:
    """`gaussian` with so much noise that its ε is small."""
    fitted["vae"]  # fits it
    return Gaussian(base=str(fitted.folder / "vae"), budget=1e6).fit(parity.owner)


def test_released_records_keep_the_claim_of_gaussian(noisy: Gaussian, parity: Splits) -> None:
    claimed = noisy.guarantee().epsilon
    score = release_score(noisy, parity.victim, 500)
    assert claimed is not None and claimed < 1.0
    assert 0.0 <= score.value <= claimed < score.control  # type: ignore[operator]


def test_labels_that_leave_in_clear_under_a_promise_are_seen(
    noisy: Gaussian, parity: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = noisy.guarantee()
    monkeypatch.setattr(noisy, "guarantee", lambda: replace(sound, covers=Covers(labels=True)))
    assert release_score(noisy, parity.victim, 500).value > 4.0, "every record is told by its label"
