"""Under what authority a release leaves: an audit of exactly this run, and a policy that it passes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.auditing.attack_versions import attack_versions
from sfumato.core.errors import GateFailed
from sfumato.core.guarantee import Guarantee
from sfumato.core.policy import Policy
from sfumato.core.run_folder import read_json
from sfumato.workflow.gate import STORED, Check, checks_of

NEVER = "no audit has attacked this run"
"""Why a release has no figures, where nobody ever measured any."""


@dataclass(frozen=True)
class Warrant:
    """What the owner says about a release, beside the data and the run.

    ``policy`` must be passed; without one, that which ``sfumato gate`` kept with the run. ``unaudited`` lets a release
    leave without an audit or without passing, and its card begins with that. ``recipient``, ``purpose`` and ``owner``
    replace what the policy says of them. ``tuning`` is what has to be told about how the settings were chosen, in a
    sentence, and ``key`` the private key (PEM) that signs.
    """

    policy: Policy | None = None
    unaudited: bool = False
    recipient: str = ""
    purpose: str = ""
    owner: str = ""
    tuning: str = ""
    key: Path | None = None


NO_POLICY = Warrant()
"""An audit that counts, and the policy that was put to the run, if one was."""
UNAUDITED = Warrant(unaudited=True)


@dataclass(frozen=True)
class Evidence:
    """What a run brings to its release: the scores of its audit (None: none that counts), the policy that it has to
    pass, and why it may leave only unaudited ("" if it may leave)."""

    run: Path
    scores: Mapping[str, Any] | None
    policy: Policy | None
    lacking: str = ""

    def checks(self, promise: Guarantee, labels: bool, spent: float | None) -> tuple[Check, ...]:
        """The policy put to the audit's figures and to the promise of this release.

        Where labels leave, limits on attributes and reconstruction hold for attackers who read them, too. ``spent`` is
        the ε on the records of all fits and releases together.
        """
        if self.scores is None or self.policy is None:
            return ()
        asked = self.policy.with_labels() if labels and not self.scores["traits"]["synthetic"] else self.policy
        return tuple(checks_of({**self.scores, "guarantee": promise.to_json()}, asked, spent=spent))


def evidence_of(run: Path, policy: Policy | None) -> Evidence:
    """What is there for a release of a run; audits of other code, attacks or weights count as none."""
    if policy is None and (run / STORED).is_file():
        policy = Policy.from_json(read_json(run / STORED)["policy"])
    if not (run / "scores.json").is_file():
        return Evidence(run, None, policy, NEVER)
    scores = read_json(run / "scores.json")
    stale = _stale(run, scores)
    return Evidence(run, None if stale else scores, policy, stale)


def cleared(run: Path, warrant: Warrant, labels: bool, promise: Guarantee) -> Evidence:
    """The evidence of a run that may release.

    Raises:
        GateFailed: There is no audit that counts, or the policy is not passed, and ``unaudited`` was not said.
    """
    found = evidence_of(run, warrant.policy)
    if found.lacking:
        if not warrant.unaudited:
            again = " --again" if (run / "scores.json").is_file() else ""
            raise GateFailed(
                f"{run} may not release: {found.lacking}. Run 'sfumato audit {run}{again}', or say --unaudited."
            )
        return found
    if found.policy is None:
        return found
    before = replace(found, policy=replace(found.policy, epsilon_total=None))  # what all cost is known at the end
    return replace(passed(before, before.checks(promise, labels, None), warrant), policy=found.policy)


def passed(found: Evidence, checks: tuple[Check, ...], warrant: Warrant) -> Evidence:
    """The evidence once more, if every check was passed or ``unaudited`` was said; else ``GateFailed``."""
    failed = [check for check in checks if not check.passed]
    if not failed:
        return found
    listed = "; ".join(f"{check.asked} ({check.because})" for check in failed)
    if not warrant.unaudited:
        raise GateFailed(
            f"{found.run} does not pass its policy{_called(found.policy)}: {listed}. "
            "Change the run or the policy, or say --unaudited."
        )
    return replace(found, lacking=f"the policy{_called(found.policy)} was not passed: {listed}")


def _called(policy: Policy | None) -> str:
    return f" '{policy.name}'" if policy is not None and policy.name else ""


def audited_state(run: Path) -> dict[str, Any]:
    """What an audit was an audit of: stored with its scores, and compared at every release."""
    return {"sfumato": __version__, "attacks": attack_versions(), "weights": weights_digest(run)}


def weights_digest(run: Path) -> str:
    """SHA-256 over everything of a run folder that its releases depend on."""
    digest = hashlib.sha256()
    kept = [run / name for name in ("mechanism.json", "schema.json")]
    for file in [*kept, *sorted((run / "checkpoint").rglob("*"))]:
        if file.is_file():
            digest.update(f"{file.relative_to(run)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _stale(run: Path, scores: Mapping[str, Any]) -> str:
    """Why an audit says nothing about this run any more; "" if it does."""
    then, now = scores.get("audited"), audited_state(run)
    if then is None:
        return "its audit does not say of which weights and by which attacks it is"
    if then["weights"] != now["weights"]:
        return "its audit is of other weights"
    if then["sfumato"] != now["sfumato"]:
        return f"its audit is by sfumato {then['sfumato']}, and this is {now['sfumato']}"
    changed = sorted(name for name, version in now["attacks"].items() if then["attacks"].get(name) != version)
    if changed:
        return f"its audit has no attack {changed[0]} of version {now['attacks'][changed[0]]}, which there is by now"
    return ""
