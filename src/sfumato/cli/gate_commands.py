"""``sfumato gate`` and ``sfumato policy``: limits put to what an audit found, for people and for CI."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import Json, LedgerFile, SigningKey
from sfumato.core.errors import GateFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from sfumato.core.policy import Policy
    from sfumato.workflow.gate import Gate, GatedFolders

policy = typer.Typer(help="Read and check policy files.", no_args_is_help=True, rich_markup_mode=None)

Audited = Annotated[
    Path, typer.Argument(help="A run, a sweep, a folder of users, a release, or its audit.", metavar="RUN")
]
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="TOML file of limits; flags replace its own.")]
Most = Annotated[
    list[str] | None,
    typer.Option("--max", help="threat=10% (leakage), threat=0.2 (its metric), threat:label=…, epsilon=3. Repeatable."),
]
Least = Annotated[
    list[str] | None, typer.Option("--min", help="accuracy=0.9, auroc:LABEL=0.8, reconstruction=0.05 … Repeatable.")
]
Groups = Annotated[
    list[str] | None, typer.Option("--max-group", help="threat=20%: leakage of the worst group. Repeatable.")
]
Shares = Annotated[
    list[str] | None,
    typer.Option("--max-share", help="threat=5%: share of people of whom more than half is leaked. Repeatable."),
]
Require = Annotated[str | None, typer.Option("--require", help="Kind of guarantee: dp, anonymity or proven.")]


def gate(
    run: Audited,
    policy: PolicyFile = None,
    most: Most = None,
    least: Least = None,
    groups: Groups = None,
    shares: Shares = None,
    require: Require = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the result as JUnit XML.")] = None,
    statement: Annotated[
        Path | None, typer.Option("--statement", help="Write the result as an in-toto test-result statement.")
    ] = None,
    sign: SigningKey = None,
    ledger: LedgerFile = None,
    json: Json = False,
) -> None:
    """Put limits to an audit: exit 0 if all of them hold, 4 if not. The unfavourable end of each interval counts.

    sfumato gate runs/people --max attribute=10% --max reconstruction=30% --min accuracy=0.7

    Of a sweep, one point that passes is enough; the table says which. Of users, all must pass. A release that serves a
    label no better than guessing fails whatever the limits are. --sign KEY signs the statement (default:
    gate.intoto.json in RUN).
    """
    from sfumato.cli.output import OUT, print_json, print_text
    from sfumato.workflow.gate import gate_all, keep
    from sfumato.workflow.gate_documents import write_junit, write_statement
    from sfumato.workflow.signing import check_key

    asked = asked_policy(policy, most or (), least or (), groups or (), shares or (), require)
    check_key(sign)
    found = gate_all(run, asked, ledger=ledger)
    for one in found.gates:
        keep(one, asked)
    if junit is not None:
        write_junit(junit, found)
    if statement is not None or sign is not None:
        write_statement(statement or run / "gate.intoto.json", found, asked, sign)
    if json:
        gates = [one.to_json() for one in found.gates]
        print_json({"policy": asked.to_json(), "digest": asked.digest, "passed": found.passed, "gates": gates})
    else:
        for one in found.gates:
            OUT.print(_table(one))
        if len(found.gates) > 1:
            print_text(f"passed: {', '.join(one.run.name for one in found.gates if one.passed) or 'nobody'}")
    if not found.passed:
        raise GateFailed(_refused(found, run))


@policy.command()
def check(file: Annotated[Path, typer.Argument(help="A policy file.", metavar="FILE")], json: Json = False) -> None:
    """Read a policy with those that it extends, and print what it asks, or what is wrong with it."""
    from sfumato.cli.output import print_result
    from sfumato.core.policy import read_policy

    found = read_policy(file)
    if found.empty:
        raise UsageError(f"{file} asks for nothing: add a limit under [max] or [min], or [guarantee] require.")
    lines = [
        f"{name}: {value}" for name in ("name", "owner", "purpose", "recipient") if (value := getattr(found, name))
    ]
    past = found.review is not None and found.review < datetime.date.today()
    late = " (PAST: it passes nothing any more)" if past else ""
    lines += [f"review by {found.review}{late}"] if found.review else []
    lines += [str(one) for one in found.thresholds]
    lines += [f"require {found.require}"] if found.require else []
    lines += [f"{name} ≤ {value:g}" for name in ("epsilon", "delta") if (value := getattr(found, name)) is not None]
    lines += [f"unit {found.unit}"] if found.unit else []
    lines += [f"epsilon-total ≤ {found.epsilon_total:g}"] if found.epsilon_total else []
    print_result(json, {**found.to_json(), "digest": found.digest}, "\n".join([*lines, f"digest {found.digest}"]))


def asked_policy(
    file: Path | None,
    most: Sequence[str],
    least: Sequence[str],
    groups: Sequence[str],
    shares: Sequence[str],
    require: str | None,
) -> Policy:
    """The policy of the file, with the flags in place of what it says of the same."""
    from sfumato.core.policy import Policy, policy_of, read_policy

    stored = Policy() if file is None else read_policy(file)
    return stored.extended(policy_of(most, least, groups, require or stored.require, shares))


def _table(found: Gate) -> Table:
    from sfumato.cli.output import figure, new_table, percent

    table = new_table("limit", "result", "what was found", numbers=("counts as",), title=str(found.run))
    for one in found.checks:
        counts = percent(one.found) if one.share else figure(one.found)
        table.add_row(one.asked, one.outcome.replace("-", " "), one.because, counts)
    return table


def _refused(found: GatedFolders, run: Path) -> str:
    if found.all_must:
        failed = ", ".join(one.run.name for one in found.gates if not one.passed)
        return f"{run} does not pass the gate, because not everybody does: {failed}."
    if len(found.gates) > 1:
        return f"no point of {run} passes the gate."
    limits = [one.asked for one in found.gates[0].checks if not one.passed]
    return f"{run} does not pass the gate: {', '.join(limits)}."
