"""``sfumato protect``: from data and a policy to a release that passed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.gate_commands import Groups, Least, Most, PolicyFile, Require, asked_policy
from sfumato.cli.gate_commands import Shares as PeopleShares
from sfumato.cli.options import (
    Device,
    Domain,
    EffortName,
    Id,
    Jobs,
    Json,
    LedgerFile,
    Limit,
    Precision,
    Private,
    Quiet,
    Seed,
    Shares,
    SigningKey,
    Threads,
    Utility,
    X,
    data_config,
    machine,
)
from sfumato.core.errors import GateFailed

if TYPE_CHECKING:
    from sfumato.workflow.protect import Protected

Given = Annotated[str, typer.Argument(help="The data: a named set, a file or a folder.", metavar="DATA")]
LeavesName = Annotated[
    str | None,
    typer.Option("--leaves", help="What a receiver gets: features, records, rows (of nobody) or messages (encrypted)."),
]


def protect(
    data: Given,
    out: Annotated[Path, typer.Option("--out", help="Release, report and candidates; a search goes on there.")],
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    shares: Shares = None,
    domain: Domain = None,
    policy: PolicyFile = None,
    most: Most = None,
    least: Least = None,
    groups: Groups = None,
    people: PeopleShares = None,
    require: Require = None,
    leaves: LeavesName = None,
    labels: Annotated[bool, typer.Option("--labels", help="Let the utility labels go along.")] = False,
    within: Annotated[str, typer.Option("--within", help="Time for everything: 90s, 15m, 1h.")] = "15m",
    candidates: Annotated[int | None, typer.Option("--candidates", min=1, help="Try at most so many.")] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many rows to draw, where rows leave.")] = 10_000,
    recipient: Annotated[str, typer.Option("--recipient", help="Who gets it; default: what the policy says.")] = "",
    purpose: Annotated[str, typer.Option("--purpose", help="What for; default: what the policy says.")] = "",
    sign: SigningKey = None,
    ledger: LedgerFile = None,
    effort: EffortName = "cpu",
    seed: Seed = 0,
    jobs: Jobs = None,
    device: Device = "auto",
    precision: Precision = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for a mechanism that keeps a policy, judge the best on people whom the search never saw, and release.

    sfumato protect people.csv --utility readmitted --private sex --id patient --min accuracy=0.7
    --max attribute=10% --max reconstruction=30% --within 15m --out outbox

    Exit 4 if nothing passes; then the nearest candidates are named, and which limit to relax by how much. The same
    command goes on with a search that was interrupted.
    """
    from sfumato.auditing.effort import effort_named
    from sfumato.cli.output import print_json
    from sfumato.cli.protect_view import SearchView, print_outcome
    from sfumato.workflow import Warrant
    from sfumato.workflow.protect import SearchTerms
    from sfumato.workflow.protect import protect as search
    from sfumato.workflow.protect.time_limit import seconds_of

    asked = asked_policy(policy, most or (), least or (), groups or (), people or (), require)
    given = data_config({}, data, x, utility, private, subject, limit, domain, shares)
    del given["source"]
    terms = SearchTerms(
        seconds_of(within),
        candidates,
        effort_named(effort),
        rows,
        Warrant(recipient=recipient, purpose=purpose, key=sign),
        ledger,
    )
    with SearchView(quiet, terms.seconds) as view, machine(device, precision, threads=threads, jobs=jobs):
        found = search(
            data,
            out,
            asked,
            leaves=leaves,
            labels=labels,
            seed=seed,
            terms=terms,
            say=view.say,
            watch=view.watch,
            **given,
        )
    if json:
        print_json(found.to_json())
    else:
        print_outcome(found)
    if not found.passed:
        raise GateFailed(_refused(found, out))


def _refused(found: Protected, out: Path) -> str:
    relax = found.content["relax"]
    if found.content["winner"] is not None:
        why = "the best candidate does not pass on people whom the search never saw"
    elif not found.candidates:
        why = "no mechanism can keep this policy"
    else:
        why = f"none of {len(found.candidates)} candidates passes"
    step = f"; the smallest step: {relax[0]['limit']} → {relax[0]['to']}" if relax else ""
    return f"nothing is released to {out}: {why}{step}."
