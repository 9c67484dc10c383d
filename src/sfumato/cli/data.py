"""``sfumato data``: list, describe and check data sets, and draft domains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Domain, Id, Json, LedgerFile, Private, Utility, X
from sfumato.core.errors import DataError, UsageError

app = typer.Typer(help="List, describe and check data.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[str, typer.Argument(help="A named data set, a file or a folder.", metavar="SOURCE")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the named data sets and where each would be read from."""
    from sfumato.cli.output import OUT, new_table, print_json
    from sfumato.data import listing

    entries = listing()
    if json:
        print_json(entries)
        return
    table = new_table("name", "kind", "records", "utility", "private", "where", "licence")
    for entry in entries:
        table.add_row(*(str(entry[key]) for key in ("name", "kind", "size", "utility", "private", "where", "licence")))
    OUT.print(table)


@app.command()
def show(
    source: Source,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    domain: Domain = None,
    json: Json = False,
) -> None:
    """Describe a data set: shape, labels, classes and subjects.

    sfumato data show people.csv --utility income --private sex
    """
    from sfumato.cli.data_tables import print_description
    from sfumato.cli.output import print_json
    from sfumato.data import describe, load

    about = describe(load(source, x=x, utility=utility, private=private, id=subject, domain=domain))
    if json:
        print_json(about)
    else:
        print_description(about)


@app.command()
def check(
    source: Source,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    domain: Domain = None,
    json: Json = False,
) -> None:
    """Find all problems of a file in one pass. The exit code is 3 if it cannot be used."""
    from dataclasses import asdict

    from sfumato.cli.output import print_json, print_text
    from sfumato.data import check as find_problems

    problems = find_problems(source, x=x, utility=utility, private=private, id=subject, domain=domain)
    errors = sum(problem.severity == "error" for problem in problems)
    if json:
        print_json({"source": source, "errors": errors, "problems": [asdict(problem) for problem in problems]})
        if errors:
            raise typer.Exit(DataError.exit_code)
        return
    for problem in problems:
        print_text(str(problem))
    if errors:
        raise DataError(f"{source}: {_count(errors, 'error')} to fix before it can be used.")
    warnings = sum(problem.severity == "warning" for problem in problems)
    print_text(f"{source}: fine" + (f", {_count(warnings, 'warning')}" if warnings else ""))


@app.command()
def domain(
    source: Annotated[
        str | None, typer.Argument(help="A named data set, a file or a folder.", metavar="[SOURCE]")
    ] = None,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A data dictionary: JSON, a codebook (CSV), or a Frictionless or Croissant schema."
        ),
    ] = None,
) -> None:
    """Write a domain file (TOML): from a public data dictionary, or as a draft from the records.

    sfumato data domain people.csv --utility income --private sex > domain.toml

    sfumato data domain people.csv --from codebook.csv > domain.toml
    """
    from sfumato.cli.output import OUT
    from sfumato.data import domain_draft
    from sfumato.data.dictionary_domain import domain_from

    if dictionary is not None:
        text = domain_from(dictionary, source, x=x, utility=utility, private=private, id=subject)
    elif source is None:
        raise UsageError("say what the domain is of: a SOURCE, or a dictionary with --from.")
    else:
        text = domain_draft(source, x=x, utility=utility, private=private, id=subject)
    OUT.print(text, markup=False, end="")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@app.command()
def budget(
    source: Source,
    cap: Annotated[
        float | None, typer.Option("--cap", help="Let fits and releases together spend at most this ε.")
    ] = None,
    ledger: LedgerFile = None,
    json: Json = False,
) -> None:
    """What private fits and releases have spent on the records of a file, and the most that they may.

    sfumato data budget people.csv --cap 5
    """
    from sfumato.cli.output import OUT, figure, new_table, print_json, print_text
    from sfumato.workflow.spent_budget import BudgetLedger

    kept = BudgetLedger.of(source, ledger)
    if kept is None:
        raise UsageError(f"{source} is public data, which have no budget: name a file of yours, or a --ledger.")
    if ledger is None and not Path(source).exists():
        raise DataError(f"{source} does not exist: name the file whose budget you ask for.")
    account = kept.account() if cap is None else kept.limit(cap)
    if json:
        print_json({"ledger": str(kept.file), **account.to_json()})
        return
    if account.spent:
        table = new_table("day", "what", "run", "protects one", numbers=("ε", "δ"))
        for one in account.spent.values():
            table.add_row(one.day, one.what, one.where, one.unit, figure(one.epsilon), figure(one.delta))
        OUT.print(table)
    most = "no cap" if account.cap is None else f"cap ε = {account.cap:g}"
    print_text(f"spent together: ε = {account.epsilon:.4g}, δ = {account.delta:.3g} ({most}); kept in {kept.file}")
