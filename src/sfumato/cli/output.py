"""How commands speak: results on stdout, log and progress on stderr, bars only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score
from sfumato.core.threats import rank
from sfumato.core.usefulness import useless

if TYPE_CHECKING:
    from sfumato.mechanisms.parameters import Parameter

WIDE = 160
OUT = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
ERR = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_text(text: str) -> None:
    """Text on stdout as it is, whatever brackets are in it."""
    OUT.print(text, markup=False)


def print_result(as_json: bool, value: Any, text: str) -> None:
    """The result of a command: as JSON if the user asked for it, else in words."""
    if as_json:
        print_json(value)
    else:
        print_text(text)


def new_table(*columns: str, numbers: Sequence[str] = (), title: str | None = None) -> Table:
    """A table that breaks long words instead of cutting them off: texts left, numbers right."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for column in numbers:
        table.add_column(column, overflow="fold", justify="right")
    return table


class Talk:
    """Progress of one command; silent with ``quiet``."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.doing = ""
        self._begun = (monotonic(), 0)
        self._status = None if quiet or not ERR.is_terminal else ERR.status("")

    def __enter__(self) -> Talk:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, what: str) -> None:
        """A new step."""
        self.doing, self._begun = what, (monotonic(), 0)
        self._show(what, log=True)

    def step(self, text: str) -> None:
        """Progress inside a step: for terminals only."""
        self._show(text, log=False)

    def epoch(self, done: int, total: int, losses: Mapping[str, float]) -> None:
        """An epoch of the current step."""
        filled = round(20 * done / max(total, 1))
        bar = "█" * filled + "░" * (20 - filled)
        figures = " ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
        if done <= self._begun[1]:  # another round
            self._begun = (monotonic(), done - 1)
        left = (monotonic() - self._begun[0]) / (done - self._begun[1]) * (total - done)
        self._show(f"{self.doing} {bar} {done}/{total}{time_left(left)} {figures}", log=False)

    def _show(self, text: str, *, log: bool) -> None:
        if self._status is not None:
            self._status.update(text)
        elif not self.quiet and log:
            ERR.print(text, markup=False)


def time_left(seconds: float) -> str:
    """ " · 2 min left"; nothing where it is about to end."""
    if seconds < 3:
        return ""
    return f" · {seconds:.0f} s left" if seconds < 90 else f" · {seconds / 60:.0f} min left"


def score_table(scores: Mapping[str, Any]) -> Table:
    """The scores of one run, worst marked, with baseline and control."""
    table = new_table(
        *("threat", "attack or task", "metric"),
        numbers=("value", "95 % interval", "baseline", "control", "leakage"),
        title=f"{scores['mechanism']} on {scores['data']}",
    )
    worst = {(s["attack"], s["target"], s["metric"]) for s in scores["worst"].values()}
    fidelity = [score for score in scores.get("information", ()) if score["threat"] == "fidelity"]
    for score in (*scores["utility"], *scores["fairness"], *scores["attacks"], *fidelity):
        student = score["threat"] == "utility" and score["metric"] == "accuracy"
        if not (score["primary"] or student or score["metric"] in ("ssim", "auroc", "mae") or score in fidelity):
            continue
        name = score["threat"] if score["target"] is None else f"{score['threat']}: {score['target']}"
        name += f" by {score['group']}" if score["group"] else ""
        marked = (score["attack"], score["target"], score["metric"]) in worst
        table.add_row(
            name,
            score["attack"] + (" ◀ worst" if marked else ""),
            score["metric"],
            figure(score["value"]),
            f"{figure(score['ci'][0])} … {figure(score['ci'][1])}",
            figure(score["baseline"]),
            figure(score["control"]),
            leaked(score),
        )
    return table


def audit_lines(scores: Mapping[str, Any]) -> list[str]:
    """What is said below the table of an audit, a line each."""
    students = bool(scores.get("traits", {}).get("synthetic"))
    lines = list(useless(map(Score.from_json, scores["utility"]), students=students))
    lines += [f"not run: {skipped['attack']} ({skipped['reason']})" for skipped in scores["skipped"]]
    lines += [f"note: {note}" for note in scores.get("notes", ())]
    lines += promise_lines(scores["guarantee"])
    lines += [
        *exposure_lines(scores),
        *fairness_lines(scores),
        *floor_lines(scores),
        *repeated_lines(scores),
        claim_line(scores),
    ]
    return [line for line in lines if line]


def promise_lines(stored: Mapping[str, Any]) -> list[str]:
    """What is guaranteed, what that covers, and every condition with whether it was looked at."""
    promise = Guarantee.from_json(stored)
    covers = [f"covers: {promise.covers}"] if promise.covers.payload else []
    conditions = [f"  - {condition}" for condition in promise.conditions]
    return [
        f"guarantee: {promise.kind}. {promise.statement}",
        *covers,
        *(["conditions:"] if conditions else []),
        *conditions,
    ]


def leaked(score: Mapping[str, Any]) -> str:
    """Leakage, by which metric if it is another, and of the same encoder without noise where that was measured."""
    by = score.get("leakage_by")
    text = percent(score.get("leakage")) + (f" by {by}" if by not in (None, score["metric"]) else "")
    encoder = score.get("encoder_leakage")
    return text if encoder is None else f"{text} ({percent(encoder)} of the same encoder)"


_SHOWN = 0.005
"""Leakage below this is printed as 0 %."""
_FLOORS = ("accuracy", "r2")


def floor_lines(scores: Mapping[str, Any]) -> list[str]:
    """What follows from each utility label alone, whatever the mechanism."""
    read = {s["target"]: s["value"] for s in reversed(scores["utility"]) if s["metric"] == "accuracy"}
    numbers = [s for s in scores["utility"] if s["metric"] == "r2"]
    read |= {s["target"]: max(one["value"] for one in numbers if one["target"] == s["target"]) for s in numbers}
    floors = [s for s in scores["attacks"] if s.get("follows") and s["metric"] in _FLOORS]
    return [
        f"floor of {s['target']}: {s['metric']} {figure(s['value'])} (guessing {figure(s['baseline'])}) by reading "
        f"{s['follows']}, which the release serves with {figure(read.get(s['follows']))}: no mechanism that serves it "
        "as well can be below."
        for s in floors
    ]


def exposure_lines(scores: Mapping[str, Any]) -> list[str]:
    """For each threat the group that is worst off, if it leaks more than the rest, and how many people leak much."""
    lines = []
    for threat, found in scores.get("exposure", {}).items():
        above = found["share_above"]
        said = f"{percent(above['share'])} of {above['people']:,} people leak more than {percent(above['threshold'])}"
        for one in sorted((one for one in found["groups"] if one["worse"]), key=lambda one: -float(one["leakage"])):
            low, high = (percent(end) for end in one["leakage_ci"])
            who = f"{one['column']} = {one['value']} ({one['people']:,} people)"
            said += f"; {who} leak {percent(one['leakage'])} [{low}, {high}], more than the rest"
        lines.append(f"worst off, {threat} by {found['attack']}: {said}")
    return lines


def fairness_lines(scores: Mapping[str, Any]) -> list[str]:
    """What must be said beside the figures of fairness in the table: the positive class, and who was left out."""
    return [
        f"{score['metric']} of {score['target']} by {score['group']}: {score['note']}"
        for score in scores["fairness"]
        if score["primary"] and score["note"]
    ]


def repeated_lines(scores: Mapping[str, Any]) -> list[str]:
    """How leakage grows with the number of releases of the same records, a line for each threat and label."""
    found: dict[str, list[str]] = {}
    for score in (s for s in scores.get("repeated", ()) if s["primary"]):
        name = score["threat"] if score["target"] is None else f"{score['threat']}: {score['target']}"
        figures = f"{score['metric']} {figure(score['value'])}, leakage {leaked(score)}"
        found.setdefault(name, []).append(f"{score['releases']} releases {figures}")
    return [f"if every record is released several times, {name}: {'; '.join(each)}" for name, each in found.items()]


def claim_line(scores: Mapping[str, Any]) -> str:
    """The claimed ε beside the largest lower bound that canaries show; "" where none was sought."""
    found = scores["worst"].get("differential-privacy")
    promise = scores["guarantee"]
    if found is None or promise["epsilon"] is None:
        return ""
    claimed = f"claimed ε = {promise['epsilon']:.3f} (δ = {promise['delta']:g})"
    by = f"{scores['titles'][found['attack']][0]}, {found['n']:,} trials"
    shown = f"empirical lower bound ε ≥ {found['value']:.3f} ({by})"
    refuted = " — THE CLAIM IS REFUTED" if found["value"] > promise["epsilon"] else ""
    return f"{claimed}; {shown}{refuted}"


def spent_line(results: Sequence[Mapping[str, Any]]) -> str:
    """What the points of a sweep spent together on the same records; "" where none of them has an (ε, δ)."""
    spent = [result["guarantee"] for result in results if result["guarantee"]["kind"] == "dp"]
    if len(spent) < 2:
        return ""
    epsilon, delta = (sum(float(one[name]) for one in spent) for name in ("epsilon", "delta"))
    return (
        f"every point asked the same records: whoever sees all of them has up to ε = {epsilon:.4g}, δ = {delta:g}. "
        "Release one, and count what you chose by."
    )


def front_table(results: Sequence[Mapping[str, Any]], best: Sequence[str]) -> Table:
    """One line a point: utility and the worst of each threat."""
    threats = list(dict.fromkeys(threat for result in results for threat in result["worst"]))
    metrics = [next(r["worst"][threat]["metric"] for r in results if threat in r["worst"]) for threat in threats]
    worst = [f"worst {threat} ({metric})" for threat, metric in zip(threats, metrics, strict=True)]
    useful = [s["metric"] for result in results for s in result["utility"] if s["primary"]]
    table = new_table("point", numbers=((useful or ["accuracy"])[0], *worst, "on the front"))
    for result in results:
        accuracy = next((score for score in result["utility"] if score["primary"]), None)
        cells = [_with_interval(result["worst"][threat]) if threat in result["worst"] else "—" for threat in threats]
        served = "—" if accuracy is None else _with_interval(accuracy)
        table.add_row(result["point"], served, *cells, "yes" if result["point"] in best else "")
    return table


def leakage_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """One line a release, worst first: the leakage of the worst attack on each question."""
    threats = sorted({threat for result in results for threat in result["worst"]}, key=rank)
    table = new_table("release", numbers=threats, title="leakage of the worst attack")
    for result in sorted(results, key=_surest, reverse=True):
        table.add_row(result["point"], *(_leakage(result["worst"].get(threat)) for threat in threats))
    return table


def noted_lines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was noticed about each of several releases, a line for what several share."""
    whose: dict[str, list[str]] = {}
    for result in results:
        for note in result.get("notes", ()):
            whose.setdefault(note, []).append(result["point"])
    return [f"note on {', '.join(names)}: {note}" for note, names in whose.items()]


def users_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """One line a user: what is served and hidden, how well, and what it cost."""
    table = new_table(
        *("user", "serves", "hides"), numbers=("accuracy", "AUROC", "leakage", "budget spent"), title="filters of users"
    )
    for result in results:
        user = result["user"]
        served = next((s for s in result["utility"] if s["primary"] and s["metric"] == "accuracy"), None)
        read = [s for s in result["attacks"] if s["threat"] == "attribute" and s["metric"] == "auroc"]
        worst = [s for name, s in result["worst"].items() if name.partition(":")[0] == "attribute"]
        table.add_row(
            user["user"],
            user["utility"][0],
            ", ".join(user["private"]),
            "—" if served is None else _with_interval(served),
            "—" if not read else _with_interval(max(read, key=lambda s: s["value"])),
            _leakage(max(worst, key=lambda s: s["leakage"] or 0.0)) if worst else "—",
            f"{user['spent']:.3g} of {user['budget']:g}",
        )
    return table


def parameter_table(name: str, declared: Mapping[str, Parameter]) -> Table:
    """The hyper-parameters of a mechanism: default, allowed values and meaning."""
    title = f"hyper-parameters of {name} (--set NAME=VALUE)"
    table = new_table("parameter", "default", "allowed", "meaning", title=title)
    for parameter, one in declared.items():
        table.add_row(parameter, shown_default(one.default), one.allowed, one.help)
    return table


def shown_default(value: Any) -> str:
    """A default as it is written on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or "(empty)"


def percent(share: float | None) -> str:
    """A share of 1 in whole percent, or a dash for what was not measured."""
    return "—" if share is None else f"{100 * share:.0f} %"


def figure(value: float | None) -> str:
    """Four significant digits, or a dash for what was not measured."""
    return "—" if value is None else f"{value:.4g}"


def _leakage(score: Mapping[str, Any] | None) -> str:
    if score is None or score["leakage"] is None:
        return "—"
    low, high = (percent(end) for end in score["leakage_ci"])
    return f"{percent(score['leakage'])} [{low}, {high}]"


def _surest(result: Mapping[str, Any]) -> float:
    """The most that leaks by a question whose interval lies above 0."""
    found = [score for score in result["worst"].values() if score["leakage_ci"]]
    return max((float(score["leakage"]) for score in found if score["leakage_ci"][0] >= _SHOWN), default=0.0)


def _with_interval(score: Mapping[str, Any]) -> str:
    return f"{figure(score['value'])} [{figure(score['ci'][0])}, {figure(score['ci'][1])}]"
