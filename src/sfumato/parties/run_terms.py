"""The terms of a run: the run configuration of the Flower app, parsed and checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from sfumato.core.documents import json_value
from sfumato.core.errors import DataError, UsageError, check_range, unknown
from sfumato.parties.message_checks import MOST_BYTES
from sfumato.parties.party_mechanisms import MODES, check_params
from sfumato.parties.pooled_learning import check_learner
from sfumato.parties.wire_precision import WIRES

TASKS = (*MODES, "fedavg")


@dataclass(frozen=True)
class Terms:
    """Everything the server decides. What a party decides is in its own folder (``party_folder.PartyFolder``).

    ``parties`` is the number of nodes to wait for, for at most ``wait`` seconds; each phase may take ``timeout``
    seconds. ``labels`` names the party with the labels (vertical; default: the initiator). ``most_bytes`` limits the
    size of a message from a party. ``record`` is a folder for a copy of every message, for inspection.
    """

    out: str = ""
    mode: str = "horizontal"
    parties: int = 3
    initiator: str = "party-0"
    labels: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    learner: str = "mlp"
    wire: str = "float32"
    timeout: float = 3600.0
    wait: float = 600.0
    most_bytes: int = MOST_BYTES
    record: str = ""
    rounds: int = 10
    epochs: int = 1
    batch: int = 32
    rate: float = 0.05
    noise: float = 0.0
    clip: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in TASKS:
            raise unknown("mode", self.mode, TASKS)
        if self.wire not in WIRES:
            raise unknown("wire", self.wire, WIRES)
        check_learner(self.learner)
        if not self.out:
            raise UsageError('the server has no run folder: set out = "/path" in the run configuration.')
        check_range("share", "parties", self.parties, 2, 10_000)
        for name in ("timeout", "wait", "rate"):
            check_range("share", name, getattr(self, name), 0.0, 1e7, open_low=True)
        for name in ("rounds", "epochs", "batch", "most_bytes"):
            check_range("share", name, getattr(self, name), 1, 2**40)
        check_range("share", "noise", self.noise, 0.0, 1e6)
        if self.noise > 0 and not 0 < self.clip < math.inf:
            raise UsageError(
                f"noise needs a finite clipping norm above 0, got clip={self.clip:g}: use --dp noise,clip."
            )
        if self.mode != "fedavg":
            check_params(self.mode, self.params)

    @property
    def labels_from(self) -> str:
        return self.labels or self.initiator

    def to_run_config(self) -> dict[str, str | int | float]:
        """Return the terms as flat values for Flower."""
        flat = {**asdict(self), "params": json.dumps(dict(self.params))}
        return {name.replace("_", "-"): value for name, value in flat.items()}

    @classmethod
    def from_run_config(cls, config: Mapping[str, Any]) -> Terms:
        """Read a run configuration. Unknown keys and invalid JSON raise ``UsageError``."""
        known = {one.name: one for one in fields(cls)}
        given = {name.replace("-", "_"): value for name, value in config.items()}
        for name in given:
            if name not in known:
                raise unknown("key of the run configuration", name, known)
        try:
            given["params"] = json_value(given.get("params") or "{}", "params")
        except DataError:
            raise UsageError("params in the run configuration must be a JSON object.") from None
        if not isinstance(given["params"], dict):
            raise UsageError("params in the run configuration must be a JSON object.")
        for name in ("timeout", "wait", "rate", "noise", "clip"):
            given[name] = float(given.get(name, getattr(cls, name)))
        return cls(**given)
