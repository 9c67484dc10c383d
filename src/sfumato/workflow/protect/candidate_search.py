"""The search: candidates tried one after the other or side by side, until time, number or ideas run out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.auditing import Effort
from sfumato.core import compute
from sfumato.core.errors import UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.mechanisms.base import no_progress
from sfumato.workflow.fitting import resolve
from sfumato.workflow.gate import Check
from sfumato.workflow.processes import Job, Say, side_by_side
from sfumato.workflow.protect.attempts import ATTEMPT, Trying, attempt
from sfumato.workflow.protect.candidate_ways import Candidate
from sfumato.workflow.protect.goal import Goal
from sfumato.workflow.protect.margins import Standing
from sfumato.workflow.protect.study_journal import StudyJournal
from sfumato.workflow.protect.time_limit import WHOLE, Costs, TimeLimit, as_text

PROMISING = 3
"""One candidate in so many is audited at full effort."""
NEAR = 0.01
"""Candidates whose utility differs by less count as equally useful, and the safer one wins."""


@dataclass(frozen=True)
class Attempted:
    """A candidate, where it lies, and what became of it."""

    number: int
    candidate: Candidate
    folder: Path
    outcome: dict[str, Any]

    @property
    def state(self) -> str:
        return str(self.outcome["state"])

    @property
    def stage(self) -> str:
        return str(self.outcome.get("stage", ""))

    @property
    def standing(self) -> Standing | None:
        """Against the policy, by the victims of the search; None where no attack was run."""
        found = self.outcome.get("standing")
        if found is None:
            return None
        figures = {name: float(found[name]) for name in ("utility", "shortfall", "excess", "strict")}
        missed = tuple(_check(one) for one in found["missed"])
        return Standing(**figures, hopeless=False, missed=missed)

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "candidate": str(self.candidate),
            "mechanism": self.candidate.way.mechanism,
            "params": self.candidate.params,
            "folder": str(self.folder),
            **self.outcome,
        }


def _check(stored: dict[str, Any]) -> Check:
    return Check(**{name: value for name, value in stored.items() if name != "passed"})


@dataclass
class Standings:
    """What a watcher may show: what is being tried, what was, and the time that is left."""

    trying: dict[int, tuple[str, str]] = field(default_factory=dict)
    attempted: list[Attempted] = field(default_factory=list)
    left: float = float("inf")
    doing: str = "search"

    @property
    def best(self) -> Attempted | None:
        return next(iter(ranked(self.attempted)), None)


Watch = Callable[[Standings], None]


def ranked(attempted: Sequence[Attempted]) -> list[Attempted]:
    """The best first: what passes, by utility; then what would pass by its figures; then by the largest miss.

    Candidates that serve within ``NEAR`` of the best one count as equal, and the one with most room to its limits wins.
    What was audited at full effort comes before what was not.
    """
    found = [(one, one.standing) for one in attempted if one.standing is not None]
    thorough = any(one.stage == "full" and (placed.passed or placed.near) for one, placed in found)
    best = max((placed.utility for one, placed in found if _counts(one, placed, thorough)), default=0.0)

    def order(pair: tuple[Attempted, Standing]) -> tuple[Any, ...]:
        one, placed = pair
        if _counts(one, placed, thorough):
            near = placed.utility >= best - NEAR
            return (0, 0, 0.0, placed.strict) if near else (0, 1, -placed.utility, placed.strict)
        return (1 if placed.passed else 2 if placed.near else 3, 0, placed.strict, 0.0)

    return [one for one, _ in sorted(((one, placed) for one, placed in found if placed is not None), key=order)]


def _counts(one: Attempted, placed: Standing, thorough: bool) -> bool:
    return placed.passed and (one.stage == "full" or not thorough)


@dataclass
class CandidateSearch:
    """One search below ``out``; ``cheap`` and ``full`` are the efforts of its two stages."""

    goal: Goal
    out: Path
    journal: StudyJournal
    limit: TimeLimit
    cheap: Effort
    full: Effort
    most: int | None
    jobs: int
    say: Say
    watch: Watch
    costs: Costs = field(default_factory=Costs)
    now: Standings = field(default_factory=Standings)
    _stopped: Attempted | None = None

    def run(self) -> list[Attempted]:
        """Try candidates; then audit the promising ones at full effort."""
        self._take_up()
        self._side_by_side(self._next_tries())
        if not any(one.state == "audited" for one in self.now.attempted):
            self._check_time()
        if self.full != self.cheap:
            self.now.doing = "full audits"
            self._side_by_side(self._thorough())
        return self.now.attempted

    @property
    def reserve(self) -> float:
        """Seconds for the final judgement."""
        return self.costs.harder(self.full == self.cheap) * WHOLE

    def _take_up(self) -> None:
        """What an earlier search in this folder has finished."""
        for folder in sorted((self.out / "candidates").glob("*")):
            if (folder / ATTEMPT).is_file():
                outcome = read_json(folder / ATTEMPT)
                about = outcome["about"]
                candidate = self.journal.known(about["mechanism"], about["fixed"], about["knobs"])
                if candidate is not None:
                    self._keep(Attempted(about["number"], candidate, folder, outcome))
        self.now.attempted.sort(key=lambda one: one.number)

    def _next_tries(self) -> Iterator[Job]:
        """Candidates as long as there is time for one more, and for the judgement of the best."""
        while self.most is None or self._tried < self.most:
            asked = self.journal.ask()
            if asked is None:
                return
            number, candidate = asked
            over = self.limit.left <= 0 and self._stopped is not None
            cost = self.costs.of(candidate.way.mechanism)
            if over or (self.now.attempted and not self.limit.leaves(cost + self.reserve)):
                self.journal.miss(number, None)
                return
            yield self._job(number, candidate)

    @property
    def _tried(self) -> int:
        return len(self.now.attempted) + len(self.now.trying)

    def _job(self, number: int, candidate: Candidate) -> Job:
        way = candidate.way
        about = {"number": number, "mechanism": way.mechanism, "fixed": way.space.fixed, "knobs": candidate.knobs}
        told = json.dumps(candidate.params, sort_keys=True)
        name = f"{way.mechanism}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
        folder = self.out / "candidates" / name
        config = resolve(
            candidate.way.mechanism,
            {"shares": None, **self.goal.data, "held_out": "search"},
            candidate.params,
            seed=self.goal.seed,
        )
        order = replace(self._order(folder, config, f"candidate {number}, {candidate}"), about=about)
        self.now.trying[number] = (str(candidate), "fit")
        self._show()

        def then(outcome: dict[str, Any]) -> Sequence[Job]:
            self.now.trying.pop(number, None)
            one = Attempted(number, candidate, folder, outcome)
            self._tell(one)
            self._keep(one)
            return ()

        return Job(f"try {number}", attempt, {"order": order}, then=then)

    def _order(self, folder: Path, config: dict[str, Any], title: str, *, thorough: bool = False) -> Trying:
        effort = self.full if thorough else self.cheap
        return Trying(
            folder,
            config,
            self.goal.asked,
            replace(effort, threats=self.goal.attacked, averages=()),
            self.out / "controls" / ("full" if thorough else "cheap"),
            compute.one_of(self.jobs),
            until=self.limit.end,
            title=title,
            thorough=thorough,
        )

    def _thorough(self) -> Iterator[Job]:
        """The promising ones, best first, as long as there is time; the last word has somebody else."""
        audited = [one for one in ranked(self.now.attempted) if one.stage == "cheap"]
        wanted = max(1, -(-len(self.now.attempted) // PROMISING))
        chosen = [one for one in audited if one.standing is not None and one.standing.strict < 1.0][:wanted]
        for one in chosen:
            if not self.limit.leaves(self.reserve + self.reserve / WHOLE):
                self.say("no time is left for more audits at full effort before the final judgement")
                return
            yield self._thorough_job(one)

    def _thorough_job(self, one: Attempted) -> Job:
        config = _config_of(one.folder)
        order = self._order(one.folder, config, f"candidate {one.number}, {one.candidate}", thorough=True)
        order = replace(order, about=one.outcome["about"])
        self.now.trying[one.number] = (str(one.candidate), "full audit")
        self._show()

        def then(outcome: dict[str, Any]) -> Sequence[Job]:
            self.now.trying.pop(one.number, None)
            self.now.attempted = [other for other in self.now.attempted if other.number != one.number]
            self.costs.full.append(float(outcome.get("audit_seconds", 0.0)))
            self._keep(replace(one, outcome=outcome))
            return ()

        return Job(f"audit {one.number}", attempt, {"order": order}, then=then)

    def _tell(self, one: Attempted) -> None:
        placed = one.standing
        if placed is not None:
            self.journal.tell(one.number, placed.utility, placed.excess, placed.shortfall)
        else:
            self.journal.miss(one.number, 1.0 if one.state == "hopeless" else None)

    def _keep(self, one: Attempted) -> None:
        mechanism, seconds = one.candidate.way.mechanism, one.outcome
        if one.stage == "cheap" or one.state == "hopeless":
            audited = float(seconds["audit_seconds"])
            self.costs.note(mechanism, float(seconds["fit_seconds"]), audited, whole=one.state == "audited")
        elif one.state == "stopped":
            self.costs.note(mechanism, float(seconds["whole_fit"]), 0.0, whole=False)
        if one.state != "stopped":
            self.now.attempted.append(one)
        else:
            self._stopped = one
        self._show()

    def _check_time(self) -> None:
        """Raise if the limit is shorter than one fit."""
        if self._stopped is None:
            return
        one, seconds = self._stopped, self.limit.seconds or 0.0
        whole = float(one.outcome["whole_fit"])
        raise UsageError(
            f"--within {as_text(seconds)} is shorter than one fit of {one.candidate.way.mechanism} on these records "
            f"({one.outcome['why']}): give at least {as_text(2.0 * whole + seconds)}, or fewer records (--limit)."
        )

    def _show(self) -> None:
        self.now.left = self.limit.left
        self.watch(self.now)

    def _side_by_side(self, jobs: Iterator[Job]) -> None:
        """Jobs as they come, so many at once: each is made when there is room for it."""
        if self.jobs == 1:
            for job in jobs:
                _follow(job, job.work(self.say, no_progress, **job.arguments))
            return

        def chained(job: Job) -> Job:
            def then(outcome: Any) -> Sequence[Job]:
                _follow(job, outcome)
                more = next(jobs, None)
                return () if more is None else (chained(more),)

            return replace(job, then=then)

        first = [chained(job) for _, job in zip(range(self.jobs), jobs, strict=False)]
        side_by_side(first, self.jobs, self.say, no_progress)


def _follow(job: Job, outcome: Any) -> None:
    if job.then is not None:
        job.then(outcome)


def _config_of(folder: Path) -> dict[str, Any]:
    return RunFolder.open(folder).config()
