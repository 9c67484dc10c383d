"""The papers' tables and figures, each reproducible with one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.core.errors import unknown
from sfumato.core.run_folder import write_json
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.report import build_report
from sfumato.studies import (
    ars,
    ars_bytes,
    ars_columns,
    ars_labels,
    ars_masks,
    filter,
    phase,
    ran,
    synth,
    synth_file,
    synth_flaw,
    synth_peers,
)
from sfumato.studies.base import Measurement, Part, Scale, Study, study_result
from sfumato.workflow import compare, compare_users

_STUDIES: dict[str, Study | Measurement] = {
    study.name: study
    for study in (
        *ran.STUDIES,
        *filter.STUDIES,
        *phase.STUDIES,
        *synth.STUDIES,
        synth_peers.STUDY,
        synth_flaw.STUDY,
        synth_file.STUDY,
        *ars.STUDIES,
        *ars_columns.STUDIES,
        *ars_labels.STUDIES,
        ars_masks.STUDY,
        ars_bytes.STUDY,
    )
}
SCALES = ("smoke", "cpu", "full")


def studies() -> list[Study | Measurement]:
    """Every study."""
    return list(_STUDIES.values())


def run_study(
    name: str,
    *,
    data: str | None = None,
    scale: str = "cpu",
    out: Path | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run (or go on with) a study; its rows and the report end up in its folder."""
    if name not in _STUDIES:
        raise unknown("study", name, _STUDIES)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    study = _STUDIES[name]
    source = data or next(iter(study.data))
    if source not in study.data:
        raise unknown(f"data set of {name}", source, study.data)
    out = out or Path("runs") / f"{study.family}-{source}-{scale}"
    if isinstance(study, Measurement):  # it has no points, and so no report
        out.mkdir(parents=True, exist_ok=True)
        result = {**study.result(data=source, scale=scale, seed=seed, out=out, say=say), "report": None}
        write_json(out / f"{name}.json", result)
        return result
    plan = study.scale(source, scale)
    options = {"source": source, "limit": plan.limit, **study.data[source]}
    results: list[dict[str, Any]] = []
    for part in plan.parts:
        found = _run_part(part, {**options, **part.data}, out / part.name, seed + part.seed, plan, progress, say)
        results += [{"part": part.name, "seed": seed + part.seed, **result} for result in found]
    folders = [out / part.name for part in plan.parts]
    page = build_report(folders, out / "report.html", title=f"{study.title.split(',')[0]} on {source} ({scale} scale)")
    seeds = sorted({result["seed"] for result in results})
    seconds = sum(result["seconds"] for result in results)
    result = study_result(study, source, scale, seeds, seconds, study.rows(source, results))
    result["report"] = str(page)
    write_json(out / f"{name}.json", result)
    return result


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
