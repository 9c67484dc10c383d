"""What the service says no to: a status, one sentence, and nothing of how it is built."""

from __future__ import annotations

from collections.abc import Mapping

_SHOWN = 60


class Refused(Exception):
    """A request that is not served. ``reason`` is a word for logs and metrics; the sentence goes to the client only."""

    def __init__(
        self, status: int, reason: str, sentence: str, headers: Mapping[str, str] | None = None, *, close: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason
        self.sentence = sentence
        self.headers = dict(headers or {})
        if close:
            self.headers["connection"] = "close"


def bad(sentence: str) -> Refused:
    """400: the request does not say what the model can read."""
    return Refused(400, "bad-request", sentence)


def too_large(sentence: str, *, close: bool = False) -> Refused:
    """413: beyond a limit of size."""
    return Refused(413, "too-large", sentence, close=close)


def busy(reason: str, sentence: str, seconds: int = 1) -> Refused:
    """503 with ``Retry-After``: nothing is wrong with the request."""
    return Refused(503, reason, sentence, {"retry-after": str(max(1, seconds))})


def quoted(name: object) -> str:
    """A client's word as it is shown back: short, and printable."""
    text = ascii(name) if isinstance(name, str) else f"a {type(name).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…'"
