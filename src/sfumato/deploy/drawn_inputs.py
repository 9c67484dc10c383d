"""What a client draws for a program: keys, noise and masks, from a secure source or from the device's secret."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import UsageError
from sfumato.core.origin import Hashes
from sfumato.core.ports import KeyedBy, Port
from sfumato.core.randomness import Randomness
from sfumato.mechanisms.device_secret import SECRET_BYTES, keyed_normal, secret_bits
from sfumato.mechanisms.phase.keys import draw_keys

Array = npt.NDArray[Any]


def drawn(
    port: Port, count: int, randomness: Randomness, *, secret: bytes | None = None, nonces: Hashes | None = None
) -> Array:
    """The value of an input with a ``law``, (count, …).

    With the device's ``secret`` an input that is ``keyed`` follows from it and from the records' ``nonces``, so that
    the same record has the same value again; without, it is drawn afresh.
    """
    if port.keyed is not None and secret is not None:
        return _keyed(port, port.keyed, count, secret, nonces)
    shape = (count, *port.row)
    if port.law == "normal":
        found: Array = randomness.normal(shape)
    elif port.law == "laplace":
        found = randomness.laplace(shape, 1.0)
    elif port.law == "uniform":
        found = randomness.uniform(shape)
    elif port.law == "bits":
        found = np.tile(randomness.uniform((1, *port.row)) < 0.5, (count, *[1] * len(port.row)))
    elif port.law == "ones":
        found = np.ones(shape)
    elif port.law in ("orthogonal", "rotation"):
        found = draw_keys(randomness, count, shape[-1], reflections=port.law == "orthogonal")
    else:
        raise UsageError(f"input '{port.name}' has no law: it is not drawn.")
    return found.astype(np.float32)


def _keyed(port: Port, keyed: KeyedBy, count: int, secret: bytes, nonces: Hashes | None) -> Array:
    width = int(np.prod(port.row))
    for purpose in keyed.purposes:
        secret = hashlib.blake2b(purpose.encode(), key=secret, digest_size=SECRET_BYTES).digest()
    if keyed.by == "device" and port.law == "bits":
        return np.tile(secret_bits(secret, width).reshape(1, *port.row), (count, *[1] * len(port.row)))
    if keyed.by == "record" and port.law == "normal" and nonces is not None:
        return keyed_normal(nonces, secret, width).reshape(count, *port.row).astype(np.float32)
    raise UsageError(f"input '{port.name}' is keyed by {keyed.by} with law {port.law}, which this sfumato cannot draw.")
