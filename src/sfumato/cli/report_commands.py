"""``sfumato demo``, ``report``, ``view`` and ``reproduce``: what ends in a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import (
    Address,
    Device,
    EngineName,
    Jobs,
    Json,
    Precision,
    Quiet,
    Seed,
    Threads,
    engine_named,
    machine,
)


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


def view(
    folders: Annotated[
        list[Path], typer.Argument(help="Runs, sweeps, or folders that hold some.", metavar="FOLDER...")
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of this machine; 0 is any free one.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The report in the browser, following runs that are still under way.

    Only this machine can read it, at the address that is printed. Points appear as they finish; Ctrl-C ends the view.

    Example: sfumato view sweeps/lam
    """
    import sys

    from sfumato.cli.output import ERR, print_result
    from sfumato.report.live_view import LiveView

    server = LiveView(folders, port)
    print_result(json, {"url": server.url}, server.url)
    sys.stdout.flush()
    if not quiet:
        ERR.print(f"following {', '.join(map(str, folders))}; Ctrl-C ends the view", markup=False)
    server.follow()


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
