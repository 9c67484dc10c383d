"""What every mechanism promises, whatever it does inside."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder
from sfumato.mechanisms import load_mechanism, mechanism_class, names
from sfumato.mechanisms.base import Mechanism
from sfumato.workflow import release_run, sample_run

every = pytest.mark.parametrize("name", names())


def quick(name: str, epochs: int) -> Mechanism:
    """Unfitted, with so few epochs or steps."""
    cls = mechanism_class(name)
    few = {"epochs": epochs, "steps": 50, "batch": 64}
    return cls(**{key: value for key, value in few.items() if key in cls.parameters()})


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
def test_release_holds_no_private_column(name: str, fitted: dict[str, Mechanism], parity: Splits) -> None:
    release = fitted[name].release(parity.victim, seed=0)
    assert set(release.utility) == (set() if fitted[name].hides_result else {"odd"})
    assert len(release) == len(parity.victim)
    assert np.isfinite(release.payload).all()


@every
def test_release_is_not_the_record(name: str, fitted: dict[str, Mechanism], parity: Splits) -> None:
    payload = fitted[name].release(parity.victim, seed=0).payload
    raw = payload.shape == parity.victim.x.shape and bool((payload == parity.victim.x).all())
    assert raw == fitted[name].releases_raw == (name == "none")


@every
def test_same_seed_gives_the_same_release_and_no_seed_a_fresh_one(
    name: str, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    mechanism = fitted[name]
    assert mechanism.release(parity.victim, seed=5).digest == mechanism.release(parity.victim, seed=5).digest
    one, another = copy.copy(mechanism), copy.copy(mechanism)  # a device with a secret repeats itself on purpose
    assert (one.release(parity.victim).digest != another.release(parity.victim).digest) == mechanism.randomised


@every
def test_arrays_and_tensors_are_accepted_alike(name: str, fitted: dict[str, Mechanism], parity: Splits) -> None:
    few = parity.victim.take(slice(0, 5))
    tensors = {label: torch.from_numpy(codes.copy()) for label, codes in few.private.items()}
    first = fitted[name].transform(few.x, private=few.private, seed=1)
    assert (first == fitted[name].transform(torch.from_numpy(few.x.copy()), private=tensors, seed=1)).all()


@every
def test_private_labels_are_asked_for_exactly_if_they_are_read(
    name: str, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    few = parity.victim.take(slice(0, 5))
    if fitted[name].reads_private:
        with pytest.raises(UsageError, match="needs the private label 'ge5' of every record"):
            fitted[name].transform(few.x)
        return
    others = {"ge5": 1 - few.private["ge5"]}
    payloads = [fitted[name].transform(few.x, private=private, seed=1) for private in (None, few.private, others)]
    assert all((payload == payloads[0]).all() for payload in payloads)


@every
def test_what_is_written_holds_no_private_column(
    name: str, fitted: dict[str, Mechanism], parity: Splits, tmp_path: Path
) -> None:
    run = RunFolder.create(tmp_path / "written", {"run": {"mechanism": name}, "data": {}})
    fitted[name].save(run.path)
    run.finish()
    few = parity.victim.take(slice(0, 50))
    pixels = (few.x * 255).astype(np.uint8)[:, 0]
    digit = few.utility["odd"] + 4 * few.private["ge5"] + few.private["ge5"]  # odd and ge5 are questions about it
    np.savez(tmp_path / "new.npz", image=pixels, label=digit)
    if fitted[name].synthetic:
        card = sample_run(run.path, 50, tmp_path / "released")
        assert pq.read_schema(tmp_path / "released" / "release.parquet").names == ["image", *card["labels"]]
        return
    labels = not fitted[name].hides_result
    with mock.patch.dict(os.environ, SFUMATO_DEVICE_SECRET=str(tmp_path / "device.key")):
        card = release_run(run.path, str(tmp_path / "new.npz"), tmp_path / "released", labels=labels)
    assert card["labels"] == (["odd"] if labels else [])
    names = pq.read_schema(tmp_path / "released" / "release.parquet").names
    assert names == ["payload", *card["labels"]]


@every
def test_decoded_payload_is_a_record(name: str, fitted: dict[str, Mechanism], parity: Splits) -> None:
    few = parity.victim.take(slice(0, 5))
    decoded = fitted[name].decode(fitted[name].release(few, seed=0).payload)
    assert decoded is None or (decoded.shape == few.x.shape and decoded.min() >= 0.0 and decoded.max() <= 1.0)


@every
def test_saved_mechanism_releases_the_same(
    name: str, fitted: dict[str, Mechanism], parity: Splits, tmp_path: Path
) -> None:
    fitted[name].save(tmp_path)
    again = load_mechanism(tmp_path)
    assert again.stored_params() == fitted[name].stored_params()
    assert again.release(parity.victim, seed=3).digest == fitted[name].release(parity.victim, seed=3).digest
    assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("*.pt"))


@every
def test_fit_is_repeatable(name: str, parity: Splits) -> None:
    if mechanism_class(name).synthetic:
        pytest.skip(f"the noise of {name} has no seed; test_synth.py repeats a fit with the same answers")
    small = parity.owner.take(slice(None, None, 4))  # every class
    first, second = (quick(name, 1).fit(small).state() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


@every
def test_unfitted_mechanism_refuses_to_release(name: str, parity: Splits) -> None:
    with pytest.raises(UsageError, match="not fitted"):
        mechanism_class(name)().release(parity.victim)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
def test_bad_record_is_named(name: str, bad: float, fitted: dict[str, Mechanism], parity: Splits) -> None:
    x = parity.victim.x[:4].copy()
    x[2, 0, 3, 3] = bad
    with pytest.raises(DataError, match="record 2"):
        fitted[name].transform(x)


@every
def test_record_of_another_size_is_refused(name: str, fitted: dict[str, Mechanism]) -> None:
    with pytest.raises(DataError, match=r"built for \(1, 28, 28\)"):
        fitted[name].transform(np.zeros((2, 1, 32, 32), np.float32))


@every
def test_one_class_only_is_refused(name: str, parity: Splits) -> None:
    odd = parity.owner.take(np.flatnonzero(parity.owner.utility["odd"] == 1))
    with pytest.raises(DataError, match="'odd' has one class only"):
        mechanism_class(name)().fit(odd)


@every
def test_mistyped_parameter_suggests_the_right_one(name: str) -> None:
    longest = max(mechanism_class(name).parameters(), key=len)
    with pytest.raises(UsageError, match=f"did you mean '{longest}'"):
        mechanism_class(name)().set_params(**{longest[:-1]: 3})


@every
def test_out_of_range_parameter_is_refused(name: str, parity: Splits) -> None:
    cls = mechanism_class(name)
    amount = "epsilon" if cls.synthetic else next(p for p in ("epochs", "steps", "budget") if p in cls.parameters())
    with pytest.raises(UsageError, match=f"{amount} must (lie in|be above 0)"):
        cls(**{amount: 0}).fit(parity.owner)


@every
def test_guarantee_says_what_it_rests_on(name: str, fitted: dict[str, Mechanism]) -> None:
    guarantee = fitted[name].guarantee()
    assert guarantee.statement
    assert (guarantee.epsilon is None) == (guarantee.kind in ("empirical", "anonymity"))


@every
def test_own_classifier_beats_the_majority(name: str, fitted: dict[str, Mechanism], parity: Splits) -> None:
    scores = fitted[name].answer(parity.victim, seed=0)
    truth = parity.victim.utility["odd"]
    if scores is None:
        pytest.skip(f"{name} has no cloud half")
    assert (scores.argmax(1) == truth).mean() > np.bincount(truth).max() / len(truth) + 0.1


class Stopped(Exception):
    pass


@every
def test_interrupted_fit_goes_on_as_if_it_had_never_stopped(name: str, parity: Splits, tmp_path: Path) -> None:
    if name == "gaussian":
        pytest.skip("gaussian computes one number: there is nothing to take up")
    if mechanism_class(name).synthetic:
        pytest.skip(f"an interrupted {name} must not ask twice: test_synth.py")
    data: Dataset = parity.owner.take(slice(None, None, 3))
    whole = quick(name, 3).fit(data)
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": name}})

    def stop(done: int, total: int, _losses: object) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        quick(name, 3).fit(data, run=run, progress=stop)
    assert not run.done
    resumed = quick(name, 3).fit(data, run=run)
    assert all(torch.equal(whole.state()[key], value) for key, value in resumed.state().items())
    assert [line["epoch"] for line in run.metrics()][:3] == [1, 2, 3]
    assert run.done
