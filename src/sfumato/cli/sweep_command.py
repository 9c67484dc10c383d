"""``sfumato sweep``: one mechanism over one hyper-parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import (
    Address,
    Data,
    Device,
    Domain,
    EffortName,
    EngineName,
    Id,
    Jobs,
    Json,
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
    data_config,
    engine_named,
    machine,
    parse_knob,
    parse_settings,
)


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
