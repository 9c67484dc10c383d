"""``sfumato doctor``: what is installed, what can be used, and whether it works."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.options import Json, Quiet

BROKEN = 1


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Look only: no self-test (ten seconds).")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is installed, which devices and data there are, and test the installation. Exit code 1 if it fails.

    sfumato doctor --json > doctor.json    # attach this to a report of a bug
    """
    from sfumato.cli.output import OUT, Talk, new_table, print_json, print_text
    from sfumato.workflow.doctor import as_plain, examine, self_test

    with Talk(quiet or json) as talk:
        checks = examine()
        if not quick:
            checks += self_test("ran", lambda step: talk.say(f"self-test: {step}"))
    healthy = all(check.ok for check in checks)
    if json:
        print_json({"healthy": healthy, "checks": as_plain(checks)})
    else:
        table = new_table("", "what", "found", "note")
        for check in checks:
            table.add_row("✓" if check.ok else "✗", check.name, check.found, check.advice)
        OUT.print(table, markup=False)
        failed = [check.name for check in checks if not check.ok]
        print_text("everything works." if healthy else f"not in order: {', '.join(failed)}.")
    if not healthy:
        raise typer.Exit(BROKEN)
