"""Flower's own programs as child processes, started on a free port and always stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.core.errors import SfumatoError, UsageError

OFFLINE = {
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Keeps Flower and Ray from installing, checking or reporting anything over the network."""


def need_flower() -> None:
    """Raise ``UsageError`` unless Flower and Ray are installed."""
    try:
        import flwr.serverapp  # noqa: F401
        import ray  # noqa: F401
    except ImportError:
        raise UsageError("parties need Flower: pip install 'sfumato[parties]'.") from None


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return this process's environment with Flower's home set to ``home`` and network access turned off.

    A simulation starts a Ray of its own: without an address it would join whatever cluster it finds on the machine.
    """
    bins = str(Path(sys.executable).parent)
    path = os.pathsep.join((bins, os.environ.get("PATH", "")))
    quiet = {"PYTHONWARNINGS": "ignore", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    alone = {"RAY_ADDRESS": "local"}
    return {**alone, **os.environ, **quiet, **OFFLINE, "PATH": path, "FLWR_HOME": str(home), **more}


def program(name: str) -> str:
    """Return the path of one of Flower's programs, installed next to this Python."""
    return str(Path(sys.executable).parent / name)


def free_port() -> int:
    """Return a port that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], environ: Mapping[str, str], log: Path, *, grace: float = 10.0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a child in its own process group. On exit it gets ``grace`` seconds before the group is killed."""
    with log.open("ab") as file:
        child = subprocess.Popen(command, env=dict(environ), stdout=file, stderr=file, start_new_session=True)
    try:
        yield child
    finally:
        stop(child, grace)


def stop(child: subprocess.Popen[bytes], grace: float) -> None:
    """Ask the child to stop, then kill its process group."""
    if child.poll() is None and grace > 0:
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def wait_for_port(port: int, child: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    """Wait until the child listens on the port."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and child.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SfumatoError(f"Flower's SuperLink did not start: {tail(log)}")


def tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log, for an error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else "(no log)"
