"""A party's own folder: its records, its choices, its secret, and what it got out of a run.

train.parquet, test.parquet   records to share, and held-out ones to test on
party.toml                    name, labels and limits (see ``PartyFolder``)
schema.json                   how records are encoded, if it was agreed beforehand
secret                        32 bytes that fix the party's mask; made on first use, never leaves
shared/RUN/                   the outcome of a run
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.randomness import derive_seed, fresh_seed
from sfumato.core.run_folder import read_json
from sfumato.core.schema import Schema
from sfumato.data.download import present
from sfumato.data.loading import read, schema_of
from sfumato.data.readers.locate import LocatedSource, open_file
from sfumato.data.registry import REGISTRY
from sfumato.mechanisms.device_secret import secret_file

SIMULATED = "SFUMATO_SIMULATED_PARTIES"
"""Set to a folder by ``simulate``: only then a party without a folder of its own takes one below it."""
_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "like": str,
    "x": list,
    "utility": list,
    "private": list,
    "id": str,
    "domain": str,
    "seed": int,
    "least_epsilon": (int, float),
    "encoder": str,
    "lam": str,
    "variant": str,
    "modes": list,
}
MODES = ("horizontal", "vertical", "filter")
"""What a party takes part in unless it says otherwise: an update of federated averaging is not protected."""


@dataclass(frozen=True)
class PartyFolder:
    """One organisation's side, read from its folder; nothing in it is decided by the server.

    ``seed`` makes training and noise repeatable and is for experiments only. ``modes`` are the kinds of runs that the
    party takes part in, ``least_epsilon`` and ``variant`` the defence that it insists on, ``lam`` its own weights of
    Eq. 15; ``encoder`` is the digest of the only encoder that it will use.
    """

    folder: Path
    out: Path
    name: str
    choices: Mapping[str, Any]

    @property
    def seed(self) -> int | None:
        return self.choices.get("seed")

    @property
    def least_epsilon(self) -> float:
        return float(self.choices.get("least_epsilon", 0.0))

    @property
    def encoder(self) -> str:
        return str(self.choices.get("encoder", ""))

    def check_mode(self, mode: str) -> None:
        """Raise ``UsageError`` for a kind of run that this party does not take part in."""
        agreed = self.choices.get("modes", MODES)
        if mode not in agreed:
            raise UsageError(f"{self.name} takes part in {', '.join(map(str, agreed))}, not in {mode} (party.toml).")

    def seed_for(self, *purpose: object) -> int:
        """A seed for training: derived from the party's own, or fresh."""
        return fresh_seed() if self.seed is None else derive_seed(self.seed, *purpose)

    def secret(self) -> bytes:
        """The party's secret, made on first use."""
        return secret_file(self.folder / "secret")

    @cached_property
    def _opened(self) -> LocatedSource:
        like = self.choices.get("like")
        files = present(self.folder)
        if set(files) != {"train", "test"}:
            raise DataError(f"{self.folder} must hold train.parquet and test.parquet: records to share and to test on.")
        entry = REGISTRY.get(like) if like else None
        return LocatedSource(self.name, {part: open_file(file) for part, file in files.items()}, entry)

    @cached_property
    def schema(self) -> Schema:
        """How this party's records are encoded: as agreed in ``schema.json``, or as its own choices say."""
        agreed = self.folder / "schema.json"
        if agreed.is_file():
            return Schema.from_json(read_json(agreed))
        choices = {key: self.choices[key] for key in ("x", "utility", "private", "id") if key in self.choices}
        domain = self.choices.get("domain")
        return schema_of(self._opened, domain=None if domain is None else self.folder / domain, **choices)

    def records(self, part: Literal["train", "test"]) -> Dataset:
        """The party's records to share, or its held-out ones."""
        return read(self._opened, self._opened.chosen(part), self.schema, required=True)


def open_party(node: Mapping[str, Any], run: int) -> PartyFolder:
    """The party that a node stands for: by ``data`` in its node configuration, or its place in a simulation."""
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
    try:
        found = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is not valid TOML ({error}).") from None
    for key, value in found.items():
        if key not in _KEYS:
            raise unknown(f"key of {file}", key, _KEYS)
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise DataError(f"{file}: {key} cannot be {value!r}.")
    return found
