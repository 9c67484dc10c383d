"""What leaves a device is what its owner's mechanism would release: the same noise under a secret, the same company."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.deploy.conftest import Bundles

from sfumato.core.errors import DataError, UsageError
from sfumato.core.knowledge import Opened
from sfumato.core.randomness import Secure
from sfumato.deploy.drawn_inputs import drawn
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.program_checks import session
from sfumato.device import Device
from sfumato.mechanisms.device_secret import make_secret

SECRET = bytes(range(32))


def test_hardened_noise_follows_from_the_secret_as_at_the_owner(bundles: Bundles) -> None:
    made = bundles["ars", "signal"]
    x = made.data.x[:50]
    found = Device(made.folder, secret=SECRET).encode(x)
    wanted = made.mechanism.hold_secret(SECRET).transform(x)  # type: ignore[attr-defined]
    grid = read_bundle(made.folder).manifest.programs["device"].outputs[0].grid
    assert grid is not None
    assert np.abs(found - wanted).max() <= 1.001 * grid
    assert (found != wanted).mean() < 0.01
    assert np.array_equal(found / grid, np.round(found / grid))


def test_published_noise_follows_from_the_secret_as_at_the_owner(bundles: Bundles) -> None:
    made = bundles["ars", "table", "variant=published"]
    x = made.data.x[:50]
    found = Device(made.folder, secret=SECRET).encode(x)
    wanted = made.mechanism.hold_secret(SECRET).transform(x)  # type: ignore[attr-defined]
    assert (np.abs(found - wanted) > 1e-4).mean() < 0.005  # where a gradient is 0 its sign hangs on the last bit


def test_noise_without_a_secret_is_fresh_and_with_one_it_stays(bundles: Bundles) -> None:
    made = bundles["ars", "signal"]
    one = made.data.x[0]
    fresh, kept = Device(made.folder), Device(made.folder, secret=SECRET)
    assert not np.array_equal(fresh.encode(one), fresh.encode(one))
    assert np.array_equal(kept.encode(one), kept.encode(one))
    assert not np.array_equal(kept.encode(one), Device(made.folder, secret=bytes(32)).encode(one))


def test_copies_of_a_record_have_noise_of_their_own(bundles: Bundles) -> None:
    made = bundles["ars", "signal"]
    first, second = Device(made.folder, secret=SECRET).encode(made.data.x[[3, 3]])
    assert not np.array_equal(first, second)


def test_a_filter_hides_what_its_device_is_told(bundles: Bundles) -> None:
    made = bundles["filter", "table"]
    device = Device(made.folder)
    x = made.data.x[:3]
    by_list = device.encode(x, private={"who": ["m", "f", "m"]})
    assert by_list.shape == (3, 7)
    with pytest.raises(UsageError, match="needs the private label 'who'"):
        device.encode(x)
    with pytest.raises(DataError, match="give one of m, f"):
        device.encode(x, private={"who": "x"})
    with pytest.raises(DataError, match="2 values for 3 records"):
        device.encode(x, private={"who": ["m", "f"]})


@pytest.mark.parametrize("law", ["orthogonal", "rotation"])
def test_keys_are_rotations(bundles: Bundles, law: str) -> None:
    key = read_bundle(bundles["phase", "image"].folder).manifest.programs["device"].port("key")
    from dataclasses import replace

    found = drawn(replace(key, law=law), 400, Secure())  # type: ignore[arg-type]
    assert np.abs(found @ found.transpose(0, 2, 1) - np.eye(2)).max() < 1e-5
    turned = (np.linalg.det(found) < 0).mean()
    assert turned == 0 if law == "rotation" else 0.35 < turned < 0.65


def answered(folder: Path, message: np.ndarray) -> np.ndarray:
    out: np.ndarray = session(folder / "cloud.onnx").run(None, {"payload": message})[0]
    return out


def test_the_way_through_the_cloud_ends_at_the_answer_of_the_network(bundles: Bundles) -> None:
    made = bundles["phase", "image"]
    some = made.data.take(slice(0, 30))
    device = Device(made.folder)
    message, key = device.encrypt(some.x)
    scores = device.decrypt(answered(made.folder, message), key)
    sent = Opened(message, key.rotations, np.zeros((30, 2), dtype=np.int64))
    assert np.abs(scores - made.mechanism.read(sent)).max() < 1e-4  # type: ignore[attr-defined]
    assert [one["what"] for one in device.read(scores)] == ["abc"[code] for code in scores.argmax(1)]
    other = device.encrypt(some.x)[1]
    misread = device.decrypt(answered(made.folder, message), other)  # with the key of another message
    assert np.abs(misread - scores).max() > 0.01


def test_keys_do_not_travel(bundles: Bundles) -> None:
    device = Device(bundles["phase", "image"].folder)
    _, key = device.encrypt(bundles["phase", "image"].data.x[:4])
    with pytest.raises(UsageError, match="never leaves"):
        pickle.dumps(key)
    assert "0." not in repr(key)
    with pytest.raises(UsageError, match="encrypts"):
        device.encode(bundles["phase", "image"].data.x[:4])


def test_company_stays_and_is_shared_with_the_owners_device(bundles: Bundles, tmp_path: Path) -> None:
    made = bundles["phase", "image"]
    file = tmp_path / "secret"
    make_secret(file)
    x = made.data.x[:8]
    Device(made.folder, secret=file).encrypt(x)
    with pytest.raises(UsageError, match="sent before in the company"):  # half of a group is not here
        Device(made.folder, secret=file).encrypt(x[:3])
    message, _ = made.mechanism.device(secret=file).encrypt(x)  # type: ignore[attr-defined]
    assert len(message) == 8
    with pytest.raises(UsageError, match="sent before in the company"):
        made.mechanism.device(secret=file).encrypt(x[:3])  # type: ignore[attr-defined]


def test_a_single_record_needs_a_pool(bundles: Bundles) -> None:
    made = bundles["phase", "image"]
    with pytest.raises(UsageError, match="pool of decoys"):
        Device(made.folder).encrypt(made.data.x[0])
    device = Device(made.folder, pool=made.data.x[1:9])
    message, key = device.encrypt(made.data.x[0])
    assert message.shape[0] == 1
    assert device.decrypt(answered(made.folder, message), key).shape == (3,)
    with pytest.raises(UsageError, match="a pool of decoys is for phase"):
        Device(bundles["ran", "image"].folder, pool=made.data.x[1:9])


def test_rows_of_a_message_come_in_any_order(bundles: Bundles) -> None:
    """The own record is no more often first than the decoy: otherwise the order of a sum would tell."""
    made = bundles["phase", "image"]
    device = Device(made.folder)
    asked: list[np.ndarray] = []
    run = device._device.run
    device._device.run = lambda arrays: asked.append(arrays[1]) or run(arrays)  # type: ignore[method-assign,func-returns-value]
    device.encrypt(made.data.x[:200])
    assert 0.35 < (asked[0][:, 0] < asked[0][:, 1]).mean() < 0.65
