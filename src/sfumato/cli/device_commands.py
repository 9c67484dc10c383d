"""``sfumato device``: a device's secret, and records that are protected as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Json, Quiet, parse_pair
from sfumato.core.errors import UsageError

app = typer.Typer(
    help="This device's secret, and records protected as they arrive.", no_args_is_help=True, rich_markup_mode=None
)

DEFAULT = Path("~/.sfumato/device.key")
SecretFile = Annotated[
    Path | None,
    typer.Option("--secret", help="The file; default what SFUMATO_DEVICE_SECRET names, else ~/.sfumato/device.key."),
]


@app.command()
def init(secret: SecretFile = None, json: Json = False) -> None:
    """Make a secret, once for each device: a file that only its owner can read. Nothing else ever makes one."""
    from sfumato.mechanisms.device_secret import make_secret

    path = _chosen(secret)
    make_secret(path)
    _show(path, json)


@app.command()
def show(secret: SecretFile = None, json: Json = False) -> None:
    """Where the secret is, and the fingerprint that releases and companies made under it bear."""
    _show(_chosen(secret), json)


@app.command()
def watch(
    folder: Annotated[Path, typer.Argument(help="Where files arrive: pictures, recordings, rows.", metavar="FOLDER")],
    bundle: Annotated[Path, typer.Option("--bundle", help="What sfumato export wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Where answers go, or protected tensors without --to.")],
    to: Annotated[str | None, typer.Option("--to", help="Server of the cloud half, https://host:port.")] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="File whose first line is the token.")] = None,
    secret: SecretFile = None,
    pool: Annotated[
        list[Path] | None, typer.Option("--pool", help="phase: decoys, files of records or a folder. Repeatable.")
    ] = None,
    private: Annotated[
        list[str] | None, typer.Option("--private", help="label=value of every record, where it is asked for.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Do what lies there, and stop.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Let the token go over http in a network you trust.")] = False,
    quiet: Quiet = False,
) -> None:
    """Protect files as they arrive in FOLDER, and keep the cloud's answer to NAME in OUT/NAME.json."""
    from sfumato.cli.output import Talk
    from sfumato.device import Device, RemoteModel
    from sfumato.device.watching import FolderWatch, token_of

    if token_file is not None and to is None:
        raise UsageError("--token-file goes with --to.")
    told = dict(parse_pair(text) for text in private or ()) or None
    decoys = [file for place in pool or () for file in (sorted(place.iterdir()) if place.is_dir() else [place])]
    device = Device(bundle, secret=secret, pool=decoys or None)
    with Talk(quiet) as talk:
        remote = None if to is None else RemoteModel(to, token_of(token_file), device=device, plain=plain)
        watching = FolderWatch(folder, out, device, remote, private=told, say=talk.say)
        if once:
            talk.say(f"{watching.drain()} file(s) done")
        else:
            talk.say(f"watching {folder}; Ctrl-C ends it")
            watching.forever()


def _chosen(secret: Path | None) -> Path:
    from sfumato.mechanisms.device_secret import secret_path

    return (secret or secret_path() or DEFAULT).expanduser().absolute()


def _show(path: Path, json: bool) -> None:
    from sfumato.cli.output import print_result
    from sfumato.mechanisms.device_secret import SECRET_VARIABLE, fingerprint, secret_file

    about = {"secret": str(path), "fingerprint": fingerprint(secret_file(path))}
    print_result(json, about, f"fingerprint {about['fingerprint']}\nexport {SECRET_VARIABLE}={path}")
