"""The audit of a release whose rows belong to nobody in particular, whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfumato.auditing.coded_parts import coded_splits
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.unlinked_rows import RowsPlan, rows_scene
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.trials import Found, carry_out, trials
from sfumato.core import compute
from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Splits
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.leakage import with_leakage
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.core.traits import Traits

Remembered = Callable[[str], Sequence[Score] | None]
Remember = Callable[[str, Sequence[Score]], None]

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
    controls: Controls | None = None,
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
        controls: Undefended figures, shared among audits of the same records.
        remembered: Scores of an attack that was run before the audit was interrupted; None if it was not.
        remember: Keeps the scores of an attack.
        say: Called with a line of progress before each attack.
    """
    with compute.threads(len(columns)):
        scene = rows_scene(release.mechanism, release, splits, effort, seed, controls or Controls())
        found = _carried_out(RowsPlan(scene, columns), remembered, remember, say)
    return Audit(
        mechanism=release.mechanism,
        traits=FOREIGN,
        data=data,
        guarantee=release.guarantee,
        utility=(),
        attacks=with_leakage(found.scores),
        skipped=(*skipped, *found.skipped),
        titles=found.titles,
        confusion={},
        information=(),
        wrong_key={},
        gallery={},
        features={},
    )


def own_rows(release: Release, splits: Splits, effort: Effort, seed: int, controls: Controls, say: Say) -> Found:
    """The five questions for synthetic records of our own, before their leakage is known."""
    coded, rows, columns = coded_splits(splits, release, tuple(splits.schema.private))
    return _carried_out(RowsPlan(rows_scene(release.mechanism, rows, coded, effort, seed, controls), columns), say=say)


def _carried_out(
    plan: RowsPlan,
    remembered: Remembered = lambda _: None,
    remember: Remember = lambda _, __: None,
    say: Say = lambda _: None,
) -> Found:
    found = Found()
    for trial in trials([plan]):
        name = trial.attack.name
        earlier = remembered(name)
        if earlier is not None:
            found.scores += earlier
            found.titles[name] = (trial.attack.title or name, trial.attack.how)
            continue
        one = carry_out([trial], plan.scene.name, say)
        if one.scores:
            remember(name, one.scores)
        found.scores += one.scores
        found.skipped += one.skipped
        found.titles |= one.titles
    return found


def unguarded(name: str) -> Guarantee:
    """What can be promised of a release that somebody else made."""
    return empirical(f"{name} was made elsewhere: nothing is promised here, these are measurements.")
