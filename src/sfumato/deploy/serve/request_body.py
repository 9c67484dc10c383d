"""Reading a request: bounded in bytes before and after decompression, in time, and in what all requests hold."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request

from sfumato.deploy.serve.refusals import Refused, bad, busy, too_large

JSON_WEIGHT = 16
"""Memory that parsed JSON takes, as a multiple of its text."""
_WBITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_PATIENCE = 4
"""An over-long body is read to its end, so that the client can read the answer, up to so many times the limit."""
_DISCARD_SECONDS = 5.0
_MEMBERS = 16
"""Most parts of a gzip body: empty ones would cost time without ever reaching the limit of size."""


class HeldBytes:
    """What all requests of this worker hold in memory at the moment."""

    def __init__(self, most: int, tell: Callable[[int], None]) -> None:
        self._most = most
        self._tell = tell
        self._held = 0

    @contextmanager
    def of_request(self) -> Iterator[Holding]:
        """What is taken inside is given back at the end."""
        holding = Holding(self)
        try:
            yield holding
        finally:
            self._held -= holding.mine
            self._tell(self._held)

    def take(self, size: int) -> None:
        if self._held + size > self._most:
            raise busy("memory", "too many bytes of other requests are being read.")
        self._held += size
        self._tell(self._held)


class Holding:
    """The share of one request."""

    def __init__(self, all_of_them: HeldBytes) -> None:
        self._all = all_of_them
        self.mine = 0

    def take(self, size: int) -> None:
        self._all.take(size)
        self.mine += size


async def read_body(request: Request, limit: int, seconds: float, holding: Holding) -> bytes:
    """The body as it was before its ``Content-Encoding``."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", *_WBITS):
        sentence = "Content-Encoding must be gzip, deflate or identity."
        raise Refused(415, "encoding", sentence, {"accept-encoding": "gzip, deflate"}, close=True)
    declared = request.headers.get("content-length", "0")
    length = int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 19 else limit + 1
    if length > limit:
        await _discard(request, length, limit)
        raise _over(limit)
    holding.take(length)
    try:
        async with asyncio.timeout(seconds):
            raw = await _read(request, limit, length, holding)
    except TimeoutError:
        raise Refused(408, "slow", f"the body did not arrive within {seconds:g} s.", close=True) from None
    if encoding == "identity":
        return raw
    holding.take(min(limit, len(raw) * 1032))  # the most that deflate can expand
    return await asyncio.to_thread(decompress, raw, encoding, limit)


def decompress(raw: bytes, encoding: str, limit: int) -> bytes:
    """At most ``limit`` bytes, whatever is inside."""
    text = bytearray()
    rest = raw
    for _ in range(_MEMBERS):
        stream = zlib.decompressobj(_wbits(rest, encoding))
        try:
            text += stream.decompress(rest, limit + 1 - len(text))
        except zlib.error:
            raise bad(f"the body is not {encoding}.") from None
        if len(text) > limit:
            raise too_large(f"the body has more than {limit} bytes when it is unpacked.")
        if not stream.eof:
            raise bad(f"the {encoding} body is cut off.")
        rest = stream.unused_data
        if not rest:
            return bytes(text)
        if encoding != "gzip":  # which may have several members
            raise bad("bytes follow after the end of the deflate body.")
    raise bad(f"the gzip body has more than {_MEMBERS} members.")


def _wbits(raw: bytes, encoding: str) -> int:
    """Some clients say deflate and send it without the zlib header."""
    zlib_header = len(raw) > 1 and raw[0] & 0x0F == 8 and (raw[0] * 256 + raw[1]) % 31 == 0
    return -zlib.MAX_WBITS if encoding == "deflate" and not zlib_header else _WBITS[encoding]


async def _read(request: Request, limit: int, held: int, holding: Holding) -> bytes:
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > limit:
            raise _over(limit, close=True)
        if len(found) > held:  # a body without a declared length
            holding.take(len(found) - held)
            held = len(found)
    return bytes(found)


async def _discard(request: Request, length: int, limit: int) -> None:
    if request.headers.get("expect") or length > _PATIENCE * limit:
        raise _over(limit, close=True)
    try:
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for _ in request.stream():
                pass
    except TimeoutError:
        raise _over(limit, close=True) from None


def _over(limit: int, *, close: bool = False) -> Refused:
    return too_large(f"the body has more than {limit} bytes.", close=close)
