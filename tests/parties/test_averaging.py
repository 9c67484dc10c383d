"""FedAvg and DP-FedAvg by Flower's own strategies, on the same parties, with bytes counted in the same place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from hall import meet

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json
from sfumato.parties.byte_counter import wire_bytes
from sfumato.parties.local_training import first_arrays
from sfumato.parties.message_checks import MessageRefused
from sfumato.parties.party_folder import SIMULATED
from sfumato.parties.results import FedResult
from sfumato.parties.run_terms import Terms
from sfumato.parties.weight_precision import read_weights, weights_record


def averaged(trio: list[Path], out: Path, **terms: float | str) -> FedResult:
    meet(trio, out, mode="fedavg", params={}, **terms)
    return FedResult.from_json(read_json(out / "server" / "result.json"))


def test_fedavg_learns_and_its_bytes_are_those_of_the_models(trio: list[Path], tmp_path: Path) -> None:
    result = averaged(trio, tmp_path, rounds=4, epochs=3)
    assert result.strategy == "fedavg" and result.epsilon is None
    assert result.accuracy is not None and result.accuracy > 0.5
    assert [one.number for one in result.rounds] == [1, 2, 3, 4]
    model = 4 * (784 * 128 + 128 + 128 * 10 + 10)
    assert 3 * 4 * model < result.bytes_up < 1.02 * 3 * 4 * model
    assert result.rounds[-1].bytes_up == result.bytes_up and result.rounds[0].bytes_up * 4 == pytest.approx(
        result.bytes_up
    )
    content = RecordDict({"arrays": first_arrays(784, 10, 0)})
    assert result.bytes_down / 12 == pytest.approx(wire_bytes(Message(content, 1, "train")), rel=0.01)
    assert result.bytes_evaluation > 3 * 4 * model


def test_dp_fedavg_adds_noise_and_says_what_it_spent(trio: list[Path], tmp_path: Path) -> None:
    result = averaged(trio, tmp_path, rounds=1, noise=1.0, clip=0.5)
    assert result.strategy == "dp-fedavg" and result.epsilon is not None and result.epsilon > 1
    weak = averaged(trio, tmp_path / "weak", rounds=1, noise=0.5, clip=0.5)
    assert weak.epsilon is not None and weak.epsilon > result.epsilon


def test_noise_of_a_deployment_follows_from_no_seed(
    trio: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(np.random, "seed", seeds.append)
    averaged(trio, tmp_path / "deployed", rounds=1, noise=1.0, clip=0.5)
    assert not seeds
    monkeypatch.setenv(SIMULATED, str(tmp_path))
    averaged(trio, tmp_path / "simulated", rounds=1, noise=1.0, clip=0.5)
    assert len(seeds) == 1


@pytest.mark.parametrize(("wire", "bits"), [("float16", 16), ("uint8", 8), ("uint4", 4)])
def test_averaged_weights_travel_at_the_precision_of_the_wire_in_both_directions(
    trio: list[Path], tmp_path: Path, wire: str, bits: int
) -> None:
    result = averaged(trio, tmp_path, rounds=3, epochs=3, wire=wire)
    assert result.accuracy is not None and result.accuracy > 0.5
    model = bits / 8 * (784 * 128 + 128 + 128 * 10 + 10)
    for sent in (result.bytes_up, result.bytes_down, result.bytes_evaluation):
        assert 3 * 3 * model < sent < 1.05 * 3 * 3 * model + 3 * 3 * 4000  # headers


def test_a_change_that_is_smaller_than_a_step_is_right_on_average() -> None:
    shapes = {"a": (3, 1001), "b": (1,)}
    weights = {"a": np.full((3, 1001), 0.3, dtype=np.float32), "b": np.array([5.0], dtype=np.float32)}
    weights["a"][0, 0], weights["a"][0, 1] = -1.0, 14.0  # steps of 1 in 4 bits
    random = np.random.default_rng(0)
    nearest, drawn = (read_weights(weights_record(weights, "uint4", r), "uint4", shapes) for r in (None, random))
    assert nearest["a"].mean() < 0.02
    assert 0.27 < drawn["a"].mean() < 0.33
    assert drawn["a"].shape == (3, 1001) and drawn["b"] == pytest.approx(5.0)
    with pytest.raises(MessageRefused, match="shape"):
        read_weights(weights_record(weights, "uint4"), "uint8", shapes)


def test_averaging_and_sharing_keep_which_held_out_records_are_right(trio: list[Path], tmp_path: Path) -> None:
    result = averaged(trio, tmp_path, rounds=2)
    files = sorted(tmp_path.glob("party-*/7/right-2.npy"))
    right = np.concatenate([np.load(file) for file in files])
    assert len(files) == 3 and right.mean() == pytest.approx(result.accuracy)


def test_noise_without_a_clipping_norm_is_refused() -> None:
    with pytest.raises(UsageError, match="clip"):
        Terms(out="x", mode="fedavg", noise=1.0)
