"""``ars``: the paper's noise, masks that stay with their party, the hardened noise, joining and splitting."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import hash_rows
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.ars.column_blocks import blocks_of
from sfumato.mechanisms.ars.fgsm import against_decoder, towards_class
from sfumato.mechanisms.ars.mechanism import ARS, Published
from sfumato.mechanisms.ars.published_encoder import public_schema
from sfumato.mechanisms.device_secret import SECRET_VARIABLE, derived, keyed_normal, make_secret, secret_bits
from sfumato.nets.training_loop import as_tensor, forward_in_batches

QUICK: dict[str, Any] = {"latent": 12, "epochs": 2, "batch": 64}
TRAINED: dict[str, Any] = {"latent": 12, "epochs": 12, "batch": 16}
SECRET = bytes(range(32))


def bare(data: Dataset) -> Dataset:
    """Without private labels, so that λ₀ = 1."""
    return replace(data, private={}, schema=replace(data.schema, private={}))


@pytest.fixture(scope="module")
def owner(parity: Splits) -> Dataset:
    return parity.owner.take(slice(0, 400))


@pytest.fixture(scope="module")
def published(owner: Dataset) -> ARS:
    """Two parties, one private label: λ = ½, ½."""
    return ARS(variant="published", parties=2, **QUICK).fit(owner)


@pytest.fixture(scope="module")
def maskable(owner: Dataset) -> ARS:
    """Two parties, no private label: λ₀ = 1."""
    return ARS(variant="published", parties=2, **TRAINED).fit(bare(owner))


@pytest.fixture(scope="module")
def hardened(owner: Dataset) -> ARS:
    return ARS(**QUICK).fit(owner)


def table(records: int = 120) -> Dataset:
    """Four columns, 1 + 3 + 2 + 1 entries."""
    rng = np.random.default_rng(0)
    columns = (
        Column("age", "numeric"),
        Column("job", "categorical", ("clerk", "cook", "driver")),
        Column("hours", "numeric", nullable=True),
        Column("score", "numeric"),
    )
    jobs = np.eye(3, dtype=np.float32)[rng.integers(3, size=records)]
    numbers = rng.random((records, 3)).astype(np.float32)
    missing = np.zeros((records, 1), np.float32)
    x = np.concatenate([numbers[:, :1], jobs, numbers[:, 1:2], missing, numbers[:, 2:]], axis=1)
    schema = Schema("table", (7,), utility={"income": ("low", "high")}, columns=columns)
    return Dataset(x, schema, utility={"income": (numbers[:, 0] > 0.5).astype(np.int64)}, name="people")


def clean(mechanism: ARS, data: Dataset, place: int = 0) -> FloatArray:
    return mechanism.parties_[place].latents(data.x)


# Equations


@pytest.mark.parametrize("split", ["rows", "columns"])
def test_what_leaves_is_within_epsilon_of_the_clean_latent(split: str) -> None:
    data = table()
    ars = ARS(epsilon=0.7, variant="published", parties=2, split=split, **QUICK).fit(data)
    payload = ars.release(data, seed=1).payload
    if split == "rows":
        latents = clean(ars, data)
    else:
        shares = [party.latents(block.take(data.x)) for party, block in zip(ars.parties_, ars.blocks_, strict=True)]
        latents = np.concatenate(shares, axis=1)
    assert np.abs(payload - latents).max() <= 0.7 + 1e-5
    assert np.abs(payload - latents).max() > 0.1


def test_masked_dimensions_do_not_move(maskable: ARS, owner: Dataset) -> None:
    masks = maskable.secrets(owner, seed=3)["mask"]
    assert masks is not None
    payload, latents = maskable.release(bare(owner), seed=3).payload, clean(maskable, owner)
    assert (payload[masks == 0] == latents[masks == 0]).all()
    assert (payload != latents)[masks == 1].mean() > 0.5


def test_without_a_mask_every_dimension_may_move(owner: Dataset, maskable: ARS) -> None:
    open_ = copy.copy(maskable).set_params(masked=False)
    open_.defence_ = replace(maskable.defence_, masked=False)
    masks = open_.secrets(owner, seed=3)["mask"]
    assert masks is not None and masks.all()
    moved = open_.release(bare(owner), seed=3).payload != clean(maskable, owner)
    assert moved.any(axis=0).all()


def test_noise_is_the_weighted_sum_of_its_parts(published: ARS, owner: Dataset) -> None:
    party, few = published.parties_[0], owner.take(slice(0, 20))
    assert party.substitute is not None
    z, masks = torch.from_numpy(party.latents(few.x)), np.ones((20, 12), np.float32)
    network, wanted = party.attributes["ge5"]
    apart = [
        against_decoder(party.substitute, z, as_tensor(few.x), torch.from_numpy(masks), 1.0, 10) - z,
        towards_class(network, z, wanted, 1.0),
    ]
    for weights in ((1.0, 0.0), (0.0, 1.0), (0.25, 0.75)):
        whole = party.perturbed(few.x, masks, replace(published.defence_, weights=weights))
        byhand = z + weights[0] * apart[0] + weights[1] * apart[1]  # Eq. 15
        assert np.allclose(whole, byhand.numpy(), atol=1e-6)


def test_the_papers_weights_are_half_for_the_record_and_the_rest_in_equal_parts(tiny: Dataset) -> None:
    more = replace(tiny.schema, private={"third": ("a", "b", "c"), "first": ("a", "b")})
    assert ARS()._weights(bare(tiny).schema) == (1.0,)
    assert ARS()._weights(tiny.schema) == (0.5, 0.5)
    assert ARS()._weights(more) == (0.5, 0.25, 0.25)
    assert ARS(lam="0.2, 0.3,0.5")._weights(more) == ARS(lam=[0.2, 0.3, 0.5])._weights(more) == (0.2, 0.3, 0.5)
    assert sum(ARS(lam="0.34,0.34,0.33")._weights(more)) == pytest.approx(1.0)  # so that |δ| ≤ ε


def test_wanted_classes_are_fixed_classes_of_the_label(published: ARS, owner: Dataset) -> None:
    again = ARS(variant="published", parties=2, **QUICK)
    again._build(owner.schema)
    for one, other in zip(published.parties_, again.parties_, strict=True):
        assert one.attributes["ge5"][1] == other.attributes["ge5"][1]
        assert one.attributes["ge5"][1] in (0, 1)
    drawn = {derive_seed(seed, "r", 0, "ge5") % 2 for seed in range(20)}
    assert drawn == {0, 1}


def test_attribute_noise_moves_the_network_towards_the_wanted_class(published: ARS, owner: Dataset) -> None:
    party = published.parties_[0]
    network, wanted = party.attributes["ge5"]
    masks = np.zeros((len(owner), 12), np.float32)  # the attribute's part has no mask (Eq. 14)
    moved = party.perturbed(owner.x, masks, replace(published.defence_, epsilon=0.2))
    goal = torch.full((len(owner),), wanted)
    with torch.no_grad():
        before, after = (
            F.cross_entropy(network.eval()(torch.from_numpy(each)), goal) for each in (clean(published, owner), moved)
        )
    assert after < before


@pytest.mark.parametrize("variant", ["published", "hardened"])
def test_latents_of_the_initiators_records_are_standardised(variant: str, owner: Dataset) -> None:
    ars = ARS(variant=variant, parties=2, **QUICK).fit(owner)  # type: ignore[arg-type]
    encoder = ars._networks.encoders[0].eval()
    x = as_tensor(owner.take(slice(0, None, 2)).x)
    with torch.no_grad():
        z = (encoder if variant == "published" else encoder[:-1])(x).numpy().astype(np.float64)  # before the ball
    assert np.abs(z.mean(axis=0)).max() < 1e-3
    assert np.abs(z.std(axis=0) - 1.0).max() < 1e-3


def test_no_epsilon_releases_clean_latents(owner: Dataset) -> None:
    ars = ARS(variant="published", epsilon=0.0, **QUICK).fit(owner)
    assert (ars.release(owner, seed=1).payload == clean(ars, owner)).all()


@pytest.mark.parametrize("place", [0, 1])
def test_noise_raises_the_error_of_the_partys_own_decoder_more_than_chance_does(
    place: int, maskable: ARS, owner: Dataset
) -> None:
    party, records = maskable.parties_[place], owner.x[place::2]
    latents, x = torch.from_numpy(party.latents(records)), torch.from_numpy(records.copy())
    moved = torch.from_numpy(party.perturbed(records, np.ones((len(x), 12), np.float32), maskable.defence_))
    signs = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], moved.shape)).float()
    chance = latents + (moved - latents).abs() * signs
    decoder = party.substitute
    assert decoder is not None
    with torch.no_grad():
        clean_error, chance_error, error = (float(F.mse_loss(decoder(each), x)) for each in (latents, chance, moved))
    assert error > 1.3 * clean_error
    assert error > 1.2 * chance_error


# Masks and secrets


def test_masks_belong_to_party_and_secret(maskable: ARS, owner: Dataset) -> None:
    six = owner.take(slice(0, 6))
    masks, again, other = (maskable.secrets(six, seed=seed)["mask"] for seed in (3, 3, 4))
    assert (masks == again).all() and (masks != other).any()
    assert (masks[0::2] == masks[0]).all() and (masks[1::2] == masks[1]).all()
    assert (masks[0] != masks[1]).any()


def test_a_partys_own_secret_decides_its_mask(maskable: ARS, owner: Dataset) -> None:
    records, latents = bare(owner), clean(maskable, owner)

    def moved(secret: bytes) -> tuple[bool, ...]:
        payload = copy.copy(maskable).hold_secret(secret).release(records).payload
        return tuple((payload != latents)[::2].any(axis=0).tolist())

    mask = maskable.parties_[0].mask(derived(SECRET, "party", 0), 12, masked=True)
    assert moved(SECRET) == moved(SECRET) == tuple((mask == 1).tolist())
    assert moved(SECRET) != moved(bytes(32))


def test_mask_bits_are_fair_and_independent() -> None:
    masks = np.stack([secret_bits(derived(bytes([place] * 32), "mask"), 512) for place in range(200)])
    assert set(np.unique(masks)) == {0.0, 1.0}
    assert abs(masks.mean() - 0.5) < 5 * 0.5 / np.sqrt(masks.size)
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(200)
    overlaps = (masks[:-1] == masks[1:]).mean(axis=1)  # §6.1: two masks agree in half of the dimensions
    assert np.abs(overlaps - 0.5).max() < 5 * 0.5 / np.sqrt(512)


def test_mask_and_noise_come_from_different_secrets() -> None:
    purposes = {derived(SECRET, "party", place) for place in range(50)} | {derived(SECRET, "mask")}
    assert len(purposes | {derived(SECRET, "noise"), SECRET}) == 53


def test_secret_is_in_no_file_text_or_copy(maskable: ARS, owner: Dataset, tmp_path: Path) -> None:
    device = copy.copy(maskable)
    release = device.hold_secret(SECRET).release(bare(owner))
    device.save(tmp_path)
    mask = device.parties_[0].mask(derived(SECRET, "party", 0), 12, masked=True)
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    published = device.publish()
    carried = pickle.dumps((device, release, device.get_params(), published.params, dict(published.tensors)))
    for secret in (SECRET, derived(SECRET, "party", 0), mask.tobytes(), mask.astype(np.uint8).tobytes()):
        assert secret not in stored and secret not in carried
    assert not any(torch.equal(tensor, torch.from_numpy(mask)) for tensor in device.state().values())
    assert SECRET.hex() not in repr(vars(device).keys()) + repr(device) and "secret" not in repr(device)
    assert copy.copy(device)._secret == copy.deepcopy(device)._secret == b""
    assert device._secret == SECRET


@pytest.mark.parametrize("variant", ["published", "hardened"])
def test_keyed_party_releases_a_record_twice_in_the_same_way(
    variant: str, request: pytest.FixtureRequest, owner: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("device.key", "other.key"):
        make_secret(tmp_path / name)
    monkeypatch.setenv(SECRET_VARIABLE, str(tmp_path / "device.key"))
    ars: ARS = request.getfixturevalue(variant)
    first, again = (copy.copy(ars).release(owner).payload for _ in range(2))  # two processes, one device
    assert (first == again).all()
    monkeypatch.setenv(SECRET_VARIABLE, str(tmp_path / "other.key"))
    assert (copy.copy(ars).release(owner).payload != first).any()
    assert all((payload == ars.transform(owner.x, seed=9)).all() for payload in ars.repeated(owner, 3, seed=9))


def test_noise_of_a_record_does_not_depend_on_where_it_stands(owner: Dataset) -> None:
    two = ARS(parties=2, **QUICK).fit(owner)
    few, turned = owner.take(slice(0, 9)), owner.take(np.r_[1:9, 0])
    first, again = (copy.copy(two).hold_secret(SECRET).release(data).payload for data in (few, turned))
    assert np.allclose(np.roll(first, -1, axis=0), again, atol=1e-5)


@pytest.mark.parametrize("variant", ["published", "hardened"])
def test_party_without_a_key_draws_anew(variant: str, request: pytest.FixtureRequest, owner: Dataset) -> None:
    ars = copy.copy(request.getfixturevalue(variant)).set_params(keyed=False)
    assert (ars.release(owner).payload != ars.release(owner).payload).any()
    one, two = ars.repeated(owner, 2, seed=9)
    assert (one != two).any()


def test_writing_a_keyed_release_needs_a_secret_that_stays(hardened: ARS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    with pytest.raises(UsageError, match=SECRET_VARIABLE):
        hardened.check_writing()
    copy.copy(hardened).set_params(keyed=False).check_writing()


# Hardened


def test_hardened_noise_is_normal_of_size_epsilon(owner: Dataset, hardened: ARS) -> None:
    for epsilon in (0.5, 2.0):
        payload = hardened.parties_[0].hardened(owner.x, owner.origin.nonces, SECRET, epsilon)
        noise = (payload - clean(hardened, owner)).astype(np.float64) / epsilon
        assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
        assert abs(noise.std() - 1.0) < 5 / np.sqrt(2 * noise.size)
        assert abs((np.abs(noise) < 1.0).mean() - 0.6827) < 5 * 0.47 / np.sqrt(noise.size)


def test_hardened_noise_of_records_and_dimensions_is_uncorrelated() -> None:
    nonces = hash_rows(np.arange(4000, dtype=np.float32)[:, None])
    noise = keyed_normal(nonces, SECRET, 12).astype(np.float64)
    bound = 5 / np.sqrt(4000)
    between = np.corrcoef(noise.T) - np.eye(12)
    assert np.abs(between).max() < bound
    neighbours = (noise[:-1] * noise[1:]).mean(axis=0)
    assert np.abs(neighbours).max() < bound


def test_equal_nonces_have_equal_noise_and_others_have_not() -> None:
    nonces = hash_rows(np.array([[0.5, 0.0], [0.5, -0.0], [0.5, 1e-7]], np.float32))
    noise = keyed_normal(nonces, SECRET, 7)
    assert noise.shape == (3, 7)
    assert (noise[0] == noise[1]).all() and (noise[0] != noise[2]).all()
    assert (keyed_normal(nonces, bytes(32), 7) != noise).all()


def test_hardened_noise_cannot_be_cancelled_by_a_second_release(hardened: ARS, owner: Dataset) -> None:
    party = hardened.parties_[0]
    z, one, two = (
        clean(hardened, owner),
        party.hardened(owner.x, owner.origin.nonces, SECRET, 1.0),
        party.hardened(owner.x, owner.origin.nonces, SECRET, 2.0),
    )
    assert np.abs(2 * one - two - z).mean() > 1.0  # two equations with the same noise would give z
    other = copy.deepcopy(party)
    with torch.no_grad():
        next(iter(other.encoder.parameters())).mul_(1.01)
    difference = other.hardened(owner.x, owner.origin.nonces, SECRET, 1.0) - other.latents(owner.x) - (one - z)
    assert difference.std() == pytest.approx(np.sqrt(2), rel=0.1)


def test_secret_of_another_length_is_refused(hardened: ARS, owner: Dataset) -> None:
    for secret in (b"", b"short", bytes(65)):
        with pytest.raises(UsageError, match="a secret has 32 bytes"):
            copy.copy(hardened).hold_secret(secret).release(owner)


def test_hardened_payload_of_parties_does_not_depend_on_the_order_of_records(hardened: ARS, owner: Dataset) -> None:
    payload = copy.copy(hardened).hold_secret(SECRET).release(owner).payload
    order = np.random.default_rng(0).permutation(len(owner))
    turned = copy.copy(hardened).hold_secret(SECRET).release(owner.take(order)).payload
    assert np.allclose(turned, payload[order], atol=1e-5)


def test_hardened_has_no_masks_and_no_participant(hardened: ARS, owner: Dataset) -> None:
    assert hardened.secrets(owner, seed=0) == {}
    assert hardened.participant(owner, seed=0) is None


def test_hardening_needs_a_label_and_the_published_way_does_not(owner: Dataset) -> None:
    nothing = replace(bare(owner), utility={}, schema=replace(owner.schema, utility={}, private={}))
    with pytest.raises(DataError, match="no utility label"):
        ARS(**QUICK).fit(nothing)
    assert ARS(variant="published", **QUICK).fit(nothing).release(nothing, seed=0).payload.shape == (len(owner), 12)


# What is published, and who joins


def test_published_holds_the_encoder_and_nothing_of_the_party(published: ARS) -> None:
    shared = published.publish()
    assert not {"lam", "seed", "parties"} & set(shared.params)
    encoder = published.public_encoder()
    assert encoder is not None and set(shared.tensors) == set(encoder.state_dict())
    text = repr((shared.params, shared.schema))
    assert "ge5" not in text and "odd" in text
    assert Schema.from_json(shared.schema).private == {}


def test_public_schema_hides_private_names_and_subjects() -> None:
    schema = Schema(
        "table",
        (1,),
        utility={"income": ("a", "b")},
        private={"ill": ("no", "yes")},
        id_column="passport",
        columns=(Column("age", "numeric"),),
        sources={"ill": "diagnosis == C50", "income": "wage"},
    )
    text = repr(public_schema(schema))
    assert not any(word in text for word in ("ill", "diagnosis", "passport"))
    assert "wage" in text and "age" in text


def test_digest_changes_with_any_weight_or_parameter(published: ARS) -> None:
    shared = published.publish()
    digests = {shared.digest, published.publish().digest}
    assert len(digests) == 1
    for name, array in shared.tensors.items():
        other = np.array(array)
        other.flat[0] += 1
        digests.add(Published(shared.params, shared.schema, {**shared.tensors, name: other}).digest)
    for name in shared.params:
        digests.add(Published({**shared.params, name: "else"}, shared.schema, shared.tensors).digest)
    digests.add(Published(shared.params, {**shared.schema, "kind": "audio"}, shared.tensors).digest)
    assert len(digests) == 2 + len(shared.tensors) + len(shared.params)


def test_joined_party_has_the_encoder_and_a_substitute_of_its_own(published: ARS, parity: Splits) -> None:
    theirs = parity.attacker
    party = ARS.join(published.publish(), theirs, seed=5)
    assert (clean(party, theirs) == clean(published, theirs)).all()
    mine, other = published.parties_[0].substitute, party.parties_[0].substitute
    assert mine is not None and other is not None
    assert any(not torch.equal(a, b) for a, b in zip(mine.parameters(), other.parameters(), strict=True))
    assert party.release(theirs, seed=1).payload.shape == (len(theirs), 12)
    assert party.publish().digest == published.publish().digest


def test_joining_trains_a_substitute_that_decodes(maskable: ARS, parity: Splits) -> None:
    theirs = bare(parity.attacker)
    party = ARS.join(maskable.publish(), theirs)
    decoder = party.parties_[0].substitute
    assert decoder is not None
    with torch.no_grad():
        guess = decoder(torch.from_numpy(clean(party, theirs))).numpy()
    assert ((guess - theirs.x) ** 2).mean() < 0.9 * theirs.x.var(axis=0).mean()


def test_party_that_joins_the_hardened_encoder_trains_nothing(hardened: ARS, parity: Splits) -> None:
    calls: list[int] = []
    party = ARS.join(hardened.publish(), parity.attacker, progress=lambda done, total, metrics: calls.append(done))
    assert not calls
    same = [each.hold_secret(SECRET).release(parity.victim).payload for each in (copy.copy(hardened), party)]
    assert (same[0] == same[1]).all()


def test_an_initiator_without_a_secret_does_not_make_others_draw_their_noise_anew(
    hardened: ARS, parity: Splits
) -> None:
    """Whoever joins holds a secret, and its noise follows from it."""
    careless = copy.copy(hardened).set_params(keyed=False)
    party = ARS.join(careless.publish(), parity.attacker).hold_secret(SECRET)
    first, again = (party.release(parity.attacker).payload for _ in range(2))
    assert party.keyed and (first == again).all()


def test_party_may_have_other_private_labels(published: ARS, parity: Splits) -> None:
    theirs = bare(parity.attacker)
    assert ARS.join(published.publish(), theirs).defence_.weights == (1.0,)
    assert ARS.join(published.publish(), parity.attacker, lam="0.2,0.8").defence_.weights == (0.2, 0.8)
    with pytest.raises(UsageError, match="lam has 2 numbers"):
        ARS.join(published.publish(), theirs, lam="0.2,0.8")


def test_records_of_another_schema_cannot_join(published: ARS, parity: Splits) -> None:
    theirs, shared = parity.attacker, published.publish()
    others: dict[str, Schema] = {
        "shape": replace(theirs.schema, shape=(1, 14, 56)),
        "utility labels": replace(theirs.schema, utility={"odd": ("odd", "even")}),
        "ranges": replace(theirs.schema, ranges=((0.0, 16.0),)),
    }
    for what, schema in others.items():
        data = replace(theirs, x=theirs.x.reshape(-1, *schema.shape), schema=schema, name="theirs")
        with pytest.raises(DataError, match=f"theirs: the {what} differ from the initiator's"):
            ARS.join(shared, data)


def test_table_of_other_columns_cannot_join() -> None:
    data = table()
    shared = ARS(variant="published", **QUICK).fit(data).publish()
    ARS.join(shared, data)
    age, *rest = data.schema.columns
    for other in (replace(age, name="years"), replace(age, high=90.0)):
        with pytest.raises(DataError, match="the columns differ"):
            ARS.join(shared, replace(data, schema=replace(data.schema, columns=(other, *rest))))


def test_encoder_that_does_not_fit_its_description_is_refused(published: ARS, owner: Dataset) -> None:
    shared = published.publish()
    name = next(iter(shared.tensors))
    whole = dict(shared.tensors)
    for wrong in ({name: whole[name][:-1]}, {"stranger": whole[name]}):
        with pytest.raises(DataError, match="does not fit its own description"):
            ARS.join(replace(shared, tensors={**whole, **wrong}), owner)
    del whole[name]
    with pytest.raises(DataError, match="does not fit its own description"):
        ARS.join(replace(shared, tensors=whole), owner)
    with pytest.raises(DataError, match="NaN or infinite weights"):
        ARS.join(replace(shared, tensors={**whole, name: np.full_like(shared.tensors[name], np.nan)}), owner)


@pytest.mark.parametrize(
    "kind", [object, np.float64, np.complex64, np.str_], ids=lambda kind: kind.__name__
)  # 1e300 is finite, and infinite in 32 bits
def test_weights_of_another_kind_are_refused(kind: type, published: ARS, owner: Dataset) -> None:
    shared = published.publish()
    name = next(iter(shared.tensors))
    with np.errstate(over="ignore"):
        other = {**shared.tensors, name: np.full(shared.tensors[name].shape, 1e300).astype(kind)}
    with pytest.raises(DataError, match="does not fit its own description"):
        ARS.join(replace(shared, tensors=other), owner)


@pytest.mark.parametrize(
    "change",
    [{"parties": 1000}, {"seed": 1}, {"split": "columns"}, {"epsilon": "1"}, {"masked": 1}, {"x": 0}, {"n": None}],
    ids=lambda change: next(iter(change)),
)
def test_settings_that_nobody_publishes_are_refused(change: dict[str, Any], published: ARS, owner: Dataset) -> None:
    shared = published.publish()
    params = {name: value for name, value in {**shared.params, **change}.items() if value is not None}
    with pytest.raises(DataError, match=f"not those of a published ars: see '{next(iter(change))}'"):
        ARS.join(replace(shared, params=params), owner)


def test_schema_that_cannot_be_read_is_refused(published: ARS, owner: Dataset) -> None:
    shared = published.publish()
    for schema in ({}, {**shared.schema, "shape": 3}, {**shared.schema, "columns": [{"strange": 1}]}):
        with pytest.raises(DataError, match="schema cannot be read"):
            ARS.join(replace(shared, schema=schema), owner)


def test_participant_pushes_labels_where_the_victims_do(published: ARS, parity: Splits) -> None:
    theirs, nobody = parity.attacker, np.zeros((len(parity.attacker), 12), np.float32)
    released = []
    for seed in range(4):  # r_k of a party follows from its seed
        participant = published.participant(theirs, seed=seed)
        assert participant is not None
        released.append(participant(theirs, nobody) - clean(published, theirs))
    network, wanted = published.parties_[0].attributes["ge5"]
    z = torch.from_numpy(clean(published, theirs))
    victims = 0.5 * towards_class(network, z, wanted, 1.0).numpy()
    agreement = [np.mean(np.sign(noise) == np.sign(victims)) for noise in released]
    assert np.mean(agreement) > 0.55  # with the other class the same network would be pushed the other way


def test_participant_releases_under_the_masks_it_is_given(maskable: ARS, parity: Splits) -> None:
    theirs = bare(parity.attacker)
    participant = maskable.participant(theirs, seed=1)
    assert participant is not None
    masks = (np.random.default_rng(0).random((len(theirs), 12)) < 0.5).astype(np.float32)
    payload, latents = participant(theirs, masks), clean(maskable, theirs)
    assert (payload[masks == 0] == latents[masks == 0]).all()
    assert (payload != latents)[masks == 1].mean() > 0.5


# Bad parameters


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must lie in"),
        ({"n": 0}, "n must lie in"),
        ({"latent": 0}, "latent must lie in"),
        ({"parties": 0}, "parties must lie in"),
        ({"variant": "hard"}, "did you mean 'hardened'"),
        ({"split": "row"}, "did you mean 'rows'"),
        ({"lam": "0.5,0.2"}, "add up to 1 .* make 0.7"),
        ({"lam": "1.5,-0.5"}, "from 0 on"),
        ({"lam": "nan,0.5"}, "add up to 1"),
        ({"lam": "half,half"}, "give numbers such as"),
        ({"lam": "1"}, r"lam has 1 numbers: .* \(ge5\)"),
        ({"lam": (0.5, 0.25, 0.25)}, "lam has 3 numbers"),
        ({"parties": 2, "split": "columns"}, "split=columns is for tables, these records are of kind image"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_trained(
    wrong: dict[str, Any], message: str, owner: Dataset
) -> None:
    with pytest.raises(UsageError, match=message):
        ARS(**wrong).fit(owner, progress=lambda *_: pytest.fail("it trained"))


def test_more_parties_than_columns_or_records_are_refused() -> None:
    with pytest.raises(UsageError, match="4 columns are too few for 5 parties"):
        ARS(parties=5, split="columns", **QUICK).fit(table())
    with pytest.raises(DataError, match=r"party 1 of 40 has 3 records"):
        ARS(parties=40, variant="published", **QUICK).fit(table())


# Parties by rows and columns


def test_initiator_alone_trains_the_encoder(owner: Dataset, maskable: ARS) -> None:
    first = bare(owner.take(slice(0, None, 2)))
    alone = ARS(variant="published", **TRAINED).fit(first)
    assert alone.publish().digest == maskable.publish().digest


def test_every_party_has_a_substitute_of_its_own_records(maskable: ARS) -> None:
    first, second = (party.substitute for party in maskable.parties_)
    assert first is not None and second is not None
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_fewer_records_than_parties_can_be_released(maskable: ARS, owner: Dataset) -> None:
    one = bare(owner).take(slice(0, 1))
    alone, among = (maskable.release(each, seed=3).payload[:1] for each in (one, bare(owner)))
    assert np.allclose(alone, among, atol=1e-5)


@pytest.mark.parametrize("variant", ["published", "hardened"])
def test_parties_by_columns_put_their_latents_side_by_side(variant: str) -> None:
    data = table()
    ars = ARS(variant=variant, parties=3, split="columns", **QUICK).fit(data)  # type: ignore[arg-type]
    payload = ars.release(data, seed=4).payload
    assert payload.shape == (len(data), 3 * 12)
    changed = data.x.copy()
    last = ars.blocks_[-1]
    changed[:, last.start : last.stop] = 1.0 - changed[:, last.start : last.stop]
    other = ars.transform(changed, origin=data.origin, seed=4)  # the same persons
    assert (other[:, :24] == payload[:, :24]).all()  # what the others hold says nothing of these columns
    assert (other[:, 24:] != payload[:, 24:]).any()
    shares = [party.latents(block.take(data.x)) for party, block in zip(ars.parties_, ars.blocks_, strict=True)]
    together = forward_in_batches(ars.public_encoder(), as_tensor(data.x)).numpy()
    assert np.allclose(together, np.concatenate(shares, axis=1), atol=1e-5)
    with pytest.raises(UsageError, match="nothing to publish"):
        ars.publish()


@settings(deadline=None, max_examples=200)
@given(widths=st.lists(st.integers(1, 12), min_size=1, max_size=12), data=st.data())
def test_blocks_cover_every_column_once_and_in_order(widths: list[int], data: st.DataObject) -> None:
    columns = tuple(
        Column(f"c{place}", "categorical", tuple(map(str, range(width)))) for place, width in enumerate(widths)
    )
    schema = Schema("table", (sum(widths),), columns=columns)
    parties = data.draw(st.integers(1, len(widths)))
    blocks = blocks_of(schema, parties)
    assert len(blocks) == parties
    assert sum((block.columns for block in blocks), ()) == columns
    x = np.arange(2 * sum(widths), dtype=np.float32).reshape(2, -1)
    assert (np.concatenate([block.take(x) for block in blocks], axis=1) == x).all()
    for block in blocks:
        assert block.columns and block.shape == (sum(column.width for column in block.columns),)


def test_blocks_are_about_equal() -> None:
    columns = tuple(Column(f"c{place}", "numeric") for place in range(13))
    blocks = blocks_of(Schema("table", (13,), columns=columns), 3)
    assert [block.shape[0] for block in blocks] == [4, 5, 4]
