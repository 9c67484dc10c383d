"""``sfumato device``: make a device's secret, and tell it from others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Json

app = typer.Typer(help="Make and show this device's secret.", no_args_is_help=True, rich_markup_mode=None)

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


def _chosen(secret: Path | None) -> Path:
    from sfumato.mechanisms.device_secret import secret_path

    return (secret or secret_path() or DEFAULT).expanduser().absolute()


def _show(path: Path, json: bool) -> None:
    from sfumato.cli.output import print_result
    from sfumato.mechanisms.device_secret import SECRET_VARIABLE, fingerprint, secret_file

    about = {"secret": str(path), "fingerprint": fingerprint(secret_file(path))}
    print_result(json, about, f"fingerprint {about['fingerprint']}\nexport {SECRET_VARIABLE}={path}")
