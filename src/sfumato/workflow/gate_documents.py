"""What a gate found, for machines: JUnit XML for a CI's page, an in-toto statement for whoever signs and files it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sfumato.core.policy import Policy
from sfumato.core.run_folder import atomic, write_json
from sfumato.workflow.gate import GatedFolders
from sfumato.workflow.signing import write_envelope

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_TESTED = ("scores.json", "mechanism.json", "config.toml", "release.json", "release.parquet")


def write_junit(path: Path, found: GatedFolders) -> None:
    """One test suite for each audited folder, one case for each limit.

    What fails of a point is skipped if the verdict is about another one, which passed.
    """
    root = ElementTree.Element("testsuites", name="sfumato gate")
    for gate in found.gates:
        passed_over = found.passed and gate not in found.deciding
        failed = [check for check in gate.checks if not check.passed]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=str(gate.run),
            tests=str(len(gate.checks)),
            failures=str(0 if passed_over else len(failed)),
            skipped=str(len(failed) if passed_over else 0),
        )
        for check in gate.checks:
            case = ElementTree.SubElement(suite, "testcase", name=check.asked, classname=str(gate.run))
            if check in failed and passed_over:
                ElementTree.SubElement(case, "skipped", message=f"another point passes; here: {check.because}")
            elif check in failed:
                ElementTree.SubElement(case, "failure", message=check.because, type=check.outcome)
    with atomic(path) as part:
        ElementTree.ElementTree(root).write(part, encoding="utf-8", xml_declaration=True)


def write_statement(path: Path, found: GatedFolders, policy: Policy, key: Path | None = None) -> None:
    """An in-toto statement of the predicate ``test-result``: what was tested, by which policy, with what result.

    With a ``key`` it is in a DSSE envelope, signed.
    """
    if key is None:
        write_json(path, statement(found, policy))
    else:
        write_envelope(path, statement(found, policy), key)


def statement(found: GatedFolders, policy: Policy) -> dict[str, Any]:
    """The verdict; of points to choose from it is about those that passed, if any did."""
    gates = found.deciding
    several = len(found.gates) > 1
    names = {
        good: [
            f"{gate.run.name}: {check.asked}" if several else check.asked
            for gate in gates
            for check in gate.checks
            if check.passed is good
        ]
        for good in (True, False)
    }
    result = "PASSED" if found.passed else "FAILED"
    subjects = [subject for gate in gates for subject in _subjects(gate.run)]
    return _statement(subjects, result, _configuration(policy), names[True], names[False])


def release_statement(record: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """The same over all files of a release, by what its ``release.json`` says: WARNED where no policy was named."""
    gate = record["gate"]
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()]
    if gate is None and record["unaudited"]:
        return _statement(subjects, "FAILED", failed=[record["unaudited"]])
    if gate is None:
        return _statement(subjects, "WARNED", warned=["no policy was named"])
    passed, failed = ([one["asked"] for one in gate["checks"] if one["passed"] is good] for good in (True, False))
    result = "FAILED" if record["unaudited"] or failed else "PASSED"
    return _statement(subjects, result, _configuration(Policy.from_json(gate["policy"])), passed, failed)


def _configuration(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name or "policy",
        "mediaType": "application/json",
        "digest": {"sha256": policy.digest},
        "content": base64.b64encode(policy.content()).decode(),
    }


def _statement(
    subjects: Sequence[Mapping[str, Any]],
    result: str,
    policy: Mapping[str, Any] | None = None,
    passed: Sequence[str] = (),
    failed: Sequence[str] = (),
    warned: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "_type": STATEMENT,
        "subject": list(subjects),
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": result,
            "configuration": [] if policy is None else [dict(policy)],
            "passedTests": list(passed),
            "warnedTests": list(warned),
            "failedTests": list(failed),
        },
    }


def _subjects(run: Path) -> list[dict[str, Any]]:
    """The files that the verdict is about, by SHA-256."""
    files = [run / name for name in _TESTED if (run / name).is_file()]
    files += sorted((run / "checkpoint").glob("*.safetensors"))
    return [{"name": str(file.relative_to(run.parent)), "digest": {"sha256": _sha256(file)}} for file in files]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
