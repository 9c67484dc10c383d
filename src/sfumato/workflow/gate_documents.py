"""What a gate found, for machines: JUnit XML for a CI's page, an in-toto statement for whoever signs and files it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sfumato.core.policy import Policy
from sfumato.core.run_folder import atomic, write_json
from sfumato.workflow.gate import Gate

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_TESTED = ("scores.json", "mechanism.json", "config.toml", "release.json", "release.parquet")


def write_junit(path: Path, gates: Sequence[Gate]) -> None:
    """One test suite for each audited folder, one case for each limit."""
    root = ElementTree.Element("testsuites", name="sfumato gate")
    for gate in gates:
        failed = [check for check in gate.checks if not check.passed]
        suite = ElementTree.SubElement(
            root, "testsuite", name=str(gate.run), tests=str(len(gate.checks)), failures=str(len(failed))
        )
        for check in gate.checks:
            case = ElementTree.SubElement(suite, "testcase", name=check.asked, classname=str(gate.run))
            if check in failed:
                ElementTree.SubElement(case, "failure", message=check.because, type=check.outcome)
    with atomic(path) as part:
        ElementTree.ElementTree(root).write(part, encoding="utf-8", xml_declaration=True)


def write_statement(path: Path, gates: Sequence[Gate], policy: Policy) -> None:
    """An in-toto statement of the predicate ``test-result``: what was tested, by which policy, with what result."""
    write_json(path, statement(gates, policy))


def statement(gates: Sequence[Gate], policy: Policy) -> dict[str, Any]:
    several = len(gates) > 1
    names = {
        good: [
            f"{gate.run.name}: {check.asked}" if several else check.asked
            for gate in gates
            for check in gate.checks
            if check.passed is good
        ]
        for good in (True, False)
    }
    return {
        "_type": STATEMENT,
        "subject": [subject for gate in gates for subject in _subjects(gate.run)],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "PASSED" if all(gate.passed for gate in gates) else "FAILED",
            "configuration": [
                {
                    "name": policy.name or "policy",
                    "mediaType": "application/json",
                    "digest": {"sha256": policy.digest},
                    "content": base64.b64encode(policy.content()).decode(),
                }
            ],
            "passedTests": names[True],
            "warnedTests": [],
            "failedTests": names[False],
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
