"""One place decides how many threads and processes there are; it changes nothing that is computed."""

from __future__ import annotations

import pytest
import torch
from threadpoolctl import threadpool_info

from sfumato.core import compute
from sfumato.core.errors import UsageError


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "cores", lambda: 4)


def test_small_records_are_worked_on_with_one_thread_and_large_ones_with_all_cores() -> None:
    assert compute.threads_for(28 * 28) == 1
    assert compute.threads_for(3 * 64 * 64) == 4


def test_processes_side_by_side_share_the_cores() -> None:
    with compute.using(compute.one_of(2)):
        assert (compute.threads_for(3 * 64 * 64), compute.threads_for(10)) == (2, 1)
        assert compute.jobs(9) == 1, "a process of a comparison starts no further ones"
    with compute.using(compute.one_of(8)):
        assert compute.threads_for(3 * 64 * 64) == 1


def test_what_was_asked_for_counts() -> None:
    with compute.using(compute.Compute(threads=3, jobs=2)):
        assert (compute.threads_for(10), compute.threads_for(10**6), compute.jobs(9), compute.jobs(1)) == (3, 3, 2, 1)
    assert compute.jobs(9) == 1, "a program that imports sfumato starts no processes unless it asks for them"


def test_threads_are_given_back_after_the_work_and_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), compute.using(compute.Compute(threads=2)), compute.threads(10):
        assert torch.get_num_threads() == 2
        assert {library["num_threads"] for library in threadpool_info()} == {2}, "also those of linear algebra"
        _ = 1 / 0
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"threads": -1}, {"jobs": 0}, {"jobs": 10**6}])
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="give a number from 1 to"):
        compute.Compute(**wrong)
