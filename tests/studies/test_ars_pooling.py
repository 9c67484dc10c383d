"""Table 1 and the studies of pooling: figures that follow from which records are right, checked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato
from sfumato.core.errors import RuleBroken, UsageError
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.studies.ars_bytes import Step, bytes_ratio
from sfumato.studies.ars_pooling import PARTIES, gains, skewed_rows
from sfumato.studies.right_rows import accuracy_row, less_row


def right(hits: int, n: int = 1000) -> np.ndarray:
    return np.arange(n) < hits


def test_bytes_are_compared_at_the_first_round_that_is_as_accurate() -> None:
    theirs = [Step(2_000_000, right(900)), Step(4_000_000, right(951)), Step(6_000_000, right(990))]
    value, (low, high) = bytes_ratio(Step(3_000_000, right(950)), theirs)
    assert value == pytest.approx(3 / 4)
    assert low == pytest.approx(3 / 6) and high == pytest.approx(3 / 4)  # round 2 is not surely as accurate
    behind, _ = bytes_ratio(Step(3_000_000, right(995)), theirs)
    assert behind == pytest.approx(3 / 6)


def test_a_difference_is_over_the_same_records() -> None:
    row = less_row("a", right(600), right(500))
    assert row.ours == pytest.approx(0.1) and row.ci is not None
    assert 0.08 < row.ci[0] < 0.1 < row.ci[1] < 0.12 and row.n == 1000
    assert accuracy_row("a", right(600)).ours == pytest.approx(0.6)
    with pytest.raises(RuleBroken, match="same records"):
        less_row("a", right(5), right(5, 10))


def test_a_pool_is_compared_with_the_best_party_alone_and_the_initiator_on_its_own() -> None:
    found = {"party 0 alone, raw": right(800), "party 1 alone, raw": right(850), "FedAvg": right(870)}
    for way, pool in (("initiator's encoder", 880), ("encoder of all", 920), ("published, ε = 1", 820)):
        found |= {f"{way}: pool": right(pool), f"{way}: initiator's share only": right(879)}
    rows = {row.name: row for row in gains("50", found, 0.1)}
    assert rows["50: pool, encoder of all, less the best party alone on raw records"].ours == pytest.approx(0.07)
    assert rows["50: pool, initiator's encoder, less the initiator on its own"].ours == pytest.approx(0.001)
    asked = rows["50: pool, published, ε = 1, less the best party alone on raw records"].asked
    assert asked is not None and asked.claim == "ars-more-data"
    assert rows["50: pool, encoder of all, less FedAvg"].asked is None


def test_skewed_parties_of_a_study_share_all_records_once() -> None:
    data = sfumato.load("digits", utility=["digit"], private=[], limit=400)
    rows = skewed_rows(data, "classes=2", len(data), 0)
    together = np.concatenate(rows)
    assert len(rows) == PARTIES and len(set(together.tolist())) == len(together) == len(data)


def test_an_encoder_of_all_parties_learns_from_the_others_labels() -> None:
    data = sfumato.load("digits", utility=["digit"], private=[], limit=600)
    few = {"parties": 2, "epochs": 3, "batch": 32, "latent": 8}
    rows = [np.arange(0, 300), np.arange(300, len(data))]
    first = ARS(together=True, **few).fit_parties(data, rows)
    codes = dict(data.utility)
    codes["digit"] = np.concatenate([codes["digit"][:300], codes["digit"][300:][::-1]])
    other = replace(data, utility=codes)
    for together, same in ((True, False), (False, True)):
        a, b = (ARS(together=together, **few).fit_parties(d, rows).publish().digest for d in (data, other))
        assert (a == b) is same
    assert "together" not in first.publish().params
    with pytest.raises(UsageError, match="variant=hardened"):
        ARS(together=True, variant="published").fit(data)
    with pytest.raises(UsageError, match="rows of each"):
        ARS(parties=3).fit_parties(data, rows)
