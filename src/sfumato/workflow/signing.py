"""Statements in a DSSE envelope, signed with a key of the user's own (PEM: Ed25519, ECDSA or RSA), offline.

openssl genpkey -algorithm ed25519 -out key.pem
openssl pkey -in key.pem -pubout -out key.pub
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.core.errors import DataError, UsageError
from sfumato.core.extras import require
from sfumato.core.run_folder import read_json, write_json

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_MAKE = "'openssl genpkey -algorithm ed25519 -out key.pem' makes one"


class WrongSignature(DataError):
    """The envelope is not signed with that key, or was changed afterwards."""


def check_key(key: Path | None) -> None:
    """Raise now if a release could not be signed with this key later."""
    if key is not None:
        _signer(key)


def write_envelope(path: Path, statement: Mapping[str, Any], key: Path) -> None:
    """The statement, signed with the private key."""
    signer = _signer(key)
    from securesystemslib.dsse import Envelope

    envelope = Envelope(json.dumps(statement, sort_keys=True).encode(), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    write_json(path, envelope.to_dict())


def read_envelope(path: Path, public: Path) -> dict[str, Any]:
    """The statement in an envelope that was signed with the private half of the ``public`` key.

    Raises:
        WrongSignature: It was not, or the envelope does not have that form.
    """
    key = _public(public)
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError

    try:
        envelope = Envelope.from_dict(read_json(path))
        envelope.verify([key], 1)
        statement: dict[str, Any] = json.loads(envelope.payload)
    except VerificationError:
        raise WrongSignature(f"{path} is not signed with the key of {public}, or was changed since.") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise WrongSignature(f"{path} is not a DSSE envelope with a statement.") from None
    if envelope.payload_type != PAYLOAD_TYPE or not isinstance(statement, dict):
        raise WrongSignature(f"{path} holds no in-toto statement.")
    return statement


def _signer(key: Path) -> Any:
    require("sign", "--sign", "securesystemslib", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    try:
        return CryptoSigner(load_pem_private_key(_read(key), password=None))
    except TypeError:
        raise UsageError(
            f"{key} is locked by a passphrase: give a key without one, kept where only you read."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(f"{key} is no private key in PEM (Ed25519, ECDSA or RSA): {_MAKE}.") from None


def _public(key: Path) -> Any:
    require("sign", "--key", "securesystemslib", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    try:
        return SSlibKey.from_crypto(load_pem_public_key(_read(key)))
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(
            f"{key} is no public key in PEM: 'openssl pkey -in key.pem -pubout -out key.pub' takes it from a private "
            "one."
        ) from None


def _read(key: Path) -> bytes:
    try:
        return key.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the key {key} ({error.strerror}): name a PEM file; {_MAKE}.") from None
