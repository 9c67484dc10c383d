"""Other people's synthesizers, each in a process and an environment of its own.

``SFUMATO_PEERS`` names a folder with a virtual environment for each package (``smartnoise/``, ``ctgan/``), or one
environment for all; what is not there is made with pip on first use. Without the variable they live in sfumato's cache.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sfumato.core.errors import unknown

VARIABLE = "SFUMATO_PEERS"
RUNNER = Path(__file__).parent / "runner.py"
REQUIREMENTS = {
    "smartnoise": ("smartnoise-synth==1.0.8", "packaging"),
    "opendp": ("opendp[mbi]>=0.14", "pandas"),
    "ctgan": ("ctgan>=0.10,<0.13", "torch>=2.6,<2.14"),
}
"""What is installed for each package. torch is held below the builds that bring CUDA."""
_INSTALL_SECONDS = 1800
_LAST = 300
"""Characters of a failed peer's last words."""


@dataclass(frozen=True)
class Peer:
    """``wants`` is the form of the table: ``codes``, every column cut into the same bins by the declared domain alone,
    for models of categories; or ``values``, as the file has them, for a model that has its own way with numbers."""

    name: str
    package: str
    model: str
    title: str
    wants: Literal["codes", "values"]
    private: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("mst", "smartnoise", "mst", "SmartNoise MST", "codes"),
        Peer("aim", "smartnoise", "aim", "SmartNoise AIM", "codes"),
        Peer("opendp-mst", "opendp", "MST", "OpenDP MST", "codes"),
        Peer("opendp-aim", "opendp", "AIM", "OpenDP AIM", "codes"),
        Peer("dpctgan", "smartnoise", "dpctgan", "SmartNoise DP-CTGAN", "codes"),
        Peer("patectgan", "smartnoise", "patectgan", "SmartNoise PATE-CTGAN", "codes"),
        Peer("ctgan", "ctgan", "ctgan", "CTGAN, not private", "values", private=False),
    )
}


@dataclass(frozen=True)
class PeerOutcome:
    """``failed`` says why there is no table in ``path``; ``seconds`` are those of learning and drawing."""

    peer: str
    epsilon: float | None
    seconds: float
    path: Path | None = None
    failed: str | None = None


def run_peer(
    name: str,
    epsilon: float,
    train: Path,
    out: Path,
    limit_seconds: float,
    *,
    texts: Sequence[str],
    delta: float = 1e-5,
    rows: int = 0,
    seed: int = 0,
    python: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> PeerOutcome:
    """Let a peer learn the Parquet table ``train`` and write ``rows`` (0: as many) drawn records to ``out``.

    ``texts`` are the categorical columns. A peer that fails or needs more than ``limit_seconds`` is an outcome with
    its reason, never an error. ``python`` is an interpreter that has the package, else ``environment`` finds one.
    ``settings`` of the model go before the peer's own.
    """
    if name not in PEERS:
        raise unknown("peer", name, PEERS)
    peer = PEERS[name]
    budget = epsilon if peer.private else None
    try:
        python = python or environment(peer.package)
    except (OSError, subprocess.SubprocessError) as error:
        return PeerOutcome(name, budget, 0.0, failed=f"its environment could not be made: {_words_of(error)}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        count = _to_csv(train, work / "train.csv")
        given = {**({"delta": delta} if peer.private else {}), **peer.settings, **(settings or {})}
        job = {
            "package": peer.package, "model": peer.model, "epsilon": epsilon, "settings": given, "seed": seed,
            "train": str(work / "train.csv"), "out": str(work / "out.csv"), "report": str(work / "report.json"),
            "rows": rows or count, "texts": list(texts),
        }  # fmt: skip
        (work / "job.json").write_text(json.dumps(job))
        started = time.perf_counter()
        failed = run_apart([str(python), str(RUNNER), str(work / "job.json")], work, limit_seconds)
        if failed is not None:
            return PeerOutcome(name, budget, time.perf_counter() - started, failed=failed)
        report = json.loads((work / "report.json").read_text())
        _to_parquet(work / "out.csv", out, texts)
    return PeerOutcome(name, budget, float(report["seconds"]), path=out)


def run_apart(command: Sequence[str], folder: Path, limit_seconds: float) -> str | None:
    """Run a command with all that it starts; why it failed, or None. After the limit none of them is left."""
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=_bare_environment(), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    except OSError as error:
        return _last_words(str(error))
    try:
        _, said = process.communicate(timeout=limit_seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            return f"not done after {limit_seconds:.0f} s"
        raise
    return None if process.returncode == 0 else _last_words(said or f"ended with {process.returncode}")


def environment(package: str) -> Path:
    """The interpreter of a package's virtual environment, made on first use."""
    own = os.environ.get(VARIABLE)
    base = Path(own) if own else _cache() / "peers"
    python, shared = (folder / "bin" / "python" for folder in (base / package, base))
    if own and (python.exists() or shared.exists()):
        return python if python.exists() else shared
    return made(base / package, REQUIREMENTS[package])


def made(
    folder: Path, wanted: Sequence[str], *, beneath: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Path:
    """The interpreter of the virtual environment in ``folder``, made on first use.

    Packages in the folders ``beneath`` can be imported there, too, and are not installed again. ``variables`` are those
    that the installation needs beside the caller's.
    """
    python, done = folder / "bin" / "python", folder / "ready"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        if beneath:
            (packages,) = folder.glob("lib/python*/site-packages")
            (packages / "beneath.pth").write_text("".join(f"{path}\n" for path in beneath))
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", *wanted],
            check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS,
            env={**os.environ, **(variables or {})},
        )  # fmt: skip
        done.write_text("\n".join(wanted))
    return python


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sfumato"


def _bare_environment() -> dict[str, str]:
    """The caller's variables without those that would let his packages in."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


def _words_of(error: Exception) -> str:
    return _last_words(getattr(error, "stderr", None) or str(error))


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:_LAST] if lines else "no reason given"


def _to_csv(train: Path, target: Path) -> int:
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    table = pq.read_table(train)
    pc.write_csv(table, target)
    return int(table.num_rows)


def _to_parquet(drawn: Path, target: Path, texts: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    kinds = pc.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), strings_can_be_null=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pc.read_csv(drawn, convert_options=kinds), target)
