"""``sfumato audit``: of a run, or of a release that somebody else made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.options import (
    Address,
    Device,
    Domain,
    EffortName,
    EngineName,
    GeometryName,
    Id,
    Jobs,
    Json,
    Precision,
    Private,
    Quiet,
    Students,
    Threads,
    Utility,
    X,
    data_config,
    engine_named,
    machine,
)

if TYPE_CHECKING:
    from rich.table import Table


def audit(
    run: Annotated[
        list[Path] | None,
        typer.Argument(help="A run folder, or a folder of users; after --release more files to audit.", metavar="RUN"),
    ] = None,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release",
            help="A release that somebody else made. Several with --owner: side by side, also a folder or "
            "made/*.csv; two with --records: of the same records.",
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
    public: Annotated[
        str | None,
        typer.Option(
            "--public", help="The same records in an embedding that anybody can compute: attackers align with it."
        ),
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

    sfumato audit runs/filter-users

    sfumato audit --release synthetic.csv --owner train.csv --holdout control.csv --out runs/vendor

    sfumato audit --release vendors/*.csv --owner train.csv --holdout control.csv --out runs/vendors

    sfumato audit --release vectors.npz --records originals.npz --id person --private sex --out runs/vectors
    """
    from sfumato.auditing.effort import effort_named
    from sfumato.cli.foreign_audit import release_alone, rows_audited, run_alone
    from sfumato.cli.output import Talk, leakage_table, users_table
    from sfumato.workflow import audit_payloads, audit_run, audit_users, is_users_folder

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
        "--public": public,
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
            release = release_alone(about, release, run or [], again=again, student=student)
        several: list[dict[str, Any]] = []
        folder = None if release else run_alone(about, run or [])
        whole = folder is not None and is_users_folder(folder)
        if release and owner is not None and holdout is not None:
            rows = {"private": private or (), "id": subject, "effort": how, "seed": seed or 0, "say": talk.say}
            made = {"pipeline": pipeline, "pipeline_seconds": pipeline_seconds}
            out, several = rows_audited(release, owner, holdout, out, rows, made)
            if len(several) == 1:
                (scores,), several = several, []
        elif release:
            asked = data_config({}, records, x, utility, private, subject, None, domain, shares)
            scores = audit_payloads(
                release,
                asked.pop("source"),
                **asked,
                pipeline=pipeline,
                pipeline_seconds=pipeline_seconds,
                public=public,
                effort=how,
                seed=seed or 0,
                out=out or Path("runs") / release[0].stem,
                say=talk.say,
            )
        elif folder is not None and whole:
            several = audit_users(folder, effort=how, again=again, say=talk.say)
        elif folder is not None:
            scores = audit_run(folder, effort=how, again=again, say=talk.say)
    if several:
        _show_several(several, users_table if whole else leakage_table, folder if whole else out, json)
    else:
        _show(scores, foreign=bool(release), json=json)


def _show_several(points: list[dict[str, Any]], table: Callable[[Any], Table], folder: Path | None, json: bool) -> None:
    from sfumato.cli.output import OUT, noted_lines, print_json, print_text

    if json:
        print_json({"points": points})
        return
    OUT.print(table(points))
    for line in noted_lines(points):
        print_text(line)
    print_text(f"next: sfumato report {folder}")


def _show(scores: dict[str, Any], *, foreign: bool, json: bool) -> None:
    from sfumato.cli.output import OUT, audit_lines, print_json, print_text, score_table

    if json:
        print_json(scores)
        return
    OUT.print(score_table(scores))
    for line in audit_lines(scores):
        print_text(line)
    if foreign:
        print_text(f"next: sfumato report {scores['run']}")
