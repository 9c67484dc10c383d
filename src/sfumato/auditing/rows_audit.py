"""The audit of a release whose rows belong to nobody in particular, whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.auditing.coded_parts import coded_splits
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import Effort
from sfumato.auditing.held_out_exposure import AskedPeople, held_out_exposures
from sfumato.auditing.plans.unlinked_rows import TOO_COSTLY, RowsPlan, rows_scene
from sfumato.auditing.remade_releases import Make
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.trials import Found, carry_out, suite, trials
from sfumato.core import compute
from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.leakage import with_leakage
from sfumato.core.metrics import Values
from sfumato.core.release import Release
from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import MEMBERSHIP
from sfumato.core.traits import Traits


@dataclass(frozen=True)
class Attacked:
    """What one attack found: its scores, and by target what it got of each candidate (NaN: not asked)."""

    scores: Sequence[Score]
    of_each: Mapping[str | None, Values]


Remembered = Callable[[str], Attacked | None]
Remember = Callable[[str, Attacked], None]

_BACKWARDS = -0.1
"""An advantage below this, with all its interval, is not what the most negative of many attacks has by chance."""
FOREIGN = Traits(randomised=True, needs_labels=False, synthetic=True, gives_records=True)


def audit_rows(
    release: Release,
    splits: Splits,
    columns: Sequence[CodedColumn],
    *,
    data: str,
    effort: Effort,
    seed: int,
    skipped: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    controls: Controls | None = None,
    make: Make | None = None,
    remembered: Remembered = lambda _: None,
    remember: Remember = lambda _, __: None,
    say: Say = lambda _: None,
) -> Audit:
    """Ask the five questions of coded rows.

    Args:
        release: The rows, coded by ``columns``.
        splits: The owner's people, those whose records the attacker has, and held-out people, coded alike.
        columns: What the numbers of a row are.
        data: What a report calls the owner's records.
        effort: How hard the attackers try.
        seed: Repeatable randomness.
        skipped: What was left out before, and why.
        notes: What has to be said about the files.
        controls: Undefended figures, shared among audits of the same records.
        make: Calls the maker of the release on other records; None where nobody can.
        remembered: What an attack found before the audit was interrupted; None if it was not run. Another version of
            it is run again.
        remember: Keeps what an attack found.
        say: Called with a line of progress before each attack.
    """
    with compute.threads(len(columns)):
        scene = rows_scene(release.mechanism, release, splits, effort, seed, controls or Controls())
        found = _carried_out(RowsPlan(scene, columns, make), remembered, remember, say)
    scores = as_sure_as_any(with_leakage(found.scores))
    return Audit(
        mechanism=release.mechanism,
        traits=FOREIGN,
        data=data,
        guarantee=release.guarantee,
        utility=(),
        attacks=scores,
        skipped=(*skipped, *found.skipped),
        titles=found.titles,
        confusion={},
        information=(),
        wrong_key={},
        gallery={},
        features={},
        exposure=held_out_exposures(scores, found.asked),
        notes=(*notes, *_backwards(scores)),
    )


def _backwards(scores: Sequence[Score]) -> list[str]:
    """What is to be said where membership is guessed so well the wrong way round that it is no chance."""
    found = [score for score in scores if score.threat == MEMBERSHIP and score.primary and score.ci is not None]
    if not any(score.ci is not None and score.ci[1] < _BACKWARDS for score in found):
        return []
    return [
        "the attacks on membership take held-out people for the owner's: were the two files exchanged, or is the "
        "release of other records than the owner's?"
    ]


def as_sure_as_any(scores: Sequence[Score]) -> tuple[Score, ...]:
    """The scores; what is sure by any attack on a question is sure of its worst one.

    The intervals of the attacks on a question hold together, so the most that one of them leaks is at least the highest
    of their lower ends. Otherwise an attack that found a little more, and by luck for all one knows, would hide one
    that is sure.
    """
    worst = {id(score) for score in worst_by_threat(scores).values()}
    lows: dict[tuple[str, str | None], float] = {}
    for score in scores:
        if score.primary and score.leakage_ci is not None:
            key = score.threat, score.target
            lows[key] = max(lows.get(key, 0.0), score.leakage_ci[0])
    return tuple(
        replace(score, leakage_ci=(max(score.leakage_ci[0], lows[score.threat, score.target]), score.leakage_ci[1]))
        if id(score) in worst and score.leakage_ci is not None
        else score
        for score in scores
    )


def own_rows(
    release: Release,
    splits: Splits,
    effort: Effort,
    seed: int,
    controls: Controls,
    say: Say,
    refitted: Callable[[Dataset, int], Release] | None = None,
) -> Found:
    """The five questions for synthetic records of our own, before their leakage is known. ``refitted`` fits the
    mechanism to other records and draws from it; None where that costs too much."""
    coded, rows, columns, code = coded_splits(splits, release, tuple(splits.schema.private))

    def make(places: IntArray, number: int) -> FloatArray:
        assert refitted is not None
        say(f"{release.mechanism}: shadow release {number + 1} of {effort.shadow_releases}")
        everybody = splits.owner.joined(splits.victim).joined(splits.attacker)
        return code(refitted(everybody.take(places), number))

    scene = rows_scene(release.mechanism, rows, coded, effort, seed, controls)
    return _carried_out(RowsPlan(scene, columns, None if refitted is None else make, TOO_COSTLY), say=say)


def _carried_out(
    plan: RowsPlan,
    remembered: Remembered = lambda _: None,
    remember: Remember = lambda _, __: None,
    say: Say = lambda _: None,
) -> Found:
    found = Found()
    attacks = suite([plan])
    for place, trial in enumerate(trials([plan], attacks), 1):
        name = trial.attack.name
        earlier = remembered(name)
        if earlier is not None and all(one.attack_version == trial.attack.version for one in earlier.scores):
            found.scores += earlier.scores
            found.titles[name] = (trial.attack.title or name, trial.attack.how)
            truth = trial.stage.truth
            found.asked |= {(name, about): AskedPeople.of(each, truth) for about, each in earlier.of_each.items()}
            continue
        one = carry_out([trial], f"{plan.scene.name} ({place} of {len(attacks)})", say)
        if one.scores:
            remember(name, Attacked(one.scores, {about: people.values for (_, about), people in one.asked.items()}))
        found.add(one)
    return found


def unguarded(name: str) -> Guarantee:
    """What can be promised of a release that somebody else made."""
    return empirical(f"{name} was made elsewhere: nothing is promised here, these are measurements.")
