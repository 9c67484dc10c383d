"""A command of the user's that protects a file: run without a shell, within a time limit, and checked."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.errors import DataError, UsageError

IN, OUT = "{in}", "{out}"
SECONDS = 600
_LAST = 200
"""Letters of a failed command's last line that are shown."""
_TAIL = 8_192
_PATIENCE = 5.0
"""Seconds for a stopped command to end by itself."""


@dataclass(frozen=True)
class PipelineCommand:
    """Words of a command; ``{in}`` and ``{out}`` in them stand for paths of a file or folder.

    The command itself is never stored or shown: it may hold a secret. ``program`` is what messages call it.
    """

    words: tuple[str, ...]
    seconds: float = SECONDS

    @classmethod
    def parse(cls, text: str, seconds: float = SECONDS) -> PipelineCommand:
        """Split a command as a shell would, with no other meaning of a shell.

        Raises:
            UsageError: It cannot be split, lacks a placeholder, or names no program that can be run.
        """
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"--pipeline cannot be read ({error}): quote it as for a shell.") from None
        missing = [mark for mark in (IN, OUT) if not any(mark in word for word in words)]
        if missing:
            raise UsageError(
                f"--pipeline lacks {' and '.join(missing)}: write the command with the places of its files, as in "
                "'python protect.py {in} {out}'."
            )
        if shutil.which(words[0]) is None:
            raise UsageError(f"--pipeline: there is no program '{words[0]}' that can be run: check its name or path.")
        if not seconds > 0:
            raise UsageError(f"the time limit of the pipeline must be more than 0 seconds, got {seconds:g}.")
        return cls(words, seconds)

    @property
    def program(self) -> str:
        return Path(self.words[0]).name

    def __repr__(self) -> str:
        return f"PipelineCommand({self.program} …)"

    def run(self, source: Path, target: Path) -> None:
        """Let the command make ``target`` of ``source``.

        Raises:
            DataError: It failed, took too long, or made no file.
        """
        words = [word.replace(IN, str(source)).replace(OUT, str(target)) for word in self.words]
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageError(f"--pipeline: '{self.program}' cannot be run ({error.strerror}).") from None
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                _stop(process)
                raise DataError(
                    f"the pipeline '{self.program}' took longer than {self.seconds:g} s and was stopped: allow more "
                    "(--pipeline-seconds), or give fewer records."
                ) from None
            except BaseException:
                _stop(process)
                raise
            if code != 0:
                last = _last_line(said)
                told = f": {last}" if last else " and said nothing"
                raise DataError(f"the pipeline '{self.program}' failed with exit code {code}{told}")
        if not target.exists():
            raise DataError(f"the pipeline '{self.program}' ended without an error but wrote nothing to {OUT}.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the command and whatever it started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            return
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        return


def _last_line(said: object) -> str:
    """The last line that a command wrote to its standard error, without control characters."""
    file = said
    assert hasattr(file, "seek") and hasattr(file, "read")
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - _TAIL))
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    plain = "".join(letter if letter.isprintable() else " " for letter in lines[-1]) if lines else ""
    return plain if len(plain) <= _LAST else f"{plain[:_LAST]} …"
