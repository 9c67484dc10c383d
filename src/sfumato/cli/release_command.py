"""``sfumato release``: records through a fitted mechanism, or drawn ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import (
    Address,
    Device,
    EngineName,
    Json,
    LedgerFile,
    Quiet,
    Run,
    SigningKey,
    Threads,
    engine_named,
    machine,
    parse_pair,
)
from sfumato.core.errors import UsageError, unknown

_UNSEEN = ("refuse", "missing")


def release(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="The release folder; must not exist.")],
    data: Annotated[str | None, typer.Option("--data", "-d", help="The records: a named set, file or folder.")] = None,
    labels: Annotated[bool, typer.Option("--labels", help="Let the utility labels go along.")] = False,
    unprotected: Annotated[
        bool, typer.Option("--labels-unprotected", help="Let them go along outside of the promise.")
    ] = False,
    rows: Annotated[int | None, typer.Option("--rows", help="synth: how many synthetic records.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="synth: one class, label=value. Repeatable.")] = None,
    png: Annotated[bool, typer.Option("--png", help="synth: pictures as PNG files.")] = False,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="The policy to pass; default: the one sfumato gate kept with RUN.")
    ] = None,
    unaudited: Annotated[
        bool, typer.Option("--unaudited", help="Release without an audit or a passed gate; the card begins with that.")
    ] = False,
    recipient: Annotated[str, typer.Option("--recipient", help="Who gets it; default: what the policy says.")] = "",
    purpose: Annotated[str, typer.Option("--purpose", help="What for; default: what the policy says.")] = "",
    sign: SigningKey = None,
    device: Device = "auto",
    threads: Threads = None,
    ledger: LedgerFile = None,
    unseen: Annotated[
        str, typer.Option("--unseen", help="A category that training never saw: refuse, or count as missing.")
    ] = "refuse",
    jobs: Annotated[int | None, typer.Option("--jobs", help="Workers of --engine ray on this machine.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release records through a fitted mechanism, or draw synthetic ones: Parquet and a card, in bounded memory.

    A run that was not audited, or does not pass its policy, is refused with exit 4.
    """
    from sfumato.cli.output import Talk, print_result, promise_lines
    from sfumato.core.policy import read_policy
    from sfumato.scale.bulk_release import release_over
    from sfumato.workflow import Warrant, release_run, sample_run

    if (data is None) == (rows is None):
        raise UsageError("say which records leave: --data for a mechanism, or --rows for a synth run.")
    if rows is None and (png or only):
        raise UsageError("--only and --png go with --rows.")
    if unseen not in _UNSEEN:
        raise unknown("choice of --unseen", unseen, _UNSEEN)
    if unseen != "refuse" and (rows is not None or engine != "local"):
        raise UsageError("--unseen missing goes with --data, without --engine ray.")
    if rows is not None and engine != "local":
        raise UsageError("--engine ray goes with --data: drawing records takes one machine.")
    if jobs is not None and engine == "local":
        raise UsageError("--jobs goes with --engine ray: one process releases here.")
    if rows is not None and (labels or unprotected):
        raise UsageError("--labels goes with --data: synthetic records always have their labels.")
    asked = None if policy is None else read_policy(policy)
    warrant = Warrant(asked, unaudited, recipient, purpose, key=sign)
    with Talk(quiet) as talk, machine(device, threads=threads):
        if rows is not None:
            given = dict(parse_pair(text) for text in only or ())
            say = lambda done: talk.step(f"drew {done:,} records")  # noqa: E731
            card = sample_run(run, rows, out, given=given, pictures=png, warrant=warrant, ledger=ledger, say=say)
        else:
            say = lambda done: talk.step(f"released {done:,} records")  # noqa: E731
            with engine_named(engine, address, jobs) as chosen:
                here = partial(release_run, unseen=unseen == "missing")
                send = here if chosen is None else partial(release_over, chosen)
                card = send(
                    run,
                    str(data),
                    out,
                    labels=labels,
                    unprotected=unprotected,
                    ledger=ledger,
                    warrant=warrant,
                    say=say,
                    warn=talk.say,
                )
    written = f"{out}: {card['rows']:,} records, payload {card['payload_shape']}"
    unseen_by = [f"UNAUDITED: {card['unaudited']}"] if card["unaudited"] else []
    lines = [*unseen_by, *card["warnings"], written, *promise_lines(card["guarantee"]), f"card: {out / 'README.md'}"]
    print_result(json, card, "\n".join(lines))
