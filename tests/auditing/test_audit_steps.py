"""The steps of an audit need nothing of each other: their figures are the same in any order and in any process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sfumato.attacks import decoder_training
from sfumato.attacks.reconstruction import inverse_network
from sfumato.auditing.auditor import audit_steps
from sfumato.auditing.steps import AuditSteps
from sfumato.auditing.trials import Found
from sfumato.core.dataset import Splits
from sfumato.core.fresh_seeds import FreshSeeds, asking
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import TINY

EFFORT = replace(TINY, threats=("reconstruction", "attribute", "reidentification"), shadow_passes=0)


@pytest.fixture
def steps(fitted: dict[str, Mechanism], parity: Splits) -> AuditSteps:
    return audit_steps(fitted["noisy"], parity, effort=EFFORT)


def quiet(_: str) -> None:
    pass


def figures(found: Found) -> list[tuple[str, str, float, float | None]]:
    return [(s.attack, s.metric, s.value, s.control) for s in (*found.useful, *found.scores, *found.repeated)]


def test_what_is_asked_depends_on_who_asks_and_not_on_who_asked_before() -> None:
    fresh = FreshSeeds(7)
    with asking("first"):
        first = [fresh(), fresh()]
        with asking("second"):
            second = [fresh(), fresh()]
        assert fresh() not in (*first, *second)
    with asking("second"):
        assert [fresh(), fresh()] == second
    assert len({*first, *second}) == 4


def test_a_step_finds_the_same_alone_and_after_all_others(steps: AuditSteps, fitted, parity) -> None:
    every = range(len(steps.every))
    found = steps.do(every, quiet)
    other = audit_steps(fitted["noisy"], parity, effort=EFFORT)
    again = other.do(reversed(every), quiet)
    for number in every:
        assert figures(again[number]) == figures(found[number]), steps.every[number].name


def test_attacks_that_share_a_decoder_stay_together_and_every_step_is_done_once(steps: AuditSteps) -> None:
    groups = steps.together()
    assert sorted(number for group in groups for number in group) == list(range(len(steps.every)))
    names = [{steps.every[number].name.partition("|")[0] for number in group} for group in groups]
    decoding = next(group for group in names if "inverse-residual" in group)
    assert {"inverse-encoder", "inverse-latent", "reid-decode"} <= decoding
    assert {"probe-linear"} in names, "probes share their questions only"
    slow = [steps.every[group[0]].slow or bool(steps.every[group[0]].learners) for group in groups]
    assert slow == sorted(slow, reverse=True), "what trains for long begins first"


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    trained: list[int] = []
    fit = decoder_training.fit_decoder

    def fit_and_count(*args, seed: int, **more):
        trained.append(seed)
        return fit(*args, seed=seed, **more)

    with monkeypatch.context() as patch:
        patch.setattr(inverse_network, "fit_decoder", fit_and_count)
        yield trained


def test_no_decoder_of_a_group_is_trained_twice(steps: AuditSteps, monkeypatch: pytest.MonkeyPatch) -> None:
    group = next(g for g in steps.together() if any("inverse-residual|" in steps.every[n].name for n in g))
    with counted(monkeypatch) as trained:
        steps.do(group, quiet)
    assert len(trained) == 2, "one for the release, one for the undefended control"
