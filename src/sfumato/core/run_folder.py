"""The run folder: what a run was asked, what it did and what it found; atomic, resumable, never overwritten."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sfumato
from sfumato.core import compute
from sfumato.core.documents import json_value, toml_table
from sfumato.core.errors import DataError

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
FORMAT = 3
"""Of a run folder. 1 (sfumato 0.1) says nothing of itself: its mechanism is read, its scores are measured again."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Write to a neighbour and move it into place, so that ``path`` is whole or absent; a file is its owner's alone."""
    part = path.with_name(f".{path.name}.part{os.getpid()}{_machine()}")  # others share the folder
    try:
        yield part
        if part.is_file():
            shut(part)
        part.replace(path)
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(part)):
            error.filename = str(path)  # the neighbour is gone before anybody reads the message
        raise
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove the halves of ``path`` that processes of this machine left behind when they were killed."""
    prefix, suffix = f".{path.name}.part", _machine()
    for left in path.parent.iterdir():
        process = left.name.removeprefix(prefix).removesuffix(suffix)
        if left.name == f"{prefix}{process}{suffix}" and process.isdigit() and not _running(int(process)):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def whole_name(path: str) -> str:
    """The name that the half of a file was to get, for messages; any other name as it is."""
    return re.sub(r"(^|/)\.([^/]+)\.part\d+[^/]*", r"\1\2", path)


def _machine() -> str:
    return platform.node()[:32]


def _running(process: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def shut(path: Path) -> None:
    """Leave a file or folder to its owner alone, where it is ours and the file system knows owners."""
    with suppress(OSError):  # somebody else's, or gone by now
        mode = path.lstat().st_mode
        if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & 0o700)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused, they are not JSON."""
    with atomic(path) as part:
        part.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON, with a clear error where the file is missing or broken."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: is this a finished run folder?") from None
    return json_value(raw, str(path), "restore it or run again")


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write a safetensors file atomically."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with atomic(path) as part:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, part)
        except SafetensorError as error:
            found = re.search(r"\(os error (\d+)\)", str(error))
            if found is None:
                raise
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from None


def write_once(path: Path, write: Callable[[Path], None]) -> bool:
    """Let ``write`` make a file, unless it is there, whoever makes it in the meantime; whether it was written."""
    part = path.with_name(f".{path.name}.first{os.getpid()}{platform.node()[:32]}-{threading.get_ident()}")
    try:
        write(part)
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def write_secret_once(path: Path, count: int) -> bool:
    """So many bytes of the operating system's randomness in a file that its owner alone can read, once."""

    def write(part: Path) -> None:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(os.urandom(count))
            out.flush()
            os.fsync(out.fileno())

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return write_once(path, write)


def write_tensors_once(path: Path, tensors: Mapping[str, torch.Tensor]) -> bool:
    """As ``write_tensors``, once."""
    return write_once(path, lambda part: write_tensors(part, tensors))


def read_tensors(path: Path) -> Tensors:
    """Read a safetensors file, with a clear error where it is missing or broken."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: is this a finished run folder?") from None
    except SafetensorError as error:
        raise DataError(f"{path} is not a safetensors file ({error}): restore it or run again.") from None


EACH_RECORD = "outcomes.safetensors"
USERS = "users.json"
"""In a folder of one run for every user."""


class RunFolder:
    """One folder a run, for its owner's eyes only: whatever others could read in it is shut when it is opened.

    config.toml    everything that was asked, fully resolved; a run can be repeated from it
    env.json       versions and machine
    splits.json    seals of the owner's, attacker's and victims' records, for whoever holds the owner's key
    metrics.jsonl  one line an epoch
    outcomes.safetensors   every score of the audit, record by record
    checkpoint/    safetensors: the mechanism, and while training what is needed to go on
    status.json    "running" or "done", and the format of the folder
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any], *, resume: bool = False) -> RunFolder:
        """Make the folder, or take up an interrupted run of the same configuration with ``resume``."""
        run = cls(path)
        if (path / "config.toml").exists():
            if not resume:
                cls.refuse_used(path)
            theirs = run.config()
            if theirs != _toml_like(config):
                changed = ", ".join(_differences(theirs, _toml_like(config)))
                raise DataError(f"{path} was started with another configuration ({changed}): choose another --out.")
            for left in path.rglob(".*.part*"):  # half a file, from a process that was killed while it wrote
                left.unlink(missing_ok=True)
            run.shut()
            return run
        cls.refuse_used(path)
        try:
            import tomli_w

            path.mkdir(parents=True, exist_ok=True)
            shut(path)
            with atomic(path / "config.toml") as part:  # first: from here on the run can be resumed
                part.write_text(tomli_w.dumps(_toml_like(config)))
            run.write_json("status.json", {"state": "running", "format": FORMAT})
            run.write_json("env.json", environment())
        except OSError as error:
            raise DataError(f"cannot write to {path} ({error.strerror}): choose another --out.") from None
        return run

    @staticmethod
    def refuse_used(path: Path) -> None:
        """Raise if ``path`` holds anything."""
        if (path / "config.toml").exists():
            raise DataError(f"{path} already holds a run: choose another --out, or --resume to go on with that one.")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise DataError(f"{path} is already used for something else: choose another --out.")

    @staticmethod
    def differs(a: Any, b: Any) -> bool:
        """Whether two configurations differ once written down."""
        return bool(_toml_like(a) != _toml_like(b))

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a finished run."""
        run = cls(path)
        if not (path / "config.toml").is_file():
            raise DataError(f"{path} is not a run folder (it has no config.toml): name one that sfumato fit made.")
        if run.format > FORMAT:
            raise DataError(
                f"{path} was made by a newer sfumato (format {run.format}, this one reads up to {FORMAT}): upgrade."
            )
        if not run.done:
            again = f"sfumato fit --config {path / 'config.toml'} --out {path} --resume"
            raise DataError(f"the run in {path} was interrupted: finish it with '{again}'.")
        run.shut()
        return run

    def shut(self) -> None:
        """Take from everybody but the owner what the files of an older run, or of a program's own making, allow."""
        for file in (self.path, *self.path.rglob("*")):
            shut(file)

    def config(self) -> dict[str, Any]:
        """What ``config.toml`` says."""
        file = self.path / "config.toml"
        config = toml_table(file.read_bytes(), str(file), "restore it")
        if not isinstance(config.get("run"), dict) or not isinstance(config.get("data"), dict):
            raise DataError(f"{file} lacks [run] or [data]: restore it.")
        return config

    def _status(self) -> dict[str, Any]:
        status = self.read_json("status.json") if (self.path / "status.json").is_file() else {}
        return status if isinstance(status, dict) else {}

    @property
    def format(self) -> int:
        """The version of the folder's layout; that of this version if the run was killed before it was written."""
        found = self._status().get("format", 1) if (self.path / "status.json").is_file() else FORMAT
        return found if isinstance(found, int) else 1

    @property
    def done(self) -> bool:
        return self._status().get("state") == "done"

    def finish(self) -> None:
        """Mark the run as done and drop what only a resumed run would need."""
        self.progress_file.unlink(missing_ok=True)
        self.write_json("status.json", {"state": "done", "format": FORMAT})
        self.shut()

    def write_json(self, name: str, value: Any) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path / name, value)

    def read_json(self, name: str) -> Any:
        return read_json(self.path / name)

    @property
    def progress_file(self) -> Path:
        return self.path / "checkpoint" / "progress.safetensors"

    def save_progress(self, epoch: int, tensors: Mapping[str, torch.Tensor], metrics: Mapping[str, float]) -> None:
        """After ``epoch`` epochs: everything that training needs to go on as if it had never stopped."""
        import torch

        state = {**tensors, "__epoch__": torch.tensor(epoch)}
        kept = [line for line in self.metrics() if line["epoch"] < epoch]
        with atomic(self.path / "metrics.jsonl") as part:
            lines = [*kept, {"epoch": epoch, **metrics}]
            part.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.progress_file.parent.mkdir(exist_ok=True)
        write_tensors(self.progress_file, state)

    def load_progress(self) -> tuple[int, Tensors] | None:
        """The last saved progress, or None at the start."""
        if not self.progress_file.is_file():
            return None
        tensors = read_tensors(self.progress_file)
        return int(tensors.pop("__epoch__")), tensors

    def metrics(self) -> list[dict[str, Any]]:
        """The training record, one entry an epoch."""
        file = self.path / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.is_file() else []
        return [json_value(line, str(file), "remove that line") for line in lines]


def environment() -> dict[str, Any]:
    """Versions that a figure may depend on, and what of the machine was used."""
    from importlib.metadata import version

    packages = ("torch", "numpy", "scikit-learn", "pyarrow")
    return {
        "sfumato": sfumato.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        **{package: version(package) for package in packages},
        "used": compute.recorded(),
    }


def _toml_like(value: Any) -> Any:
    """Plain TOML values: tuples become lists, None is left out."""
    if isinstance(value, Mapping):
        return {str(key): _toml_like(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_toml_like(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in sorted({*a, *b}):
        left, right = a.get(key), b.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            yield from _differences(left, right, f"{prefix}{key}.")
        elif left != right:
            yield f"{prefix}{key}: {left!r} there, {right!r} now"
