"""The papers' tables and figures, each reproducible with one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.core.errors import unknown
from sfumato.core.runs import write_json
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.report import build_report
from sfumato.studies import ran
from sfumato.studies.base import Study
from sfumato.workflow import compare

_STUDIES = {study.name: study for study in (ran.FIGURE3, ran.FIGURE4, ran.FIGURE6)}
SCALES = ("smoke", "cpu", "full")


def studies() -> list[Study]:
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
    plan = study.scale(source, scale)
    results = compare(
        plan.points,
        {"source": source, "limit": plan.limit, **study.data[source]},
        out,
        seed=seed,
        effort=plan.effort,
        progress=progress,
        say=say,
    )
    page = build_report([out], out / "report.html", title=f"{study.title.split(',')[0]} on {source} ({scale} scale)")
    result = {
        "study": name,
        "data": source,
        "scale": scale,
        "seeds": [seed],
        "seconds": round(sum(result["seconds"] for result in results), 1),
        "statement": study.statement,
        "rows": [row.to_json() for row in study.rows(source, results)],
        "report": str(page),
    }
    write_json(out / f"{name}.json", result)
    return result
