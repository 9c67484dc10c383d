"""A party's own folder: its records, choices and secret, and the outcome of its runs.

train.parquet, test.parquet   records to share, and held-out records to test on
party.toml                    name, labels and limits (see ``PartyFolder``)
schema.json                   how records are encoded, if the parties agreed on it beforehand
secret                        32 bytes that determine the party's mask and noise (``sfumato device init``), never sent
sent/                         how much signal has left under each encoder (``party_limits``)
shared/RUN/                   the outcome of a run
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sfumato.core.dataset import Dataset
from sfumato.core.documents import toml_table
from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.randomness import derive_seed, fresh_seed
from sfumato.core.run_folder import read_json
from sfumato.core.schema import Schema
from sfumato.data.download import present
from sfumato.data.loading import read, schema_of
from sfumato.data.readers.locate import LocatedSource, open_file
from sfumato.data.registry import REGISTRY
from sfumato.mechanisms.device_secret import secret_file
from sfumato.parties.class_labels import refuse_numbers
from sfumato.parties.party_limits import PartyLimits, check_limits

SIMULATED = "SFUMATO_SIMULATED_PARTIES"
"""Environment variable that ``simulate`` sets to a folder; only then may a party use a sub-folder of it."""
DEVICE = "SFUMATO_DEVICE"
"""Environment variable with the device that a party computes on (cpu, cuda, cuda:1, mps); ``simulate`` sets it."""
_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str, "like": str, "x": list, "utility": list, "private": list, "id": str, "domain": str, "seed": int,
    "least_epsilon": (int, float), "most_signal": (int, float), "encoder": str, "lam": str, "variant": str,
    "modes": list, "accepts": dict, "initiator": bool,
}  # fmt: skip
MODES = ("horizontal", "vertical")
"""Modes a party accepts by default: those in which it bounds what leaves, whatever the server and initiator do."""
EVERY_MODE = (*MODES, "filter", "fedavg")


@dataclass(frozen=True)
class PartyFolder:
    """One organisation's settings, read from its own folder; the server decides none of them.

    ``seed`` makes training and noise repeatable and is for experiments only. ``modes`` are the kinds of runs that the
    party joins, ``limits`` what it accepts in them, ``lam`` its own weights in Eq. 15, and ``encoder`` the digest of
    the only encoder it will use. A server cannot make a party the initiator that has not agreed to be one.
    """

    folder: Path
    out: Path
    name: str
    choices: Mapping[str, Any]

    @property
    def seed(self) -> int | None:
        return self.choices.get("seed")

    @cached_property
    def limits(self) -> PartyLimits:
        return PartyLimits.chosen(self.choices)

    @property
    def lam(self) -> str:
        return str(self.choices.get("lam", ""))

    @property
    def encoder(self) -> str:
        return str(self.choices.get("encoder", ""))

    def check_initiator(self) -> None:
        """Raise ``UsageError`` unless this party agreed to train an encoder on its records and publish its weights."""
        if not self.choices.get("initiator", self.seed is not None):
            raise UsageError(f"{self.name} publishes no encoder trained on its records (see initiator in party.toml).")

    def check_mode(self, mode: str) -> None:
        """Raise ``UsageError`` for a kind of run that this party does not join."""
        agreed = self.choices.get("modes", MODES)
        if mode not in agreed:
            raise UsageError(
                f"{self.name} takes part in {', '.join(map(str, agreed))}, not in {mode} (see party.toml)."
            )

    def seed_for(self, *purpose: object) -> int:
        """Return a seed for training, derived from the party's own or else fresh."""
        return fresh_seed() if self.seed is None else derive_seed(self.seed, *purpose)

    def secret(self) -> bytes:
        """Return the party's secret, which ``sfumato device init`` or ``sfumato share split`` made."""
        return secret_file(self.folder / "secret")

    @cached_property
    def _opened(self) -> LocatedSource:
        like = self.choices.get("like")
        files = present(self.folder)
        if set(files) != {"train", "test"}:
            raise DataError(f"{self.folder} must have train.parquet and test.parquet: records to share and to test on.")
        if like is not None and like not in REGISTRY:
            raise unknown(f"data set in like of {self.folder / 'party.toml'}", like, REGISTRY)
        entry = None if like is None else REGISTRY[like]
        return LocatedSource(self.name, {part: open_file(file) for part, file in files.items()}, entry)

    @cached_property
    def schema(self) -> Schema:
        """The encoding of this party's records, from ``schema.json`` or else from its own choices."""
        agreed = self.folder / "schema.json"
        if agreed.is_file():
            return refuse_numbers(Schema.from_json(read_json(agreed)))
        choices = {key: self.choices[key] for key in ("x", "utility", "private", "id") if key in self.choices}
        domain = self.choices.get("domain")
        here = None if domain is None else self.folder / domain
        return refuse_numbers(schema_of(self._opened, domain=here, **choices))

    def records(self, part: Literal["train", "test"]) -> Dataset:
        """Return the party's records to share, or its held-out records."""
        return read(self._opened, self._opened.chosen(part), self.schema, required=True)


def open_party(node: Mapping[str, Any], run: int) -> PartyFolder:
    """Open the party of a node: the folder ``data`` in its configuration, or its number in a simulation."""
    place, simulated = node.get("partition-id"), os.environ.get(SIMULATED)
    if "data" in node:
        folder = Path(str(node["data"]))
    elif simulated and place is not None:
        folder = Path(simulated) / f"party-{place}"
    else:
        raise UsageError("this node has no records: start it with --node-config 'data=\"/path/to/its/folder\"'.")
    choices = _choices(folder)
    name = str(node.get("name") or choices.get("name") or (folder.name if place is None else f"party-{place}"))
    out = Path(str(node.get("out", folder / "shared"))) / str(run)
    return PartyFolder(folder, out, name, choices)


def _choices(folder: Path) -> dict[str, Any]:
    file = folder / "party.toml"
    if not file.is_file():
        return {}
    found = toml_table(file.read_bytes(), str(file))
    for key, value in found.items():
        if key not in _KEYS:
            raise unknown(f"key of {file}", key, _KEYS)
        if not isinstance(value, _KEYS[key]) or (isinstance(value, bool) and _KEYS[key] is not bool):
            raise DataError(f"{file}: {key} has a value of the wrong type, {value!r}.")
    for mode in found.get("modes", ()):
        if mode not in EVERY_MODE:
            raise unknown(f"mode in {file}", str(mode), EVERY_MODE)
    check_limits(found)
    return found
