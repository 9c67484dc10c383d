"""The budget of a file: sums, caps, runs that go on, and processes that write at once."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.core.errors import DataError, GateFailed
from sfumato.workflow.spent_budget import BudgetLedger, Charge


def one(epsilon: float = 1.0) -> Charge:
    return Charge("fit of synth", "runs/a", epsilon, 1e-5, "person")


@pytest.fixture
def ledger(tmp_path: Path) -> BudgetLedger:
    found = BudgetLedger.of(tmp_path / "people.csv")
    assert found is not None
    return found


def test_the_second_fit_hears_what_the_first_spent(ledger: BudgetLedger) -> None:
    assert ledger.charge(one(1.0)) == []
    (said,) = ledger.charge(one(2.5))
    assert "1 private fit or release before this one spent ε = 1," in said and "has ε = 3.5, δ = 2e-05" in said
    assert ledger.account().epsilon == 3.5


def test_a_run_that_goes_on_is_counted_once(ledger: BudgetLedger) -> None:
    ledger.charge(one(), "salt")
    assert ledger.charge(one(), "salt") == []
    assert ledger.account().epsilon == 1.0


def test_a_cap_stops_what_would_pass_it_and_notes_nothing(ledger: BudgetLedger) -> None:
    ledger.limit(2.0)
    ledger.charge(one(0.7))
    ledger.charge(one(1.3))
    with pytest.raises(GateFailed, match=r"ε = 2 was spent .* would spend 0\.1 more, beyond the cap of 2"):
        ledger.charge(one(0.1))
    assert ledger.account().epsilon == 2.0


def test_a_refused_fit_is_taken_back(ledger: BudgetLedger) -> None:
    ledger.charge(one(), "a")
    ledger.refund("a")
    assert not ledger.file.exists()


def test_the_ledger_is_the_owners_alone_and_holds_no_record(ledger: BudgetLedger) -> None:
    ledger.charge(one())
    assert stat.S_IMODE(ledger.file.stat().st_mode) & 0o077 == 0
    (entry,) = json.loads(ledger.file.read_text())["spent"].values()
    assert set(entry) == {"what", "where", "epsilon", "delta", "unit", "day"}


def test_charges_at_once_are_all_counted(ledger: BudgetLedger) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ledger.charge(one()), range(24)))
    assert ledger.account().epsilon == 24.0


def test_public_data_have_no_budget_unless_a_ledger_is_named(tmp_path: Path) -> None:
    assert BudgetLedger.of("mnist") is None
    assert BudgetLedger.of("mnist", tmp_path / "l.json") is not None


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 1, "cap": null, "spent": {"a": {"x": 1}}}'])
def test_a_damaged_ledger_is_one_clear_sentence(ledger: BudgetLedger, text: str) -> None:
    ledger.file.write_text(text)
    with pytest.raises(DataError, match=r"people\.csv\.budget\.json"):
        ledger.account()
