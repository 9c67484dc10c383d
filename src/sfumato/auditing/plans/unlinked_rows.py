"""Rows that belong to nobody in particular: what they tell about the owner's people, and not about held-out ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack
from sfumato.attacks.coded_rows import in_order
from sfumato.attacks.held_out import EXCESS, HeldOutAttack
from sfumato.attacks.membership.coded_records import CodedMembership
from sfumato.attacks.membership.shadow_releases import ShadowMembership
from sfumato.attacks.registry import rows_suite
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.base import Plan, Scene, Stage
from sfumato.auditing.remade_releases import Make, Pool
from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Remake, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

NO_MAKER = (
    "needs releases of other records by the same maker: give the command that makes them "
    "(--pipeline 'command {in} {out}')"
)
TOO_COSTLY = "needs shadow releases, which cost too much at this effort"
_RANKING = (EXCESS, "advantage")


class RowsPlan(Plan):
    """The five questions, against a release of the owner's records themselves as the control.

    A control that does not beat chance is none: where held-out people are found as often as members even then, the
    question cannot be graded. ``make`` calls the maker of the release; None where nobody
    can, and then ``unmade`` says what would be needed.
    """

    def __init__(
        self, scene: Scene, columns: Sequence[CodedColumn], make: Make | None = None, unmade: str = NO_MAKER
    ) -> None:
        super().__init__(scene)
        self._columns, self._unmade = columns, unmade
        splits, effort = scene.splits, scene.effort
        self._among_all = _line_up(splits.owner, splits.victim.joined(splits.attacker), effort, scene.seed)
        self._among_others = _line_up(splits.owner, splits.victim, effort, scene.seed)
        self._remake: Remake | None = None
        if make is not None:
            pool, suspects = Pool(splits, scene.seed), _ids(self._among_others[1])
            records = pool.records()
            self._remake = pool.remake(suspects, make)
            self._copy = pool.remake(suspects, lambda rows, _: records[rows])

    def attacks(self) -> list[Attack]:
        effort = self.scene.effort
        made = self._remake is not None
        return rows_suite(self._columns, asked=effort.predicates, shadows=effort.shadow_releases, remade=made)

    def obstacle(self, attack: Attack) -> str | None:
        if isinstance(attack, ShadowMembership) and self._remake is None:
            return self._unmade
        if isinstance(attack, (HeldOutAttack, CodedMembership)):
            return None
        return "a row belongs to no victim"

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage:
        alone = isinstance(attack, HeldOutAttack) and not attack.with_auxiliary
        candidates, truth = self._among_all if alone else self._among_others
        own = knowledge.auxiliary.take(np.arange(0)) if alone else knowledge.auxiliary
        granted = replace(
            knowledge, auxiliary=own, candidates=candidates, columns=tuple(self._columns), remake=self._remake
        )
        return Stage(granted, self.scene.release, truth, self.scene.shown)

    def control(self, attack: Attack, knowledge: Knowledge) -> Mapping[str, float]:
        stage = self.stage(attack, knowledge)
        known = stage.knowledge if self._remake is None else replace(stage.knowledge, remake=self._copy)

        def measured() -> dict[str, float]:
            raw = Release("raw records", in_order(self.scene.splits.owner.x), empirical("No defence."))
            outcome = attack(raw, known, stage.truth)
            wins = {key: score for key, score in outcome.by_key().items() if score.metric in _RANKING}
            lost = {key for key, score in wins.items() if score.ci[0] <= 0.0}
            return {key: value for key, value in outcome.values().items() if key not in lost}

        return self.scene.controls.get(f"rows {attack.identity}", measured)


def rows_scene(name: str, release: Release, splits: Splits, effort: Effort, seed: int, controls: Controls) -> Scene:
    """Coded rows, sorted so that the order of a file changes nothing."""
    knowledge = Knowledge(auxiliary=splits.attacker, randomised=True, seed=derive_seed(seed, "attacker"))
    sorted_rows = replace(release, payload=in_order(release.payload), utility={})
    return Scene(name, splits, effort, seed, sorted_rows, knowledge, np.empty(0, dtype=np.intp), controls=controls)


def _line_up(owner: Dataset, strangers: Dataset, effort: Effort, seed: int) -> tuple[Dataset, Truth]:
    """Some of the owner's people and some strangers, one record of each, in an order and under ids that say nothing;
    and which are which. Labels, by which the scorer groups them, are not for the attacker."""
    rng = np.random.default_rng(derive_seed(seed, "line-up"))
    most = max(1, effort.suspects // 2)
    members, others = (part.take(np.sort(_one_of_each(part, rng)[:most])) for part in (owner, strangers))
    order = rng.permutation(len(members) + len(others))
    both = members.joined(others).take(order)
    schema = replace(both.schema, utility={}, private={})
    known = replace(both, schema=schema, utility={}, private={}, ids=np.arange(len(both)).astype(np.str_))
    return known, Truth(both, members=(order < len(members)).astype(np.int64))


def _one_of_each(part: Dataset, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """One row of each person, drawn at random: rows of one person are no independent people."""
    order = rng.permutation(len(part))
    _, first = np.unique(np.asarray(part.ids).astype(np.str_)[order], return_index=True)
    return np.asarray(order[np.sort(first)])


def _ids(truth: Truth) -> npt.NDArray[np.str_]:
    return np.asarray(truth.open().ids).astype(np.str_)
