"""A release carries the promise of that release, and the labels that its promise allows."""

from __future__ import annotations

import pytest

from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.mechanisms.base import Mechanism


def test_labels_stay_where_a_proven_promise_leaves_them_out(fitted: dict[str, Mechanism], parity: Splits) -> None:
    release = fitted["gaussian"].release(parity.victim)
    assert release.guarantee.kind == "dp" and not release.utility
    asked = fitted["gaussian"].release(parity.victim, labels=True)
    assert set(asked.utility) == {"odd"} and asked.guarantee.in_clear == ("odd",)
    assert set(fitted["dnn"].release(parity.victim).utility) == {"odd"}
    assert not fitted["dnn"].release(parity.victim, labels=False).utility


def test_noise_from_a_seed_is_not_promised_to_hide_anything(fitted: dict[str, Mechanism], parity: Splits) -> None:
    few = parity.victim.take(slice(0, 8))
    for name in ("gaussian", "phase"):
        left = fitted[name].release(few, seed=1).guarantee
        assert left.kind == "empirical" and set(left.broken()) == {"secure-noise"}
        assert fitted[name].release(few).guarantee.proven
    with pytest.raises(UsageError, match="hides the label"):
        fitted["phase"].release(few, labels=True)


def test_synthetic_records_have_their_labels_inside_the_promise(fitted: dict[str, Mechanism], parity: Splits) -> None:
    promised = fitted["synth"].guarantee()
    assert promised.covers.labels and promised.covers.count and promised.covers.repeats and not promised.covers.later
    assert [condition.name for condition in promised.conditions if condition.checked] == ["ledger"]
    release = fitted["synth"].release(parity.victim, seed=1)
    assert release.guarantee.proven and set(release.utility) == {"odd"} and not release.guarantee.covers.count
