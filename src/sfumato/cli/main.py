"""The command ``sfumato``: parse, call, print."""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from sfumato import __version__
from sfumato.cli import (
    audit_command,
    deploy_commands,
    device_commands,
    doctor_command,
    explain_command,
    fit_command,
    gate_commands,
    protect_command,
    release_command,
    report_commands,
    serve_command,
    sweep_command,
    verify_command,
)
from sfumato.cli import data as data_commands
from sfumato.cli import share as share_commands
from sfumato.core.errors import DataError, SfumatoError
from sfumato.core.run_folder import whole_name

typer.core.HAS_RICH = False  # help is plain text here: rich's escapes would show in it
app = typer.Typer(
    name="sfumato",
    help="Let other people use your data without being able to see it.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.add_typer(data_commands.app, name="data")
app.add_typer(device_commands.app, name="device")
app.add_typer(gate_commands.policy, name="policy")
app.add_typer(share_commands.app, name="share")


INTERRUPTED = 130
_SAID_TWICE = re.compile(r"(Did you mean [^?]*\?)(?: \1)+")
"""Typer and click both add their suggestion."""


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


app.command()(report_commands.demo)
app.command()(fit_command.fit)
app.command()(release_command.release)
app.command()(audit_command.audit)
app.command()(sweep_command.sweep)
app.command()(explain_command.explain)
app.command()(protect_command.protect)
app.command()(gate_commands.gate)
app.command()(verify_command.verify)
app.command()(serve_command.serve)
app.command()(deploy_commands.export)
app.command()(report_commands.report)
app.command()(report_commands.view)
app.command()(report_commands.reproduce)
app.command()(doctor_command.doctor)


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
        what = f"cannot use {whole_name(str(error.filename or 'a file'))} ({error.strerror or error})"
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
    message = _SAID_TWICE.sub(r"\1", str(explain()).strip())
    if context is None or "\n" in message:  # called without arguments: the message is the help
        sys.stderr.write(f"{message}\n")
    else:
        _fail(f"{message.rstrip('.')} (see '{context.command_path} -h').", 2)
    return int(getattr(error, "exit_code", 2))
