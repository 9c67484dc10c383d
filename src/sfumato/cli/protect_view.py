"""How ``sfumato protect`` shows a running search, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.table import Table

from sfumato.cli.output import ERR, OUT, figure, new_table, percent, print_text, time_left

if TYPE_CHECKING:
    from sfumato.workflow.protect import Protected
    from sfumato.workflow.protect.candidate_search import Attempted, Standings

_SHOWN = 8
_STATES = {"audited": "attacked", "hopeless": "not useful", "refused": "cannot be fitted"}


class SearchView:
    """A live table on a terminal, plain lines elsewhere; silent with ``quiet``."""

    def __init__(self, quiet: bool, seconds: float | None) -> None:
        self.quiet = quiet
        self._end = None if seconds is None else monotonic() + seconds
        self._now: Standings | None = None
        self._doing = ""
        self._told: set[tuple[int, str]] = set()
        self._live = None if quiet or not ERR.is_terminal else Live(console=ERR, get_renderable=self._table)

    def __enter__(self) -> SearchView:
        if self._live is not None:
            self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, what: str) -> None:
        """A line of the log."""
        self._doing = what
        if self._live is None and not self.quiet:
            ERR.print(what, markup=False, soft_wrap=True)

    def watch(self, now: Standings) -> None:
        """Something changed."""
        self._now = now
        if self._live is not None:
            self._live.refresh()
        elif not self.quiet:
            self._lines(now)

    def _lines(self, now: Standings) -> None:
        for one in now.attempted:
            if (one.number, one.stage) not in self._told:
                self._told.add((one.number, one.stage))
                ERR.print(f"candidate {one.number}, {one.candidate}: {described(one)}", markup=False, soft_wrap=True)

    def _table(self) -> Table:
        left = "" if self._end is None else time_left(max(0.0, self._end - monotonic()))
        table = new_table(
            *("candidate", "state"), numbers=("utility", "largest miss"), title=f"sfumato protect{left} · {self._doing}"
        )
        if self._now is None:
            return table
        for name, doing in self._now.trying.values():
            table.add_row(name, f"{doing} …")
        best = self._now.best
        for one in sorted(self._now.attempted, key=lambda one: one is not best)[:_SHOWN]:
            mark = " ◀ best so far" if one is best else ""
            placed = one.standing
            cells = ("—", "—") if placed is None else (figure(placed.utility), _missed(placed.strict))
            table.add_row(f"{one.candidate}{mark}", _state(one), *cells)
        return table


def described(one: Attempted) -> str:
    """What became of a candidate, in a line."""
    placed = one.standing
    if placed is None:
        return f"{_STATES.get(one.state, one.state)} ({one.outcome['why']})"
    passes = "passes" if placed.passed else f"misses {', '.join(check.asked for check in placed.missed)}"
    return f"utility {figure(placed.utility)}, {passes} ({_state(one)})"


def print_outcome(found: Protected) -> None:
    """The whole result on stdout."""
    content = found.to_json()
    if content["candidates"]:
        OUT.print(_candidates(content))
    if content["checks"]:
        OUT.print(_checks(content))
    lines = [f"floor: {one['sentence']}." for one in content["floors"] if one["advantage"] > 0 or not found.passed]
    lines += [f"floor: {one['sentence']}." for one in content["measured_floors"] if one["beyond"]]
    if not found.passed:
        lines += [f"relax: {one['sentence']}" for one in content["relax"]]
    lines += [f"not tried: {one['mechanism']}, {one['why']}" for one in content["unfit"]]
    if content["command"]:
        lines.append(f"again: {content['command']}")
    pages = (content["report"], content["candidates_report"])
    lines += [f"report: {page}" for page in pages if page]
    if found.passed:
        lines.append(f"released: {content['release']} ({content['released']['rows']:,} rows); card: README.md in it")
    print_text("\n".join(lines))


def _candidates(content: Mapping[str, Any]) -> Table:
    cost = content["cost"]
    title = f"candidates, by the victims of the search ({cost['fits']} fits, {cost['attack_steps']:,} attack steps)"
    table = new_table("candidate", "state", "misses", numbers=("utility", "largest miss"), title=title)
    order = sorted(content["candidates"], key=lambda one: (one["standing"] or {"strict": 9.0})["strict"])
    for one in order:
        placed = one["standing"]
        state = _STATES.get(one["state"], one["state"]) + (", full effort" if one.get("stage") == "full" else "")
        if placed is None:
            table.add_row(one["candidate"], state, one["why"], "—", "—")
            continue
        missed = ", ".join(check["asked"] for check in placed["missed"]) or "nothing"
        table.add_row(one["candidate"], state, missed, figure(placed["utility"]), _missed(placed["strict"]))
    return table


def _checks(content: Mapping[str, Any]) -> Table:
    title = f"final judgement of {content['winner']['candidate']}, on people whom the search never saw"
    table = new_table("limit", "result", "what was found", numbers=("counts as",), title=title)
    for one in content["checks"]:
        counts = percent(one["found"]) if one["share"] else figure(one["found"])
        table.add_row(one["asked"], one["outcome"].replace("-", " "), one["because"], counts)
    return table


def _state(one: Attempted) -> str:
    return _STATES.get(one.state, one.state) + (", full effort" if one.stage == "full" else "")


def _missed(strict: float) -> str:
    return "none" if strict <= 0 else f"{100 * strict:.0f} points"
