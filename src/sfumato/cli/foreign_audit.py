"""``sfumato audit --release``: a release that somebody else made, with its records instead of a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.core.errors import UsageError

_PAYLOADS = ("--records", "--x", "--utility", "--domain", "--shares", "--public")


def release_alone(
    given: Mapping[str, Any], release: list[Path], more: list[Path], *, again: bool, student: Any
) -> list[Path]:
    """The releases that ``--release`` and a shell's ``*.csv`` after it name, which may have named the owner's and the
    held-out records as well; raise unless what was typed is about releases alone."""
    run = next((path for path in more if path.is_dir()), None)
    if run is not None:
        raise UsageError(f"audit either a run or a release: leave out {run}, or --release.")
    if again or student:
        raise UsageError("--again and --student go with a run, not with --release.")
    rows = [option for option in ("--owner", "--holdout") if given.get(option) is not None]
    if not rows:
        if given.get("--records") is None:
            raise UsageError(
                "say which records the release was made of: --records FILE for one payload a record, or --owner FILE "
                "and --holdout FILE for rows that belong to nobody in particular."
            )
        return [*release, *more]
    if len(rows) == 1:
        other = "--holdout" if rows == ["--owner"] else "--owner"
        why = (
            "people who were not used tell luck from leakage" if other == "--holdout" else "leakage is about its people"
        )
        raise UsageError(f"{rows[0]} needs {other} FILE: {why}.")
    strange = next((option for option in _PAYLOADS if given.get(option)), None)
    if strange is not None:
        raise UsageError(f"{strange} goes with --records, not with --owner and --holdout.")
    known = {Path(given[option]).resolve() for option in rows} if more else set()
    return [path for path in (*release, *more) if path.resolve() not in known]


def run_alone(given: Mapping[str, Any], runs: list[Path]) -> Path:
    """The run that is audited; raise if options of a release were typed beside it."""
    if len(runs) > 1:
        raise UsageError(f"audit one run at a time: {runs[0]} or {runs[1]}.")
    run = next(iter(runs), None)
    if run is None:
        raise UsageError(
            "say what to audit: a RUN folder, or --release FILE with its records (see 'sfumato audit -h')."
        )
    strange = next((option for option, value in given.items() if value), None)
    if strange is not None:
        raise UsageError(f"{strange} goes with --release: a run knows its own records and labels.")
    return run


def rows_audited(
    release: list[Path], owner: str, holdout: str, out: Path | None, asked: dict[str, Any], made: dict[str, Any]
) -> tuple[Path, list[dict[str, Any]]]:
    """Releases of rows for nobody in particular, side by side: their folder, and the scores of each."""
    from sfumato.workflow import audit_release_files, audit_releases, releases_named

    files = releases_named(release, owner, holdout)
    out = out or Path("runs") / (files[0].stem if len(files) == 1 else "releases")
    if len(files) == 1:
        return out, [audit_release_files(files[0], owner, holdout, **asked, **made, out=out)]
    if made["pipeline"] is not None:
        raise UsageError("--pipeline made one release: audit that one alone, and the others without it.")
    return out, audit_releases(files, Path(owner), Path(holdout), **asked, out=out)
