"""The command ``sfumato``: parse, call, print."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato import __version__
from sfumato.cli import data as data_commands
from sfumato.cli import device_commands, gate_commands
from sfumato.cli import share as share_commands
from sfumato.cli.options import (
    Address,
    Config,
    Data,
    Device,
    Domain,
    EngineName,
    Id,
    Jobs,
    Json,
    LedgerFile,
    Limit,
    Precision,
    Private,
    Quiet,
    Seed,
    Set,
    Shares,
    Threads,
    Utility,
    X,
    based_on,
    data_config,
    engine_named,
    machine,
    parse_knob,
    parse_pair,
    parse_settings,
    read_config,
    start_of,
)
from sfumato.core.errors import DataError, SfumatoError, UsageError, unknown

typer.core.HAS_RICH = False  # help is plain text here: rich's escapes would show in it
app = typer.Typer(
    name="sfumato",
    help="Let other people use your data without being able to see it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_commands.app, name="data")
app.add_typer(device_commands.app, name="device")
app.add_typer(gate_commands.policy, name="policy")
app.add_typer(share_commands.app, name="share")

Run = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]
GeometryName = Annotated[
    str, typer.Option("--geometry", help="Picture of the payloads: pca, or umap (pip install 'sfumato[viz]').")
]
Students = Annotated[
    list[str] | None,
    typer.Option("--student", help="Learns from synthetic records: cnn, logistic, sklearn.svm.SVC … Repeatable."),
]
EffortName = Annotated[str, typer.Option("--effort", help="How hard the attackers try: smoke, cpu or full.")]
INTERRUPTED = 130
_UNSEEN = ("refuse", "missing")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Where runs and report go.")] = Path("sfumato-demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    device: Device = "auto",
    precision: Precision = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Every mechanism, small, on the embedded digits: one report."""
    from sfumato.cli.output import Talk, print_json, print_text
    from sfumato.workflow.demo import run_demo, summary

    with Talk(quiet) as talk, machine(device, precision, threads=threads, jobs=jobs):
        results, page = run_demo(out, seed=seed, progress=talk.epoch, say=talk.say)
    if json:
        print_json({"report": str(page), "points": results})
    else:
        print_text("\n".join(summary(results, page)))


@app.command()
def fit(
    mechanism: Annotated[
        str | None, typer.Argument(help="ran, filter, phase, synth, ars, a baseline, or one of a plugin.")
    ] = None,
    data: Annotated[str | None, typer.Option("--data", "-d", help="A named data set or a file or folder.")] = None,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    shares: Shares = None,
    domain: Domain = None,
    settings: Set = None,
    base: Annotated[Path | None, typer.Option("--base", help="A fitted vae's run folder; its data are used.")] = None,
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
    from sfumato.workflow import fit_run, fitted_on, resolve

    given = based_on(base, read_config(config))
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
    typed = parse_settings(settings, parameters, name)
    if users is not None:
        labels = {"--utility": utility, "--private": private, "--config": config}
        records = {"--data": data, "--x": x, "--id": subject, "--limit": limit, "--domain": domain, "--seed": seed}
        pointless = {**labels, **records, "--shares": shares}
        with machine(device, precision, threads=threads):
            _fit_users(name, users, base, out, typed, pointless, resume=resume, json=json, quiet=quiet)
        return
    resolved = resolve(
        name,
        data_config(given, data, x, utility, private, subject, limit, domain, shares),
        {**given.get("params", {}), **typed},
        seed=seed if seed is not None else asked.get("seed", 0),
    )
    folder = out or Path("runs") / f"{name}-{Path(str(resolved['data']['source'])).stem}"
    if resume and not folder.exists():
        raise DataError(f"there is nothing to resume in {folder}: leave out --resume to start.")
    with Talk(quiet) as talk, machine(device, precision or asked.get("precision"), threads=threads):
        talk.say(f"{name}: fit")
        begun = start_of(config, asked)
        fitted = fit_run(
            resolved, folder, resume=resume, start=begun, ledger=ledger, progress=talk.epoch, warn=talk.say
        )
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
        raise UsageError("--users needs the autoencoder that all filters share: --base RUN.")
    given = next((option for option, value in pointless.items() if value is not None), "--resume" if resume else None)
    if given is not None:
        raise UsageError(f"{given} has no meaning with --users: labels stand in the table, records come with --base.")
    folder = out or Path("runs") / f"{name}-users"
    with Talk(quiet) as talk:
        talk.say(f"{name}: fit")
        found = fit_users(name, table, base, folder, params, progress=talk.epoch)
    print_result(json, found, f"{folder}: {len(found)} filters\nnext: sfumato audit {found[0]['run']}")


@app.command()
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
    """Release records through a fitted mechanism, or draw synthetic ones: Parquet and a card, in bounded memory."""
    from sfumato.cli.output import Talk, print_result, promise_lines
    from sfumato.scale.bulk_release import release_over
    from sfumato.workflow import release_run, sample_run

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
    with Talk(quiet) as talk, machine(device, threads=threads):
        if rows is not None:
            given = dict(parse_pair(text) for text in only or ())
            say = lambda done: talk.step(f"drew {done:,} records")  # noqa: E731
            card = sample_run(run, rows, out, given=given, pictures=png, say=say)
        else:
            say = lambda done: talk.step(f"released {done:,} records")  # noqa: E731
            with engine_named(engine, address, jobs) as chosen:
                here = partial(release_run, unseen=unseen == "missing")
                send = here if chosen is None else partial(release_over, chosen)
                card = send(
                    run, str(data), out, labels=labels, unprotected=unprotected, ledger=ledger, say=say, warn=talk.say
                )
    written = f"{out}: {card['rows']:,} records, payload {card['payload_shape']}"
    print_result(json, card, "\n".join([*card["warnings"], written, *promise_lines(card["guarantee"])]))


@app.command()
def audit(
    run: Annotated[Path | None, typer.Argument(help="A run folder, unless --release is given.", metavar="RUN")] = None,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release",
            help="A release that somebody else made. Several with --owner: side by side, also a folder or "
            "'made/*.csv'; two with --records: of the same records.",
        ),
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", help="The records behind a release of one payload for each.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help="The records that a release of rows for nobody in particular is of.")
    ] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="Records of people of the same kind that were not used.")
    ] = None,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    domain: Domain = None,
    shares: Annotated[
        str | None,
        typer.Option("--shares", help="Owner, attacker, victims; default 0.2,0.5,0.3 of the people behind a release."),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", help="The command that made the release, as in 'python protect.py {in} {out}'."),
    ] = None,
    pipeline_seconds: Annotated[
        float, typer.Option("--pipeline-seconds", help="Time limit of one run of that command.")
    ] = 600.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run folder of a release's audit; default runs/RELEASE.")
    ] = None,
    effort: EffortName = "cpu",
    geometry: GeometryName = "pca",
    student: Students = None,
    again: Annotated[bool, typer.Option("--again", help="Replace the scores of an earlier audit.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeatable randomness of a release's audit; default 0.")
    ] = None,
    device: Device = "auto",
    precision: Precision = None,
    jobs: Jobs = None,
    threads: Threads = None,
    engine: EngineName = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack a fitted mechanism, or a release that somebody else made, with fresh adversaries; the worst counts.

    sfumato audit runs/ran-people

    sfumato audit --release synthetic.csv --owner train.csv --holdout control.csv --out runs/vendor

    sfumato audit --release a.csv --release b.csv --owner train.csv --holdout control.csv --out runs/vendors

    sfumato audit --release vectors.npz --records originals.npz --id person --private sex --out runs/vectors
    """
    from sfumato.auditing.effort import effort_named
    from sfumato.cli.foreign_audit import release_alone, run_alone
    from sfumato.cli.output import OUT, Talk, audit_lines, leakage_table, print_json, print_text, score_table
    from sfumato.workflow import audit_payloads, audit_release_files, audit_releases, audit_run, releases_named

    about = {
        "--records": records,
        "--owner": owner,
        "--holdout": holdout,
        "--x": x,
        "--utility": utility,
        "--private": private,
        "--id": subject,
        "--domain": domain,
        "--shares": shares,
        "--pipeline": pipeline,
        "--out": out,
        "--seed": seed,
    }
    how = effort_named(effort, geometry, student or ())
    beside = 1 if jobs is None and how.light else jobs  # to start processes takes longer than such an audit
    with (
        Talk(quiet) as talk,
        machine(device, precision, threads=threads, jobs=beside),
        engine_named(engine, address, jobs),
    ):
        if release:
            release_alone(about, run, again=again, student=student)
        several: list[dict[str, Any]] = []
        if release and owner is not None and holdout is not None:
            rows: dict[str, Any] = {"private": private or (), "id": subject, "effort": how, "seed": seed or 0}
            files = releases_named(release, owner, holdout)
            out = out or Path("runs") / (files[0].stem if len(files) == 1 else "releases")
            if len(files) > 1:
                several = audit_releases(files, Path(owner), Path(holdout), **rows, out=out, say=talk.say)
            else:
                scores = audit_release_files(files[0], owner, holdout, **rows, out=out, say=talk.say)
        elif release:
            asked = data_config({}, records, x, utility, private, subject, None, domain, shares)
            scores = audit_payloads(
                release,
                asked.pop("source"),
                **asked,
                pipeline=pipeline,
                pipeline_seconds=pipeline_seconds,
                effort=how,
                seed=seed or 0,
                out=out or Path("runs") / release[0].stem,
                say=talk.say,
            )
        else:
            scores = audit_run(run_alone(about, run), effort=how, again=again, say=talk.say)
    if several:
        if json:
            print_json({"points": several})
            return
        OUT.print(leakage_table(several))
        print_text(f"next: sfumato report {out}")
        return
    if json:
        print_json(scores)
        return
    OUT.print(score_table(scores))
    for line in audit_lines(scores):
        print_text(line)
    if release:
        print_text(f"next: sfumato report {scores['run']}")


@app.command()
def sweep(
    mechanism: Annotated[str, typer.Argument(help="A mechanism: ran, ars, synth, noisy …")],
    data: Data,
    knob: Annotated[str, typer.Option("--knob", help="name=low:high:count or name=a,b,c.")],
    out: Annotated[Path, typer.Option("--out", help="Where the points go; an interrupted sweep goes on there.")],
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    shares: Shares = None,
    domain: Domain = None,
    settings: Set = None,
    effort: EffortName = "cpu",
    seed: Seed = 0,
    jobs: Jobs = None,
    device: Device = "auto",
    precision: Precision = None,
    threads: Threads = None,
    engine: EngineName = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The Pareto front of one mechanism over one hyper-parameter."""
    from sfumato.auditing.effort import effort_named
    from sfumato.cli.output import OUT, Talk, front_table, print_json, print_text, spent_line
    from sfumato.mechanisms import mechanism_class
    from sfumato.workflow import sweep as run_sweep
    from sfumato.workflow.compare import front

    defaults = mechanism_class(mechanism).parameters()
    name, values = parse_knob(knob, defaults, mechanism)
    with (
        Talk(quiet) as talk,
        machine(device, precision, threads=threads, jobs=jobs),
        engine_named(engine, address, jobs),
    ):
        results = run_sweep(
            mechanism,
            data_config({}, data, x, utility, private, subject, limit, domain, shares),
            name,
            values,
            out,
            params=parse_settings(settings, defaults, mechanism),
            effort=effort_named(effort),
            seed=seed,
            progress=talk.epoch,
            say=talk.say,
        )
    if json:
        print_json({"points": results, "front": front(results)})
        return
    OUT.print(front_table(results, front(results)))
    if line := spent_line(results):
        print_text(line)
    print_text(f"next: sfumato report {out}")


app.command()(gate_commands.gate)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Audited run, sweep or study folders.", metavar="RUN...")],
    out: Annotated[Path | None, typer.Option("--out", help="The HTML file; default report.html in the first.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    json: Json = False,
) -> None:
    """One self-contained HTML page about any number of audited runs."""
    from sfumato.cli.output import print_result
    from sfumato.report import build_report

    page = build_report(runs, out or runs[0] / "report.html", title=title)
    print_result(json, {"report": str(page)}, str(page))


@app.command()
def reproduce(
    study: Annotated[str | None, typer.Argument(help="A study; without one, the list.")] = None,
    data: Annotated[str | None, typer.Option("--data", "-d", help="One of the study's data sets.")] = None,
    scale: Annotated[str, typer.Option("--scale", help="smoke, cpu or full.")] = "cpu",
    limit: Annotated[
        int | None, typer.Option("--limit", min=30, help="Use at most this many records, not the scale's number.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default runs/PAPER-DATA-SCALE.")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    device: Device = "auto",
    precision: Precision = None,
    threads: Threads = None,
    engine: EngineName = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A paper's table or figure: the paper's statement and our figure side by side."""
    from sfumato.cli.output import OUT, Talk, print_json, print_text
    from sfumato.cli.study_tables import study_list, study_table
    from sfumato.studies import run_study, studies

    if study is None:
        if json:
            print_json({"studies": [one.to_json() for one in studies()]})
        else:
            OUT.print(study_list(studies()))
        return
    with (
        Talk(quiet) as talk,
        machine(device, precision, threads=threads, jobs=jobs),
        engine_named(engine, address, jobs),
    ):
        result = run_study(
            study, data=data, scale=scale, limit=limit, out=out, seed=seed, progress=talk.epoch, say=talk.say
        )
    if json:
        print_json(result)
    else:
        OUT.print(study_table(result))
        if result["report"]:
            print_text(f"report: {result['report']}")


def main() -> None:
    """The entry point of the installed command."""
    try:
        run()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            os._exit(INTERRUPTED)  # nothing is left to do, and exit hooks of libraries would print tracebacks
        raise


def run() -> None:
    """One command: a wrong call or wrong data is one sentence and an exit code, never a traceback."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: child processes are stopped on the way out
    before = os.umask(0o077)  # what a command writes is for whoever gave it, until they hand it on
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")  # libraries warn their callers; that is not the user of a command
            code: Any = app(prog_name="sfumato", standalone_mode=False)
        sys.stdout.flush()
    except SfumatoError as error:
        code = _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        what = f"cannot use {error.filename or 'a file'} ({error.strerror or error})"
        code = _fail(f"{what}: check the path, its permissions and the space left.", DataError.exit_code)
    except Exception as error:
        code = _refuse(error)
    finally:
        os.umask(before)
    if code == INTERRUPTED:
        _fail("interrupted; the same command goes on or starts again (fit: add --resume).", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"sfumato: {sentence}\n")
    return code


def _refuse(error: Exception) -> int:
    """The parser's own complaints in our form; anything else is a bug and keeps its traceback."""
    explain = getattr(error, "format_message", None)
    if explain is None:
        raise error
    context = getattr(error, "ctx", None)
    message = str(explain()).strip()
    if context is None or "\n" in message:  # called without arguments: the message is the help
        sys.stderr.write(f"{message}\n")
    else:
        _fail(f"{message.rstrip('.')} (see '{context.command_path} -h').", 2)
    return int(getattr(error, "exit_code", 2))
