"""The owner's key: outside of every run folder, so that nobody who gets a copy of one can check a guess with it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from sfumato.core.errors import DataError
from sfumato.core.run_folder import write_secret_once

STATE_VARIABLE = "SFUMATO_STATE"
KEY_BYTES = 32


def key_file() -> Path:
    """``owner.key`` in ``$SFUMATO_STATE``, or else in the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(os.environ.get(STATE_VARIABLE) or Path(base) / "sfumato") / "owner.key"


def owner_key() -> bytes:
    """The key of this user, made on first use and readable by its owner only.

    It protects nothing that leaves: a run whose key is lost still releases, and is neither audited nor resumed, because
    it can no longer tell whether its data have changed.
    """
    file = key_file()
    try:
        file = file.expanduser()
        if not file.exists():
            write_secret_once(file, KEY_BYTES)
        key = file.read_bytes()
    except (OSError, RuntimeError) as error:  # or nobody knows where home is
        raise DataError(
            f"cannot keep the owner's key in {file} ({error}): set {STATE_VARIABLE} to a folder of yours."
        ) from None
    if len(key) != KEY_BYTES:
        raise DataError(f"{file} holds {len(key)} bytes, and an owner's key has {KEY_BYTES}: restore or remove it.")
    return key


def keyed_digest(key: bytes, salt: bytes, text: str) -> str:
    """A digest of ``text`` that says nothing to whoever does not hold the key."""
    return hashlib.blake2b(text.encode(), digest_size=16, key=key, salt=salt).hexdigest()
