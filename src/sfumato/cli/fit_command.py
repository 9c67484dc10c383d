"""``sfumato fit``: a mechanism, or a filter for each user, on the owner's records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.completion import data_sets, mechanisms
from sfumato.cli.options import (
    Config,
    Device,
    Domain,
    Holdout,
    Id,
    Json,
    LedgerFile,
    Limit,
    Precision,
    Private,
    Quiet,
    Set,
    Shares,
    Threads,
    Utility,
    X,
    based_on,
    data_config,
    machine,
    parse_settings,
    read_config,
    start_of,
)
from sfumato.core import ranks
from sfumato.core.errors import DataError, UsageError


def fit(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            help="ran, filter, phase, synth, ars, a baseline, or one of a plugin.", autocompletion=mechanisms
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", "-d", help="A named data set or a file or folder.", autocompletion=data_sets),
    ] = None,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    shares: Shares = None,
    holdout: Holdout = None,
    domain: Domain = None,
    settings: Set = None,
    base: Annotated[
        Path | None, typer.Option("--base", help="A fitted run's folder, whose data are used; or vae, pca, raw.")
    ] = None,
    users: Annotated[
        Path | None, typer.Option("--users", help="CSV of users: a filter for each (needs --base).")
    ] = None,
    config: Config = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run folder; default runs/MECHANISM-DATA.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Repeatable randomness; default 0.")] = None,
    ledger: LedgerFile = None,
    help_params: Annotated[
        bool, typer.Option("--help-params", help="List the mechanism's hyper-parameters and stop.")
    ] = False,
    device: Device = "auto",
    precision: Precision = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a mechanism on the owner's records, into a run folder.

    sfumato fit ran --data people.csv --utility income --private sex --set lam=0.05

    sfumato fit ran --help-params
    """
    from sfumato.cli.output import Talk, print_json, print_text
    from sfumato.mechanisms import mechanism_class
    from sfumato.mechanisms.filter.bases import OWN
    from sfumato.workflow import fit_run, fitted_on, resolve

    if resume and config is None and users is None and out is not None and (out / "config.toml").is_file():
        config = out / "config.toml"  # an interrupted run knows what was asked
    own = str(base) if str(base) in OWN and base is not None and not base.is_dir() else None  # made on the spot
    given = based_on(None if own else base, read_config(config))
    asked = given.get("run", {})
    name = mechanism or asked.get("mechanism")
    if name is None:
        raise UsageError("say which mechanism: sfumato fit ran --data mnist.")
    parameters = mechanism_class(name).parameters()
    if help_params:
        _print_parameters(name, json)
        return
    if base is not None and "base" not in parameters:
        raise UsageError(f"{name} builds on nothing: leave out --base.")
    typed = parse_settings(settings, parameters, name) | ({"base": own} if own else {})
    if users is not None:
        labels = {"--utility": utility, "--private": private, "--config": config}
        records = {"--data": data, "--x": x, "--id": subject, "--limit": limit, "--domain": domain, "--seed": seed}
        pointless = {**labels, **records, "--shares": shares, "--holdout": holdout}
        with machine(device, precision, threads=threads):
            _fit_users(name, users, None if own else base, out, typed, pointless, resume=resume, json=json, quiet=quiet)
        return
    resolved = resolve(
        name,
        data_config(given, data, x, utility, private, subject, limit, domain, shares, holdout),
        {**given.get("params", {}), **typed},
        seed=seed if seed is not None else asked.get("seed", 0),
    )
    folder = out or Path("runs") / f"{name}-{Path(str(resolved['data']['source'])).stem}"
    if resume and not folder.exists():
        raise DataError(f"there is nothing to resume in {folder}: leave out --resume to start.")
    used = machine(device, precision or asked.get("precision"), threads=threads, together=True)
    with Talk(quiet or not ranks.first()) as talk, used, ranks.joined():
        talk.say(f"{name}: fit")
        begun = start_of(config, asked)
        fitted = fit_run(
            resolved, folder, resume=resume, start=begun, ledger=ledger, look=True, progress=talk.epoch, warn=talk.say
        )
    if not ranks.first():
        return
    if json:
        print_json({"run": str(folder), "config": resolved})
    else:
        promised = fitted.guarantee()
        whose = [f"promised for {promised.covers}"] if promised.proven else []
        print_text("\n".join([f"{folder}: {fitted_on(folder)}", *whose, f"next: sfumato audit {folder}"]))


def _print_parameters(name: str, json: bool) -> None:
    """``fit --help-params``."""
    from sfumato.cli.output import OUT, parameter_table, print_json
    from sfumato.mechanisms import mechanism_class

    declared = mechanism_class(name).declared()
    if json:
        print_json({key: {"default": p.default, "allowed": p.allowed, "help": p.help} for key, p in declared.items()})
    else:
        OUT.print(parameter_table(name, declared))


def _fit_users(
    name: str,
    table: Path,
    base: Path | None,
    out: Path | None,
    params: dict[str, Any],
    pointless: dict[str, Any],
    *,
    resume: bool,
    json: bool,
    quiet: bool,
) -> None:
    """``fit --users``: every choice of labels stands in the table, the data come with the base."""
    from sfumato.cli.output import Talk, print_result
    from sfumato.workflow import fit_users

    if base is None:
        raise UsageError("--users needs the run that all filters build on, and whose records they use: --base RUN.")
    given = next((option for option, value in pointless.items() if value is not None), "--resume" if resume else None)
    if given is not None:
        raise UsageError(f"{given} has no meaning with --users: labels stand in the table, records come with --base.")
    folder = out or Path("runs") / f"{name}-users"
    with Talk(quiet) as talk:
        talk.say(f"{name}: fit")
        found = fit_users(name, table, base, folder, params, progress=talk.epoch, warn=talk.say)
    print_result(json, found, f"{folder}: {len(found)} filters\nnext: sfumato audit {folder}")
