"""``sfumato share``: several parties share representations and learn from them together, with Flower."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.options import (
    Data,
    Device,
    Domain,
    Id,
    Json,
    Private,
    Quiet,
    Seed,
    Set,
    Utility,
    X,
    machine,
    parse_settings,
)
from sfumato.core.errors import UsageError

app = typer.Typer(
    help="Share representations among parties and learn together (with Flower).",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Parties = Annotated[int, typer.Option("--parties", "-k", help="Number of parties.")]
Limit = Annotated[int | None, typer.Option("--limit", min=30, help="Use at most this many records in all.")]
Each = Annotated[int | None, typer.Option("--each", min=1, help="Number of records that each party shares.")]
Partition = Annotated[
    str,
    typer.Option("--partition", help="How the parties differ: even, classes=2, dirichlet=0.3, power=1, lognormal=1."),
]
Wire = Annotated[str, typer.Option("--wire", help="Precision on the wire: float32, float16, uint8 or uint4.")]
Mode = Annotated[str, typer.Option("--mode", help="horizontal, vertical or filter.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the parties and the result; must not exist.")]


@app.command()
def simulate(
    data: Data,
    parties: Parties = 5,
    mode: Mode = "horizontal",
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    each: Each = None,
    partition: Partition = "even",
    domain: Domain = None,
    settings: Set = None,
    initiator: Annotated[str, typer.Option("--initiator", help="Party that publishes the encoder.")] = "party-0",
    learner: Annotated[str, typer.Option("--learner", help="Classifier for the shared set: mlp or logistic.")] = "mlp",
    wire: Wire = "float32",
    timeout: Annotated[float, typer.Option("--timeout", help="Time limit of each phase, in seconds.")] = 3600.0,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Split a data set among parties and let them publish, share and learn in Flower's simulation engine."""
    from sfumato.cli.output import OUT, Talk, print_json, print_text
    from sfumato.parties.simulation import simulate as run

    params = _mechanism_settings(mode, settings)
    folder = out or Path("runs") / f"share-{Path(data).stem}"
    records = _records(x, utility, private, subject, domain, limit, each, partition)
    terms: dict[str, Any] = {"initiator": initiator, "learner": learner, "wire": wire, "timeout": timeout}
    with machine(device), Talk(quiet) as talk:
        more = {**records, **terms, "out": folder, "say": talk.say}
        result = run(data, parties=parties, mode=mode, params=params, seed=seed, **more)
    found = {"run": str(folder), **result.to_json()}
    if json:
        print_json(found)
        return
    OUT.print(_party_table(found))
    print_text(f"{folder}: accuracy {_figure(result.accuracy)}, {_sizes(found)}")


@app.command()
def fedavg(
    data: Data,
    parties: Parties = 5,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds.")] = 10,
    dp: Annotated[
        str | None, typer.Option("--dp", help="DP-FedAvg with this noise multiplier and clipping norm, e.g. 1.0,0.5.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Local epochs per round.")] = 1,
    wire: Wire = "float32",
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    each: Each = None,
    partition: Partition = "even",
    domain: Domain = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier by federated averaging on the same parties, with Flower's own strategies."""
    from sfumato.cli.output import OUT, Talk, new_table, print_json, print_text
    from sfumato.parties.simulation import fedavg as run

    noise, clip = _noise_and_clip(dp)
    records = _records(x, utility, private, subject, domain, limit, each, partition)
    with machine(device), Talk(quiet) as talk:
        more = {**records, "epochs": epochs, "wire": wire, "out": out, "say": talk.say}
        result = run(data, parties=parties, rounds=rounds, noise=noise, clip=clip, seed=seed, **more)
    if json:
        print_json(result.to_json())
        return
    table = new_table("round", numbers=("accuracy", "bytes up", "bytes down"))
    for one in result.rounds:
        table.add_row(str(one.number), _figure(one.accuracy), f"{one.bytes_up:,}", f"{one.bytes_down:,}")
    OUT.print(table)
    spent = "" if result.epsilon is None else f", ε = {result.epsilon:.3g} per party (δ = {result.delta:g})"
    print_text(f"{result.strategy}: accuracy {_figure(result.accuracy)}, {_sizes(result.to_json())}{spent}")


@app.command()
def split(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the parties, one sub-folder each; must not exist.")],
    parties: Parties = 3,
    vertical: Annotated[bool, typer.Option("--vertical", help="Divide columns instead of records.")] = False,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    each: Each = None,
    partition: Partition = "even",
    domain: Domain = None,
    repeatable: Annotated[
        bool, typer.Option("--repeatable", help="For experiments: repeatable noise; every setting is accepted.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Split a data set into one folder per party, to try out a deployment."""
    from sfumato.cli.output import print_result
    from sfumato.parties.partition import split_parties

    records = _records(x, utility, private, subject, domain, limit, each, partition)
    made = split_parties(data, out, parties=parties, vertical=vertical, seed=seed, repeatable=repeatable, **records)
    folders = [str(folder) for folder in made]
    print_result(json, {"parties": folders}, "\n".join(folders))


@app.command("app")
def app_(
    folder: Annotated[Path, typer.Argument(help="Folder for the Flower app; must not exist.")],
    parties: Parties = 3,
    mode: Mode = "horizontal",
    settings: Set = None,
    out: Annotated[Path, typer.Option("--out", help="The server's run folder, on the SuperLink's machine.")] = Path(
        "sfumato-share"
    ),
    json: Json = False,
) -> None:
    """Write the Flower app for a real deployment, with one SuperLink and one SuperNode per organisation."""
    from sfumato.cli.output import print_result
    from sfumato.parties.app_files import lay_app
    from sfumato.parties.flower_processes import need_flower

    need_flower()
    params = _mechanism_settings(mode, settings)
    lay_app(folder, parties=parties, mode=mode, params=params, out=str(out.resolve()))
    following = f"next: flwr run {folder} SUPERLINK --stream, where ~/.flwr/config.toml defines SUPERLINK"
    print_result(json, {"app": str(folder)}, f"{folder}\n{following}")


def _records(
    x: list[str] | None,
    utility: list[str] | None,
    private: list[str] | None,
    subject: str | None,
    domain: Path | None,
    limit: int | None,
    each: int | None,
    partition: str,
) -> dict[str, Any]:
    """The records to share and their columns, under the names that ``sfumato.parties`` has for them."""
    return {
        "x": x,
        "utility": utility,
        "private": private,
        "id": subject,
        "domain": domain,
        "limit": limit,
        "each": each,
        "partition": partition,
    }


def _mechanism_settings(mode: str, settings: list[str] | None) -> dict[str, Any]:
    """The hyper-parameters that were typed for the mechanism of a mode."""
    from sfumato.parties.party_mechanisms import check_mode
    from sfumato.parties.party_mechanisms import settings as known

    check_mode(mode)
    if mode == "filter":
        return parse_settings(settings, known(mode), mode)
    return parse_settings(settings, {**known(mode), "lam": ""}, "ars")


def _noise_and_clip(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 0.0
    try:
        noise, clip = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--dp {text}: write it as noise,clip, for example 1.0,0.5.") from None
    if not (noise > 0 and clip > 0):
        raise UsageError(f"--dp {text}: both numbers must be above 0.")
    return noise, clip


def _party_table(found: Mapping[str, Any]) -> Any:
    from sfumato.cli.output import new_table

    table = new_table("party", "status", "reason", numbers=("records", "accuracy", "bytes up", "bytes down"))
    for party in found["parties"]:
        numbers = (f"{party['rows']:,}", _figure(party["accuracy"]), *_traffic(party))
        table.add_row(party["name"], party["status"], party["reason"], *numbers)
    return table


def _sizes(found: Mapping[str, Any]) -> str:
    up, down = _traffic(found)
    return f"{up} bytes up, {down} bytes down"


def _traffic(found: Mapping[str, Any]) -> tuple[str, str]:
    return f"{found['bytes_up']:,}", f"{found['bytes_down']:,}"


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:.4f}"
