"""What every mechanism promises, whatever it does inside."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.number_scale import NumberScale
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.data import load_splits
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Answers, Classifies, HasDecoder, Samples
from sfumato.mechanisms.device_secret import SECRET_VARIABLE, make_secret
from sfumato.testing.second_device import second_device
from sfumato.workflow import UNAUDITED, release_run, sample_run

Make = Callable[..., Mechanism]


@cache
def parity_digits(limit: int = 1500) -> Splits:
    """Embedded digits: the label ``odd`` may be used, ``ge5`` is private and does not follow from it."""
    return load_splits("digits", utility=["odd"], private=["ge5"], limit=limit, seed=0)


_SMALL: dict[str, Mechanism] = {}


def _fitted_to_few(make: Make, given: Mapping[str, Any], splits: Splits) -> Mechanism:
    """Fitted once, to a quarter of the records, for all tests that look at the same settings."""
    mechanism = make(**given)
    key = f"{mechanism.name} {mechanism.get_params()}"
    if key not in _SMALL:
        _SMALL[key] = mechanism.fit(_few(splits))
    return _SMALL[key]


def _few(splits: Splits) -> Dataset:
    return splits.owner.take(slice(None, None, 4))  # every class


def _given(fitted: Mechanism) -> dict[str, Any]:
    """The mechanism that this one builds on, which need not be fitted again."""
    return {key: value for key, value in fitted.get_params().items() if key == "base" and value}


def numbered(data: Dataset) -> Dataset:
    """The same pictures with two labels that are numbers: ``ink`` may be used, and ``height`` is private."""
    ink = 100.0 * data.x.mean(axis=(1, 2, 3), dtype=np.float64)
    rows = data.x.sum(axis=(1, 3), dtype=np.float64)  # (N, side)
    height = rows @ np.arange(rows.shape[1]) / rows.sum(axis=1)
    scales = {"ink": NumberScale(0.0, 100.0), "height": NumberScale(0.0, float(rows.shape[1]))}
    schema = replace(data.schema, utility={"ink": ()}, private={"height": ()}, sources={}, numbers=scales)
    utility, private = {"ink": scales["ink"].codes(ink)}, {"height": scales["height"].codes(height)}
    return replace(data, schema=schema, utility=utility, private=private)


class _Stopped(Exception):
    """Stands for a process that was killed."""


class MechanismConformance:
    """A subclass gives two fixtures.

    make    the mechanism's class, or a function of hyper-parameters that makes an unfitted mechanism; with few epochs
            or steps, because several tests fit
    fitted  one fitted on ``splits.owner``; without it ``make().fit(splits.owner)``
    """

    @pytest.fixture
    def splits(self) -> Splits:
        return parity_digits()

    @pytest.fixture
    def fitted(self, make: Make, splits: Splits) -> Mechanism:
        return make().fit(splits.owner)

    def test_constructor_stores_parameters_unchanged(self, make: Make) -> None:
        cls = type(make())
        assert cls().get_params() == cls.parameters()
        assert cls(seed=7).get_params()["seed"] == 7

    def test_parameters_have_help_and_defaults_within_their_ranges(self, make: Make) -> None:
        cls = type(make())
        assert cls.knob is None or cls.knob in cls.parameters()
        for name, parameter in cls.declared().items():
            assert parameter.help, name
            parameter.check(cls.name, name, parameter.default)

    def test_release_holds_no_private_column(self, fitted: Mechanism, splits: Splits) -> None:
        release = fitted.release(splits.victim, seed=0)
        assert set(release.utility) == ({"odd"} if _labels_leave(fitted) else set())
        assert len(release) == len(splits.victim)
        assert np.isfinite(release.payload).all()

    def test_release_is_not_the_record(self, fitted: Mechanism, splits: Splits) -> None:
        payload = fitted.release(splits.victim, seed=0).payload
        raw = payload.shape == splits.victim.x.shape and bool((payload == splits.victim.x).all())
        assert raw == (fitted.traits.unprotected == "record")

    def test_same_seed_gives_the_same_release_and_no_seed_a_fresh_one(self, fitted: Mechanism, splits: Splits) -> None:
        assert fitted.release(splits.victim, seed=5).digest == fitted.release(splits.victim, seed=5).digest
        one, another = copy.copy(fitted), copy.copy(fitted)  # a device with a secret repeats itself on purpose
        differ = one.release(splits.victim).digest != another.release(splits.victim).digest
        assert differ == fitted.traits.randomised

    def test_arrays_and_tensors_are_accepted_alike(self, fitted: Mechanism, splits: Splits) -> None:
        few = splits.victim.take(slice(0, 5))
        tensors = {label: torch.from_numpy(codes.copy()) for label, codes in few.private.items()}
        first = fitted.transform(few.x, private=few.private, seed=1)
        assert (first == fitted.transform(torch.from_numpy(few.x.copy()), private=tensors, seed=1)).all()

    def test_private_labels_are_needed_exactly_if_they_are_read(self, fitted: Mechanism, splits: Splits) -> None:
        few = splits.victim.take(slice(0, 5))
        if fitted.traits.reads_private:
            with pytest.raises(UsageError, match="needs the private label 'ge5' of every record"):
                fitted.transform(few.x)
            return
        others = {"ge5": 1 - few.private["ge5"]}
        payloads = [fitted.transform(few.x, private=private, seed=1) for private in (None, few.private, others)]
        assert all((payload == payloads[0]).all() for payload in payloads)

    def test_what_is_written_holds_no_private_column(self, fitted: Mechanism, splits: Splits, tmp_path: Path) -> None:
        run = RunFolder.create(tmp_path / "written", {"run": {"mechanism": fitted.name}, "data": {}})
        fitted.save(run.path)
        run.finish()
        few = splits.victim.take(slice(0, 50))
        pixels = (few.x * 255).astype(np.uint8)[:, 0]
        digit = few.utility["odd"] + 4 * few.private["ge5"] + few.private["ge5"]  # odd and ge5 are questions about it
        np.savez(tmp_path / "new.npz", image=pixels, label=digit)
        out = tmp_path / "released"
        if isinstance(fitted, Samples):
            card = sample_run(run.path, 50, out, warrant=UNAUDITED)
            assert pq.read_schema(out / "release.parquet").names == ["image", *card["labels"]]
            return
        labels = _labels_leave(fitted)
        make_secret(tmp_path / "device.key")
        with mock.patch.dict(os.environ, {SECRET_VARIABLE: str(tmp_path / "device.key")}):
            card = release_run(run.path, str(tmp_path / "new.npz"), out, labels=labels, warrant=UNAUDITED)
        assert card["labels"] == (["odd"] if labels else [])
        assert pq.read_schema(out / "release.parquet").names == ["payload", *card["labels"]]

    def test_decoded_payload_is_a_record(self, fitted: Mechanism, splits: Splits) -> None:
        if isinstance(fitted, HasDecoder):
            few = splits.victim.take(slice(0, 5))
            decoded = fitted.decode(fitted.release(few, seed=0).payload)
            if decoded is None:
                pytest.skip("this setting has no way back")
            assert decoded.shape == few.x.shape and decoded.min() >= 0.0 and decoded.max() <= 1.0

    def test_saved_mechanism_releases_the_same(self, fitted: Mechanism, splits: Splits, tmp_path: Path) -> None:
        fitted.save(tmp_path)
        again = load_mechanism(tmp_path)
        assert again.stored_params() == fitted.stored_params()
        assert read_json(tmp_path / "mechanism.json")["traits"] == again.traits.to_json()
        assert again.release(splits.victim, seed=3).digest == fitted.release(splits.victim, seed=3).digest
        assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("*.pt"))

    def test_saved_mechanism_holds_no_secret(self, fitted: Mechanism, splits: Splits, tmp_path: Path) -> None:
        secret = os.urandom(32)
        (tmp_path / "device.key").write_bytes(secret)
        with mock.patch.dict(os.environ, {SECRET_VARIABLE: str(tmp_path / "device.key")}):
            copied = copy.copy(fitted)
            copied.release(splits.victim)
            copied.save(tmp_path / "saved")
        for file in (tmp_path / "saved").rglob("*"):
            assert file.is_dir() or secret not in file.read_bytes(), file

    def test_fit_is_repeatable(self, make: Make, fitted: Mechanism, splits: Splits) -> None:
        if make().traits.synthetic:
            pytest.skip("noise that protects has no seed")
        given = _given(fitted)
        first = _fitted_to_few(make, given, splits).state()
        second = make(**given).fit(_few(splits)).state()
        assert all(torch.equal(first[key], second[key]) for key in first)

    def test_another_device_gives_the_same_weights_and_releases(
        self, make: Make, fitted: Mechanism, splits: Splits
    ) -> None:
        few = splits.victim.take(slice(0, 20))
        given = _given(fitted) | ({"epsilon": 20.0} if fitted.traits.synthetic else {})
        with second_device() as device:
            far = make(**given).fit(_few(splits))
            there = {p.device for network in far._modules().values() for p in network.parameters()}
            released = None if far.traits.synthetic else far.transform(few.x, private=few.private, seed=1)
        assert there <= {device}  # nothing stays behind
        assert all(tensor.device.type == "cpu" for tensor in far.state().values())  # afterwards it is at home
        if released is None:
            return  # noise that protects has no seed
        near = _fitted_to_few(make, given, splits)
        for key, weight in near.state().items():
            if key.endswith(("basis", "running_mean", "running_var")):
                continue  # eigenvectors of close eigenvalues turn by any angle; a bias before a norm drifts freely
            assert torch.allclose(weight, far.state()[key], atol=0.02, rtol=0.02), key
        there_after_all = far.transform(few.x, private=few.private, seed=1)  # what was fitted there works here
        assert np.abs(released - there_after_all).max() <= 1e-3 * max(1.0, float(np.abs(released).max()))

    def test_unfitted_mechanism_refuses_to_release(self, make: Make, splits: Splits) -> None:
        with pytest.raises(UsageError, match="not fitted"):
            make().release(splits.victim)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
    def test_bad_record_is_named(self, bad: float, fitted: Mechanism, splits: Splits) -> None:
        x = splits.victim.x[:4].copy()
        x[2, 0, 3, 3] = bad
        with pytest.raises(DataError, match="record 2"):
            fitted.transform(x)

    def test_record_of_another_size_is_refused(self, fitted: Mechanism) -> None:
        with pytest.raises(DataError, match=r"built for \(1, 28, 28\)"):
            fitted.transform(np.zeros((2, 1, 32, 32), np.float32))

    def test_one_class_only_is_refused(self, make: Make, splits: Splits) -> None:
        if not make().traits.needs_labels:
            pytest.skip("it learns nothing from labels")
        odd = splits.owner.take(np.flatnonzero(splits.owner.utility["odd"] == 1))
        with pytest.raises(DataError, match="'odd' has one class only"):
            make().fit(odd)

    def test_number_is_learnt_or_refused_in_one_sentence(self, make: Make, splits: Splits) -> None:
        owner, victim = numbered(splits.owner.take(slice(None, None, 2))), numbered(splits.victim)
        mechanism = make()
        try:
            mechanism.fit(owner)
        except UsageError as refused:
            assert re.fullmatch(
                rf"{mechanism.name} cannot (serve|hide) a number, and '(ink|height)' is one: .+\.", str(refused)
            )
            return
        release = mechanism.release(victim, seed=0)
        assert len(release) == len(victim) and np.isfinite(release.payload).all()
        answer = mechanism.predict(release.payload) if isinstance(mechanism, Classifies) else None
        if answer is not None:
            read = mechanism.schema_.numbers["ink"].raw(mechanism.schema_.by_label(answer)["ink"][:, 0])
            assert np.corrcoef(read, victim.numbers("ink"))[0, 1] > 0.2

    def test_mistyped_parameter_suggests_the_right_one(self, make: Make) -> None:
        longest = max(make().parameters(), key=len)
        with pytest.raises(UsageError, match=f"did you mean '{longest}'"):
            make().set_params(**{longest[:-1]: 3})

    def test_out_of_range_parameter_is_refused(self, make: Make, splits: Splits) -> None:
        for name, parameter in make().declared().items():
            if parameter.kind in (int, float):
                below = parameter.low if parameter.open_low else parameter.low - 1
                with pytest.raises(UsageError, match=f"{name} must lie in"):
                    make().set_params(**{name: parameter.kind(below)}).fit(splits.owner)

    def test_guarantee_says_what_it_rests_on(self, fitted: Mechanism) -> None:
        guarantee = fitted.guarantee()
        assert guarantee.statement
        assert (guarantee.epsilon is None) == (guarantee.kind in ("empirical", "anonymity"))

    def test_own_classifier_beats_the_majority(self, fitted: Mechanism, splits: Splits) -> None:
        scores = None
        if isinstance(fitted, Answers):
            scores = fitted.answer(splits.victim, seed=0)
        elif isinstance(fitted, Classifies):
            scores = fitted.predict(fitted.release(splits.victim, seed=0).payload)
        if scores is not None:
            truth = splits.victim.utility["odd"]
            scores = splits.schema.by_label(scores)["odd"]
            assert (scores.argmax(1) == truth).mean() > np.bincount(truth).max() / len(truth) + 0.1

    def test_interrupted_fit_goes_on_as_if_it_had_never_stopped(
        self, make: Make, splits: Splits, tmp_path: Path
    ) -> None:
        if make().traits.synthetic or not {"epochs", "steps"} & set(make().parameters()):
            pytest.skip("there is nothing to take up, or it must not ask its records twice")
        data = splits.owner.take(slice(None, None, 3))
        few = {"epochs": 3} if "epochs" in make().parameters() else {}
        whole = make(**few).fit(data)
        run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": whole.name}})

        def stop(done: int, _total: int, _losses: object) -> None:
            if done == 2:
                raise _Stopped

        with pytest.raises(_Stopped):
            make(**few).fit(data, run=run, progress=stop)
        assert not run.done
        resumed = make(**few).fit(data, run=run)
        assert all(torch.equal(whole.state()[key], value) for key, value in resumed.state().items())
        assert [line["epoch"] for line in run.metrics()][:3] == [1, 2, 3]
        assert run.done


def _labels_leave(fitted: Mechanism) -> bool:
    """Not where the mechanism hides them, nor beside a proven promise that leaves them out."""
    promised = fitted.guarantee()
    covered = promised.covers.labels or not promised.proven or fitted.traits.synthetic
    return covered and not fitted.traits.hides_result
