"""``sfumato verify``: for whoever receives a release, or finds one in the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Json
from sfumato.core.errors import GateFailed


def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.", metavar="RELEASE")],
    policy: Annotated[
        Path | None, typer.Option("--policy", help="The policy file that the release must have passed.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Public key (PEM) of whoever must have signed it.")] = None,
    json: Json = False,
) -> None:
    """Check a release: digests, papers against figures, policy, signature; exit 4 if anything is not in order.

    sfumato verify outbox --policy policy.toml --key owner.pub

    Without --key nothing shows who made the folder: get the key from its owner, not from the folder.
    """
    from sfumato.cli.output import OUT, new_table, print_json
    from sfumato.core.policy import read_policy
    from sfumato.workflow.verifying import verify_release

    checks = verify_release(release, policy=None if policy is None else read_policy(policy), key=key)
    failed = [check.because for check in checks if not check.passed]
    if json:
        print_json({"release": str(release), "passed": not failed, "checks": [check.to_json() for check in checks]})
    else:
        table = new_table("check", "result", "found", title=str(release))
        for check in checks:
            table.add_row(check.asked, check.outcome.replace("-", " "), check.because)
        OUT.print(table)
    if failed:
        raise GateFailed(f"{release} is not in order: {'; '.join(failed)}.")
