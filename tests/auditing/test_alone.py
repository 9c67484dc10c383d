"""What a party gets alone: from its own records and nobody else's, with the steps that the pool's learner has."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.auditing import Audit, Effort, audit
from sfumato.auditing.alone import ALONE_RAW, ALONE_SHARE, INITIATOR
from sfumato.auditing.task_learning import task_steps
from sfumato.auditing.utility import CLEAN, FRESH
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.schema import Column, Schema
from sfumato.core.score import each_record
from sfumato.mechanisms.ars.mechanism import ARS

NOTHING = Effort(threats=(), averages=(), repeats=0)


def records(rows: int, seed: int, *, first_sees: int = 3, empty: int = 0) -> Dataset:
    """Three classes, each at a place of its own; of every second record the class is below ``first_sees``.

    The first ``empty`` columns say nothing.
    """
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=rows)
    codes[::2] = rng.integers(first_sees, size=len(codes[::2]))
    x = np.clip(np.eye(3)[codes][:, [0, 1, 2, 0, 1, 2]] * 0.6 + rng.uniform(0, 0.3, (rows, 6)), 0, 1)
    x[:, :empty] = rng.uniform(0, 1, (rows, empty))
    columns = tuple(Column(f"c{place}", "numeric") for place in range(6))
    schema = Schema("table", (6,), utility={"class": ("a", "b", "c")}, columns=columns)
    return Dataset(x.astype(np.float32), schema, utility={"class": codes.astype(np.int64)}, name=f"three-{seed}")


def accuracies(found: Audit) -> dict[str, float]:
    return {score.attack: score.value for score in found.utility if score.metric == "accuracy"}


def audited(splits: Splits, **params: object) -> Audit:
    mechanism = ARS(variant="published", latent=8, epsilon=0.1, **params).fit(splits.owner)  # type: ignore[arg-type]
    return audit(mechanism, splits, effort=NOTHING)


@pytest.fixture(scope="module")
def shared() -> Audit:
    """The first of two parties has never seen class c."""
    return audited(Splits(records(400, 1, first_sees=2), records(200, 2), records(300, 3)), parties=2, epochs=4)


def test_party_alone_does_not_know_a_class_that_others_have(shared: Audit) -> None:
    right = accuracies(shared)
    assert right[FRESH] > 0.95
    assert max(right[ALONE_RAW], right[ALONE_SHARE], right[INITIATOR]) < 0.75
    assert right[ALONE_RAW] > 0.6


def test_learners_are_compared_record_by_record(shared: Audit) -> None:
    each = each_record(shared.utility)
    assert {len(each[f"{name}|class|accuracy"]) for name in (FRESH, CLEAN, ALONE_RAW, ALONE_SHARE, INITIATOR)} == {300}
    assert not any(score.primary for score in shared.utility if score.attack in (ALONE_RAW, ALONE_SHARE, INITIATOR))


def test_party_with_columns_reads_its_own_columns_alone() -> None:
    splits = Splits(records(300, 1, empty=3), records(200, 2, empty=3), records(200, 3, empty=3))
    right = accuracies(audited(splits, parties=2, split="columns", epochs=30))
    assert right[FRESH] > 0.9
    assert max(right[ALONE_RAW], right[ALONE_SHARE], right[INITIATOR]) < 0.6


def test_nobody_is_alone_without_others() -> None:
    found = audited(Splits(records(120, 1), records(100, 2), records(100, 3)), parties=1, epochs=2)
    assert set(accuracies(found)) == {FRESH, CLEAN}


def test_few_records_are_passed_over_more_often() -> None:
    assert task_steps(10_000, 4) == 4 * 79
    assert task_steps(100, 4) == 300
