"""What `synth` promises, whatever its method: the budget is planned, spent once, and all that is spent."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from dp_accounting.pld import PLDAccountant

import sfumato
from sfumato import Synth
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, RuleBroken, UsageError
from sfumato.core.run_folder import RunFolder, read_json, read_tensors, write_tensors_once
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth.smooth_warps import BEND, warped
from sfumato.privacy.discrete_gaussian import ExactNoise, RepeatableNoise
from sfumato.privacy.ledger import Ask, Ledger, calibrated, pld_epsilon
from sfumato.privacy.query_counter import Counter, QueryCounter, Records
from sfumato.workflow import UNAUDITED, fit_run, resolve, sample_run

pytestmark = pytest.mark.xdist_group("test_synth")  # one worker fits the shared run


@pytest.fixture(scope="module")
def digits(small_digits: Splits) -> Splits:
    return small_digits


@pytest.fixture(scope="module")
def spent(digits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on digits, its folder."""
    run = RunFolder.create(tmp_path_factory.mktemp("synth") / "run", {"run": {"mechanism": "synth"}, "data": {}})
    Synth(epsilon=8.0, steps=6).fit(digits.owner, run=run)
    return run.path


def records_of(data: Dataset, label: str) -> Records:
    return Records(torch.from_numpy(np.array(data.x)), torch.from_numpy(np.array(data.utility[label])))


class Twin(Counter):
    """Answers from one data set and keeps by how much the other one's true sums differ, over the sensitivity."""

    def __init__(self, one: Records, other: Records, ledger: Ledger) -> None:
        self.one, self.other, self.ledger = one, other, ledger
        self.moved: dict[str, list[float]] = {}

    def _answer(self, name: str, total: Any, sensitivity: float) -> Any:
        ask = self.ledger.ask(name)
        true = total(self.one)
        self.moved.setdefault(name, []).append(float(np.linalg.norm(true - total(self.other))) / sensitivity)
        return RepeatableNoise(0).add(true, sensitivity, ask.noise)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"mixture asked for {name}")


Twin.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]


def test_one_record_moves_no_answer_by_more_than_its_sensitivity(digits: Splits) -> None:
    synth = Synth(epsilon=2.0, steps=3)
    synth.schema_ = digits.schema
    synth._build(digits.schema)
    whole = records_of(digits.owner.take(slice(0, 600)), "digit")
    white = Records(torch.ones(1, 1, 14, 14), torch.tensor([7]))
    more = Records(torch.cat([whole.x, white.x]), torch.cat([whole.y, white.y]))
    plan = calibrated(synth.method_.plan(600), 2.0, 1e-5)
    twin = Twin(whole, more, Ledger(plan, 2.0, 1e-5))
    synth.method_.learn(twin, no_progress)
    assert set(twin.moved) == {ask.name for ask in plan}
    assert all(0.0 < moved <= 1.0 + 1e-6 for found in twin.moved.values() for moved in found)
    assert twin.ledger.complete


def test_one_record_more_changes_nothing_that_the_answers_do_not_say(digits: Splits, tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "first", {"run": {"mechanism": "synth"}})
    whole = Synth(epsilon=5.0, steps=4).fit(digits.owner.take(slice(1, None)), run=first)
    second = RunFolder.create(tmp_path / "second", {"run": {"mechanism": "synth"}})
    (first.path / "answers").rename(second.path / "answers")
    again = Synth(epsilon=5.0, steps=4).fit(digits.owner, run=second)
    assert all(torch.equal(whole.state()[key], value) for key, value in again.state().items())
    assert whole.sample(20, seed=1).digest == again.sample(20, seed=1).digest


def test_two_fits_draw_other_noise(digits: Splits, spent: Path) -> None:
    first, second = Synth.load(spent).state(), Synth(epsilon=8.0, steps=6).fit(digits.owner).state()
    assert not torch.equal(first["gaussians.mean"], second["gaussians.mean"])


def test_certificate_is_what_dp_accounting_says_of_the_recorded_events(spent: Path) -> None:
    budget = read_json(spent / "budget.json")
    accountant = PLDAccountant()
    for event in budget["events"]:
        accountant.compose(dp_accounting.GaussianDpEvent(event["noise"]), event["count"])
    assert budget["spent"]["epsilon"] == pytest.approx(accountant.get_epsilon(1e-5), abs=1e-3)
    assert budget["spent"]["epsilon"] <= budget["target"]["epsilon"] == 8.0
    assert budget["spent"]["epsilon_rdp"] >= budget["spent"]["epsilon"]
    assert budget["spent"]["epsilon_closed_form"] == pytest.approx(budget["spent"]["epsilon"], abs=1e-3)


def test_ledger_separates_the_parts_and_names_the_relation(spent: Path) -> None:
    budget = read_json(spent / "budget.json")
    assert {event["part"] for event in budget["events"]} == {"axes", "mixture", "teacher"}
    assert all(event["asked"] == event["count"] for event in budget["events"])
    assert budget["relation"] == "add or remove one record" and budget["state"] == "complete"
    assert all(0 < event["epsilon_alone"] < 8.0 for event in budget["events"])


def test_guarantee_is_differential_privacy_with_its_events(spent: Path) -> None:
    guarantee = load_mechanism(spent).guarantee()
    assert guarantee.kind == "dp" and guarantee.epsilon is not None and guarantee.epsilon <= 8.0
    assert guarantee.event is not None and len(guarantee.event["composed"]) == 9


def test_tampered_ledger_is_refused(spent: Path, tmp_path: Path) -> None:
    import json
    import shutil

    shutil.copytree(spent, tmp_path / "run")
    budget = read_json(tmp_path / "run" / "budget.json")
    budget["spent"]["epsilon"] = 0.1
    (tmp_path / "run" / "budget.json").write_text(json.dumps(budget))
    with pytest.raises(DataError, match="which is not what it says"):
        load_mechanism(tmp_path / "run")


class Stopped(Exception):
    pass


def test_interrupted_run_goes_on_without_asking_twice(digits: Splits, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "synth"}})

    def stop(done: int, total: int, _losses: object) -> None:
        if done == 4:
            raise Stopped

    with pytest.raises(Stopped):
        Synth(epsilon=5.0, steps=8).fit(digits.owner, run=run, progress=stop)
    kept = {file.name: file.read_bytes() for file in (run.path / "answers").iterdir()}
    assert read_json(run.path / "budget.json")["state"] == "spending"
    resumed = Synth(epsilon=5.0, steps=8).fit(digits.owner, run=run)
    assert (
        len(list((run.path / "answers").iterdir())) == len(kept) + 4 + 8
    )  # the first teacher's other steps, and the second's
    assert all((run.path / "answers" / name).read_bytes() == content for name, content in kept.items())
    assert resumed.ledger_.complete


def test_interrupted_run_with_another_plan_is_refused(digits: Splits, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "synth"}})

    def stop(*_: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        Synth(epsilon=5.0, steps=8).fit(digits.owner, run=run, progress=stop)
    with pytest.raises(DataError, match="another plan"):
        Synth(epsilon=6.0, steps=8).fit(digits.owner, run=run)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"epsilon": 0.0}, r"epsilon must lie in \(0, 1e\+06\], got 0"),
        ({"epsilon": -1.0}, "epsilon must lie in .* got -1"),
        ({"epsilon": float("nan")}, "epsilon must lie in"),
        ({"delta": 0.0}, "delta must lie in"),
        ({"delta": 1.0}, "delta must lie between 0 and 1"),
        ({"delta": 1e-2}, "not below 1/"),
        ({"delta": 1e-20}, "no ε can be computed at delta 1e-20"),
        ({"method": "gan"}, "method of synth"),
        ({"labels": "secret"}, "unknown labels of synth 'secret'"),
        ({"labels": "noisy"}, "mixture handles labels=data or none"),
        ({"steps": -1}, "steps must lie in"),
        ({"method": "tree"}, "makes table records"),
    ],
)
def test_bad_targets_are_refused_before_anything_is_spent(
    params: dict[str, Any], complaint: str, digits: Splits, tmp_path: Path
) -> None:
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "synth"}})
    with pytest.raises(UsageError, match=complaint):
        Synth(**params).fit(digits.owner, run=run)
    assert not (run.path / "budget.json").exists()


@pytest.mark.parametrize("side", [1, 8, 11, 12])
def test_mixture_is_fitted_to_small_pictures(side: int) -> None:
    y = np.arange(600) % 2
    x = np.random.default_rng(0).random((600, 1, side, side)) * 0.5 + 0.4 * y[:, None, None, None]
    small = Dataset.from_arrays(x, utility={"y": y})
    drawn = Synth(method="mixture", epsilon=20.0, steps=1).fit(small).sample(3)
    assert drawn.x.shape == (3, 1, side, side) and np.isfinite(drawn.x).all()


def test_largest_epsilon_is_counted_in_little_memory() -> None:
    plan = calibrated((Ask("a", "one", 0.4, 3), Ask("b", "other", 0.6, 10)), 1e6, 1e-5)
    assert pld_epsilon(plan, 1e-5) == pytest.approx(1e6, rel=1e-3)


def test_class_that_the_noise_would_hide_is_named(digits: Splits) -> None:
    rows = np.flatnonzero(digits.owner.utility["digit"] != 4)
    few = np.sort(np.concatenate([rows, np.flatnonzero(digits.owner.utility["digit"] == 4)[:3]]))
    with pytest.raises(DataError, match="class digit = 4 has 3 records"):
        Synth(epsilon=1.0).fit(digits.owner.take(few))


def _table(values: np.ndarray[Any, Any], *, declared: bool) -> Dataset:
    columns = (Column("age", "numeric", low=0.0, high=100.0), Column("dose", "numeric", low=0.0, high=9.0))
    schema = Schema("table", (2,), utility={"ill": ("no", "yes")}, columns=columns, declared=declared)
    return Dataset(values.astype(np.float32), schema, {"ill": np.arange(len(values)) % 2}, name="patients")


def test_undeclared_domain_is_refused() -> None:
    values = np.random.default_rng(0).random((400, 2))
    with pytest.raises(DataError, match="Declare them"):
        Synth().fit(_table(values, declared=False))


def test_constant_column_is_named() -> None:
    values = np.random.default_rng(0).random((400, 2))
    values[:, 1] = 0.5
    with pytest.raises(DataError, match="column 'dose' is constant"):
        Synth().fit(_table(values, declared=True))


def test_question_outside_the_plan_is_refused(digits: Splits) -> None:
    plan = calibrated((Ask("part", "planned", 1.0),), 1.0, 1e-5)
    counter = QueryCounter(records_of(digits.owner, "digit"), Ledger(plan, 1.0, 1e-5), noise=RepeatableNoise(0))
    counter.sums("planned", lambda r: torch.ones(len(r), 1), 1.0)
    with pytest.raises(RuleBroken, match="asked once more"):
        counter.sums("planned", lambda r: torch.ones(len(r), 1), 1.0)
    with pytest.raises(RuleBroken, match="not in the plan"):
        counter.sums("another", lambda r: torch.ones(len(r), 1), 1.0)


def test_exact_noise_has_the_promised_deviation() -> None:
    noise = ExactNoise().add(np.full(20_000, 3.0), 2.0, 1.5)
    assert noise.mean() == pytest.approx(3.0, abs=0.1)
    assert noise.std() == pytest.approx(3.0, rel=0.03)


def test_second_moments_come_back_whole_without_noise(digits: Splits) -> None:
    records = records_of(digits.owner.take(slice(0, 300)), "digit")
    plan = (Ask("part", "moment", 1.0, noise=1e-8),)
    counter = QueryCounter(records, Ledger(plan, 1.0, 1e-5), noise=RepeatableNoise(0))
    rows = records.x.flatten(1)[:, 300:310].double() / 4.0
    found = counter.moments("moment", lambda r: r.x.flatten(1)[:, 300:310] / 4.0, 1.0, groups=lambda r: r.y, size=10)
    for digit in range(10):
        inside = rows[records.y == digit]
        assert np.allclose(found[digit], inside.T @ inside, atol=1e-5)


def test_drawn_records_have_shape_range_and_asked_class(spent: Path) -> None:
    synth = load_mechanism(spent)
    assert isinstance(synth, Synth)
    drawn = synth.sample(300, seed=2)
    assert drawn.x.shape == (300, 1, 14, 14) and drawn.x.min() >= 0.0 and drawn.x.max() <= 1.0
    assert len(np.unique(drawn.utility["digit"])) >= 8
    assert (synth.sample(7, given={"digit": "3"}, seed=2).utility["digit"] == 3).all()
    with pytest.raises(UsageError, match="class of 'digit'"):
        synth.sample(1, given={"digit": "eleven"})
    with pytest.raises(UsageError, match="label of this run"):
        synth.sample(1, given={"colour": "red"})


def test_several_labels_are_learnt_together() -> None:
    splits = sfumato.load_splits("digits", utility=["odd", "circle"], limit=2500)
    synth = Synth(epsilon=20.0, steps=4).fit(splits.owner)
    drawn = synth.sample(100, given={"odd": "yes"}, seed=0)
    assert set(drawn.utility) == {"odd", "circle"} and (drawn.utility["odd"] == 1).all()


def test_label_free_run_releases_no_labels(digits: Splits) -> None:
    bare = replace(digits.owner, utility={}, schema=replace(digits.schema, utility={}))
    synth = Synth(epsilon=5.0, labels="none").fit(bare)
    assert synth.sample(5, seed=0).utility == {}
    assert "teacher" not in synth._modules()
    with pytest.raises(UsageError, match="no labels"):
        synth.sample(1, given={"digit": "3"})


def test_students_of_drawn_digits_read_real_ones(digits: Splits) -> None:
    from sklearn.linear_model import LogisticRegression

    drawn = Synth(epsilon=50.0, steps=10).fit(digits.owner).sample(2000, seed=0)
    student = LogisticRegression(max_iter=60).fit(drawn.x.reshape(2000, -1), drawn.utility["digit"])
    victim = digits.victim
    assert student.score(victim.x.reshape(len(victim), -1), victim.utility["digit"]) > 0.6


def test_release_is_parquet_in_the_original_columns(spent: Path, tmp_path: Path) -> None:
    card = sample_run(spent, 40, tmp_path / "out", warrant=UNAUDITED)
    table = pq.read_table(tmp_path / "out" / "release.parquet")
    assert table.column_names == ["image", "digit"] and table.num_rows == 40
    assert card["guarantee"]["kind"] == "dp" and card["budget"]["spent"]["epsilon"] <= 8.0
    again = sfumato.load(tmp_path / "out" / "release.parquet", utility=["digit"])
    assert again.x.shape == (40, 1, 14, 14)


def test_release_as_png_files_is_a_folder_that_loads(spent: Path, tmp_path: Path) -> None:
    sample_run(spent, 6, tmp_path / "out", given={"digit": "3"}, pictures=True, warrant=UNAUDITED)
    rows = list(csv.DictReader((tmp_path / "out" / "labels.csv").open()))
    assert [row["digit"] for row in rows] == ["3"] * 6
    assert len(list((tmp_path / "out").glob("*.png"))) == 6


def test_no_seed_of_noise_is_stored(spent: Path) -> None:
    assert "seed" not in (spent / "budget.json").read_text()
    stored = read_json(spent / "mechanism.json")["params"]
    assert set(stored) == {"method", "epsilon", "delta", "labels", "steps", "per_person", "bend", "seed"}


@pytest.mark.parametrize("records", [1500, 400])  # of the few every one is in every sample
def test_refused_resume_of_a_run_on_samples_keeps_its_ledger(records: int, tmp_path: Path) -> None:
    params = {"method": "dpsgd-gan", "epsilon": 5.0, "labels": "none", "steps": 3}
    config = resolve("synth", {"source": "digits", "utility": ["digit"]}, params, seed=0)
    splits = sfumato.load_splits("digits", utility=["digit"], limit=records)

    def stop(*_: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        fit_run(config, tmp_path / "run", splits=splits, progress=stop)
    ledger = (tmp_path / "run" / "budget.json").read_text()
    with pytest.raises(DataError, match="was interrupted while it spent its budget"):
        fit_run(config, tmp_path / "run", resume=True, splits=splits)
    assert (tmp_path / "run" / "budget.json").read_text() == ledger


def test_an_answer_that_another_process_kept_first_is_the_answer(tmp_path: Path) -> None:
    assert write_tensors_once(tmp_path / "0000.safetensors", {"a": torch.zeros(2)})
    assert not write_tensors_once(tmp_path / "0000.safetensors", {"a": torch.ones(2)})
    assert read_tensors(tmp_path / "0000.safetensors")["a"].tolist() == [0.0, 0.0]
    assert [file.name for file in tmp_path.iterdir()] == ["0000.safetensors"]


def test_bends_keep_a_picture_a_picture_and_need_no_record() -> None:
    pictures = torch.rand(20, 3, 12, 10, generator=torch.Generator().manual_seed(0))
    bent, again, still = (warped(pictures, torch.Generator().manual_seed(1), bend) for bend in (BEND, BEND, 0.0))
    assert bent.shape == pictures.shape and float(bent.min()) >= 0.0 and float(bent.max()) <= 1.0
    assert torch.equal(bent, again) and torch.allclose(still, pictures, atol=1e-5)
    assert 0.01 < float((bent - pictures).abs().mean()) < 0.3


def test_a_run_that_spent_its_budget_draws_straight_pictures_too(spent: Path) -> None:
    bent, straight = Synth.load(spent), Synth.load(spent, bend=0.0)
    assert straight.spent_ == bent.spent_
    x = straight.sample(50, seed=3).x
    method = straight.method_
    drawn, _ = method.gaussians.draw(50, torch.Generator().manual_seed(3))
    assert np.array_equal(x, method.tones.shown(drawn).numpy())
    assert np.abs(bent.sample(50, seed=3).x - x).mean() > 0.01
    with pytest.raises(UsageError, match="bend must lie in"):
        Synth(bend=-1.0)._check_params()
