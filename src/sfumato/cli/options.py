"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.completion import data_sets
from sfumato.core import compute, ranks
from sfumato.core.documents import toml_table
from sfumato.core.errors import DataError, UsageError, unknown

if TYPE_CHECKING:
    from sfumato.scale import RayCluster

ENGINES = ("local", "ray")
Data = Annotated[
    str,
    typer.Option(
        "--data", "-d", help="A named data set (sfumato data list) or a file or folder.", autocompletion=data_sets
    ),
]
X = Annotated[list[str] | None, typer.Option("--x", help="Column(s) of the record. Repeatable.")]
Utility = Annotated[
    list[str] | None,
    typer.Option(
        "--utility", help="Label others may use: a column, a question, NAME:class or NAME:number. Repeatable."
    ),
]
Private = Annotated[
    list[str] | None, typer.Option("--private", help="Label nobody may learn, in the same form. Repeatable.")
]
Id = Annotated[str | None, typer.Option("--id", help="Column that names the subject; subjects are never split.")]
Limit = Annotated[int | None, typer.Option("--limit", min=30, help="Use at most this many records.")]
Shares = Annotated[
    str | None,
    typer.Option("--shares", help="Owner's share of the records, or owner,attacker,victims: 0.6,0.2,0.2."),
]
Holdout = Annotated[
    str | None,
    typer.Option("--holdout", help="A file of other rows for the audit: all rows of --data are the owner's."),
]
Domain = Annotated[
    Path | None,
    typer.Option("--domain", help="TOML file of ranges and categories that are public (sfumato data domain)."),
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="File of what was spent on these records; default: beside the data.")
]
SigningKey = Annotated[
    Path | None, typer.Option("--sign", help="Private key (PEM) that signs the result (pip install 'sfumato[sign]').")
]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", help="Hyper-parameter, name=value. Repeatable.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Repeatable randomness of training and audit.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no log.")]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads of each process; default: one where networks are small.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Points or attacks that run side by side; default: one a core.")
]
EngineName = Annotated[
    str, typer.Option("--engine", help="local, or ray: workers of a Ray cluster (pip install 'sfumato[scale]').")
]
Address = Annotated[
    str | None, typer.Option("--address", help="The Ray cluster, host:port; default: workers of this machine.")
]
Device = Annotated[str, typer.Option("--device", help="Where networks are computed: auto, cpu, cuda, cuda:1 or mps.")]
Precision = Annotated[
    str | None, typer.Option("--precision", help="Of training networks and attackers: auto, fp32 or bf16.")
]
Config = Annotated[Path | None, typer.Option("--config", help="TOML file with the same keys as a run's config.toml.")]

Run = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]
GeometryName = Annotated[
    str, typer.Option("--geometry", help="Picture of the payloads: pca, or umap (pip install 'sfumato[viz]').")
]
Students = Annotated[
    list[str] | None,
    typer.Option("--student", help="Learns from synthetic records: cnn, logistic, sklearn.svm.SVC … Repeatable."),
]
EffortName = Annotated[str, typer.Option("--effort", help="How hard the attackers try: smoke, cpu or full.")]


def machine(
    device: str,
    precision: str | None = None,
    *,
    threads: int | None = None,
    jobs: int | None = None,
    together: bool = False,
) -> AbstractContextManager[None]:
    """What a command uses of the machine: all cores and a graphics card, unless told otherwise.

    ``together``: whether the processes that torchrun started do one and the same work.
    """
    if ranks.started() and not together:
        raise UsageError("several processes work together on one sfumato fit only: start this without torchrun.")
    wanted = compute.Compute(
        threads=threads,
        jobs=compute.cores() if jobs is None else jobs,
        beside=ranks.local(),
        device=ranks.own_device(device),
        precision=precision or "auto",
    )
    return compute.using(wanted)


@contextmanager
def engine_named(name: str, address: str | None, jobs: int | None = None) -> Iterator[RayCluster | None]:
    """The engine that does what is done side by side inside; None: processes of this machine."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "local":
        if address is not None:
            raise UsageError("--address goes with --engine ray.")
        yield None
        return
    from sfumato.scale import cluster
    from sfumato.workflow.processes import on

    with cluster(address, jobs) as chosen, on(chosen):
        yield chosen


def parse_settings(settings: list[str] | None, defaults: dict[str, Any], owner: str) -> dict[str, Any]:
    """``name=value`` pairs, each read as the type of the parameter's default."""
    parsed: dict[str, Any] = {}
    for item in settings or []:
        name, sign, text = item.partition("=")
        if not sign:
            raise UsageError(f"--set {item}: write it as name=value.")
        if name == "seed":
            raise UsageError("set the seed with --seed.")
        if name not in defaults:
            raise unknown(f"parameter of {owner}", name, set(defaults) - {"seed"})
        parsed[name] = _typed(name, text, type(defaults[name]))
    return parsed


def parse_pair(text: str) -> tuple[str, str]:
    """``label=value`` of ``--only``."""
    label, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--only {text}: write it as label=value.")
    return label, value


def _typed(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in ("true", "yes", "1", "false", "no", "0"):
            return text.lower() in ("true", "yes", "1")
        raise UsageError(f"--set {name}={text}: expected true or false.")
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise UsageError(f"--set {name}={text}: expected {wanted}.") from None
    return text


def parse_knob(text: str, defaults: dict[str, Any], owner: str) -> tuple[str, list[float]]:
    """``name=low:high:count`` (evenly spaced, both ends) or ``name=a,b,c``, for a number among the parameters."""
    name, _, wanted = text.partition("=")
    numbers = {key: type(value) for key, value in defaults.items() if type(value) in (int, float) and key != "seed"}
    if name not in numbers:
        raise unknown(f"knob of {owner}", name, numbers)
    try:
        values = _spaced(*wanted.split(":")) if ":" in wanted else [float(value) for value in wanted.split(",")]
    except (ValueError, TypeError):
        raise UsageError(f"--knob {text}: write it as name=low:high:count (count ≥ 2) or name=a,b,c.") from None
    if numbers[name] is int and not all(value.is_integer() for value in values):
        raise UsageError(f"--knob {text}: {name} is a whole number, give only such values.")
    return name, [numbers[name](value) for value in values]


def _spaced(low: str, high: str, count: str) -> list[float]:
    first, last, steps = float(low), float(high), int(count) - 1
    if steps < 1:
        raise ValueError(count)
    return [round(first + (last - first) * i / steps, 10) for i in range(steps + 1)]


def read_config(path: Path | None) -> dict[str, Any]:
    """A configuration file with tables run, data and params; empty without one."""
    if path is None:
        return {}
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        remedy = "name a configuration in TOML, like the config.toml of a run"
        raise DataError(f"{path} does not exist: {remedy}.") from None
    config = toml_table(raw, str(path))
    strange = sorted(set(config) - {*_KEYS, "params"})
    if strange:
        raise UsageError(f"{path}: unknown table [{strange[0]}]; a configuration has [run], [data] and [params].")
    for table, content in config.items():
        if not isinstance(content, dict):
            raise UsageError(f"{path}: write [{table}] as a table, with a line name = value for each setting.")
        for key, value in content.items() if table in _KEYS else ():
            _check_key(path, table, key, value)
    return config


_KEYS: dict[str, dict[str, type]] = {
    "run": {"command": str, "mechanism": str, "seed": int, "version": str, "start": str, "precision": str},
    "data": {
        "source": str, "x": list, "utility": list, "private": list, "id": str, "limit": int, "domain": str,
        "shares": tuple, "holdout": str, "held_out": str,
    },
}  # fmt: skip
_NOUNS = {str: "a text", list: "a list of texts", tuple: "a list of numbers", int: "a whole number ≥ 0"}


def _check_key(path: Path, table: str, key: str, value: Any) -> None:
    kinds = _KEYS[table]
    if key not in kinds:
        raise unknown(f"key of [{table}] in {path}", key, kinds)
    if kinds[key] in (list, tuple):
        inside = str if kinds[key] is list else float
        fits = isinstance(value, list) and all(isinstance(item, inside) for item in value)
    else:
        fits = isinstance(value, kinds[key]) and not isinstance(value, bool)
        fits = fits and (not isinstance(value, int) or value >= 0)
    if not fits:
        raise UsageError(f"{path}: {key} in [{table}] must be {_NOUNS[kinds[key]]}, got {value!r}.")


def based_on(base: Path | None, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a fit on top of ``base``: its records and seed, unless ``config`` says otherwise.

    A folder's bare name gets a ``./``, so that it is never taken for a base that is made by name.
    """
    if base is None:
        return config
    from sfumato.workflow import records_of

    records, seed = records_of(base)
    return {
        "run": {"seed": seed, **config.get("run", {})},
        "data": {**records, **config.get("data", {})},
        "params": {**config.get("params", {}), "base": f"./{base}" if base.name == str(base) else str(base)},
    }


def start_of(config: Path | None, run: dict[str, Any]) -> Path | None:
    """The neighbouring run that a run of this configuration trains on from, if it is a later point of a sweep."""
    if config is None or "start" not in run:
        return None
    start: Path = config.resolve().parent.parent / run["start"]
    if not start.is_dir():
        raise DataError(f"{config} trains on from {start}, which is gone: run the sweep again, or remove its 'start'.")
    return start


def data_config(
    config: dict[str, Any],
    data: str | None,
    x: list[str] | None,
    utility: list[str] | None,
    private: list[str] | None,
    subject: str | None,
    limit: int | None,
    domain: Path | None = None,
    shares: str | None = None,
    holdout: str | None = None,
) -> dict[str, Any]:
    """The data part of a configuration: the file's, overridden by what was typed."""
    typed: dict[str, Any] = {
        "source": data,
        "x": x,
        "utility": utility,
        "private": private,
        "id": subject,
        "limit": limit,
        "holdout": holdout,
    }
    typed["domain"] = None if domain is None else str(domain)
    typed["shares"] = None if shares is None else _parse_shares(shares)
    merged = {**config.get("data", {}), **{key: value for key, value in typed.items() if value}}
    if "source" not in merged:
        raise UsageError("say which data: --data NAME or --data FILE.")
    return merged


def _parse_shares(text: str) -> list[float]:
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise UsageError(f"--shares {text}: write the owner's share, or three: 0.6,0.2,0.2.") from None
