"""Attacks on what parties share: each wins without a defence, and the mask is no secret."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.masks.mask_attacks import KnownMask, MaskBySpread, ReadMask, SearchMask, masks_by_spread
from sfumato.attacks.masks.substitute_decoders import AnyMask, AverageShares, CleanDecoder, OwnMask, random_masks
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.registry import shared_suite
from sfumato.auditing.effort import Effort
from sfumato.auditing.mask_overlap import flipped, masked_release
from sfumato.auditing.plans.shared import SharedPlan
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.metrics import categories_right
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Column
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.testing import AuditStage

FEW = {"epochs": 1, "steps": 150}
DECODERS: list[Attack] = [kind(**FEW) for kind in (CleanDecoder, OwnMask, AnyMask, KnownMask, ReadMask)]
DECODERS.append(SearchMask(**FEW, candidates=4, records=20))
every = pytest.mark.parametrize("attack", DECODERS, ids=lambda attack: attack.name)


@pytest.fixture(scope="module")
def scene(parity: Splits) -> AuditStage:
    plain = Splits(*(replace(part, private={}, schema=replace(part.schema, private={})) for part in parts(parity)))
    mechanism = ARS(variant="published", epsilon=1.0, n=4, latent=32, epochs=8, keyed=False).fit(plain.owner)
    return AuditStage(mechanism, plain, Effort(attack_epochs=1, attack_steps=40, candidates=50, repeats=2), seed=0)


def parts(splits: Splits) -> tuple:  # type: ignore[type-arg]
    return splits.owner, splits.attacker, splits.victim


def error(attack: Attack, scene: AuditStage) -> float:
    knowledge, release, truth = scene.stage(attack)
    return attack(release, knowledge, truth).values()["mse"]


@every
def test_decoder_beats_the_mean_record_on_clean_latents(attack: Attack, scene: AuditStage) -> None:
    fresh = SharedPlan(scene.scene, scene.stage(attack)[0].participant, 1)  # keeps one control for all decoders
    values = fresh.control(attack, scene.stage(attack)[0])
    mean = scene.splits.attacker.x.mean(axis=0)
    assert values is not None and values["mse"] < ((scene.splits.victim.x - mean) ** 2).mean() - 0.005


@every
def test_decoder_without_a_participant_says_so(attack: Attack, scene: AuditStage) -> None:
    knowledge, release, truth = scene.stage(attack)
    with pytest.raises(RuleBroken, match="needs parties that mask their noise"):
        attack(release, replace(knowledge, participant=None), truth)


def test_only_the_upper_bound_is_granted_the_masks(scene: AuditStage) -> None:
    granted = {attack.name for attack in shared_suite() if scene.stage(attack)[0].granted}
    assert granted == {"sdec-known-mask"}


def test_mask_is_read_off_the_release(scene: AuditStage) -> None:
    knowledge, release, truth = scene.stage(MaskBySpread())
    score = MaskBySpread()(release, knowledge, truth).scores[0]
    assert score.baseline == 0.5 and 0.75 < score.value <= 1.0


def test_blank_release_gives_no_mask_away(scene: AuditStage) -> None:
    knowledge, release, _ = scene.stage(MaskBySpread())
    found = masks_by_spread(np.zeros_like(release.payload), knowledge)
    assert found.shape == (1, release.payload.shape[1])
    assert found.mean() < 0.2  # nothing spreads, so nothing looks perturbed


def test_attacker_of_the_paper_is_not_the_one_to_fear(scene: AuditStage) -> None:
    own, any_mask, read, known = (error(kind(**FEW), scene) for kind in (OwnMask, AnyMask, ReadMask, KnownMask))
    assert any_mask < own
    assert read < own
    assert read == pytest.approx(known, rel=0.15)


def test_average_of_fresh_releases_tells_more_and_of_equal_ones_nothing(scene: AuditStage) -> None:
    inverse = InverseNetwork(epochs=1, width=8, fewest_steps=60)
    average = AverageShares(inverse=inverse)
    knowledge, release, truth = scene.stage(average)
    assert average(release, knowledge, truth).values()["mse"] < inverse(release, knowledge, truth).values()["mse"]
    same = replace(knowledge, repeats=(release.payload, release.payload))
    assert average.obstacle(same) == "a record leaves in the same way every time: there is nothing to average"


@pytest.mark.parametrize(("renewals", "most"), [(0, 200), (3, 5)])
def test_inverse_network_queries_no_more_often_than_it_is_told(renewals: int, most: int, scene: AuditStage) -> None:
    inverse, calls = InverseNetwork(epochs=1, width=4, fewest_steps=60, renewals=renewals), 0
    knowledge, _, _ = scene.stage(inverse)
    query = knowledge.query
    assert query is not None

    def counted(data: Dataset) -> FloatArray:
        nonlocal calls
        calls += 1
        return query(data)

    inverse.train(replace(knowledge, query=counted))
    assert 3 <= calls <= most and (renewals or calls > 10), "the held-out records, the first pairs, and renewals"


def test_right_masks_of_all_parties_are_worth_more_than_wrong_ones(scene: AuditStage) -> None:
    several = ARS(variant="published", parties=2, n=4, latent=32, epochs=6).fit(scene.splits.owner)
    shared = masked_release(several, scene.splits, seed=1, steps=200)
    half, whole = shared.at(0.5), shared.at(1.0)
    assert shared.masks.shape == (2, 32) and (shared.masks[0] != shared.masks[1]).any()
    assert (half.rate, whole.rate) == (0.5, 1.0)
    assert whole.error.value < half.error.value


def test_search_finds_one_of_the_masks_it_tries_and_the_spread_says_more(scene: AuditStage) -> None:
    shared = masked_release(scene.mechanism, scene.splits, seed=1, steps=100)
    found = shared.searched(candidates=3)
    tried = random_masks(3, 32, derive_seed(shared.knowledge.seed, "sdec-search-mask", "candidates"))
    assert found.rate in [(mask == shared.masks[0]).mean() for mask in tried]
    assert shared.read() > found.rate


def test_flipped_mask_overlaps_as_asked() -> None:
    mask = random_masks(1, 64, 3)[0]
    for rate in (0.0, 0.25, 0.5, 1.0):
        assert (flipped(mask, rate, 0) == mask).mean() == rate


def test_share_of_categories_that_are_right_counts_categorical_columns_alone() -> None:
    columns = (
        Column("n", "numeric"),
        Column("a", "categorical", ("x", "y")),
        Column("b", "categorical", ("p", "q", "r")),
    )
    truth = np.array([[0.5, 1, 0, 0, 0, 1], [0.1, 0, 1, 1, 0, 0]], dtype=np.float32)
    guess = np.array([[0.9, 0.6, 0.4, 0.5, 0.2, 0.3], [0.1, 0.1, 0.9, 0.8, 0.1, 0.1]], dtype=np.float32)
    assert categories_right(truth, guess, columns).tolist() == [0.5, 1.0]
