"""The papers' tables and figures, each reproducible with one command."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.core.errors import UsageError, unknown
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.report import build_report
from sfumato.studies import (
    ars,
    ars_bytes,
    ars_columns,
    ars_labels,
    ars_masks,
    ars_pooling,
    filter_adult,
    filter_digits,
    filter_faces,
    filter_users,
    phase,
    phase_critic,
    protect_choice,
    ran,
    ran_background,
    synth,
    synth_file,
    synth_flaw,
    synth_ours,
    synth_peers,
)
from sfumato.studies.base import Measurement, Part, Scale, Study, study_result
from sfumato.studies.rows import over_seeds
from sfumato.workflow import compare, compare_users

_ALL: tuple[Study | Measurement, ...] = (
    *ran.STUDIES,
    ran_background.STUDY,
    *filter_digits.STUDIES,
    *filter_adult.STUDIES,
    *filter_faces.STUDIES,
    *filter_users.STUDIES,
    *phase.STUDIES,
    phase_critic.CRITIC,
    *synth.STUDIES,
    *synth_ours.STUDIES,
    synth_ours.CANARIES,
    synth_peers.STUDY,
    synth_flaw.STUDY,
    synth_file.STUDY,
    *ars.STUDIES,
    *ars_columns.STUDIES,
    *ars_labels.STUDIES,
    ars_masks.STUDY,
    ars_bytes.STUDY,
    *ars_pooling.STUDIES,
    *protect_choice.STUDIES,
)
_STUDIES = {study.name: study for study in _ALL}
SCALES = ("smoke", "cpu", "full")


def studies() -> list[Study | Measurement]:
    """Every study."""
    return list(_STUDIES.values())


def run_study(
    name: str,
    *,
    data: str | None = None,
    scale: str = "cpu",
    limit: int | None = None,
    out: Path | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run (or go on with) a study; its rows and the report end up in its folder. ``limit`` replaces the scale's."""
    if name not in _STUDIES:
        raise unknown("study", name, _STUDIES)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    study = _STUDIES[name]
    source = data or next(iter(study.data))
    if source not in study.data:
        raise unknown(f"data set of {name}", source, study.data)
    if limit is not None and isinstance(study, Measurement) and study.limits is None:
        raise UsageError(f"{name} does not choose among the records of {source}: leave out --limit.")
    out = out or Path("runs") / "-".join(filter(None, (study.family, source, scale, str(limit or ""))))
    if isinstance(study, Measurement):
        limit = limit or (study.limits or {}).get(scale)
        result = _measure(study, source, scale, limit, out, seed, say)
    else:
        plan = study.scale(source, scale)
        plan = plan if limit is None else _limited(plan, limit)
        result = _compare(study, source, scale, plan, out, seed, progress, say)
    write_json(out / f"{name}.json", result)
    return result


def _limited(plan: Scale, limit: int) -> Scale:
    """With so many records in every part, also where parts have limits of their own."""
    parts = (replace(part, data={**part.data, "limit": limit}) if "limit" in part.data else part for part in plan.parts)
    return replace(plan, parts=tuple(parts), limit=limit)


def _compare(
    study: Study,
    source: str,
    scale: str,
    plan: Scale,
    out: Path,
    seed: int,
    progress: Progress,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Every part for every seed, the rows of all seeds as one, the report and the picture."""
    options = {"source": source, "limit": plan.limit, **study.data[source]}
    runs: list[list[dict[str, Any]]] = []
    folders: list[Path] = []
    for number in plan.seeds:
        home = out / f"seed-{seed + number}" if len(plan.seeds) > 1 else out
        found: list[dict[str, Any]] = []
        for part in plan.parts:
            drawn = seed + number + part.seed
            results = _run_part(part, {**options, **part.data}, home / part.name, drawn, plan, progress, say)
            found += [{"part": part.name, "seed": drawn, **result} for result in results]
            folders.append(home / part.name)
        runs.append(found)
    page = build_report(folders, out / "report.html", title=f"{study.title.split(',')[0]} on {source} ({scale} scale)")
    every = [result for found in runs for result in found]
    result = study_result(
        study,
        data=source,
        scale=scale,
        seed=seed,
        seeds=sorted({result["seed"] for result in every}),
        seconds=sum(result["seconds"] for result in every),
        rows=over_seeds([study.rows(source, found) for found in runs]),
        limit=plan.limit,
    )
    drawn_to = out / f"{study.name}.png"
    if study.picture is not None:
        study.picture(source, runs[0], drawn_to)
    return {**result, "report": str(page), "picture": drawn_to.name if study.picture is not None else None}


def _measure(
    study: Measurement,
    source: str,
    scale: str,
    limit: int | None,
    out: Path,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure once for each seed; it has no points, and so no report."""
    started = time.perf_counter()
    runs = []
    several = study.seeds.get(scale, (0,))
    for number in several:
        home = out / f"seed-{seed + number}" if len(several) > 1 else out
        home.mkdir(parents=True, exist_ok=True)
        asked = {"study": study.name, "data": source, "scale": scale, "limit": limit, "seed": seed + number}
        _claim(home / f"asked-{study.name}.json", asked)
        runs.append(study.run(data=source, scale=scale, limit=limit, seed=seed + number, out=home, say=say))
    result = study_result(
        study,
        data=source,
        scale=scale,
        seed=seed,
        seeds=[seed + number for number in several],
        seconds=time.perf_counter() - started,
        rows=over_seeds(runs),
        limit=limit,
    )
    drawn_to = out / f"{study.name}.png"
    if study.picture is not None:
        study.picture(source, out / f"seed-{seed + several[0]}" if len(several) > 1 else out, drawn_to)
    return {**result, "report": None, "picture": drawn_to.name if study.picture is not None else None}


def _claim(file: Path, asked: dict[str, Any]) -> None:
    """Refuse a folder that holds finished parts of another measurement."""
    if file.exists() and read_json(file) != asked:
        raise UsageError(f"{file.parent} holds another measurement, or the same of other records: give another --out.")
    write_json(file, asked)


def _run_part(
    part: Part,
    data: dict[str, Any],
    out: Path,
    seed: int,
    plan: Scale,
    progress: Progress,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    def hear(what: str) -> None:
        say(f"{part.name}: {what}" if part.name else what)

    if part.users:
        (point,) = part.points
        params = point.within(out)
        base = Path(params.pop("base"))
        return compare_users(
            point.mechanism, part.users, base, out, params, effort=plan.effort, progress=progress, say=hear
        )
    return compare(
        part.points,
        data,
        out,
        seed=seed,
        effort=part.effort or plan.effort,
        warm_start=plan.warm_start,
        progress=progress,
        say=hear,
    )
