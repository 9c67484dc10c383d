"""``sfumato export``: a run as a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Json, Quiet, Run


def export(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="The bundle, a folder; must not exist.")],
    name: Annotated[str, typer.Option("--name", help="Name of bundle and model; default: the folder's.")] = "",
    int8: Annotated[
        bool, typer.Option("--int8", help="Device half in 8 bits, with its cost in accuracy and leakage.")
    ] = False,
    attacker: Annotated[
        bool,
        typer.Option("--attacker", help="Add an attacker's decoder, for demonstrations (sfumato serve --playground)."),
    ] = False,
    effort: Annotated[
        str, typer.Option("--effort", help="Of the attackers that --int8 measures by: smoke, cpu, full.")
    ] = "smoke",
    triton: Annotated[
        Path | None, typer.Option("--triton", help="Write a model repository of the cloud half for Triton there.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a run's device half and cloud half as ONNX programs, compared with the networks (docs/bundle.md)."""
    from sfumato.auditing.effort import effort_named
    from sfumato.cli.output import Talk, print_result
    from sfumato.deploy.exporting import export_run
    from sfumato.deploy.manifest import read_bundle
    from sfumato.deploy.triton_repository import write_repository

    with Talk(quiet) as talk:
        done = export_run(run, out, name=name, int8=int8, attacker=attacker, effort=effort_named(effort), say=talk.say)
        if triton is not None:
            write_repository(read_bundle(out), triton)
    rows = [
        f"  {one.name + '.onnx':14} {one.bytes / 1024:8.0f} kB   error {one.error:.1e}"
        f"{'' if one.real else ' (random records)'}   {one.one:.2f} ms for one, {one.many:.2f} ms for {one.batch}"
        for one in done.figures
    ]
    if done.quantised is not None:
        cost = done.quantised
        rows.append(f"  8 bits: {cost.before / 1024:.0f} kB became {cost.after / 1024:.0f} kB")
        rows += (
            [f"    {cost.accuracy[0]} {cost.accuracy[1]:.3f} became {cost.accuracy[2]:.3f}"] if cost.accuracy else []
        )
        rows += [
            f"    {threat}: leakage {before:.0%} became {after:.0%}"
            for threat, (before, after) in cost.leakage.items()
            if before is not None and after is not None
        ]
    lines = [f"{done.folder}: {done.mechanism}", *rows, f"card: {out / 'card.md'}"]
    print_result(json, done.to_json(), "\n".join(lines))
