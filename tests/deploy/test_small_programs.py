"""Device halves in 8 bits with their cost, an attacker's decoder beside them, and Triton's repository."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.deploy.conftest import Bundles

from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.deploy.exporting import Exported, export
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.program_checks import session
from sfumato.deploy.shipped_mechanism import ShippedMechanism
from sfumato.deploy.triton_repository import write_repository
from sfumato.testing import TINY


def cut(bundles: Bundles, key: tuple[str, ...]) -> Splits:
    data = bundles[key].data
    return Splits(data.take(slice(0, 120)), data.take(slice(120, 180)), data.take(slice(180, 240)))


@pytest.fixture(scope="module")
def small(bundles: Bundles, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    made = bundles["ran", "image"]
    splits = cut(bundles, ("ran", "image"))
    out = tmp_path_factory.mktemp("small") / "small"
    return export(made.mechanism, out, real=made.data, quantised_on=splits, known=splits.attacker, effort=TINY)


def test_the_cost_of_8_bits_is_measured_on_the_programs(small: Exported, bundles: Bundles) -> None:
    cost = small.quantised
    assert cost is not None and cost.after < cost.before
    assert 0.0 < cost.off < 0.2
    assert cost.accuracy is not None and abs(cost.accuracy[1] - cost.accuracy[2]) < 0.2
    assert any(one is not None for one, _ in cost.leakage.values())
    assert "Device half in 8 bits" in (small.folder / "card.md").read_text()
    device = read_bundle(small.folder).manifest.programs["device"]
    assert device.quantised and device.bytes == cost.after
    weights = onnx.load(small.folder / "device.onnx").graph.initializer
    assert any(weight.data_type == onnx.TensorProto.INT8 for weight in weights)
    x = bundles["ran", "image"].data.x
    opened = session(small.folder / "device.onnx")
    alone = np.concatenate([opened.run(None, {"record": x[row : row + 1]})[0] for row in range(5)])
    assert np.array_equal(alone, opened.run(None, {"record": x[:5]})[0])  # no record changes another's payload


def test_a_demonstration_has_the_attackers_decoder(small: Exported, bundles: Bundles) -> None:
    manifest = read_bundle(small.folder).manifest
    assert manifest.programs["attacker"].outputs[0].row == (1, 16, 16)
    payload = bundles["ran", "image"].mechanism.transform(bundles["ran", "image"].data.x[:3])
    rebuilt = session(small.folder / "attacker.onnx").run(None, {"payload": payload})[0]
    assert rebuilt.shape == (3, 1, 16, 16)


def test_a_shipped_program_releases_as_its_mechanism(bundles: Bundles) -> None:
    made = bundles["ars", "signal"]
    ports = read_bundle(made.folder).manifest.programs["device"].inputs
    shipped = ShippedMechanism.of(made.mechanism, made.folder / "device.onnx", made.folder / "cloud.onnx", ports)
    some = made.data.take(slice(0, 40))
    grid = 2.0**-10
    assert (
        np.abs(shipped.release(some, seed=3).payload - made.mechanism.release(some, seed=3).payload).max() <= 2 * grid
    )
    first, second = shipped.repeated(some, 2, seed=3)
    assert np.array_equal(first, second)  # as the device, which has one noise for a record
    scores = shipped.predict(first)
    assert scores is not None and scores.shape == (40, 3)
    with pytest.raises(UsageError, match="cannot be fitted"):
        shipped.fit(some)


def test_8_bits_are_refused_where_their_leakage_cannot_be_measured(bundles: Bundles, tmp_path: Path) -> None:
    key = ("phase", "image")
    with pytest.raises(UsageError, match="who stands in a message"):
        export(bundles[key].mechanism, tmp_path / "small", quantised_on=cut(bundles, key), effort=TINY)


def test_triton_gets_the_cloud_half_as_it_is(bundles: Bundles, tmp_path: Path) -> None:
    made = bundles["phase", "image"]
    place = write_repository(read_bundle(made.folder), tmp_path / "repository") / "phase"
    assert (place / "1" / "model.onnx").read_bytes() == (made.folder / "cloud.onnx").read_bytes()
    said = (place / "config.pbtxt").read_text()
    opened = session(place / "1" / "model.onnx")
    for given, block in ((opened.get_inputs()[0], "input"), (opened.get_outputs()[0], "output")):
        found = re.search(rf'{block} \[\s*{{\s*name: "(\w+)"\s*data_type: TYPE_FP32\s*dims: \[([\d, ]+)\]', said)
        assert found is not None
        assert found[1] == given.name and [int(side) for side in found[2].split(",")] == given.shape[1:]
    assert said.count("{") == said.count("}") and said.count("[") == said.count("]")
    with pytest.raises(DataError, match="already used"):
        write_repository(read_bundle(made.folder), tmp_path / "repository")
    with pytest.raises(DataError, match="no program 'cloud'"):
        write_repository(read_bundle(bundles["ars", "table", "variant=published"].folder), tmp_path / "other")
