"""The audit: repeatable, blind to the truth, the worst attack counts."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.attacks.attribute.probes import KINDS
from sfumato.auditing import CPU, FULL, SMOKE, Audit, Controls, audit
from sfumato.auditing.effort import effort_named
from sfumato.auditing.information_scores import information_scores
from sfumato.auditing.payload_picture import picture
from sfumato.core.dataset import FloatArray, Splits
from sfumato.core.errors import UsageError
from sfumato.data import split
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import TINY


@pytest.fixture(scope="module")
def few(digits: Splits) -> Splits:
    """300 of the digits."""
    return split(digits.owner.take(slice(None, None, 3)), seed=0)


@pytest.fixture(scope="module")
def plain(few: Splits) -> Mechanism:
    return mechanism_class("dnn")(epochs=1).fit(few.owner)


def test_a_sorted_file_does_not_decide_whom_a_search_looks_for(plain: Mechanism, few: Splits) -> None:
    in_order = {name: part.take(np.argsort(part.label("digit"), kind="stable")) for name, part in few.parts.items()}
    effort = replace(TINY, inverted=16, threats=("reconstruction",))
    found = audit(plain, Splits(**in_order), effort=effort).attacks
    base = {s.attack: s.baseline for s in found if s.metric == "mse"}
    all_victims, searched = base["inverse-residual"], base["inverse-encoder"]
    assert all_victims is not None and searched is not None
    assert abs(searched / all_victims - 1) < 0.15, "zeros alone have a third more"


@pytest.fixture(scope="module")
def audited(plain: Mechanism, few: Splits) -> Audit:
    return audit(plain, few, effort=TINY)


def figures(result: Audit) -> list[Any]:
    return [(s.attack, s.target, s.metric, s.value, s.ci, s.baseline) for s in (*result.utility, *result.attacks)]


@pytest.mark.parametrize("name", ["dnn", "noisy"])
def test_an_audit_can_be_repeated(few: Splits, plain: Mechanism, audited: Audit, name: str) -> None:
    if name == "dnn":
        first, mechanism = audited, plain
    else:
        mechanism = mechanism_class(name)(epochs=1).fit(few.owner)
        first = audit(mechanism, few, effort=TINY)
    assert figures(audit(mechanism, few, effort=TINY)) == figures(first)


def test_the_worst_attack_of_each_threat_counts(audited: Audit) -> None:
    errors = [s.value for s in audited.attacks if s.threat == "reconstruction" and s.metric == "mse"]
    assert audited.worst["reconstruction"].value == min(errors)
    rates = [s.value for s in audited.attacks if s.threat == "reidentification"]
    assert audited.worst["reidentification"].value == max(rates)
    assert "attribute:ge5" in audited.worst


def test_every_score_has_an_interval_a_baseline_and_a_count(audited: Audit, few: Splits) -> None:
    for score in (*audited.utility, *audited.attacks):
        assert score.ci[0] <= score.value <= score.ci[1]
        assert score.baseline is not None
        assert score.n in (len(few.victim), TINY.candidates, TINY.inverted, 2 * len(few.victim))  # members, strangers


def test_the_attackers_never_see_what_they_are_scored_on(plain: Mechanism, few: Splits, audited: Audit) -> None:
    shuffled = np.random.default_rng(0).permutation(len(few.victim))
    lied = replace(few.victim, private={"ge5": few.victim.private["ge5"][shuffled]})
    other = audit(plain, replace(few, victim=lied), effort=TINY)
    names = [name for name in audited.gallery if name.startswith("recon/")]
    assert names
    for name in names:
        np.testing.assert_array_equal(other.gallery[name], audited.gallery[name])


def test_shared_controls_change_no_figure(plain: Mechanism, few: Splits, audited: Audit) -> None:
    controls = Controls()
    for _ in range(2):
        shared = audit(plain, few, effort=TINY, controls=controls)
        assert [s.control for s in shared.attacks] == [s.control for s in audited.attacks]


def test_raw_records_are_read_back_perfectly(few: Splits) -> None:
    result = audit(mechanism_class("none")(epochs=1).fit(few.owner), few, effort=TINY)
    assert result.worst["reidentification"].value == 1.0
    assert result.worst["reconstruction"].value < 0.01


@pytest.mark.parametrize("records", [30, 90])
def test_few_records_and_rare_classes_can_be_audited(digits: Splits, records: int) -> None:
    source = digits.owner.take(slice(None, None, len(digits.owner) // records))
    hidden = np.where(np.arange(len(source)) % 3 == 0, np.arange(len(source)) // 3 % 3, 3)
    schema = replace(source.schema, private={"rare": ("a", "b", "c", "d")})
    cut = split(replace(source, schema=schema, private={"rare": hidden}), seed=1)
    result = audit(mechanism_class("none")(epochs=1).fit(cut.owner), cut, effort=TINY)
    probes = [
        s for s in result.attacks if (s.threat, s.target) == ("attribute", "rare") and s.primary and not s.follows
    ]
    assert {s.attack for s in probes} >= {f"probe-{kind}" for kind in KINDS} | {"probe-cnn"}


def test_an_audit_is_plain_json(audited: Audit) -> None:
    found = json.loads(json.dumps(audited.to_json(), allow_nan=False))
    assert set(found) >= {"mechanism", "data", "guarantee", "utility", "attacks", "worst", "confusion", "information"}


def test_the_confusion_is_that_of_the_worst_attack_on_the_label(audited: Audit, few: Splits) -> None:
    worst = audited.worst["attribute:ge5"]
    found = audited.confusion["ge5"]
    assert (found["attack"], found["classes"]) == (worst.attack, ["no", "yes"])
    matrix = np.array(found["matrix"])
    np.testing.assert_array_equal(matrix.sum(axis=1), np.bincount(few.victim.private["ge5"], minlength=2))
    accuracy = next(s for s in audited.attacks if (s.attack, s.metric) == (worst.attack, "accuracy"))
    assert matrix.trace() / matrix.sum() == pytest.approx(accuracy.value)


def test_a_short_payload_is_measured_in_nats_and_a_long_one_is_not(few: Splits, audited: Audit) -> None:
    assert audited.information == ()
    short = mechanism_class("dnn-resized")(epochs=1, noise=0.01, components=4).fit(few.owner)
    result = audit(short, few, effort=TINY, attacks=[])
    assert {s.target: s.better_for_owner for s in result.information} == {"ge5": "lower", "digit": "higher"}
    for score in result.information:
        assert score.baseline is not None and score.baseline < score.value < math.log(10)
        assert not score.primary and score.n == len(few.victim)
    assert result.worst == {}


def test_a_class_with_one_victim_does_not_stop_the_estimate(few: Splits) -> None:
    codes = np.zeros(len(few.victim), dtype=np.int64)
    codes[0] = 1
    codes[30:] = 2
    victim = replace(few.victim, private={"rare": codes}, schema=replace(few.schema, private={"rare": ("a", "b", "c")}))
    payload = np.random.default_rng(0).random((len(victim), 3)).astype(np.float32)
    rare, digit, *corrected = information_scores(payload, victim, seed=0)
    assert [score.target for score in corrected] == [rare.target, digit.target]
    assert (rare.n, digit.n) == (len(victim) - 1, len(victim))
    assert information_scores(payload[:40], victim.take(slice(0, 40)), seed=0) == []


class Seen(mechanism_class("noisy")):  # type: ignore[misc]
    """A receiver looks at the noisy record as it is, clipped."""

    def decode(self, payload: FloatArray) -> FloatArray:
        return payload.clip(0.0, 1.0)


def test_what_a_receiver_would_see_is_in_the_gallery(few: Splits, audited: Audit) -> None:
    assert "decoded" not in audited.gallery
    result = audit(Seen(epochs=1).fit(few.owner), few, effort=TINY, attacks=[])
    np.testing.assert_array_equal(result.gallery["decoded"], result.gallery["release"].clip(0.0, 1.0))


def test_the_picture_has_every_label_to_colour_by(audited: Audit, few: Splits) -> None:
    picture = audited.features
    assert (picture["method"], picture["label"], set(picture["colours"])) == ("pca", "digit", {"digit", "ge5"})
    assert picture["colours"]["digit"] == {"classes": picture["classes"], "codes": picture["labels"]}
    assert len(picture["points"]) == len(few.victim)
    of_digit = np.array([code >= 5 for code in picture["labels"]])
    np.testing.assert_array_equal(picture["colours"]["ge5"]["codes"], of_digit)


def test_the_picture_shows_every_class_of_sorted_victims(few: Splits) -> None:
    many = few.victim.take(np.repeat(np.argsort(few.victim.utility["digit"]), 30))
    shown = picture(many.x, many, "pca", seed=0)
    assert len(shown["points"]) == 600 and set(shown["labels"]) == set(range(10))


def test_umap_puts_payloads_into_a_plane_and_can_be_repeated(few: Splits) -> None:
    payload = few.victim.x.reshape(len(few.victim), -1)
    threads = torch.get_num_threads()
    first, second = (picture(payload, few.victim, "umap", seed=2**40) for _ in range(2))
    assert torch.get_num_threads() == threads
    assert first == second and first["method"] == "umap"
    points = np.array(first["points"])
    assert points.shape == (len(few.victim), 3) and points[:, :2].std() > 0 and not points[:, 2].any()


def test_umap_that_is_not_installed_is_said_before_the_attacks(
    plain: Mechanism, few: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    steps: list[str] = []
    with pytest.raises(UsageError, match=r"pip install 'sfumato\[viz\]'"):
        audit(plain, few, effort=replace(TINY, geometry="umap"), say=steps.append)
    assert steps == []


def test_efforts_have_names() -> None:
    assert [effort_named(name) for name in ("smoke", "cpu", "full")] == [SMOKE, CPU, FULL]
    assert effort_named("smoke", "umap") == replace(SMOKE, geometry="umap")
    with pytest.raises(UsageError, match="'cpu'"):
        effort_named("cpus")
    with pytest.raises(UsageError, match="'umap'"):
        effort_named("cpu", "umpa")
