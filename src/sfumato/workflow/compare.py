"""Several points on one data set, audited alike: sweeps, studies and the demo."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.auditing import CPU, Controls, Effort
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder, read_json, write_json
from sfumato.core.schema import Schema
from sfumato.core.score import mixed_versions
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.workflow.audit_jobs import Order, audit_job, records_in
from sfumato.workflow.auditing import audit_run
from sfumato.workflow.fitting import fit_run, resolve
from sfumato.workflow.processes import Job, Say, places, side_by_side


@dataclass(frozen=True)
class Point:
    """A mechanism with some of its hyper-parameters; ``knob`` names it (default: the mechanism's own knob).

    ``tag`` tells points apart that differ in more than the knob. ``base`` is the run folder of the mechanism it builds
    on, relative to the comparison's folder (``points/vae``).
    """

    mechanism: str
    params: Mapping[str, Any] = field(default_factory=dict)
    knob: str | None = None
    base: str | None = None
    tag: str = ""

    @property
    def id(self) -> str:
        """Mechanism, tag and knob setting, as a folder name."""
        knob = self.knob or mechanism_class(self.mechanism).knob
        shown = {} if knob is None or knob not in self.params else {knob: self.params[knob]}
        tag = [self.tag] if self.tag else []
        return "-".join([self.mechanism, *tag, *(f"{k}-{v:g}" for k, v in shown.items())])

    def within(self, out: Path) -> dict[str, Any]:
        """The hyper-parameters, with the base as a path."""
        based = {} if self.base is None else {"base": os.path.normpath(out / self.base)}
        return {**self.params, **based}


def compare(
    points: Sequence[Point],
    data: Mapping[str, Any],
    out: Path,
    *,
    seed: int = 0,
    effort: Effort = CPU,
    warm_start: bool = True,
    splits: Splits | None = None,
    progress: Progress = no_progress,
    say: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Fit and audit every point below ``out/points``, as many side by side as the machine may take
    (``core.compute``); finished points are not done again.

    With ``warm_start`` a point trains on from the point of the same mechanism before it, for a quarter of the epochs;
    never if it makes synthetic records.
    """
    several = len({point.mechanism for point in points}) > 1
    data = {"shares": None, **data} if several else data  # not each its own: they are compared on the same victims
    configs = [resolve(point.mechanism, data, point.within(out), seed=seed) for point in points]
    ids = [point.id for point in points]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"two points are called '{twice}': give values that differ within six digits.")
    claim(out, {"points": [f"points/{one}" for one in ids], "config": configs})
    beside = 1 if splits is not None else places(compute.MOST_JOBS)
    controls = out / "controls"
    before: dict[str, str] = {}
    tasks = []
    for number, (point, config) in enumerate(zip(points, configs, strict=True), 1):
        folder = out / "points" / point.id
        afresh = not warm_start or mechanism_class(point.mechanism)().traits.synthetic  # or its records cost twice
        start = None if afresh else before.get(point.mechanism)
        before[point.mechanism] = point.id
        if (folder / "seconds.json").exists():
            _same_precision(folder)
            continue
        order = Order(folder, effort, controls, compute.one_of(beside), f"{number}/{len(points)}")
        arguments = {"order": order, "config": config, "start": None if start is None else out / "points" / start}
        needs = _needs(point, start, ids, out)
        if beside == 1 or not compute.on_cpu():
            tasks.append(Job(point.id, _fit_and_audit, {**arguments, "splits": splits}, needs))
        else:
            tasks.append(Job(point.id, _fit, arguments, needs, then=partial(_audited, order)))
    open_tasks = {task.name for task in tasks}
    tasks = [replace(task, needs=tuple(name for name in task.needs if name in open_tasks)) for task in tasks]
    side_by_side(tasks, beside, say, progress)
    results = [_result(point, out, effort) for point in points]
    same_attacks(results, out)
    return results


def _needs(point: Point, start: str | None, ids: Sequence[str], out: Path) -> tuple[str, ...]:
    """The points of this comparison that have to be fitted first."""
    base = None if point.base is None else Path(os.path.normpath(out / point.base))
    based = [one for one in ids if base == out / "points" / one]
    return (*based, *([] if start is None else [start]))


def _fit(say: Say, progress: Progress, *, order: Order, config: dict[str, Any], start: Path | None) -> float:
    """The fit of one point, here or in another process: its seconds."""
    started = time.perf_counter()
    with compute.using(order.machine):
        _fitted(say, progress, order, config, start, records_in(config))
    return time.perf_counter() - started


def _fitted(
    say: Say, progress: Progress, order: Order, config: dict[str, Any], start: Path | None, splits: Splits
) -> None:
    if not order.path.parent.is_dir():
        raise DataError(f"{platform.node()} does not see {order.path.parent}: put --out where all machines see it.")
    say(f"{order.title} {order.path.name}: fit")
    fit_run(config, order.path, resume=True, start=start, splits=splits, progress=progress)


def _audited(order: Order, seconds: float) -> Sequence[Job]:
    """What follows a fit that took so many seconds."""
    return [audit_job(order, after=lambda more: _mark(order.path, seconds + more))]


def _mark(folder: Path, seconds: float) -> None:
    """This point is done."""
    write_json(folder / "seconds.json", round(seconds, 1))


def _fit_and_audit(
    say: Say,
    progress: Progress,
    *,
    order: Order,
    config: dict[str, Any],
    start: Path | None,
    splits: Splits | None,
) -> None:
    """One point, one attack after the other."""
    started = time.perf_counter()
    with compute.using(order.machine):
        splits = splits or records_in(config)
        _fitted(say, progress, order, config, start, splits)
        audit_run(
            order.path,
            effort=order.effort,
            splits=splits,
            controls=Controls(order.controls),
            say=lambda what: say(f"{order.title} {what}"),
            again=True,
        )
    _mark(order.path, time.perf_counter() - started)


def _same_precision(folder: Path) -> None:
    """Raise if a finished point was computed in another precision than the points to come would be."""
    if not (folder / "schema.json").exists():
        return
    then = read_json(folder / "scores.json").get("precision", "fp32")
    now = compute.precision_for(Schema.from_json(read_json(folder / "schema.json")).size)
    if then != now:
        raise DataError(
            f"{folder} was computed in {then} and its neighbours would be in {now}: precision changes figures, so give "
            f"--precision {then}, or choose another --out."
        )


def same_attacks(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Raise if points were attacked by different versions of an attack, as when an older comparison goes on."""
    seen = [(s["attack"], s["attack_version"]) for result in results for s in result["attacks"]]
    for attack, versions in mixed_versions(seen).items():
        raise DataError(
            f"the points in {out} were attacked by versions {versions[0]} and {versions[-1]} of {attack}, whose "
            "figures are not to be compared: choose another --out."
        )


def _result(point: Point, out: Path, effort: Effort) -> dict[str, Any]:
    folder = out / "points" / point.id
    scores = read_json(folder / "scores.json")
    if Effort(**scores.get("effort", asdict(effort))) != effort:
        raise DataError(f"{folder} was audited with another effort: choose another --out.")
    seconds = read_json(folder / "seconds.json")
    return {"point": point.id, "params": dict(point.params), "seconds": seconds, "folder": str(folder), **scores}


def sweep(
    mechanism: str, data: Mapping[str, Any], knob: str, values: Sequence[float], out: Path, **options: Any
) -> list[dict[str, Any]]:
    """One mechanism over the values of one hyper-parameter; ``options`` as for ``compare``.

    Only the mechanism's own knob leaves networks and training alike, so only then a point trains on from another.
    """
    params = options.pop("params", {})
    options.setdefault("warm_start", knob == mechanism_class(mechanism).knob)
    points = [Point(mechanism, {**params, knob: value}, knob) for value in values]
    return compare(points, data, out, **options)


def front(results: Sequence[Mapping[str, Any]], threat: str | None = None) -> list[str]:
    """The points that no other one beats in both accuracy and worst-case privacy.

    The threat is reconstruction unless another is given; of synthetic records, to which it does not apply, membership.
    """
    threat = threat or ("reconstruction" if any("reconstruction" in r["worst"] for r in results) else "membership")

    def place(result: Mapping[str, Any]) -> tuple[float, float]:
        accuracy = next((score["value"] for score in result["utility"] if score["primary"]), 0.0)
        worst = result["worst"][threat]
        return accuracy, worst["value"] if worst["better_for_owner"] == "higher" else -worst["value"]

    places = {result["point"]: place(result) for result in results if threat in result["worst"]}
    return [
        point
        for point, (a, p) in places.items()
        if not any(b >= a and q >= p and (b, q) != (a, p) for b, q in places.values())
    ]


def claim(out: Path, content: Mapping[str, Any]) -> None:
    """Make the folder, or take up an interrupted comparison of the same points."""
    if (out / "front.json").exists():
        if RunFolder.differs(read_json(out / "front.json"), content):
            raise DataError(f"{out} holds another comparison: choose another --out.")
        return
    RunFolder.refuse_used(out)
    try:
        (out / "points").mkdir(parents=True, exist_ok=True)
        write_json(out / "front.json", content)
    except OSError as error:
        raise DataError(f"cannot write to {out} ({error.strerror}): choose another --out.") from None
