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
    attacker: Annotated[
        bool, typer.Option("--attacker", help="Also a decoder as an attacker would train it, for demonstrations.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a run's device half and cloud half as ONNX programs, compared with the networks (docs/bundle.md)."""
    from sfumato.cli.output import Talk, print_result
    from sfumato.deploy.exporting import export_run

    with Talk(quiet) as talk:
        done = export_run(run, out, name=name, attacker=attacker, say=talk.say)
    rows = [
        f"  {one.name + '.onnx':14} {one.bytes / 1024:8.0f} kB   error {one.error:.1e}"
        f"{'' if one.real else ' (random records)'}   {one.one:.2f} ms for one, {one.many:.2f} ms for {one.batch}"
        for one in done.figures
    ]
    print_result(
        json, done.to_json(), "\n".join([f"{done.folder}: {done.mechanism}", *rows, f"card: {out / 'card.md'}"])
    )
