"""The secret of a device: never part of a run folder, a release or a message."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Hashes
from sfumato.core.randomness import DoubleArray, Randomness, Secure, gaussian
from sfumato.core.run_folder import write_secret_once

SECRET_VARIABLE = "SFUMATO_DEVICE_SECRET"
"""Names the file with the device's secret; without it a secret lives as long as the mechanism object."""
SECRET_BYTES = 32
_FINGERPRINT_BYTES = 8


def secret_file(path: Path) -> bytes:
    """The device's secret in ``path``; nothing but ``make_secret`` ever makes one."""
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"there is no device's secret in {path}: correct the path, or make one with "
            f"'sfumato device init --secret {path}' if this device has never released anything."
        ) from None
    except OSError as error:
        raise DataError(f"cannot read the device's secret in {path} ({error.strerror}): give another file.") from None
    if len(secret) != SECRET_BYTES:
        raise DataError(
            f"{path} holds {len(secret)} bytes, and a device's secret has {SECRET_BYTES}: give the file that "
            "'sfumato device init' made."
        )
    return secret


def make_secret(path: Path) -> bytes:
    """A new secret in ``path``, whole or not at all, readable by its owner only; a file that is there stays."""
    try:
        made = write_secret_once(path, SECRET_BYTES)
    except OSError as error:
        raise DataError(f"cannot keep a secret in {path} ({error.strerror}): choose another file.") from None
    if not made:
        raise DataError(f"{path} exists, and a secret is never replaced: keep using it, or name another file.")
    return secret_file(path)


def fingerprint(secret: bytes) -> str:
    """What tells secrets apart and says nothing about them, to be stored with what was made under one."""
    return derived(secret, "fingerprint")[:_FINGERPRINT_BYTES].hex()


def secret_path() -> Path | None:
    """The file that ``SFUMATO_DEVICE_SECRET`` names, an absolute path, or None if it is not set."""
    named = os.environ.get(SECRET_VARIABLE)
    if named and not Path(named).is_absolute():
        raise UsageError(
            f"{SECRET_VARIABLE} is '{named}', which is another file in every folder: give the absolute path of this "
            "device's secret."
        )
    return Path(named) if named else None


def device_secret() -> bytes:
    """The secret of this machine's device: from the file that ``SFUMATO_DEVICE_SECRET`` names, or a passing one."""
    file = secret_path()
    return os.urandom(SECRET_BYTES) if file is None else secret_file(file)


def drawn_secret(randomness: Randomness) -> bytes:
    """A secret for one release: from the operating system, or repeatable for experiments."""
    return os.urandom(SECRET_BYTES) if isinstance(randomness, Secure) else randomness.uniform((4,)).tobytes()


def check_secret_file(consequence: str) -> None:
    """Raise unless the secret outlives this process; ``consequence`` says what would happen."""
    file = secret_path()
    if file is None:
        raise UsageError(
            f"set {SECRET_VARIABLE} to the file of this device's secret ('sfumato device init' makes one): without it "
            f"{consequence}"
        )
    secret_file(file)


def check_secret(secret: bytes) -> None:
    """Raise ``UsageError`` unless this has the length of a secret: a shorter one can be guessed."""
    if len(secret) != SECRET_BYTES:
        raise UsageError(
            f"a secret has {SECRET_BYTES} bytes, this one has {len(secret)}: make one with 'sfumato device init'."
        )


def derived(secret: bytes, *purpose: object) -> bytes:
    """A secret for one named purpose."""
    return hashlib.blake2b(repr(purpose).encode(), key=secret, digest_size=SECRET_BYTES).digest()


def secret_bits(secret: bytes, count: int) -> FloatArray:
    """``count`` zeros and ones that only the holder of the secret can tell from coin flips (SHAKE-256)."""
    stream = np.frombuffer(hashlib.shake_256(secret).digest(count), dtype=np.uint8)
    return (stream & 1).astype(np.float32)


def keyed_normal(nonces: Hashes, secret: bytes, count: int) -> DoubleArray:
    """Standard normal noise (N, ``count``), a secret function of each record's nonce (``Origin.nonces``).

    A record that is released again has the same noise, so that several releases together say no more than one. Copies
    of a record have other noise each, so that nobody can count them.
    """
    streams = []
    for nonce in nonces:
        tag = hashlib.blake2b(nonce.tobytes(), key=secret, digest_size=SECRET_BYTES).digest()
        streams.append(hashlib.shake_256(tag).digest(8 * (count + count % 2)))
    bits = np.frombuffer(b"".join(streams), dtype=np.uint64).reshape(len(nonces), -1)
    return gaussian(bits)[:, :count]
