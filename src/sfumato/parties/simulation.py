"""``simulate`` and ``fedavg``: run the deployment app on one machine with Flower's simulation engine (Ray)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core import compute, errors
from sfumato.core.errors import SfumatoError, UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.data.column_roles import Names
from sfumato.data.domain import DomainName
from sfumato.data.loading import schema_of
from sfumato.data.readers.locate import open_data
from sfumato.parties.app_files import lay_app
from sfumato.parties.flower_processes import environment, free_port, need_flower, program, running, tail, wait_for_port
from sfumato.parties.partition import split_parties
from sfumato.parties.party_folder import DEVICE, SIMULATED
from sfumato.parties.party_mechanisms import check_weights
from sfumato.parties.results import FedResult, ShareResult
from sfumato.parties.run_terms import Terms
from sfumato.parties.skew import EVEN

Say = Callable[[str], None]


def simulate(
    data: str,
    *,
    parties: int = 5,
    mode: str = "horizontal",
    params: Mapping[str, Any] | None = None,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
    limit: int | None = None,
    each: int | None = None,
    partition: str = EVEN,
    seed: int = 0,
    out: Path | None = None,
    say: Say = lambda _: None,
    **terms: Any,
) -> ShareResult:
    """Split ``data`` among parties and let them publish an encoder, share representations and learn from all of them.

    The noise follows from ``seed`` and can be repeated, so this is an experiment and not a release.

    Args:
        data: A named data set, a file or a folder.
        parties: Number of parties.
        mode: ``"horizontal"``, ``"vertical"`` or ``"filter"`` (see ``party_mechanisms``).
        params: Hyper-parameters of the mechanism. ``lam``, a text, becomes every party's own choice.
        x, utility, private, id, domain: The columns, as for ``sfumato.load``.
        limit: Number of records in all; by default every record is used.
        each: Number of records that each party shares; by default all it has.
        partition: How the parties differ, as for ``split_parties``.
        seed: Seed of the split, the training and the noise.
        out: New folder for ``parties/party-0`` … with what each party ends up with, and ``server`` with the result.
            Without it only the returned result is kept.
        say: Called with progress messages.
        **terms: Further fields of ``Terms``, such as ``learner``, ``wire``, ``timeout`` or ``initiator``.

    Returns:
        Accuracy, bytes on the wire and status of every party.

    Raises:
        UsageError: An option is wrong, or Flower is not installed.
        DataError: The data cannot be used, ``out`` is not empty, or fewer than two parties were left.
    """
    asked = {"mode": mode, "params": dict(params or {}), "parties": parties, "seed": seed, **terms}
    columns = {"x": x, "utility": utility, "private": private, "id": id, "domain": domain}
    source = {**columns, "limit": limit, "each": each, "partition": partition}
    return ShareResult.from_json(_run(data, source, asked, out, say))


def fedavg(
    data: str,
    *,
    parties: int = 5,
    rounds: int = 10,
    noise: float = 0.0,
    clip: float = 0.0,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
    limit: int | None = None,
    each: int | None = None,
    partition: str = EVEN,
    seed: int = 0,
    out: Path | None = None,
    say: Say = lambda _: None,
    **terms: Any,
) -> FedResult:
    """Run FedAvg on the same partition that ``simulate`` makes with this seed, for comparison.

    Args:
        data, parties, x, utility, private, id, domain, limit, each, partition, seed, out, say: As for ``simulate``.
        rounds: Number of rounds.
        noise: Noise multiplier; above 0 it makes this DP-FedAvg, and needs ``clip``.
        clip: Clipping norm of the model updates in DP-FedAvg.
        **terms: Further fields of ``Terms``, such as ``epochs``, ``batch`` or ``rate``; ``wire`` is the precision of
            the weights in both directions.

    Returns:
        Accuracy and bytes after every round, and ε if there is noise.

    Raises:
        UsageError, DataError: As for ``simulate``.
    """
    asked = {
        "mode": "fedavg",
        "parties": parties,
        "rounds": rounds,
        "noise": noise,
        "clip": clip,
        "seed": seed,
        **terms,
    }
    columns = {"x": x, "utility": utility, "private": private, "id": id, "domain": domain}
    source = {**columns, "limit": limit, "each": each, "partition": partition}
    return FedResult.from_json(_run(data, source, asked, out, say))


def _run(data: str, source: Mapping[str, Any], asked: dict[str, Any], out: Path | None, say: Say) -> Any:
    need_flower()
    _check(data, source, asked)
    if compute.precision_for(1) != "fp32":
        say("parties compute in fp32: --precision changes nothing here")
    lam = "" if asked["mode"] in ("filter", "fedavg") else asked["params"].pop("lam", "")
    with _folder(out) as folder:
        terms = Terms(**{"wait": 300.0, **asked, "out": str(folder.resolve() / "server")})
        say(f"split {data} among {terms.parties} parties")
        vertical = terms.mode == "vertical"
        cut: dict[str, Any] = {"parties": terms.parties, "vertical": vertical, "seed": terms.seed, "repeatable": True}
        for party in split_parties(data, folder / "parties", **cut, **source):
            if lam and read_json(party / "schema.json")["private"]:  # vertical: one party has the labels
                _append(party / "party.toml", f'lam = "{lam}"')
        say(f"run {terms.mode} on Flower's simulation engine")
        return simulate_folder(folder, terms)


def _check(data: str, source: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Check up front what only a running party or server would find out."""
    if "initiator" in asked and asked["initiator"] not in (f"party-{number}" for number in range(asked["parties"])):
        raise UsageError(f"unknown initiator '{asked['initiator']}': choose party-0 … party-{asked['parties'] - 1}.")
    roles = {name: source[name] for name in ("x", "utility", "private", "id", "domain")}
    if asked["mode"] == "filter" and not schema_of(open_data(data), **roles).private:
        raise UsageError("in mode filter every party hides a private label: name one with --private.")
    if "lam" in asked.get("params", {}):
        check_weights(asked["params"]["lam"], schema_of(open_data(data), **roles))


def _append(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{line}\n")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder of a run: ``out``, which must be unused, or a temporary one."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="sfumato-") as name:
            yield Path(name)
        return
    RunFolder.refuse_used(out)
    yield out


def simulate_folder(folder: Path, terms: Terms) -> Any:
    """Run the app on the parties in ``folder/parties`` and return the server's result, or raise its error."""
    with tempfile.TemporaryDirectory(prefix="sfumato-flower-") as name:
        home = Path(name)
        app = lay_app(home / "app", **_fields(terms))
        port, log = free_port(), home / "superlink.log"
        (home / "config.toml").write_text(f'[superlink.simulation]\naddress = "127.0.0.1:{port}"\ninsecure = true\n')
        here = {SIMULATED: str((folder / "parties").resolve()), DEVICE: compute.device()}
        environ = environment(home, OMP_NUM_THREADS="1", **here)
        link = [program("flower-superlink"), "--insecure", "--simulation", "--host", "127.0.0.1", "--port", str(port)]
        nodes = f"num-supernodes={terms.parties} client-resources-num-cpus=1"
        submit = [program("flwr"), "run", str(app), "simulation", "--federation-config", nodes, "--stream"]
        with running(link, environ, log) as child:
            wait_for_port(port, child, log)
            done = subprocess.run(submit, env=environ, capture_output=True, text=True, check=False)
        log.write_text(log.read_text(errors="replace") + done.stdout + done.stderr)
        kept = folder / "flower.log"
        shutil.copy(log, kept)
    return read_outcome(Path(terms.out), kept)


def read_outcome(server: Path, log: Path) -> Any:
    """Return the result in a server's run folder; an error stored there is raised with its original type."""
    if (server / "result.json").is_file():
        return read_json(server / "result.json")
    if (server / "error.json").is_file():
        told = read_json(server / "error.json")
        kind = getattr(errors, told["kind"], SfumatoError)
        raise kind(told["message"])
    raise SfumatoError(f"the run ended without a result. The last lines of {log}:\n{tail(log)}")


def _fields(terms: Terms) -> dict[str, Any]:
    return {name: getattr(terms, name) for name in Terms.__dataclass_fields__}
