"""Parties that hold columns: the mask attacks and the paper's attacker run there as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.masks.mask_attacks import MaskBySpread, ReadMask
from sfumato.attacks.masks.substitute_decoders import OwnMask
from sfumato.attacks.registry import shared_suite
from sfumato.auditing.effort import Effort
from sfumato.auditing.trials import trials
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.testing import AuditStage
from sfumato.testing.attacks import wins

FEW: dict[str, Any] = {"epochs": 1, "steps": 300}
WORDS = tuple("abcd")


def people(rows: int, seed: int, name: str) -> Dataset:
    """Six columns of four categories, which follow from two hidden numbers and chance."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(4, size=(rows, 2))
    codes = [np.where(rng.random(rows) < 0.8, hidden[:, place % 2], rng.integers(4, size=rows)) for place in range(6)]
    x = np.concatenate([np.eye(4, dtype=np.float32)[each] for each in codes], axis=1)
    columns = tuple(Column(f"c{place}", "categorical", WORDS) for place in range(6))
    schema = Schema("table", (24,), utility={"high": ("n", "y")}, columns=columns)
    return Dataset(x, schema, utility={"high": (hidden[:, 0] > 1).astype(np.int64)}, name=name)


@pytest.fixture(scope="module")
def stage() -> AuditStage:
    splits = Splits(people(800, 1, "owner"), people(600, 2, "attacker"), people(400, 3, "victim"))
    mechanism = ARS(variant="published", split="columns", parties=2, n=4, latent=16, epochs=15).fit(splits.owner)
    return AuditStage(mechanism, splits, Effort(candidates=50, repeats=2))


def test_every_attack_of_a_curious_party_runs_by_columns(stage: AuditStage) -> None:
    wanted = {attack.name for attack in shared_suite()} - {"inverse-average"}  # the same leaves every time
    found = {t.attack.name for t in trials(stage.plans) if t.attack.obstacle(t.stage.knowledge) is None}
    assert wanted <= found


def test_masks_of_all_parties_are_read_off_the_release(stage: AuditStage) -> None:
    score = stage.score(MaskBySpread())
    assert wins(score) and score.value > 0.75


def test_what_moves_is_what_the_masks_of_all_parties_say(stage: AuditStage) -> None:
    mechanism, victim = stage.mechanism, stage.splits.victim
    assert isinstance(mechanism, ARS)
    masks = mechanism.secrets(victim, seed=5)["mask"]
    latents: FloatArray = np.concatenate(
        [party.latents(b.take(victim.x)) for party, b in zip(mechanism.parties_, mechanism.blocks_, strict=True)],
        axis=1,
    )
    payload = mechanism.release(victim, seed=5).payload
    assert masks.shape == payload.shape == (400, 32)
    assert np.allclose(payload[masks == 0], latents[masks == 0], atol=1e-5)
    assert (np.abs(payload - latents) > 0.05)[masks == 1].mean() > 0.5


@pytest.mark.parametrize("attack", [OwnMask(**FEW), ReadMask(**FEW)], ids=lambda attack: attack.name)
def test_decoders_of_masked_columns_beat_their_baseline(attack: Attack, stage: AuditStage) -> None:
    knowledge, release, truth = stage.stage(attack)
    right = next(s for s in attack(release, knowledge, truth).scores if s.metric == "category-accuracy")
    assert wins(right)
    control = stage.control(attack)
    assert control is not None and control["category-accuracy"] > max(0.85, right.value)  # on latents without noise
