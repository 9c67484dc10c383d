"""The whole round trip: protect on this device, ask the cloud half over the Open Inference Protocol v2, read."""

from __future__ import annotations

import gzip
import http.client
import ipaddress
import json
import secrets
import ssl
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.device import inference_messages
from sfumato.device.edge_device import EdgeDevice
from sfumato.device.incoming_records import Given

_AGAIN = (429, 502, 503, 504)
_LONGEST_WAIT = 30.0
_FIRST_WAIT = 0.2
_MORE = 1 << 20
"""Bytes of an answer beside its numbers, at most; numbers as text take up to 32 bytes."""


class NoAnswer(SfumatoError):
    """The server could not be reached, or was too busy, for as long as was tried."""

    exit_code = 1


class RemoteModel:
    """``RemoteModel(url, token, device=device)``: a model elsewhere that sees protected tensors alone.

    Args:
        url: Of the server: ``https://host:port``, without the path of the model.
        token: A bearer token. It goes over https, or to this machine, unless ``plain`` says otherwise.
        device: The device half, or the bundle's folder.
        model: The model's name at the server; by default the bundle's.
        timeout: Seconds for one attempt.
        retries: Further attempts if the server is busy, restarts or does not answer.
        binary: Tensors as bytes; false: as JSON.
        compress: Send gzip.
        certificates: A file of certificates to trust (PEM), for a server with its own authority.
        plain: Let a token go over http to another machine.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        device: EdgeDevice | str | Path,
        model: str = "",
        timeout: float = 10.0,
        retries: int = 4,
        binary: bool = True,
        compress: bool = False,
        certificates: str | Path | None = None,
        plain: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise UsageError(f"'{url}' is no address of a server: give http://host:port or https://host:port.")
        if token is not None and (not token.isascii() or not token.isprintable() or " " in token or not token):
            raise UsageError("the token holds blanks or odd characters: give it as the server's operator wrote it.")
        if token is not None and parts.scheme == "http" and not (plain or _is_here(parts.hostname)):
            raise UsageError(
                f"a token over http to {parts.hostname} can be read by everyone on the way: use https, or let it go "
                "plainly (--plain, plain=True) through a network that you trust."
            )
        self.device = device if isinstance(device, EdgeDevice) else EdgeDevice(device)
        manifest = self.device.manifest
        self._cloud = manifest.program("cloud")
        name = quote(model or manifest.name, safe="")
        self._path = f"{parts.path.rstrip('/')}/v2/models/{name}/infer"
        self._host, self._port, self._https = parts.hostname, parts.port, parts.scheme == "https"
        self._context = ssl.create_default_context(cafile=certificates) if self._https else None
        self._token, self._timeout, self._retries = token, timeout, retries
        self._binary, self._compress = binary, compress
        self._connection: http.client.HTTPConnection | None = None

    def predict(
        self, given: Given, *, private: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, raw: bool = False
    ) -> list[dict[str, str | float]]:
        """For each record label → class, or number; ``given`` and ``private`` as for ``Device.encode``."""
        return self.device.read(self.scores(given, private=private, raw=raw))

    def scores(
        self, given: Given, *, private: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, raw: bool = False
    ) -> npt.NDArray[np.float32]:
        """Class scores (N, Σ widths), or (Σ widths,) of a single record."""
        if self.device.manifest.encrypted:
            message, key = self.device.encrypt(given, raw=raw)
            return self.device.decrypt(self.infer(message), key)
        payload = self.device.encode(given, private=private, raw=raw)
        single = payload.shape == self._cloud.inputs[0].row
        scores = self.infer(payload[None] if single else payload)
        return np.asarray(scores[0] if single else scores)

    def infer(self, payload: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What the cloud half makes of a payload (N, …).

        Raises:
            NoAnswer: The server could not be reached or was busy, after all retries.
            DataError: It refused, or answered something else.
        """
        payload = np.asarray(payload, dtype=np.float32)
        if payload.shape[1:] != self._cloud.inputs[0].row or len(payload) == 0:
            raise DataError(f"a payload has shape {self._cloud.inputs[0].row} a record, this one is {payload.shape}.")
        name, output = secrets.token_hex(16), self._cloud.outputs[0]
        body, headers = inference_messages.request(
            self._cloud.inputs, [payload], output.name, name, binary=self._binary
        )
        if self._compress:
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        headers["Accept-Encoding"] = "identity"
        most = _MORE + 32 * len(payload) * int(np.prod(output.row))
        raw, found = self._asked(body, headers, most)
        return inference_messages.answered(raw, found, output, len(payload), name)

    def _asked(self, body: bytes, headers: Mapping[str, str], most: int) -> tuple[bytes, Mapping[str, str]]:
        """An answer of status 200, after as many attempts as it takes and is allowed."""
        why = ""
        for attempt in range(self._retries + 1):
            wait = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (0.5 + secrets.randbelow(1000) / 1000)
            try:
                status, found, raw = self._once(body, headers, most)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise DataError(
                        f"{self._host} has no certificate that is trusted ({error.verify_message})."
                    ) from None
                why = str(error) or type(error).__name__
            else:
                if status == 200:
                    return raw, found
                why = f"{status}: {_said(raw)}"
                if status not in _AGAIN:
                    raise DataError(f"{self._host} refuses ({why}).")
                wait = _retry_after(found, wait)
            if attempt < self._retries:
                time.sleep(wait)
        raise NoAnswer(f"{self._host} gave no answer in {self._retries + 1} attempts ({why[:200]}): try again later.")

    def _once(self, body: bytes, headers: Mapping[str, str], most: int) -> tuple[int, Mapping[str, str], bytes]:
        if self._connection is None:
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._timeout, context=self._context
                )
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        self._connection.request("POST", self._path, body, dict(headers))
        answer = self._connection.getresponse()
        raw = answer.read(most + 1)
        if len(raw) > most:
            self.close()
            raise DataError(f"{self._host} answers more than {most} bytes, which is no answer: check the address.")
        found = dict(answer.getheaders())
        if answer.will_close:
            self.close()
        return answer.status, found, _unpacked(raw, answer.getheader("Content-Encoding", "identity"), most)

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> RemoteModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unpacked(raw: bytes, encoding: str, most: int) -> bytes:
    if encoding == "identity":
        return raw
    try:
        reader = zlib.decompressobj(47 if encoding in ("gzip", "deflate") else -1)
        found = reader.decompress(raw, most + 1)
    except (zlib.error, ValueError):
        raise DataError(f"the server's answer is packed in a way that is not known ({encoding[:20]}).") from None
    if len(found) > most:
        raise DataError(f"the server's answer unpacks to more than {most} bytes, which is no answer.")
    return found


def _retry_after(headers: Mapping[str, str], otherwise: float) -> float:
    """Seconds that the server asks to wait, within limits."""
    said = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    try:
        return min(max(float(said), 0.0), _LONGEST_WAIT)
    except ValueError:
        return otherwise


def _said(raw: bytes) -> str:
    """The server's sentence, as far as there is one."""
    try:
        value = json.loads(raw)
    except ValueError:
        return "without a reason"
    said = value.get("error") if isinstance(value, Mapping) else None
    return "".join(char for char in str(said) if char.isprintable())[:200] if said else "without a reason"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
