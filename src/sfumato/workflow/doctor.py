"""What this installation has and whether it works: the first thing to ask for in a report of a bug."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import sfumato
from sfumato.core import compute, memory
from sfumato.core.dataset import Dataset
from sfumato.core.errors import SfumatoError
from sfumato.core.owner_key import key_file
from sfumato.core.plugins import plugins
from sfumato.data import split
from sfumato.data.download import CACHE_VARIABLE, DATA_VARIABLE, at_hand, cache_folder
from sfumato.data.registry import REGISTRY, Embedded, Entry
from sfumato.mechanisms import load_mechanism, mechanism_class

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
RECORDS = 600
"""Of the self-test."""


@dataclass(frozen=True)
class Looked:
    """One thing that was looked at: ``ok``, or what to do about it in ``advice``."""

    name: str
    found: str
    ok: bool = True
    advice: str = ""


def examine() -> list[Looked]:
    """What is installed, what of the machine can be used, and which data are at hand. Fast, and changes nothing."""
    return [*_versions(), *_extras(), *_machine(), *_folders(), *_data(), *_plugins()]


def as_plain(checks: list[Looked]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(check) for check in checks]


def _versions() -> Iterator[Looked]:
    yield Looked("sfumato", sfumato.__version__)
    yield Looked("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in sorted(_required(None)):
        yield Looked(name, *_installed(name))


def _extras() -> Iterator[Looked]:
    for extra in _extra_names():
        missing = sorted(name for name in _required(extra) if not _installed(name)[1])
        found = f"missing: {', '.join(missing)}" if missing else "complete"
        advice = f"pip install 'sfumato[{extra}]' if a command asks for it" if missing else ""
        yield Looked(f"extra {extra}", found, True, advice)


def _required(extra: str | None) -> set[str]:
    """The packages that the core (None) or one extra needs, without sfumato's own other extras."""
    found = set()
    for line in requires("sfumato") or ():
        named = _EXTRA.search(line)
        name = _NAME.match(line)
        if name is not None and (named.group(1) if named else None) == extra and name.group() != "sfumato":
            found.add(name.group())
    return found


def _extra_names() -> list[str]:
    named = {found.group(1) for line in requires("sfumato") or () if (found := _EXTRA.search(line))}
    return sorted(name for name in named - {"all", "dev"} if _required(name))


def _installed(name: str) -> tuple[str, bool]:
    try:
        return version(name), True
    except PackageNotFoundError:
        return "not installed", False


def _machine() -> Iterator[Looked]:
    import torch

    from sfumato.core.accelerator import found

    yield Looked("cores", f"{compute.cores()} (threads for small networks: {compute.threads_for(1)})")
    yield Looked("memory", f"{memory.limit() / 2**30:.1f} GiB")
    device = found("auto")
    name = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    yield Looked("device", f"{device}{name}", True, "" if device.type != "cpu" else "no graphics card; none is needed")


def _folders() -> Iterator[Looked]:
    state = key_file().expanduser()
    home = next(folder for folder in (state.parent, *state.parent.parents) if folder.exists())
    writable = os.access(home, os.W_OK)
    found = f"{state} ({'there' if state.exists() else 'made by the first fit'})"
    advice = "" if writable else f"{home} cannot be written: set SFUMATO_STATE to a folder of yours"
    yield Looked("owner's key", found, writable or state.exists(), advice)
    temporary = Path(tempfile.gettempdir())
    free = os.statvfs(temporary).f_bavail * os.statvfs(temporary).f_frsize / 2**30 if hasattr(os, "statvfs") else 1.0
    yield Looked("temporary files", f"{temporary}, {free:.1f} GiB free", free > 0.5, "" if free > 0.5 else "set TMPDIR")


def _data() -> Iterator[Looked]:
    own = os.environ.get(DATA_VARIABLE)
    if own and not Path(own).is_dir():
        yield Looked(DATA_VARIABLE, own, False, "there is no such folder: correct it, or unset it")
    elif own:
        yield Looked(DATA_VARIABLE, own)
    yield Looked(CACHE_VARIABLE, str(cache_folder()))
    here = [name for name, entry in REGISTRY.items() if _at_hand(entry)]
    yield Looked("data sets at hand", ", ".join(here) or "nothing", True, "the others are fetched when they are named")


def _at_hand(entry: Entry) -> bool:
    return find_spec(entry.source.package) is not None if isinstance(entry.source, Embedded) else bool(at_hand(entry))


def _plugins() -> Iterator[Looked]:
    for kind in ("mechanisms", "attacks"):
        own = {name: p for name, p in plugins(f"sfumato.{kind}").items() if p.dist is None or p.dist.name != "sfumato"}
        if own:
            yield Looked(
                f"plugins: {kind}", ", ".join(f"{n} ({p.dist.name if p.dist else '?'})" for n, p in own.items())
            )


def self_test(mechanism: str, say: Callable[[str], None] = lambda _: None) -> list[Looked]:
    """Fit, store, load, release and audit on real digits that come with scikit-learn, in a temporary folder.

    Every step is held to what must come out; figures of so small a run are not printed, because they mean nothing.
    """
    checks: list[Looked] = []
    with tempfile.TemporaryDirectory(prefix="sfumato-doctor-") as folder, compute.using(compute.Compute()):
        state: dict[str, Any] = {}
        for name, step in _steps(mechanism, Path(folder), state):
            say(name)
            begun = monotonic()
            try:
                wrong = step()
            except SfumatoError as error:
                wrong = str(error)
            except Exception as error:  # whatever it is, it belongs into the report of a bug
                wrong = f"{type(error).__name__}: {error}"
            found = f"{monotonic() - begun:.1f} s" if wrong is None else wrong
            checks.append(Looked(f"self-test: {name}", found, wrong is None, "" if wrong is None else "report this"))
            if wrong is not None:
                break
    return checks


def _steps(mechanism: str, folder: Path, state: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    def fit() -> str | None:
        state["splits"] = split(_digits(), seed=0)
        state["fitted"] = mechanism_class(mechanism)().set_params(epochs=2).fit(state["splits"].owner)
        return None

    def store() -> str | None:
        state["fitted"].save(folder / "stored")
        state["loaded"] = load_mechanism(folder / "stored")
        return None

    def release() -> str | None:
        import numpy as np

        made, again = (each.release(state["splits"].victim) for each in (state["fitted"], state["loaded"]))
        return None if np.array_equal(made.payload, again.payload) else "what was stored releases something else"

    def audit() -> str | None:
        from sfumato.auditing import SMOKE
        from sfumato.auditing import audit as measure

        scores = measure(state["loaded"], state["splits"], effort=SMOKE).worst
        return None if scores else "no attack ran"

    yield from {"fit": fit, "store and load": store, "release": release, "audit": audit}.items()


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    found = load_digits()
    x = found.images[:RECORDS, None] / 16.0  # (N, 1, 8, 8)
    labels = found.target[:RECORDS]
    return Dataset.from_arrays(x, utility={"odd": labels % 2}, private={"ge5": labels >= 5}, name="digits of 8×8")
