"""What every mechanism promises, whatever it does inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.runs import RunFolder
from sfumato.mechanisms import load_mechanism, mechanism_class, names
from sfumato.mechanisms.base import Mechanism

every = pytest.mark.parametrize("name", names())


@every
def test_constructor_stores_parameters_unchanged(name: str) -> None:
    cls = mechanism_class(name)
    assert cls().get_params() == cls.parameters()
    assert cls.name == name
    assert cls(seed=7).get_params()["seed"] == 7


@every
def test_knob_is_a_parameter(name: str) -> None:
    cls = mechanism_class(name)
    assert cls.knob is None or cls.knob in cls.parameters()


@every
def test_release_holds_no_private_column(name: str, fitted: dict[str, Mechanism], digits: Splits) -> None:
    release = fitted[name].release(digits.victim, seed=0)
    assert set(release.utility) == {"digit"}
    assert len(release) == len(digits.victim)
    assert np.isfinite(release.payload).all()


@every
def test_release_is_not_the_record(name: str, fitted: dict[str, Mechanism], digits: Splits) -> None:
    payload = fitted[name].release(digits.victim, seed=0).payload
    raw = payload.shape == digits.victim.x.shape and bool((payload == digits.victim.x).all())
    assert raw == fitted[name].releases_raw == (name == "none")


@every
def test_same_seed_gives_the_same_release_and_no_seed_a_fresh_one(
    name: str, fitted: dict[str, Mechanism], digits: Splits
) -> None:
    mechanism = fitted[name]
    assert mechanism.release(digits.victim, seed=5).digest == mechanism.release(digits.victim, seed=5).digest
    fresh = mechanism.release(digits.victim).digest != mechanism.release(digits.victim).digest
    assert fresh == mechanism.randomised


@every
def test_arrays_and_tensors_are_accepted_alike(name: str, fitted: dict[str, Mechanism], digits: Splits) -> None:
    x = digits.victim.x[:5]
    assert (fitted[name].transform(x, seed=1) == fitted[name].transform(torch.from_numpy(x.copy()), seed=1)).all()


@every
def test_saved_mechanism_releases_the_same(
    name: str, fitted: dict[str, Mechanism], digits: Splits, tmp_path: Path
) -> None:
    fitted[name].save(tmp_path)
    again = load_mechanism(tmp_path)
    assert again.get_params() == fitted[name].get_params()
    assert again.release(digits.victim, seed=3).digest == fitted[name].release(digits.victim, seed=3).digest
    assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("*.pt"))


@every
def test_fit_is_repeatable(name: str, digits: Splits) -> None:
    small = digits.owner.take(slice(0, 200))
    first, second = (mechanism_class(name)(epochs=1).fit(small).state() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


@every
def test_unfitted_mechanism_refuses_to_release(name: str, digits: Splits) -> None:
    with pytest.raises(UsageError, match="not fitted"):
        mechanism_class(name)().release(digits.victim)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
def test_bad_record_is_named(name: str, bad: float, fitted: dict[str, Mechanism], digits: Splits) -> None:
    x = digits.victim.x[:4].copy()
    x[2, 0, 3, 3] = bad
    with pytest.raises(DataError, match="record 2"):
        fitted[name].transform(x)


@every
def test_record_of_another_size_is_refused(name: str, fitted: dict[str, Mechanism]) -> None:
    with pytest.raises(DataError, match=r"built for \(1, 28, 28\)"):
        fitted[name].transform(np.zeros((2, 1, 32, 32), np.float32))


@every
def test_one_class_only_is_refused(name: str, digits: Splits) -> None:
    sevens = digits.owner.take(np.flatnonzero(digits.owner.utility["digit"] == 7))
    with pytest.raises(DataError, match="'digit' has one class only"):
        mechanism_class(name)().fit(sevens)


@every
def test_mistyped_parameter_suggests_the_right_one(name: str) -> None:
    with pytest.raises(UsageError, match="did you mean 'epochs'"):
        mechanism_class(name)().set_params(epoch=3)


@every
def test_out_of_range_parameter_is_refused(name: str, digits: Splits) -> None:
    with pytest.raises(UsageError, match="epochs must lie in"):
        mechanism_class(name)(epochs=0).fit(digits.owner)


@every
def test_guarantee_says_what_it_rests_on(name: str, fitted: dict[str, Mechanism]) -> None:
    guarantee = fitted[name].guarantee()
    assert guarantee.statement
    assert (guarantee.epsilon is None) == (guarantee.kind in ("empirical", "anonymity"))


@every
def test_own_classifier_beats_the_majority(name: str, fitted: dict[str, Mechanism], digits: Splits) -> None:
    scores = fitted[name].predict(fitted[name].release(digits.victim, seed=0).payload)
    truth = digits.victim.utility["digit"]
    assert scores is not None
    assert (scores.argmax(1) == truth).mean() > 2 * np.bincount(truth).max() / len(truth)


class Stopped(Exception):
    pass


@every
def test_interrupted_fit_goes_on_as_if_it_had_never_stopped(name: str, digits: Splits, tmp_path: Path) -> None:
    data: Dataset = digits.owner.take(slice(0, 300))
    whole = mechanism_class(name)(epochs=3).fit(data)
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": name}})

    def stop(done: int, total: int, _losses: object) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        mechanism_class(name)(epochs=3).fit(data, run=run, progress=stop)
    assert not run.done
    resumed = mechanism_class(name)(epochs=3).fit(data, run=run)
    assert all(torch.equal(whole.state()[key], value) for key, value in resumed.state().items())
    assert [line["epoch"] for line in run.metrics()] == [1, 2, 3]
    assert run.done
