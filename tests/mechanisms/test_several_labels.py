"""Several utility labels at once: every network reads all of them, and one label alone is as it always was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from sfumato.auditing import CPU, SMOKE
from sfumato.auditing.controls import Controls
from sfumato.auditing.plans.rotations import RotationsPlan
from sfumato.auditing.staging import plans_for, scene_of
from sfumato.auditing.trials import carry_out, trials
from sfumato.auditing.utility import MEAN_ACCURACY, OWN, utility_scores
from sfumato.auditing.wrong_key import wrong_key
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.randomness import Seeded
from sfumato.core.schema import Schema
from sfumato.core.score import worst_by_threat
from sfumato.data import load_splits
from sfumato.mechanisms import load_mechanism, mechanism_class
from sfumato.mechanisms.phase.keys import draw_keys, turn
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.mechanisms.utility_task import UtilityTask

FEW: dict[str, Any] = {"epochs": 4, "batch": 32}


@pytest.fixture(scope="module")
def three() -> Splits:
    """Labels of 2, 10 and 2 classes."""
    return load_splits("digits", utility=["odd", "digit", "circle"], private=[], limit=1500, seed=0)


@pytest.fixture(scope="module")
def phase(three: Splits) -> Phase:
    return Phase(epochs=8, batch=32).fit(three.owner)


def made(name: str, **params: Any) -> Any:
    return mechanism_class(name)(**params)


def test_loss_is_the_sum_of_the_cross_entropies_and_of_one_label_just_that() -> None:
    scores = torch.tensor([[1.0, 0.0, 0.2, -1.0, 2.0], [0.0, 3.0, 0.0, 0.0, 0.0]])
    codes = torch.tensor([[0, 2], [1, 0]])
    both = UtilityTask(("a", "b"), (2, 3)).loss(scores, codes)
    by_hand = F.cross_entropy(scores[:, :2], codes[:, 0]) + F.cross_entropy(scores[:, 2:], codes[:, 1])
    assert torch.equal(both, by_hand)
    assert torch.equal(UtilityTask(("a",), (5,)).loss(scores, codes[:, 1:]), F.cross_entropy(scores, codes[:, 1]))


@pytest.mark.parametrize("name", ["ran", "dnn", "dnn-resized", "split", "split-noisy", "phase"])
def test_one_label_trains_as_if_there_were_no_others(
    name: str, parity: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = parity.owner.take(slice(0, 150))
    now = made(name, epochs=1).fit(few).state()
    monkeypatch.setattr(UtilityTask, "loss", lambda _self, scores, codes: F.cross_entropy(scores, codes[:, 0]))
    monkeypatch.setattr(UtilityTask, "width", 2)
    before = made(name, epochs=1).fit(few).state()
    assert all(torch.equal(now[key], before[key]) for key in before)


@pytest.mark.parametrize("name", ["ran", "dnn", "dnn-resized", "split", "split-extra", "split-noisy", "none"])
def test_every_network_reads_every_label(name: str, three: Splits, tmp_path: Path) -> None:
    fitted = made(name, **FEW).fit(three.owner)
    payload = fitted.release(three.victim, seed=0).payload
    read = three.schema.by_label(fitted.predict(payload))
    assert [part.shape[1] for part in read.values()] == [2, 10, 2]
    right = (read["digit"].argmax(1) == three.victim.utility["digit"]).mean()
    assert right > 0.2, "the second label was not learnt"
    fitted.save(tmp_path / "run")
    again: Any = load_mechanism(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(payload), fitted.predict(payload))


def test_right_key_reads_all_labels_and_a_wrong_one_none(phase: Phase, three: Splits) -> None:
    few = three.victim.take(slice(0, 200))
    sent = phase.opened(few, seed=1)
    still = np.tile(np.eye(2, dtype=np.float32), (len(few), 1, 1))
    plain = type(sent)(turn(sent.payload, sent.key, back=True), still, sent.rows)
    same = np.isclose(phase.read(sent), phase.read(plain), atol=1e-3).all(axis=1)
    assert same.mean() > 0.95  # two units of nearly one norm may swap in a max-pool
    wrong = phase.read(sent, draw_keys(Seeded(5), len(few), 2, reflections=True))
    for label, part in three.schema.by_label(phase.read(sent)).items():
        truth = few.utility[label]
        right = (part.argmax(1) == truth).mean()
        assert right > np.bincount(truth).max() / len(truth) + 0.05, label
        assert (three.schema.by_label(wrong)[label].argmax(1) == truth).mean() < right - 0.08, label


def test_device_and_cloud_answer_for_all_labels(phase: Phase, three: Splits) -> None:
    device, cloud = phase.device(), phase.cloud()
    message, key = device.encrypt(three.victim.x[:40])
    assert device.decrypt(cloud(message), key).shape == (40, 14)


def test_every_key_is_worth_something_for_every_label_and_on_average(phase: Phase, three: Splits) -> None:
    worth = wrong_key(phase, three.victim, 0)
    assert list(worth["labels"]) == ["odd", "digit", "circle"]
    assert {key: worth[key] for key in worth["labels"]["odd"]} == worth["labels"]["odd"]  # the first one ranks
    for label, read in worth["labels"].items():
        assert read["curve"][0]["accuracy"] > read["uniform"]["accuracy"] + 0.08, label
    first = [read["curve"][0]["accuracy"] for read in worth["labels"].values()]
    assert worth["mean"]["curve"][0]["accuracy"] == pytest.approx(np.mean(first))
    low, high = worth["mean"]["curve"][0]["ci"]
    assert low < np.mean(first) < high
    alone = [part["chance"] for part in worth["labels"].values()]
    assert worth["mean"]["chance"] == pytest.approx(np.mean(alone))


def test_what_the_cloud_learns_is_scored_for_every_label(phase: Phase, three: Splits) -> None:
    scene = scene_of(phase, three, SMOKE, 0, Controls())
    plans = plans_for(phase, scene)
    rotations = next(plan for plan in plans if isinstance(plan, RotationsPlan))
    linear = [attack for attack in rotations.attacks() if attack.name == "label-cloud-linear"]
    found = carry_out(trials(plans, linear), phase.name, lambda _: None)
    read = [s for s in found.scores if s.attack == "label-cloud-linear" and s.metric == "accuracy"]
    assert [score.target for score in read] == ["odd", "digit", "circle"]
    assert all(score.value > score.baseline for score in read)
    assert set(worst_by_threat(found.scores)) == {f"result:{label}" for label in three.schema.utility}


def test_audit_scores_every_label_the_first_one_first_and_their_mean(phase: Phase, three: Splits) -> None:
    scene = scene_of(phase, three, CPU, 0, Controls())
    scores = utility_scores(phase, scene, lambda _: None)
    accuracies = [score for score in scores if score.metric == "accuracy"]
    assert [score.target for score in accuracies] == ["odd", "digit", "circle"]
    assert next(score for score in scores if score.primary).target == "odd"
    (mean,) = [score for score in scores if score.metric == MEAN_ACCURACY]
    assert (mean.attack, mean.target, mean.primary) == (OWN, None, False)
    assert mean.value == pytest.approx(np.mean([score.value for score in accuracies]))
    assert mean.each is not None and mean.each.shape == (len(three.victim),)
    assert set(np.round(mean.each * 3).astype(int)) <= {0, 1, 2, 3}


def test_run_from_before_several_labels_is_read_with_the_first(three: Splits, tmp_path: Path) -> None:
    alone = load_splits("digits", utility=["odd"], private=[], limit=900, seed=0)
    fitted = made("ran", epochs=1).fit(alone.owner)
    fitted.save(tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "mechanism.json").read_text())
    stored.pop("labels")
    (tmp_path / "run" / "mechanism.json").write_text(json.dumps(stored))
    (tmp_path / "run" / "schema.json").write_text(json.dumps(three.schema.to_json()))
    old: Any = load_mechanism(tmp_path / "run")
    scores = old.predict(old.release(three.victim, seed=0).payload)
    assert list(three.schema.by_label(scores)) == ["odd"]


def test_scores_that_fit_no_label_are_refused(tiny: Dataset) -> None:
    schema = Schema("image", (1, 4, 4), utility={"a": ("n", "y"), "b": ("n", "y", "?")})
    with pytest.raises(RuleBroken, match="4 class scores"):
        schema.by_label(np.zeros((2, 4), np.float32))


def test_interrupted_training_of_the_critic_goes_on_as_if_it_had_never_stopped(parity: Splits, tmp_path: Path) -> None:
    from sfumato.core.run_folder import RunFolder

    few = parity.owner.take(slice(0, 200))
    params: dict[str, Any] = {"variant": "published", "keyed": False, "epochs": 3}
    whole = Phase(**params).fit(few).state()
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "phase"}})

    def stop(done: int, _total: int, _losses: object) -> None:
        if done == 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Phase(**params).fit(few, run=run, progress=stop)
    resumed = Phase(**params).fit(few, run=run).state()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)
