"""``phase``: the round trip, keys that stay, decoys that cannot be told from the record, clear refusals."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sfumato.core.dataset import IntArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import hash_rows
from sfumato.core.randomness import Secure, Seeded
from sfumato.core.run_folder import RunFolder
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.device_secret import make_secret, secret_file
from sfumato.mechanisms.phase.decoys import (
    Tags,
    check_crowd,
    dealt_groups,
    message_rows,
    neighbour_rows,
    record_tags,
)
from sfumato.mechanisms.phase.device import Message, encode
from sfumato.mechanisms.phase.keys import draw_keys, hide, turn
from sfumato.mechanisms.phase.mechanism import Phase


@pytest.fixture
def phase(fitted: dict[str, Mechanism]) -> Phase:
    mechanism = fitted["phase"]
    assert isinstance(mechanism, Phase)
    return copy.copy(mechanism)  # a device that has sent nothing yet


def random_tags(count: int, randomness: Seeded) -> Tags:
    return np.asarray(randomness.uniform((count,)) * 2.0**53, dtype=np.uint64)


def grouped(tags: Tags, d: int) -> IntArray:
    """The rows of messages of records that all differ."""
    likeness = hash_rows(np.arange(len(tags)))
    return message_rows(tags, dealt_groups(tags, likeness, d), d)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("reflections", [True, False])
def test_keys_are_orthogonal_and_turn_the_right_way_round(d: int, reflections: bool) -> None:
    keys = draw_keys(Secure(), 500, d, reflections=reflections).astype(np.float64)
    assert np.allclose(keys @ keys.transpose(0, 2, 1), np.eye(d), atol=1e-6)
    share = (np.linalg.det(keys) > 0).mean()
    assert abs(share - 0.5) < 0.12 if reflections else share == 1.0


@pytest.mark.parametrize("d", [2, 3, 4])
def test_keys_favour_no_direction(d: int) -> None:
    keys = draw_keys(Seeded(3), 20_000, d, reflections=True).astype(np.float64)
    assert np.abs(keys.mean(axis=0)).max() < 0.03  # Haar: mean 0, second moment 1/d, in every entry
    assert np.abs((keys**2).mean(axis=0) - 1 / d).max() < 0.02
    assert np.abs((keys[:, 0, 0] * keys[:, 1, 1]).mean()) < 0.02  # SO(2) would give 1/2


@settings(deadline=None)
@given(st.integers(2, 5), st.integers(0, 40), st.integers(0, 1000))
def test_every_message_holds_its_record_and_decoys_are_mutual_but_in_larger_groups(
    d: int, more: int, seed: int
) -> None:
    count = d + more
    rows = grouped(random_tags(count, Seeded(seed)), d)
    assert (rows[:, 0] == np.arange(count)).all()
    assert all(len(set(row)) == d for row in rows.tolist())
    sets = [frozenset(row) for row in rows.tolist()]
    whole = [members for members in sets if sets.count(members) == d]
    assert len(whole) >= count - (count % d) * (2 * d - 1)
    served = np.bincount(rows.ravel(), minlength=count)
    assert (served == d).all()  # each record stands in exactly d messages


@pytest.mark.parametrize(("count", "d"), [(3, 2), (5, 3), (4, 3), (7, 4)])
def test_place_of_the_record_among_overlapping_messages_is_uniform(count: int, d: int) -> None:
    """In a larger group the messages overlap on a circle; which of its d neighbours is the record must stay uniform
    given the circle that everybody can see."""
    places = np.zeros(d)
    for seed in range(3000):
        tags = random_tags(count, Seeded(seed))
        circle = np.argsort(tags, kind="stable").tolist()
        rows = grouped(tags, d)
        for start in range(count):
            window = {circle[(start + step) % count] for step in range(d)}
            record = next(n for n in range(count) if set(rows[n].tolist()) == window)
            places[(circle.index(record) - start) % count] += 1 / (3000 * count)
    assert np.abs(places - 1 / d).max() < 0.03


@pytest.mark.parametrize("d", [2, 3, 4])
def test_message_is_the_key_times_the_rows_and_their_order_leaves_no_trace_in_the_bits(d: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((d, 7)).astype(np.float32)
    rows = np.tile(np.arange(d), (4000, 1))
    plain = features[rows]
    message, keys = hide(features, rows, Seeded(1), reflections=True)
    assert np.allclose(keys @ plain, message, atol=1e-5)
    first = (turn(plain, keys) == message).all(axis=(1, 2))  # summed with the record first, and with it last:
    last = (turn(plain[:, ::-1], np.ascontiguousarray(keys[:, :, ::-1])) == message).all(axis=(1, 2))
    assert abs(first.mean() - last.mean()) < 0.05  # bits tell the order of a sum, not the place of the record


def test_decoys_are_a_secret_function_of_the_records(parity: Splits) -> None:
    hashes = hash_rows(parity.victim.x[:50])
    mine, again, theirs = (grouped(record_tags(hashes, key * 32), 2) for key in (b"a", b"a", b"b"))
    assert (mine == again).all()
    assert (mine != theirs).any()
    turned_round = grouped(record_tags(hashes[::-1], b"a" * 32), 2)  # another order, the same company
    assert {frozenset(row) for row in mine.tolist()} == {
        frozenset(49 - row for row in r) for r in turned_round.tolist()
    }


@settings(deadline=None)
@given(st.integers(2, 4), st.lists(st.integers(0, 6), min_size=4, max_size=60), st.integers(0, 99))
def test_copies_stand_in_different_groups_up_to_one_in_d(d: int, kinds: list[int], seed: int) -> None:
    tags, likeness = random_tags(len(kinds), Seeded(seed)), hash_rows(np.array(kinds))
    if max(kinds.count(kind) for kind in kinds) > len(kinds) // d:
        with pytest.raises(UsageError, match=r"cannot hide|copies of one another"):
            check_crowd(likeness, d)
        return
    check_crowd(likeness, d)
    groups = dealt_groups(tags, likeness, d)
    sizes = np.bincount(groups)
    assert sizes.min() >= d and sizes.max() < 2 * d
    assert len({(group, kind) for group, kind in zip(groups.tolist(), kinds, strict=True)}) == len(kinds)


def test_published_decoy_is_never_the_record_or_its_copy() -> None:
    kinds = np.arange(60) % 7
    rows = neighbour_rows(random_tags(60, Seeded(0)), hash_rows(kinds), 4)
    assert (rows[:, 0] == np.arange(60)).all()
    assert all(len(set(kinds[row].tolist())) == 4 for row in rows)
    with pytest.raises(UsageError, match="1 different record"):
        neighbour_rows(random_tags(3, Seeded(0)), hash_rows(np.zeros(3, np.int64)), 2)


def test_right_key_gives_the_answer_of_the_network_without_rotation(phase: Phase, parity: Splits) -> None:
    few = parity.victim.take(slice(0, 60))
    sent = phase.opened(few, seed=1)
    still = np.tile(np.eye(2, dtype=np.float32), (60, 1, 1))
    plain = type(sent)(turn(sent.payload, sent.key, back=True), still, sent.rows)
    alike = np.isclose(phase.read(sent), phase.read(plain), atol=1e-4).all(1)
    assert alike.mean() > 0.95  # where two norms tie but for rounding, pooling may take the other


def test_uniformly_drawn_wrong_key_is_worse_than_the_right_one(phase: Phase, parity: Splits) -> None:
    sent = phase.opened(parity.victim, seed=1)
    truth = parity.victim.utility["odd"]
    right = (phase.read(sent).argmax(1) == truth).mean()
    wrong = (phase.read(sent, draw_keys(Seeded(5), len(truth), 2, reflections=True)).argmax(1) == truth).mean()
    assert wrong < right - 0.15


def test_what_is_opened_for_the_scorer_is_what_was_released(phase: Phase, parity: Splits) -> None:
    few = parity.victim.take(slice(0, 41))
    sent = phase.opened(few, seed=3)
    np.testing.assert_array_equal(phase.release(few, seed=3).payload, sent.payload)
    np.testing.assert_array_equal(phase.visits([few, few], seed=3)[0].payload, sent.payload)
    again = phase.visits([few, few], seed=3)[1]
    np.testing.assert_array_equal(np.sort(again.rows, axis=1), np.sort(sent.rows, axis=1))
    np.testing.assert_array_equal(phase.repeated(few, 1, seed=3)[0], again.payload)


def test_device_and_cloud_give_what_the_audit_measures(phase: Phase, parity: Splits) -> None:
    few = parity.victim.take(slice(0, 40))
    device, cloud = phase.device(), phase.cloud()
    message, key = device.encrypt(few.x)
    scores = device.decrypt(cloud(message), key)
    assert scores.shape == (40, 2)
    message, key = device.encrypt(few.x)
    again = device.decrypt(cloud(message), key)  # same decoys, other keys; two units of nearly one norm may swap
    assert np.isclose(scores, again, atol=1e-3).all(axis=1).mean() > 0.9 and np.allclose(scores, again, atol=0.1)


def test_two_messages_of_one_record_have_other_keys_and_the_same_rows(phase: Phase, parity: Splits) -> None:
    device = phase.device()
    (first, k1), (second, k2) = (device.encrypt(parity.victim.x[:10]) for _ in range(2))
    assert (np.abs(k1.rotations - k2.rotations).reshape(10, -1).max(axis=1) > 1e-3).all()
    assert not np.allclose(first.features, second.features)
    plain = [turn(m.features, k.rotations, back=True) for m, k in ((first, k1), (second, k2))]
    assert np.allclose(*plain, atol=1e-4)


def test_single_record_goes_through_a_pool(phase: Phase, parity: Splits, tmp_path: Path) -> None:
    make_secret(tmp_path / "device.key")
    device = phase.device(secret=tmp_path / "device.key", pool=parity.owner.x[:20])
    message, key = device.encrypt(parity.victim.x[0])
    assert message.features.shape[:2] == (1, 2)
    assert device.decrypt(phase.cloud()(message), key).shape == (2,)


def test_pool_gives_a_record_its_decoys_again_and_no_decoy_twice(phase: Phase, parity: Splits, tmp_path: Path) -> None:
    make_secret(tmp_path / "device.key")

    def sent(x: np.ndarray) -> np.ndarray:
        device = phase.device(secret=tmp_path / "device.key", pool=parity.owner.x[:6])  # a restart each time
        message, key = device.encrypt(x)
        return turn(message.features, key.rotations, back=True)[:, 1]

    first = sent(parity.victim.x[:3])
    assert np.allclose(first, sent(parity.victim.x[:3]), atol=1e-4)
    second = sent(parity.victim.x[3:6])
    assert not any(np.allclose(a, b, atol=1e-4) for a in first for b in second)
    with pytest.raises(UsageError, match="the pool of decoys is used up"):
        sent(parity.victim.x[6:7])


def test_no_key_is_in_release_run_folder_or_log(
    phase: Phase, parity: Splits, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[np.ndarray] = []

    def watched(*args: object, **options: object) -> np.ndarray:
        drawn.append(draw_keys(*args, **options))  # type: ignore[arg-type]
        return drawn[-1]

    monkeypatch.setattr("sfumato.mechanisms.phase.keys.draw_keys", watched)
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "phase"}})
    fresh = Phase(epochs=1).fit(parity.owner.take(slice(None, None, 4)), run=run)
    secret = tmp_path / "elsewhere.key"
    make_secret(secret)
    monkeypatch.setenv("SFUMATO_DEVICE_SECRET", str(secret))
    release = fresh.release(parity.victim.take(slice(0, 20)))
    message, key = fresh.device().encrypt(parity.victim.x[:20])
    assert len(drawn) == 2
    said = capfd.readouterr()
    everything = [file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    everything += [release.payload.tobytes(), message.features.tobytes(), message.name.encode()]
    everything += [said.out.encode(), said.err.encode(), repr(key).encode(), repr(message.name).encode()]
    for keys in drawn:
        for rotation in keys:
            assert not any(rotation.tobytes() in place for place in everything)
            assert not any(rotation[:, 0].tobytes() in place for place in everything)
            assert not any(str(rotation[0, 0]).encode() in place for place in everything[-4:])
    assert not any(secret.read_bytes() in place for place in everything)
    assert secret.stat().st_mode & 0o077 == 0


def test_key_cannot_be_pickled_or_copied(phase: Phase, parity: Splits) -> None:
    _, key = phase.device().encrypt(parity.victim.x[:4])
    for leak in (pickle.dumps, copy.copy):
        with pytest.raises(UsageError, match="never leaves the device"):
            leak(key)


def test_key_of_another_message_is_refused(phase: Phase, parity: Splits) -> None:
    device, cloud = phase.device(), phase.cloud()
    message, _ = device.encrypt(parity.victim.x[:4])
    _, key = device.encrypt(parity.victim.x[:4])
    with pytest.raises(UsageError, match="this key belongs to another message"):
        device.decrypt(cloud(message), key)


def test_bad_message_is_refused_with_the_reason(phase: Phase, parity: Splits) -> None:
    device, cloud = phase.device(), phase.cloud()
    message, key = device.encrypt(parity.victim.x[:4])
    features = message.features.copy()
    features[2, 0, 0] = np.nan
    with pytest.raises(DataError, match="record 2 of the message holds NaN"):
        cloud(Message(features, message.name))
    with pytest.raises(DataError, match=r"2 components on axis 1, this one has shape \(4, 3, 16"):
        cloud(Message(np.concatenate([features, features[:, :1]], axis=1), message.name))
    with pytest.raises(DataError, match=r"features of shape \(16, 14, 14\), this one of \(16, 14, 7\)"):
        cloud(Message(message.features[..., :7], message.name))
    with pytest.raises(DataError, match="holds 3 records and the key 4"):
        device.decrypt(Message(cloud(message).features[:3], message.name), key)
    with pytest.raises(DataError, match="an answer of the cloud has features of shape"):
        device.decrypt(message, key)  # the question itself
    with pytest.raises(UsageError, match="expected a Message"):
        cloud(message.features)  # type: ignore[arg-type]


def test_lone_record_cannot_hide(phase: Phase, parity: Splits) -> None:
    with pytest.raises(UsageError, match="cannot hide among themselves at d = 2"):
        phase.transform(parity.victim.x[:1])
    with pytest.raises(UsageError, match="a device with a pool of decoys"):
        phase.device().encrypt(parity.victim.x[0])


def test_pool_is_shared_by_the_devices_of_one_secret_and_knows_its_records(
    phase: Phase, parity: Splits, tmp_path: Path
) -> None:
    secret, pool = tmp_path / "device.key", parity.owner.x[:4]
    make_secret(secret)
    one, two = (phase.device(secret=str(secret), pool=pool) for _ in range(2))
    plain = []
    for device, record in ((one, 0), (two, 1), (one, 2), (one, 0)):
        message, key = device.encrypt(parity.victim.x[record])
        plain.append(turn(message.features, key.rotations, back=True)[0, 1])
    assert np.allclose(plain[0], plain[3], atol=1e-4)
    assert not any(np.allclose(plain[a], plain[b], atol=1e-4) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert (tmp_path / "device.key.companies").stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="in the company of records that are not here"):
        phase.device(secret=secret, pool=parity.owner.x[4:8]).encrypt(parity.victim.x[0])


def test_pool_never_gives_a_record_itself_as_a_decoy(phase: Phase, parity: Splits) -> None:
    device = phase.device(pool=np.concatenate([parity.victim.x[:1]] * 5 + [parity.owner.x[:1]]))
    message, key = device.encrypt(parity.victim.x[0])
    plain = turn(message.features, key.rotations, back=True)[0]
    assert not np.allclose(plain[0], plain[1], atol=1e-3)


def test_copy_of_a_mechanism_in_another_process_has_no_secret(phase: Phase, parity: Splits) -> None:
    phase.transform(parity.victim.x[:4])
    assert phase._companies is not None
    assert phase.__getstate__()["_companies"] is None


def test_features_are_computed_in_an_order_that_is_not_the_records(phase: Phase, parity: Splits) -> None:
    x = parity.victim.x[:40]
    seen: list[torch.Tensor] = []
    handle = phase.encoder_.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    features = encode(phase.encoder_, x, Seeded(3))
    handle.remove()
    assert not np.array_equal(seen[0].numpy(), x)
    assert np.allclose(features, encode(phase.encoder_, x, Seeded(4)), atol=1e-4)


def test_fitted_networks_are_in_evaluation_mode_for_good(parity: Splits, tmp_path: Path) -> None:
    phase = Phase(epochs=1).fit(parity.owner.sample(200, 0))
    phase.save(tmp_path)
    for mechanism in (phase, Phase.load(tmp_path)):
        mechanism.transform(parity.victim.x[:6])
        assert not any(module.training for network in mechanism._modules().values() for module in network.modules())


def test_written_release_needs_the_secret_that_keeps_its_company(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SFUMATO_DEVICE_SECRET", raising=False)
    with pytest.raises(UsageError, match="set SFUMATO_DEVICE_SECRET"):
        phase.check_writing()
    Phase(keyed=False).check_writing()


def test_secret_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(DataError, match="holds 5 bytes"):
        secret_file(tmp_path / "key")


def test_guarantee_is_one_in_d_and_the_published_variant_has_none(phase: Phase) -> None:
    promised = phase.guarantee()
    assert (promised.kind, promised.anonymity) == ("anonymity", 0.5)
    assert any("stay on the device" in condition.says for condition in promised.conditions)
    assert Phase(variant="published").guarantee().kind == "empirical"


def own_network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 49, 32),
        nn.ReLU(),
        nn.Linear(32, 2),
    )


def test_own_network_is_split_at_named_modules_saved_and_loaded(parity: Splits, tmp_path: Path) -> None:
    fitted = Phase(own_network(), encrypt_to="1", decrypt_from="9", d=3, epochs=2).fit(parity.owner)
    fitted.save(tmp_path)
    again = Phase.load(tmp_path, model=own_network())
    assert (again.answer(parity.victim, seed=2) == fitted.answer(parity.victim, seed=2)).all()
    with pytest.raises(UsageError, match=r"Phase.load\(folder, model=…\)"):
        Phase.load(tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "lenett"}, "did you mean 'lenet'"),
        ({"variant": "publised"}, "did you mean 'published'"),
        ({"encrypt_to": "conv1"}, "give encrypt_to and decrypt_from together"),
        ({"model": own_network()}, "name the modules of your network to split at"),
        ({"model": own_network(), "encrypt_to": "1", "decrypt_from": "99"}, "'99'"),
        ({"model": own_network(), "encrypt_to": "7", "decrypt_from": "3"}, "before"),
        ({"d": 1}, "d must lie in"),
        ({"d": 16, "batch": 16}, "less than two groups"),
        ({"lam": 1.5}, "lam must lie in"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, object], message: str, parity: Splits) -> None:
    with pytest.raises(UsageError, match=message):
        Phase(**params).fit(parity.owner)  # type: ignore[arg-type]


def test_layers_that_cannot_turn_are_all_named_with_a_remedy(parity: Splits) -> None:
    bad = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.GELU(),
        nn.GroupNorm(2, 8),
        nn.Flatten(),
        nn.Linear(8 * 144, 2),
    )
    with pytest.raises(UsageError) as refused:
        Phase(bad, encrypt_to="1", decrypt_from="6").fit(parity.owner)
    assert "GELU" in str(refused.value) and "GroupNorm" in str(refused.value) and "BatchNorm" in str(refused.value)


def test_published_variant_trains_its_critic_within_the_clip(parity: Splits) -> None:
    fitted = Phase(variant="published", keyed=False, epochs=1).fit(parity.owner)
    assert fitted.critic_ is not None
    assert max(float(weight.detach().abs().max()) for weight in fitted.critic_.parameters()) <= 0.01 + 1e-9


def test_published_keys_are_rotations_and_ours_reflect_half_of_the_time(parity: Splits) -> None:
    few = parity.victim.take(slice(0, 200))
    for variant, low, high in (("published", 1.0, 1.0), ("exchangeable", 0.35, 0.65)):
        fitted = Phase(variant=variant, epochs=1).fit(parity.owner.take(slice(None, None, 4)))  # type: ignore[arg-type]
        share = (np.linalg.det(fitted.opened(few, seed=0).key) > 0).mean()
        assert low <= share <= high


def test_narrow_generator_makes_a_smaller_message(parity: Splits) -> None:
    fitted = Phase(channels=4, lam=0.5, epochs=1).fit(parity.owner.take(slice(None, None, 2)))
    assert fitted.transform(parity.victim.x[:6], seed=0).shape == (6, 2, 4, 14, 14)
    assert fitted.inverter_ is not None
