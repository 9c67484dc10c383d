"""Every record in exactly one company, whatever is released in whatever order; decoys from a pool likewise."""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.dataset import Dataset, IntArray, Splits
from sfumato.core.errors import UsageError
from sfumato.core.origin import Origin, hash_rows
from sfumato.core.randomness import Secure
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.device_secret import make_secret
from sfumato.mechanisms.phase.companies import Candidates, Companies, CompanyTerms, companies_of, terms_of
from sfumato.mechanisms.phase.device import encode
from sfumato.mechanisms.phase.keys import turn
from sfumato.mechanisms.phase.mechanism import Phase

SECRET = bytes(range(32))


def crowd(records: list[int] | range) -> Candidates:
    x = np.array(records, dtype=np.float32)[:, None]
    return Candidates(Origin(x).nonces, hash_rows(x))


def arranged(companies: Companies, records: list[int], d: int, pool: list[int] | None = None) -> IntArray:
    """The records in each message."""
    decoys = None if pool is None else crowd(pool)
    with companies.arranged(CompanyTerms(d, "numbers", False), crowd(records), Secure(), decoys) as rows:
        found = np.array([*records, *(pool or [])])[rows]
    return np.asarray(found)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 4), st.lists(st.lists(st.integers(0, 30), unique=True, max_size=25), max_size=8), st.booleans())
def test_any_sequence_of_releases_leaves_every_record_in_one_company(
    d: int, releases: list[list[int]], stored: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key" if stored else None
        _release_all(d, releases, file)


def _release_all(d: int, releases: list[list[int]], file: Path | None) -> None:
    companies = companies_of(SECRET, file)
    company: dict[int, frozenset[int]] = {}
    mates: dict[int, frozenset[int]] = {}
    for wanted in filter(None, releases):
        records = wanted
        if file is not None:
            companies = companies_of(SECRET, file)  # a restart
        known, new = [r for r in records if r in mates], [r for r in records if r not in mates]
        absent = any(mate not in records for record in known for mate in mates[record])
        if absent or 0 < len(new) < d:
            with pytest.raises(UsageError, match=r"not here|cannot hide"):
                arranged(companies, records, d)
            records = [r for r in known if mates[r] <= set(records)]
            if not records:
                continue
        sent = arranged(companies, records, d)
        assert (sent[:, 0] == records).all()
        for row in sent.tolist():
            assert company.setdefault(row[0], frozenset(row)) == frozenset(row) and len(set(row)) == d
        for record in records:  # everybody whose messages hold a record of one's own
            mates.setdefault(record, frozenset(_circle(record, sent)))


def _circle(record: int, sent: IntArray) -> set[int]:
    found, grown = {record}, True
    while grown:
        more = {other for row in sent.tolist() if found & set(row) for other in row}
        found, grown = found | more, not more <= found
    return found


def test_two_processes_never_give_one_record_two_companies(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(2) as workers:
        found = workers.starmap(_tried, [(tmp_path / "key", list(range(n, n + 8))) for n in range(0, 40, 4)])
    company: dict[int, frozenset[int]] = {}
    for row in (row for sent in found for row in sent):
        assert company.setdefault(row[0], frozenset(row)) == frozenset(row)
    assert sum(map(bool, found)) >= 4  # the others were refused: somebody else had given their records a company


def _tried(file: Path, records: list[int]) -> list[list[int]]:
    try:
        return arranged(companies_of(SECRET, file), records, 2).tolist()
    except UsageError:
        return []


def test_another_device_puts_records_into_other_company() -> None:
    one, two = (arranged(companies_of(key * 32, None), list(range(40)), 2).tolist() for key in (b"a", b"b"))
    assert one != two


def test_terms_hold_what_a_refit_may_not_change_and_nothing_that_it_may() -> None:
    x = np.zeros((2, 3), np.float32)
    raw, encoded = Origin(x, contents=hash_rows(x)), Origin(x)
    one, two = (Dataset.from_arrays(np.zeros((2, width), np.float32)).schema for width in (3, 4))
    assert terms_of(2, one, raw) != terms_of(2, two, raw) != terms_of(3, two, raw)
    scaled = Schema("table", (3,), ((0.0, 9.0),), columns=one.columns, x_columns=one.x_columns)
    assert terms_of(2, one, raw) == terms_of(2, scaled, raw)
    assert terms_of(2, one, encoded) != terms_of(2, scaled, encoded)
    assert not terms_of(2, one, raw).named and terms_of(2, one, Origin(x, subjects=np.array(["a", "b"]))).named


# pools


def test_a_used_decoy_is_sent_in_the_company_in_which_it_stood_or_refused() -> None:
    """Finding 4: {A, D} and {D, E} share a line, which gives A and D away."""
    companies = companies_of(SECRET, None)
    pool = list(range(100, 110))
    ((record, decoy),) = arranged(companies, [1], 2, pool).tolist()
    with pytest.raises(UsageError, match="in the company of records that are not here"):
        arranged(companies, [decoy], 2, pool)  # its mate is not in the pool
    sent = arranged(companies, [decoy, record], 2, pool)
    assert sent.tolist() == [[decoy, record], [record, decoy]]
    fresh = arranged(companies, [2, 3, 4], 2, pool)
    assert decoy not in fresh and len(set(fresh[:, 1].tolist())) == 3


def test_a_record_that_hid_in_a_file_never_serves_as_a_decoy() -> None:
    companies = companies_of(SECRET, None)
    arranged(companies, [100, 101], 2)
    sent = arranged(companies, [1, 2], 2, [100, 101, 102, 103])
    assert set(sent[:, 1].tolist()) == {102, 103}
    with pytest.raises(UsageError, match="the pool of decoys is used up"):
        arranged(companies, [3], 2, [100, 101, 102, 103])


def test_copies_in_a_pool_are_one_decoy_and_serve_one_record() -> None:
    """{1, 7} and {2, 7} share a line, whichever of two equal rows of the pool each 7 is."""
    sent = arranged(companies_of(SECRET, None), [1, 2], 2, [7, 7, 7, 8, 1, 1])
    assert set(sent[:, 1].tolist()) == {7, 8}  # and not the pool's second 1
    with pytest.raises(UsageError, match="the pool of decoys is used up"):
        arranged(companies_of(SECRET, None), [1, 2], 2, [7, 7, 7, 1, 1])


@pytest.mark.parametrize("together", [True, False])
def test_a_copy_of_a_used_decoy_serves_nobody_else(together: bool) -> None:
    companies, pool = companies_of(SECRET, None), [7, 7, 8]
    calls = [[1, 2]] if together else [[1], [2]]
    sent = np.concatenate([arranged(companies, call, 2, pool) for call in calls])
    assert set(sent[:, 1].tolist()) == {7, 8}


def test_copies_of_a_record_share_the_decoys_of_a_pool() -> None:
    """{1, 7} and {1, 8} have 1 in common, which is thereby named."""
    companies, pool = companies_of(SECRET, None), [7, 8, 9]
    sent = arranged(companies, [1, 1, 2], 2, pool).tolist()
    assert sent[0] == sent[1] and sent[2][1] not in sent[0]
    assert arranged(companies, [1, 1, 1], 2, pool).tolist() == [sent[0]] * 3
    used = sent[0][1]
    assert arranged(companies, [used, used, 1], 2, pool).tolist() == [sent[0][::-1]] * 2 + [sent[0]]


def test_rows_of_a_release_with_a_pool_say_who_stood_in_each_message(
    fitted: dict[str, Mechanism], parity: Splits
) -> None:
    phase = fitted["phase"]
    assert isinstance(phase, Phase)
    few, pool = parity.victim.take(slice(0, 3)), parity.owner.take(slice(0, 20))
    (sent,) = phase.visits([few], pool=pool, seed=1)
    behind = np.concatenate([few.x, pool.x])[sent.rows]
    features = encode(phase.encoder_, behind.reshape(-1, *few.x.shape[1:]), Secure())
    plain = turn(sent.payload, sent.key, back=True)
    np.testing.assert_allclose(plain, features.reshape(plain.shape), atol=1e-4)


def test_a_device_with_a_pool_keeps_a_used_decoy_in_its_company(
    fitted: dict[str, Mechanism], parity: Splits, tmp_path: Path
) -> None:
    phase = fitted["phase"]
    assert isinstance(phase, Phase)
    make_secret(tmp_path / "key")
    pool, record = parity.owner.x[:9], parity.victim.x[:1]
    message, key = phase.device(secret=tmp_path / "key", pool=pool).encrypt(record)
    decoy = turn(message.features, key.rotations, back=True)[0, 1]
    for used in pool:  # sent later: whoever stood as the decoy stands with the record again, and is refused without it
        device = phase.device(secret=tmp_path / "key", pool=np.concatenate([pool, record]))
        message, key = device.encrypt(used)
        plain = turn(message.features, key.rotations, back=True)[0]
        if np.allclose(plain[0], decoy, atol=1e-4):
            message, key = device.encrypt(record)
            mine = turn(message.features, key.rotations, back=True)[0]
            np.testing.assert_allclose(plain, mine[::-1], atol=1e-4)
            with pytest.raises(UsageError, match="not here"):
                phase.device(secret=tmp_path / "key", pool=pool).encrypt(used)
            return
    raise AssertionError("no record of the pool was the decoy")
