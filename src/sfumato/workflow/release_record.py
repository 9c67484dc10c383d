"""The content of ``release.json``: everything that the papers of a release say, as plain values.

The card, ``croissant.json`` and the registry's entry are rendered from it alone, so that they can be checked against
it.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.privacy.attacker_bounds import bounds_of
from sfumato.report.release_papers import FORMAT
from sfumato.workflow.gate import Check
from sfumato.workflow.published_figures import audit_of_release
from sfumato.workflow.warrant import Evidence, Warrant

VALID_DAYS = 365
"""After so many days without a review date of its own, a release wants a new audit."""


def record_of(
    facts: Mapping[str, Any],
    *,
    promise: Guarantee,
    schema: Schema,
    traits: Traits,
    evidence: Evidence,
    checks: Sequence[Check],
    warrant: Warrant,
    folder: Path,
    spent: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What is known of a release whose payload is in ``folder``; ``facts`` are those of its payload.

    ``spent`` is what all private fits and releases of these records cost together, where a ledger is kept.
    """
    policy, today = evidence.policy, datetime.date.today()
    until = policy.review if policy is not None and policy.review else today + datetime.timedelta(days=VALID_DAYS)
    bounds = bounds_of(promise)
    failed = "" if evidence.lacking else _failed(checks)
    audit = None if evidence.scores is None else audit_of_release(evidence.scores, promise, traits)
    unserved = [f"{sentence}." for sentence in (audit or {}).get("useless", ())]
    return {
        "unaudited": evidence.lacking or failed,
        "warnings": [*facts["warnings"], *unserved],
        "format": FORMAT,
        "sfumato": __version__,
        "created": today.isoformat(),
        "about": {
            **{
                name: getattr(warrant, name) or (getattr(policy, name) if policy else "")
                for name in ("owner", "purpose", "recipient")
            },
            "policy": "" if policy is None else policy.name,
        },
        "valid_until": until.isoformat(),
        "tuning": warrant.tuning,
        **{name: value for name, value in facts.items() if name != "warnings"},
        "kind": schema.kind,
        "data": "" if evidence.scores is None else str(evidence.scores["data"]),
        "utility": list(schema.utility),
        "private": list(schema.private),
        "traits": traits.to_json(),
        "columns": columns_of(folder),
        "payload": payload_of(folder),
        "bounds": None if bounds is None else bounds.to_json(),
        "spent": None if spent is None else dict(spent),
        "audit": audit,
        "gate": None if policy is None or audit is None else _gate(policy.to_json(), policy.digest, checks),
    }


def _failed(checks: Sequence[Check]) -> str:
    failed = [check.asked for check in checks if not check.passed]
    return f"the policy was not passed: {'; '.join(failed)}" if failed else ""


def _gate(policy: Mapping[str, Any], digest: str, checks: Sequence[Check]) -> dict[str, Any]:
    return {
        "policy": dict(policy),
        "digest": digest,
        "passed": all(check.passed for check in checks),
        "checks": [check.to_json() for check in checks],
    }


def columns_of(folder: Path) -> list[dict[str, Any]]:
    """Name, type and length of every column that leaves as Parquet; empty for a folder of pictures."""
    import pyarrow.parquet as pq

    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())  # a folder of parts is called so, too
    if not files:
        return []
    found = []
    for field in pq.read_schema(files[0]):
        length = getattr(field.type, "list_size", None)
        kind = str(field.type if length is None else field.type.value_type)
        found.append({"name": field.name, "type": "struct" if kind.startswith("struct") else kind, "length": length})
    return found


def payload_of(folder: Path) -> dict[str, Any]:
    """What leaves, as files: their names or, where there are many, patterns of them; and their digest."""
    names = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    alone = [
        name for name in names if sum(other.suffix == name.suffix for other in names) == 1 and len(name.parts) == 1
    ]
    many = {(name.parent / f"*{name.suffix}").as_posix() for name in names if name not in alone}
    patterns = sorted([*(name.as_posix() for name in alone), *many])
    return {"files": patterns, "sha256": payload_digest(folder, patterns)}


def payload_digest(folder: Path, patterns: Sequence[str]) -> str:
    """SHA-256 of the one file, or of the lines that ``sha256sum`` prints for several in the order of their names."""
    names = sorted({file.relative_to(folder).as_posix() for pattern in patterns for file in folder.glob(pattern)})
    if list(patterns) == names and len(names) == 1:
        return sha256(folder / names[0])
    lines = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()


def sha256(file: Path) -> str:
    """Of a file, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
