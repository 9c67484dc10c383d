"""``synth`` beside other makers of private tables, on Adult and on NIST's excerpt of the ACS: students and seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.against import Against
from benchmarks.peers.environments import HOME, environment
from sfumato import load
from sfumato.core.dataset import Dataset
from sfumato.core.errors import SfumatoError
from sfumato.data import load_splits
from sfumato.studies.peers import PEERS, VARIABLE
from sfumato.studies.synth_peers import LABEL, METHODS, METRICS, OURS, STUDENTS, PeerEffort, compared

EPSILON = 1.0
SECONDS = 900.0
"""Limit for each peer."""
NAMES = ("mst", "aim", "opendp-mst", "opendp-aim", "ctgan")
_ACS = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "DVET", "DPHY")


def run(small: bool = False) -> dict[str, Any]:
    """Same records, ε, δ and number of rows for all; students of each table are tested on the same real records."""
    os.environ.setdefault(VARIABLE, str(HOME))
    missing: dict[str, str] = {}
    names = ("mst",) if small else NAMES
    ready = [name for name in names if _installs(name, missing)]
    rows = 1000 if small else None
    effort = PeerEffort((EPSILON,), tuple(ready), 300.0 if small else SECONDS, 1)
    against = []
    for data, parts in (("adult", _adult), ("acs", _acs)):
        try:
            train, test = parts(rows)
        except (SfumatoError, OSError) as error:
            missing |= {f"{name} on {data}": str(error) for name in ready}
            continue
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            compared(train, test, effort, seed=0, out=out, say=lambda said: print(f"  {said}", file=sys.stderr))
            for name in ready:
                file = next(iter((*out.glob(f"{name}-{EPSILON:g}.json"), *out.glob(f"{name}.json"))))
                theirs = json.loads(file.read_text())
                if "failed" in theirs:
                    missing[f"{PEERS[name].title} on {data}"] = theirs["failed"]
                    continue
                for method in METHODS:
                    ours = json.loads((out / f"{OURS}-{method}-{EPSILON:g}-0.json").read_text())
                    task = f"{data}, {len(train):,} rows, ε = {EPSILON:g}, ours: {method}"
                    against += _lines(PEERS[name].title, task, ours, theirs)
    return {
        "claim": None,
        "holds": None,
        "against": against,
        "peers without a figure": missing,
        "figures": {"limit for each peer in seconds": effort.limit_seconds},
    }


def _installs(name: str, missing: dict[str, str]) -> bool:
    try:
        environment(PEERS[name].package)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        missing[PEERS[name].title] = f"does not install: {said.strip().splitlines()[-1][:200] if said.strip() else ''}"
        return False
    return True


def _adult(rows: int | None) -> tuple[Dataset, Dataset]:
    train, test = (load("adult", utility=LABEL, private=(), part=part, limit=rows) for part in ("train", "test"))
    return train, test


def _acs(rows: int | None) -> tuple[Dataset, Dataset]:
    """Ten columns: nine codes and whether the income is in the upper half of the deciles."""
    home = Path(os.environ.get("SFUMATO_DATA", "")) / "acs" / "national" / "national2019.csv"
    if not home.is_file():
        raise OSError("the ACS excerpt is not here: SFUMATO_DATA names a folder with acs/national/national2019.csv")
    label = f"{LABEL}=PINCP_DECILE in {{5,6,7,8,9}}"
    splits = load_splits(home, x=list(_ACS), utility=[label], private=[], shares=(0.7, 0.05, 0.25), limit=rows)
    return splits.owner, splits.victim


def _lines(peer: str, task: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [Against.once(peer, task, "seconds to learn and draw", ours["seconds"], theirs["seconds"])]
    for student in STUDENTS:
        for metric in METRICS:
            pair = (one["scores"][f"{student} {metric}"][0] for one in (ours, theirs))
            lines.append(Against.once(peer, task, f"{metric} of {student} students", *pair, better="higher"))
    return [line.to_json() for line in lines]
