"""Attacks on what a device sends later: they name everybody where company changes, and one in d where it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.rotations.later_releases import CountCopies, DecoyLaterSent, MeetAcrossReleases, MeetAfterRefit
from sfumato.attacks.rotations.row_guesses import RowAttack
from sfumato.auditing import Effort
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.knowledge import Opened
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.testing import AuditStage, wins
from turned import Turned

LATER: list[RowAttack] = [MeetAcrossReleases(), MeetAfterRefit(), DecoyLaterSent()]
every = pytest.mark.parametrize("attack", LATER, ids=lambda attack: attack.name)
EFFORT = Effort(candidates=120, repeats=1)


@pytest.fixture(scope="module")
def forgetful(parity: Splits) -> AuditStage:
    return AuditStage(Turned(d=2).fit(parity.owner), parity, EFFORT, seed=1)


@pytest.fixture(scope="module")
def real(fitted: dict[str, Mechanism], parity: Splits) -> AuditStage:
    return AuditStage(fitted["phase"], parity, EFFORT, seed=1)


@every
def test_a_device_that_forgets_gives_everybody_away(attack: RowAttack, forgetful: AuditStage) -> None:
    score = forgetful.score(attack)
    assert wins(score) and score.value > 0.9


@every
def test_a_device_that_remembers_keeps_one_in_d(attack: RowAttack, real: AuditStage) -> None:
    score = real.score(attack)
    assert score.baseline == pytest.approx(0.5) and score.n >= 60
    assert score.ci[0] <= 0.5 <= score.ci[1]


@every
def test_attack_needs_what_was_sent_later(attack: RowAttack, forgetful: AuditStage) -> None:
    knowledge, _, _ = forgetful.stage(attack)
    assert "sent later" in str(attack.obstacle(replace(knowledge, later=None)))
    assert "public encoder" in str(attack.obstacle(replace(knowledge, encoder=None)))


# repeated rows


class Sharing(Turned):
    """Copies share their company, as they did once: the order of the groups is one of different records."""

    def _open(self, x: FloatArray, pairs: int, keys: int) -> Opened:
        kinds, first, copies = np.unique(x.reshape(len(x), -1), axis=0, return_index=True, return_inverse=True)
        few = super()._open(x[first], pairs, keys)
        rows = np.column_stack([np.arange(len(x)), first[few.rows[copies.reshape(-1)]][:, 1:]])
        key = self._keys(len(x), np.random.default_rng(keys))
        plain = np.matmul(few.key.transpose(0, 2, 1), few.payload.reshape(len(kinds), self.d, -1))
        turned = np.matmul(key, plain[copies.reshape(-1)]).reshape(len(x), *few.payload.shape[1:])
        return Opened(turned.astype(np.float32), key, rows)


@pytest.fixture(scope="module")
def repeated(parity: Splits) -> Splits:
    """Sixty different digits, some of them far more frequent than others, among attacker and victims alike."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 61)
    kinds = parity.victim.take(slice(0, 60))

    def drawn(count: int, name: str) -> Dataset:
        found = kinds.take(rng.choice(60, count, p=shares / shares.sum()))
        return replace(found, ids=np.array([f"{name}:{row}" for row in range(count)]), name=name)

    return Splits(parity.owner, drawn(400, "attacker"), drawn(400, "victim"))


def test_copies_that_share_their_company_are_counted_and_copies_apart_are_not(
    repeated: Splits, fitted: dict[str, Mechanism]
) -> None:
    shared = AuditStage(Sharing().fit(repeated.owner), repeated, EFFORT, seed=1).score(CountCopies())
    assert wins(shared) and shared.value > 0.75
    apart = AuditStage(fitted["phase"], repeated, EFFORT, seed=1).score(CountCopies())
    assert apart.ci[0] <= 0.5 <= apart.ci[1]


def test_without_copies_counting_is_guessing(forgetful: AuditStage) -> None:
    score = forgetful.score(CountCopies())
    assert score.ci[0] <= 0.5 <= score.ci[1]


class Scaled(Phase):
    """Tags of scaled records, as they were once: a refit regroups everybody."""

    name = "phase-scaled"

    def visits(self, batches: Sequence[Dataset], *, pool: Dataset | None = None, seed: int) -> tuple[Opened, ...]:
        return super().visits([replace(batch, contents=None) for batch in batches], pool=pool, seed=seed)


def test_tags_of_scaled_records_are_found_by_a_refit(fitted: dict[str, Mechanism], parity: Splits) -> None:
    phase = fitted["phase"]
    scaled = Scaled(**phase.get_params())
    scaled.schema_ = phase.schema_
    scaled._build(phase.schema_)
    scaled.load_state(phase.state())
    scaled._settle()
    score = AuditStage(scaled, parity, EFFORT, seed=1).score(MeetAfterRefit())
    assert wins(score) and score.value > 0.9
