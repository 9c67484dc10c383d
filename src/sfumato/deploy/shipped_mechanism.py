"""An exported device half in the place of the networks it was made from, so that an audit attacks what is shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import RuleBroken, UsageError
from sfumato.core.guarantee import Guarantee
from sfumato.core.origin import Origin
from sfumato.core.ports import Port
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.deploy.drawn_inputs import drawn
from sfumato.deploy.program_checks import session
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.capabilities import Classifies, HasDecoder, HasEncoder
from sfumato.mechanisms.device_secret import drawn_secret
from sfumato.mechanisms.label_targets import target, told

_AT_ONCE = 256


class ShippedMechanism(Mechanism):
    """Releases by the programs in a folder; everything else is the fitted mechanism's. It cannot be fitted or stored.

    Attackers have the networks as they were fitted: what they know of a program that was made smaller is the original.
    """

    name = "shipped"

    _original: Mechanism
    _ports: tuple[Port, ...]
    _device: Any
    _cloud: Any

    @classmethod
    def of(cls, original: Mechanism, device: Path, cloud: Path | None, ports: tuple[Port, ...]) -> ShippedMechanism:
        """``original`` with programs for its device half, which takes ``ports``, and for its cloud half."""
        if any(port.source == "company" for port in ports):
            raise UsageError(
                f"what leaks from an exported device half of {original.name} hangs on who stands in a message, which "
                "only the run itself can be audited for: sfumato audit."
            )
        found = cls(seed=original.seed)  # type: ignore[call-arg]  # what is declared above are no parameters
        found.schema_, found.labels_ = original.schema_, original.labels_
        found._original, found._ports = original, ports
        found._device, found._cloud = session(device), None if cloud is None else session(cloud)
        return found

    @property
    def traits(self) -> Traits:
        return self._original.traits

    def guarantee(self) -> Guarantee:
        return self._original.guarantee()

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return self._release_from(x, private, randomness, Origin(x))

    def _release_from(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> FloatArray:
        given = self._inputs(x, private, randomness, origin)
        parts = [
            self._device.run(None, {name: value[at : at + _AT_ONCE] for name, value in given.items()})[0]
            for at in range(0, len(x), _AT_ONCE)
        ]
        return np.concatenate(parts)

    def _inputs(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> dict[str, Any]:
        keyed = any(port.keyed for port in self._ports)
        secret, nonces = (drawn_secret(randomness), origin.nonces) if keyed else (None, None)
        given: dict[str, Any] = {}
        for port in self._ports:
            if port.source == "record":
                given[port.name] = np.ascontiguousarray(x)
            elif port.source == "private":
                given[port.name] = private_inputs(self.schema_, private)
            else:
                given[port.name] = drawn(port, len(x), randomness, secret=secret, nonces=nonces)
        return given

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        """The same again if noise follows from the device's secret; else fresh noise every time."""
        seeds = (
            [seed] * times if any(port.keyed for port in self._ports) else [derive_seed(seed, n) for n in range(times)]
        )
        return tuple(
            self.transform(data.x, private=data.private, origin=data.origin, seed=each, name=data.name)
            for each in seeds
        )

    def predict(self, payload: FloatArray) -> FloatArray | None:
        if self._cloud is None:
            return self._original.predict(payload) if isinstance(self._original, Classifies) else None
        out: FloatArray = self._cloud.run(None, {"payload": np.ascontiguousarray(payload)})[0]
        return out

    def decode(self, payload: FloatArray) -> FloatArray | None:
        return self._original.decode(payload) if isinstance(self._original, HasDecoder) else None

    def public_encoder(self) -> nn.Module | None:
        return self._original.public_encoder() if isinstance(self._original, HasEncoder) else None

    def _build(self, schema: Schema) -> None:
        raise UsageError("an exported device half cannot be fitted: fit the mechanism and export it again.")

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        raise RuleBroken("_build has refused before.")

    def _modules(self) -> dict[str, nn.Module]:
        return {}

    def state(self) -> dict[str, Tensor]:
        raise UsageError("an exported device half is no run: keep the bundle.")


def private_inputs(schema: Schema, private: Mapping[str, IntArray]) -> FloatArray:
    """The private labels of records as a device half takes them."""
    each = (told(target(label, private[label], schema), schema.width(label)) for label in schema.private)
    return np.concatenate([part.float().numpy() for part in each], axis=1)
