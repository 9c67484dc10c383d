"""From a goal to a release that passed it, with its evidence; or to the nearest that can be had."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.auditing import CPU, SMOKE, Effort
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.policy import Policy
from sfumato.core.run_folder import RunFolder, read_json, write_json
from sfumato.data import load_splits
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.capabilities import NeedsSecret, Samples
from sfumato.report import build_report
from sfumato.workflow.gate import Check, gate_folder, keep
from sfumato.workflow.processes import Say, places
from sfumato.workflow.protect.candidate_search import Attempted, CandidateSearch, Standings, Watch, ranked
from sfumato.workflow.protect.candidate_ways import Unfit, Way, ways_for
from sfumato.workflow.protect.goal import Goal, check_labels, goal_of
from sfumato.workflow.protect.judgement import fit_command, judged, moved_to_judgement
from sfumato.workflow.protect.label_floors import LabelFloor, beyond_reach, check_follows, label_floors
from sfumato.workflow.protect.outcome import Protected, Relaxed, facts, in_the_way, measured_floors, nearest, relaxed
from sfumato.workflow.protect.private_fit import PrivateFit, fitted_once, private_fit
from sfumato.workflow.protect.study_journal import StudyJournal
from sfumato.workflow.protect.time_limit import TimeLimit
from sfumato.workflow.releasing import release_run
from sfumato.workflow.sampling import sample_run
from sfumato.workflow.warrant import Warrant

PLAN, RESULT, JOURNAL, WINNER, RELEASE = "plan.json", "protect.json", "search.journal", "winner", "release"
ROWS = 10_000


def nothing_watched(_now: Standings) -> None:
    """The default: nobody looks."""


@dataclass(frozen=True)
class SearchTerms:
    """How a goal is pursued: ``seconds`` in all, ``most`` candidates, ``effort`` of the judgement, ``rows`` to draw of
    a synthetic set, and the ``warrant`` and ``ledger`` of the release."""

    seconds: float | None = None
    most: int | None = None
    effort: Effort = CPU
    rows: int = ROWS
    warrant: Warrant = field(default_factory=Warrant)
    ledger: Path | None = None


@dataclass(frozen=True)
class Surveyed:
    """What is known of a goal before anything is trained."""

    splits: Splits
    ways: tuple[Way, ...]
    unfit: tuple[Unfit, ...]
    floors: tuple[LabelFloor, ...]


def protect(
    source: str,
    out: Path,
    policy: Policy,
    *,
    leaves: str | None = None,
    labels: bool = False,
    seed: int = 0,
    terms: SearchTerms | None = None,
    say: Say = lambda _: None,
    watch: Watch = nothing_watched,
    **data: Any,
) -> Protected:
    """Search for a mechanism that keeps the policy, judge the best on people whom the search never saw, and release.

    Args:
        source: The data: a named set, file or folder.
        out: Where everything goes: ``release`` (this leaves), ``winner``, ``candidates``, ``report.html``,
            ``protect.json``. An interrupted search goes on there.
        policy: What must stay useful and what must stay hidden.
        leaves: What a receiver gets: features, records, rows of nobody, or messages.
        labels: Whether the utility labels leave, too.
        seed: Of splits, candidates and search.
        terms: Time, effort, and who answers for the release.
        say: Called with a line of progress.
        watch: Called with what is being tried and what was found, whenever that changes.
        data: Further arguments of ``load_splits``: ``utility``, ``private``, ``x``, ``id``, ``limit``, ``domain``,
            ``shares``.

    Returns:
        The result; whether a release left is in ``passed``.

    Raises:
        UsageError: The goal contradicts itself, no mechanism fits it, or the time is shorter than one fit.
        DataError: The data cannot be used, or ``out`` is used for something else.
    """
    terms = terms or SearchTerms()
    goal = goal_of(policy, {"source": source, **data}, leaves, seed=seed, labels=labels)
    known = _claimed(out, goal, terms)
    if known is not None:
        say(f"{out} holds the result of this search")
        return known
    found = surveyed(goal)
    limit = TimeLimit(terms.seconds)
    out_of_reach = list(beyond_reach(found.floors, goal.policy))
    if out_of_reach:
        return _unreachable(goal, out, found, out_of_reach)
    if not found.ways:
        listed = "; ".join(str(one) for one in found.unfit)
        raise UsageError(f"no mechanism fits this goal: {listed}.")
    for way in found.ways:
        fresh = way.fresh
        if isinstance(fresh, NeedsSecret):
            fresh.check_writing()  # before hours are spent on what could not leave
    spending = [way for way in found.ways if way.spends]
    if spending:
        return _by_one_fit(goal, out, found, private_fit(spending[0], goal), terms, say)
    return _by_search(goal, out, found, terms, limit, say, watch)


def surveyed(goal: Goal) -> Surveyed:
    """The records of a goal, what may be tried, and what cannot be hidden.

    Raises:
        UsageError: A limit speaks of a label that there is not, or a private label follows from a useful one.
    """
    splits = load_splits(**goal.data, seed=goal.seed)
    schema = splits.schema
    check_labels(goal, tuple(schema.utility), tuple(schema.private), tuple(schema.numbers))
    floors = label_floors(splits, goal)
    check_follows(floors, goal.policy)
    return Surveyed(splits, *ways_for(goal, splits.owner), floors)


def _claimed(out: Path, goal: Goal, terms: SearchTerms) -> Protected | None:
    """The result that is there already; makes the folder or takes up an interrupted search for the same goal."""
    question = {**goal.to_json(), "effort": asdict(terms.effort), "rows": terms.rows}
    if (out / PLAN).is_file():
        if RunFolder.differs(read_json(out / PLAN)["question"], question):
            raise DataError(f"{out} holds a search for another goal: choose another --out.")
        return Protected(read_json(out / RESULT)) if (out / RESULT).is_file() else None
    RunFolder.refuse_used(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / PLAN, {"question": question})
    except OSError as error:
        raise DataError(f"cannot write to {out} ({error.strerror}): choose another --out.") from None
    return None


def _by_search(
    goal: Goal, out: Path, found: Surveyed, terms: SearchTerms, limit: TimeLimit, say: Say, watch: Watch
) -> Protected:
    """Try candidates, judge the best."""
    plan = [
        f"candidates: {', '.join(dict.fromkeys(way.mechanism for way in found.ways))}; {goal.leaves} leave",
        "the best is judged once, by attackers and on people of whom the search saw none",
    ]
    for sentence in plan:
        say(sentence)
    search = CandidateSearch(
        goal,
        out,
        StudyJournal(out / JOURNAL, found.ways, goal.seed),
        limit,
        cheap=SMOKE if terms.effort.attack_steps >= SMOKE.attack_steps else terms.effort,
        full=terms.effort,
        most=terms.most,
        jobs=places(compute.MOST_JOBS) if compute.on_cpu() else 1,
        say=say,
        watch=watch,
    )
    attempted = search.run()
    told = facts(attempted, found.unfit, found.floors, plan, goal.gated)
    best = next(iter(ranked(attempted)), None)
    placed = None if best is None else best.standing
    if best is None or placed is None or not (placed.passed or placed.near):
        missed = in_the_way(attempted, None)
        return _stored(out, _not_released(out, goal, told, attempted, relaxed(missed), None, ()))
    search.now.doing = f"final judgement of {best.candidate}"
    watch(search.now)
    say(f"final judgement of {best.candidate}")
    winner = moved_to_judgement(best.folder, out / WINNER)
    judged(winner, terms.effort, say)
    checks = _gated(winner, goal, terms)
    told["measured_floors"] = measured_floors(read_json(winner / "scores.json"), goal.gated)
    told["plan"] = [*plan, f"chosen among {len(attempted)} candidates: {best.candidate}"]
    if not all(check.passed for check in checks):
        missed = in_the_way(attempted, (str(best.candidate), [check for check in checks if not check.passed]))
        return _stored(out, _not_released(out, goal, told, attempted, relaxed(missed), winner, checks, best))
    mechanisms = len({one.candidate.way.mechanism for one in attempted})
    tuning = (
        f"Chosen by sfumato protect among {len(attempted)} candidates of {mechanisms} mechanisms, by attacks on people "
        "of whom none is among those that the figures of this card are about."
    )
    released = _released(winner, goal, out, replace(terms, warrant=replace(terms.warrant, tuning=tuning)), say)
    content = {
        "passed": True,
        "goal": goal.to_json(),
        "release": str(out / RELEASE),
        "released": {name: released[name] for name in ("mechanism", "rows", "payload_shape")},
        **_winner(best.candidate.way.mechanism, best.candidate.params, str(best.candidate), goal, winner, checks),
        "search": None if placed is None else placed.to_json(),
        **told,
        "nearest": [],
        "relax": [],
        **_pages(out, winner, attempted),
    }
    return _stored(out, content)


def _by_one_fit(goal: Goal, out: Path, found: Surveyed, fit: PrivateFit, terms: SearchTerms, say: Say) -> Protected:
    """One private fit, with settings that were fixed before the records were looked at."""
    for sentence in fit.plan:
        say(sentence)
    winner = fitted_once(fit, goal, out / WINNER, terms.ledger, say)
    judged(winner, terms.effort, say)
    checks = _gated(winner, goal, terms)
    told = facts((), found.unfit, found.floors, fit.plan, goal.gated) | {"cost": {"fits": 1, "attack_steps": 0}}
    named = str(fit.candidate)
    about = _winner(fit.candidate.way.mechanism, fit.candidate.params, named, goal, winner, checks)
    if not all(check.passed for check in checks):
        missed = [check for check in checks if not check.passed]
        return _stored(out, {**_not_released(out, goal, told, (), relaxed([(named, missed)]), winner, checks), **about})
    warrant = replace(terms.warrant, tuning=fit.tuning)
    released = _released(winner, goal, out, replace(terms, warrant=warrant), say)
    content = {
        "passed": True,
        "goal": goal.to_json(),
        "release": str(out / RELEASE),
        "released": {name: released[name] for name in ("mechanism", "rows", "payload_shape")},
        **about,
        "search": None,
        **told,
        "nearest": [],
        "relax": [],
        **_pages(out, winner, ()),
    }
    return _stored(out, content)


def _unreachable(goal: Goal, out: Path, found: Surveyed, limits: Sequence[tuple[str, float, LabelFloor]]) -> Protected:
    """Nothing was trained: the useful label alone tells more than the policy allows."""
    steps = [
        Relaxed(limit, f"{100 * least:.0f}%" if limit.endswith("%") else f"{least:.3g}", str(floor), True)
        for limit, least, floor in limits
    ]
    plan = ["nothing was trained: a useful label by itself tells more than a limit allows"]
    told = facts((), found.unfit, found.floors, plan, goal.gated)
    return _stored(out, _not_released(out, goal, told, (), steps, None, ()))


def _not_released(
    out: Path,
    goal: Goal,
    told: Mapping[str, Any],
    attempted: Sequence[Attempted],
    steps: Sequence[Relaxed],
    winner: Path | None,
    checks: Sequence[Check],
    best: Attempted | None = None,
) -> dict[str, Any]:
    about: Mapping[str, Any] = {"winner": None, "command": None, "checks": [check.to_json() for check in checks]}
    if best is not None and winner is not None:
        chosen = best.candidate
        about = _winner(chosen.way.mechanism, chosen.params, str(chosen), goal, winner, checks)
    return {
        "passed": False,
        "goal": goal.to_json(),
        "release": None,
        "released": None,
        **about,
        "search": None if best is None or best.standing is None else best.standing.to_json(),
        **told,
        "nearest": nearest(attempted),
        "relax": [one.to_json() | {"sentence": str(one)} for one in steps],
        **_pages(out, winner, attempted),
    }


def _winner(
    mechanism: str, params: Mapping[str, Any], named: str, goal: Goal, folder: Path, checks: Sequence[Check]
) -> dict[str, Any]:
    return {
        "winner": {"candidate": named, "mechanism": mechanism, "params": dict(params), "folder": str(folder)},
        "command": f"{fit_command(mechanism, params, goal)} --out {shlex.quote(f'runs/{mechanism}')}",
        "checks": [check.to_json() for check in checks],
    }


def _gated(winner: Path, goal: Goal, terms: SearchTerms) -> tuple[Check, ...]:
    found = gate_folder(winner, goal.gated, ledger=terms.ledger)
    keep(found, goal.policy)
    return found.checks


def _released(winner: Path, goal: Goal, out: Path, terms: SearchTerms, say: Say) -> dict[str, Any]:
    """The release, which asks the gate once more."""
    mechanism, folder = load_mechanism(winner), out / RELEASE
    if (folder / "release.json").is_file():
        stored: dict[str, Any] = read_json(folder / "release.json")
        return stored
    warrant = replace(terms.warrant, policy=goal.policy)
    say("release")
    if isinstance(mechanism, Samples):
        return sample_run(winner, terms.rows, folder, warrant=warrant, ledger=terms.ledger)
    source = str(goal.data["source"])
    return release_run(winner, source, folder, labels=goal.labels, ledger=terms.ledger, warrant=warrant, warn=say)


def _pages(out: Path, winner: Path | None, attempted: Sequence[Attempted]) -> dict[str, str | None]:
    """The report of the winner by the judgement, and one of all audited candidates by the search: figures on other
    people stand on a page of their own."""
    audited = [one.folder for one in ranked(attempted)]
    report, tried = out / "report.html", out / "candidates.html"
    if winner is not None:
        build_report([winner], report, title="The winner, by the final judgement")
    if audited:
        build_report(audited, tried, title="Candidates, by the victims of the search")
    return {
        "report": None if winner is None else str(report),
        "candidates_report": str(tried) if audited else None,
    }


def _stored(out: Path, content: dict[str, Any]) -> Protected:
    """The result; a search that found nothing worth judging may go on, so that only a verdict is kept."""
    if content["passed"] or content["winner"] is not None or not content["candidates"]:
        write_json(out / RESULT, content)
    return Protected(content)
