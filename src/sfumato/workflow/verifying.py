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

_BROKEN = (KeyError, TypeError, ValueError, AttributeError, LookupError, RuleBroken, SfumatoError)
"""What a file of another form raises, wherever it is read."""


def verify_release(
    folder: Path, *, policy: Policy | None = None, key: Path | None = None, today: datetime.date | None = None
) -> tuple[Check, ...]:
    """Every check of a release folder; it is in order if all of them passed, and ``because`` says what is wrong.

    With a ``policy`` the release must have passed that very one; with a public ``key`` it must be signed by its owner.
    Without a key nobody has shown who made the folder: whoever changes all of its files together is not seen.
    """
    if not (folder / RECORD).is_file() and not (folder / SUMS).is_file():
        raise DataError(f"{folder} is no release (it has no {RECORD}): name a folder that sfumato release made.")
    signed = () if key is None else _signature(folder, key)
    checks = [*_readable(SUMS, _files(folder)), *signed]
    return (*checks, *_readable(RECORD, _content(folder, policy, key, today)))


def _readable(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks; a file that cannot be read is one that failed."""
    try:
        yield from checks
    except _BROKEN as error:
        yield Check(f"{name} can be read", "failed", f"{name} does not have the form that sfumato writes ({error})")


def _content(folder: Path, policy: Policy | None, key: Path | None, today: datetime.date | None) -> Iterator[Check]:
    """What the release says of itself, held against its other files."""
    if not (folder / RECORD).is_file():
        return  # it is missing, which has been said
    record = read_json(folder / RECORD)
    if record["format"] != FORMAT:
        said = f"made by sfumato {record['sfumato']}, whose papers have another form: verify it with that version"
        yield Check("the papers", "not-shown", said)
        return
    yield from _papers(folder, record)
    yield from _evidence(folder, record, policy)
    yield _valid(record, today)
    if key is not None:
        yield _statement(folder, record, key)


def _files(folder: Path) -> Iterator[Check]:
    """All files are there, none else, each as it was."""
    if not (folder / SUMS).is_file():
        yield Check(f"{SUMS} is there", "failed", f"{SUMS} is missing: nothing says what the files were")
        return
    wanted, found = read_sums(folder), digests(folder)
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    changed = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    yield _check("all files are there", not missing, f"{len(wanted)} files", f"missing: {_listed(missing)}")
    yield _check("no other file is there", not extra, "every file is listed", f"not of the release: {_listed(extra)}")
    yield _check("every file is as it was", not changed, f"SHA-256 as in {SUMS}", f"changed: {_listed(changed)}")


def _papers(folder: Path, record: Mapping[str, Any]) -> Iterator[Check]:
    """What people read is what the figures say."""
    for name, text in papers(record).items():
        there = (folder / name).is_file() and (folder / name).read_bytes() == text.encode()
        wrong = f"{name} was edited: it does not say what {RECORD} says"
        yield _check(f"{name} says what {RECORD} says", there, "rendered again", wrong)
    same = payload_digest(folder, record["payload"]["files"]) == record["payload"]["sha256"]
    wrong = f"the payload is not the one that {RECORD} and the card speak of"
    yield _check("the payload is the one that was released", same, "SHA-256", wrong)


def _evidence(folder: Path, record: Mapping[str, Any], policy: Policy | None) -> Iterator[Check]:
    """The release was audited, and passed the policy that it names."""
    audited = record["audit"] is not None and not record["unaudited"]
    wrong = f"it left unaudited: {record['unaudited'] or 'it has no figures'}"
    yield _check("audited", audited, "by the attacks on the card", wrong)
    gate = record["gate"]
    if gate is None:
        if policy is not None:
            yield Check("the policy is the one given", "failed", "the release names no policy, and one was given")
        return
    named = Policy.from_json(gate["policy"])
    same = named.digest == gate["digest"]
    wrong = "the policy was edited: it does not have the digest that the card states"
    yield _check("the policy is unchanged", same, f"SHA-256 {named.digest[:16]}…", wrong)
    if policy is not None:
        wrong = f"the release names another policy{f', {named.name!r}' if named.name else ''}, than the one given"
        yield _check("the policy is the one given", policy.digest == named.digest, "same SHA-256", wrong)
    if record["audit"] is None:
        return
    again = list(checks_of_release(record, named, folder, today=datetime.date.fromisoformat(record["created"])))
    failed = [check.asked for check in again if not check.passed]
    wrong = f"the figures do not pass the policy: {'; '.join(failed)}"
    yield _check("the policy was passed", not failed, f"{len(again)} limits, put again", wrong)
    stored = [(one["asked"], one["outcome"], one["found"]) for one in gate["checks"]]
    agree = stored == [(one.asked, one.outcome, one.found) for one in again] and gate["passed"] is not bool(failed)
    wrong = "the card states another result of the gate than the figures give"
    yield _check("the result is the one on the card", agree, "same limits, same results", wrong)


def _valid(record: Mapping[str, Any], today: datetime.date | None) -> Check:
    until = datetime.date.fromisoformat(record["valid_until"])
    late = (today or datetime.date.today()) > until
    return _check("still valid", not late, f"until {until}", f"it was valid until {until}: a new audit is due")


def _signature(folder: Path, key: Path) -> Iterator[Check]:
    """The envelope is signed, and about these files."""
    if not (folder / ENVELOPE).is_file():
        yield Check("signed", "failed", f"it is not signed: there is no {ENVELOPE}")
        return
    try:
        statement = read_envelope(folder / ENVELOPE, key)
        subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    except WrongSignature as error:
        yield Check("signed", "failed", str(error).rstrip("."))
        return
    except (KeyError, TypeError, AttributeError, DataError) as error:
        yield Check("signed", "failed", f"{ENVELOPE} holds no statement about files ({error})")
        return
    yield Check("signed", "passed", f"by the key of {key}")
    wrong = f"{ENVELOPE} is signed, but about other files than these"
    yield _check("the signature is about these files", subjects == digests(folder), "all of them", wrong)


def _statement(folder: Path, record: Mapping[str, Any], key: Path) -> Check:
    """What was signed is the result that the release states."""
    asked = "the signed result is the one on the card"
    try:
        signed = read_envelope(folder / ENVELOPE, key)
    except SfumatoError:
        return Check(asked, "not-shown", "no signed result can be read")
    same = signed == release_statement(record, digests(folder))
    said = "result " + str(signed.get("predicate", {}).get("result"))
    return _check(asked, same, said, f"{ENVELOPE} is signed, but states something else than the card")


def _listed(names: list[str]) -> str:
    most = 5
    return f"{', '.join(names[:most])}{' …' if len(names) > most else ''}"


def _check(asked: str, good: bool, fine: str, wrong: str) -> Check:
    return Check(asked, "passed" if good else "failed", fine if good else wrong)
