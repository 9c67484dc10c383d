"""Who may ask: bearer tokens of a file, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from sfumato.core.errors import DataError
from sfumato.deploy.serve.refusals import Refused

SHORTEST = 16
_MOST_BYTES = 2**20


class BearerTokens:
    """Only digests are kept. Without any token everybody may ask."""

    def __init__(self, tokens: tuple[str, ...] = ()) -> None:
        self._digests = tuple(_digest(token.encode()) for token in tokens)

    @classmethod
    def from_file(cls, path: Path | None) -> BearerTokens:
        """One token a line; empty lines and lines that begin with # are skipped."""
        if path is None:
            return cls()
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES + 1).decode("ascii")
        except FileNotFoundError:
            raise DataError(f"{path} does not exist: write one token a line into it.") from None
        except UnicodeDecodeError:
            raise DataError(f"{path}: tokens are ASCII text, one a line.") from None
        tokens = []
        for number, line in enumerate(text.splitlines(), 1):
            token = line.strip()
            if not token or token.startswith("#"):
                continue
            if len(token) < SHORTEST or any(c.isspace() for c in token):
                raise DataError(f"{path}, line {number}: a token has {SHORTEST} characters or more and no spaces.")
            tokens.append(token)
        if not tokens or len(text) > _MOST_BYTES:
            raise DataError(f"{path} holds no token, or more than {_MOST_BYTES} bytes: write one token a line into it.")
        return cls(tuple(tokens))

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, header: str | None) -> None:
        """Raise ``Refused`` with 401 unless the ``Authorization`` header bears one of the tokens."""
        if not self._digests:
            return
        scheme, _, token = (header or "").partition(" ")
        given = _digest(token.strip().encode("utf-8", "surrogateescape"))
        known = [hmac.compare_digest(given, one) for one in self._digests]  # all of them, whichever fits
        if not (scheme.lower() == "bearer" and any(known)):
            said = "the token is not known." if header else "a token is needed: Authorization: Bearer …"
            raise Refused(401, "token", said, {"www-authenticate": 'Bearer realm="sfumato"'})


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
