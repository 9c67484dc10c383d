"""The secret of a device: never part of a run folder, a release or a message."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Hashes
from sfumato.core.randomness import Randomness, Secure, gaussian

SECRET_VARIABLE = "SFUMATO_DEVICE_SECRET"
"""Names the file with the device's secret; without it a secret lives as long as the mechanism object."""
SECRET_BYTES = 32


def secret_file(path: Path) -> bytes:
    """The device's secret in ``path``, made on first use and readable by its owner only."""
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot keep the device's secret in {path} ({error.strerror}): choose another file.") from None
    if len(secret) != SECRET_BYTES:
        raise DataError(
            f"{path} holds {len(secret)} bytes, and a device's secret has {SECRET_BYTES}: name another file; one that "
            "does not exist yet is made."
        )
    return secret


def _make_secret(path: Path) -> None:
    """Whole or not at all; of two processes that try, one wins."""
    handle, part = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        os.write(handle, os.urandom(SECRET_BYTES))
        os.close(handle)
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        Path(part).unlink()


def device_secret() -> bytes:
    """The secret of this machine's device: from the file that ``SFUMATO_DEVICE_SECRET`` names, or a new one."""
    file = os.environ.get(SECRET_VARIABLE)
    return secret_file(Path(file)) if file else os.urandom(SECRET_BYTES)


def drawn_secret(randomness: Randomness) -> bytes:
    """A secret for one release: from the operating system, or repeatable for experiments."""
    return os.urandom(SECRET_BYTES) if isinstance(randomness, Secure) else randomness.uniform((4,)).tobytes()


def check_secret_file(consequence: str) -> None:
    """Raise ``UsageError`` unless the secret outlives this process; ``consequence`` says what would happen."""
    if not os.environ.get(SECRET_VARIABLE):
        raise UsageError(
            f"set {SECRET_VARIABLE} to the file of this device's secret (it is made on first use): without it "
            f"{consequence}"
        )


def check_secret(secret: bytes) -> None:
    """Raise ``UsageError`` unless this has the length of a secret: a shorter one can be guessed."""
    if len(secret) != SECRET_BYTES:
        raise UsageError(f"a secret has {SECRET_BYTES} bytes, this one has {len(secret)}: see secret_file.")


def derived(secret: bytes, *purpose: object) -> bytes:
    """A secret for one named purpose."""
    return hashlib.blake2b(repr(purpose).encode(), key=secret, digest_size=SECRET_BYTES).digest()


def secret_bits(secret: bytes, count: int) -> FloatArray:
    """``count`` zeros and ones that only the holder of the secret can tell from coin flips (SHAKE-256)."""
    stream = np.frombuffer(hashlib.shake_256(secret).digest(count), dtype=np.uint8)
    return (stream & 1).astype(np.float32)


def keyed_normal(nonces: Hashes, secret: bytes, count: int) -> FloatArray:
    """Standard normal noise (N, ``count``), a secret function of each record's nonce (``Origin.nonces``).

    A record that is released again has the same noise, so that several releases together say no more than one. Copies
    of a record have other noise each, so that nobody can count them.
    """
    streams = []
    for nonce in nonces:
        tag = hashlib.blake2b(nonce.tobytes(), key=secret, digest_size=SECRET_BYTES).digest()
        streams.append(hashlib.shake_256(tag).digest(8 * (count + count % 2)))
    bits = np.frombuffer(b"".join(streams), dtype=np.uint64).reshape(len(nonces), -1)
    return gaussian(bits)[:, :count].astype(np.float32)
