"""``sfumato audit --release``: a release that somebody else made, with its records instead of a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.core.errors import UsageError


def release_alone(given: Mapping[str, Any], run: Path | None, *, again: bool, student: Any) -> None:
    """Raise unless what was typed is about a release alone."""
    if run is not None:
        raise UsageError(f"audit either a run or a release: leave out {run}, or --release.")
    if again or student:
        raise UsageError("--again and --student go with a run, not with --release.")
    if given.get("--records") is None:
        raise UsageError("say which records the release was made of: --records FILE.")


def run_alone(given: Mapping[str, Any], run: Path | None) -> Path:
    """The run that is audited; raise if options of a release were typed beside it."""
    if run is None:
        raise UsageError(
            "say what to audit: a RUN folder, or --release FILE with its records (see 'sfumato audit -h')."
        )
    strange = next((option for option, value in given.items() if value), None)
    if strange is not None:
        raise UsageError(f"{strange} goes with --release: a run knows its own records and labels.")
    return run
