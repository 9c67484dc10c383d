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
from sfumato.parties.party_folder import SIMULATED
from sfumato.parties.results import FedResult
from sfumato.parties.run_terms import Terms


def averaged(trio: list[Path], out: Path, **terms: float) -> FedResult:
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


def test_noise_without_a_clipping_norm_is_refused() -> None:
    with pytest.raises(UsageError, match="clip"):
        Terms(out="x", mode="fedavg", noise=1.0)
