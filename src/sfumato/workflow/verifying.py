"""``sfumato verify``: whether a release folder is what its owner made, and what its policy asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.core.errors import DataError, RuleBroken, SfumatoError
from sfumato.core.policy import Policy
from sfumato.core.run_folder import read_json
from sfumato.report.release_papers import FORMAT, papers
from sfumato.workflow.gate import Check, checks_of_release
from sfumato.workflow.gate_documents import release_statement
from sfumato.workflow.release_folder import ENVELOPE, RECORD, SUMS, digests, read_sums
from sfumato.workflow.release_record import payload_digest
from sfumato.workflow.signing import WrongSignature, read_envelope

_BROKEN = (KeyError, TypeError, ValueError, AttributeError, LookupError, RuleBroken)
"""What a ``release.json`` of another form raises, wherever it is read."""


def verify_release(
    folder: Path, *, policy: Policy | None = None, key: Path | None = None, today: datetime.date | None = None
) -> tuple[Check, ...]:
    """Every check of a release folder; it is in order if all of them passed.

    With a ``policy`` the release must have passed that very one; with a public ``key`` it must be signed by its owner.
    Without a key nobody has shown who made the folder: whoever changes all of its files together is not seen.
    """
    if not (folder / RECORD).is_file():
        raise DataError(f"{folder} is no release (it has no {RECORD}): name a folder that sfumato release made.")
    checks = [*_files(folder), *_signature(folder, key)]
    try:
        record = read_json(folder / RECORD)
        if record["format"] != FORMAT:
            said = f"made by sfumato {record['sfumato']}, whose papers have another form: use that version"
            return (*checks, Check("the papers", "not-shown", said))
        checks += [*_papers(folder, record), *_evidence(folder, record, policy), _valid(record, today)]
        checks += [] if key is None else [_statement(folder, record, key)]
    except (*_BROKEN, SfumatoError) as error:
        checks.append(Check(f"{RECORD} can be read", "failed", f"it does not have the form of a release's ({error})"))
    return tuple(checks)


def _files(folder: Path) -> Iterator[Check]:
    """All files are there, none else, each as it was."""
    if not (folder / SUMS).is_file():
        yield Check(f"{SUMS} is there", "failed", "without it nothing says what the files were")
        return
    wanted, found = read_sums(folder), digests(folder)
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    changed = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    yield _check("no file is missing", not missing, f"{len(wanted)} files", _named("missing", missing))
    yield _check("no file is extra", not extra, "every file is listed", _named("not listed", extra))
    yield _check("every file is as it was", not changed, f"SHA-256 as in {SUMS}", _named("changed", changed))


def _papers(folder: Path, record: Mapping[str, Any]) -> Iterator[Check]:
    """What people read is what the figures say."""
    for name, text in papers(record).items():
        there = (folder / name).is_file() and (folder / name).read_bytes() == text.encode()
        yield _check(f"{name} says what {RECORD} says", there, "rendered again", f"it does not: read {RECORD}")
    same = payload_digest(folder, record["payload"]["files"]) == record["payload"]["sha256"]
    yield _check("the payload is the one that was released", same, "SHA-256", f"it is not the one in {RECORD}")


def _evidence(folder: Path, record: Mapping[str, Any], policy: Policy | None) -> Iterator[Check]:
    """The release was audited, and passed the policy that it names."""
    audited = record["audit"] is not None and not record["unaudited"]
    yield _check("audited", audited, "by the attacks on the card", record["unaudited"] or "no figures")
    gate = record["gate"]
    if gate is None:
        if policy is not None:
            yield Check("the policy", "failed", "the release names none, and one was given")
        return
    named = Policy.from_json(gate["policy"])
    same = named.digest == gate["digest"]
    yield _check("the policy is unchanged", same, f"SHA-256 {named.digest[:16]}…", "its digest is another")
    if policy is not None:
        yield _check(
            "the policy is the one given", policy.digest == named.digest, "same SHA-256", f"it names '{named.name}'"
        )
    if record["audit"] is None:
        return
    again = list(checks_of_release(record, named, folder, today=datetime.date.fromisoformat(record["created"])))
    failed = [check.asked for check in again if not check.passed]
    yield _check("the policy was passed", not failed, f"{len(again)} limits, put again", "; ".join(failed))
    stored = [(one["asked"], one["outcome"]) for one in gate["checks"]]
    agree = stored == [(one.asked, one.outcome) for one in again] and gate["passed"] is not bool(failed)
    yield _check("the result is the one on the card", agree, "same limits, same results", "other limits or results")


def _valid(record: Mapping[str, Any], today: datetime.date | None) -> Check:
    until = datetime.date.fromisoformat(record["valid_until"])
    late = (today or datetime.date.today()) > until
    return _check("still valid", not late, f"until {until}", f"it was valid until {until}: a new audit is due")


def _signature(folder: Path, key: Path | None) -> Iterator[Check]:
    """The envelope is signed, and about these files."""
    signed = (folder / ENVELOPE).is_file()
    if key is None:
        return
    if not signed:
        yield Check("signed", "failed", f"there is no {ENVELOPE}")
        return
    try:
        statement = read_envelope(folder / ENVELOPE, key)
        subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    except WrongSignature as error:
        yield Check("signed", "failed", str(error))
        return
    except (*_BROKEN, SfumatoError) as error:
        yield Check("signed", "failed", f"the envelope holds no statement about files ({error})")
        return
    yield Check("signed", "passed", f"by the key of {key}")
    yield _check("the signature is about these files", subjects == digests(folder), "all of them", "files differ")


def _statement(folder: Path, record: Mapping[str, Any], key: Path) -> Check:
    """What was signed is the result that the release states."""
    try:
        signed = read_envelope(folder / ENVELOPE, key)
    except SfumatoError:
        return Check("the signed result is the one on the card", "not-shown", "there is no signature to read")
    same = signed == release_statement(record, digests(folder))
    return _check("the signed result is the one on the card", same, signed["predicate"]["result"], "it is another")


def _named(what: str, names: list[str]) -> str:
    return f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


def _check(asked: str, good: bool, fine: str, wrong: str) -> Check:
    return Check(asked, "passed" if good else "failed", fine if good else wrong)
