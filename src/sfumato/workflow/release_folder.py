"""What lies beside the payload in every release folder, and the digests that hold it together.

release.json        everything that is known of the release, for machines
README.md           the card, for people; rendered from release.json
croissant.json      the same as Croissant 1.1, for catalogues
dp-deployment.yaml  of a dp release: a draft entry for OpenDP's registry of deployments
SHA256SUMS          of all files; ``sha256sum --check SHA256SUMS`` needs no sfumato
release.intoto.json with a key: an in-toto test-result statement over all files, signed
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.run_folder import atomic, read_json, write_json
from sfumato.mechanisms.base import Mechanism
from sfumato.report.release_papers import papers
from sfumato.workflow.gate_documents import release_statement
from sfumato.workflow.release_record import record_of, sha256
from sfumato.workflow.signing import write_envelope
from sfumato.workflow.spent_budget import Account
from sfumato.workflow.warrant import Evidence, Warrant, passed

RECORD, SUMS, ENVELOPE = "release.json", "SHA256SUMS", "release.intoto.json"


def close_release(
    folder: Path,
    facts: Mapping[str, Any],
    mechanism: Mechanism,
    promise: Guarantee,
    evidence: Evidence,
    warrant: Warrant,
    account: Account | None,
) -> dict[str, Any]:
    """Put the policy to what is in ``folder``, now that its promise is known, and write its papers.

    ``account`` is what everything on these records has cost, this release included; None where no ledger is kept.

    Raises:
        GateFailed: The policy is not passed, and ``unaudited`` was not said.
    """
    spent = (
        None if account is None else {"epsilon": account.epsilon, "delta": account.delta, "times": len(account.spent)}
    )
    checks = evidence.checks(promise, bool(facts["labels"]), None if spent is None else spent["epsilon"])
    record = record_of(
        facts,
        promise=promise,
        schema=mechanism.schema_,
        traits=mechanism.traits,
        evidence=passed(evidence, checks, warrant),
        checks=checks,
        warrant=warrant,
        folder=folder,
        spent=spent,
    )
    complete(folder, record, warrant.key)
    return record


def complete(folder: Path, record: Mapping[str, Any], key: Path | None = None) -> None:
    """Write everything that belongs beside the payload in ``folder``, and sign it if there is a key."""
    write_json(folder / RECORD, record)
    stored = read_json(folder / RECORD)  # what a reader will see: lists for tuples
    for name, text in papers(stored).items():
        with atomic(folder / name) as part:
            part.write_text(text, encoding="utf-8")
    sums = digests(folder)
    with atomic(folder / SUMS) as part:
        part.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    if key is not None:
        write_envelope(folder / ENVELOPE, release_statement(stored, sums), key)


def digests(folder: Path) -> dict[str, str]:
    """Name → SHA-256 of all files but the sums and the signature themselves."""
    files = sorted(file for file in folder.rglob("*") if not file.is_dir())
    named = {file.relative_to(folder).as_posix(): file for file in files}
    return {name: sha256(file) for name, file in named.items() if name not in (SUMS, ENVELOPE)}


def read_sums(folder: Path) -> dict[str, str]:
    """Name → SHA-256 as ``SHA256SUMS`` says; lines of another form are left out."""
    pairs = [line.partition("  ") for line in (folder / SUMS).read_text().splitlines()]
    return {name: digest for digest, _, name in pairs if name}
