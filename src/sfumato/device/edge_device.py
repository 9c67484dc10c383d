"""The device half of a bundle: records become what may leave, with noise, masks and keys drawn where the record is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Origin
from sfumato.core.ports import Port
from sfumato.core.randomness import Randomness, Secure
from sfumato.deploy.drawn_inputs import drawn
from sfumato.deploy.manifest import AnswerLabel, Bundle, Manifest, read_bundle
from sfumato.device.edge_company import EdgeCompany
from sfumato.device.incoming_records import Given, IncomingRecords
from sfumato.device.private_codes import private_codes
from sfumato.device.runtime import OnnxProgram
from sfumato.mechanisms.device_secret import check_secret, secret_file, secret_path

_AT_ONCE = 256
"""Records that a program works on at a time."""


class EdgeKey:
    """The rotations (N, d, d) of one message, own records' column first. It stays here: not printed, not pickled."""

    __slots__ = ("rotations", "single")

    def __init__(self, rotations: FloatArray, *, single: bool) -> None:
        self.rotations, self.single = rotations, single

    def __repr__(self) -> str:
        return f"EdgeKey(of {len(self.rotations)} messages)"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise UsageError("a key never leaves the device: it cannot be pickled or copied to another process.")


class EdgeDevice:
    """``Device(bundle)``: everything that happens on the owner's side.

    ``secret`` is the file (or the bytes) of this device's secret, as ``sfumato device init`` makes it; by default what
    ``SFUMATO_DEVICE_SECRET`` names. Without one keyed noise is drawn afresh each time, and company lasts as long as
    this object. ``pool`` holds records for decoys, in any form that ``encode`` takes: with it single records can be
    encrypted.
    """

    def __init__(
        self,
        bundle: str | Path | Bundle,
        *,
        secret: str | Path | bytes | None = None,
        pool: Given | None = None,
        threads: int = 1,
    ) -> None:
        here = ("device", "finish")
        found = bundle if isinstance(bundle, Bundle) else read_bundle(bundle, programs=())
        self._bundle = read_bundle(found.folder, programs=[part for part in here if part in found.manifest.programs])
        self._device = OnnxProgram(self._bundle, "device", threads)
        self._finish = OnnxProgram(self._bundle, "finish", threads) if self.manifest.encrypted else None
        self.records = IncomingRecords(self.manifest.preprocessing)
        self._secret, file = _secret_of(secret)
        rule = self.manifest.company
        self._company: EdgeCompany | None = None
        if rule is not None:
            decoys = None if pool is None else self.records.encoded(pool)[0]
            self._company = EdgeCompany(rule, self.manifest.preprocessing, self._secret, file, decoys)
        elif pool is not None:
            raise UsageError(f"a pool of decoys is for phase, and this bundle is of {self.manifest.mechanism}.")

    @property
    def manifest(self) -> Manifest:
        """What the bundle says of itself."""
        return self._bundle.manifest

    def encode(
        self, given: Given, *, private: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, raw: bool = False
    ) -> FloatArray:
        """What may leave of these records, (N, …), or (…) of a single one.

        Args:
            given: A path (picture, .wav, .csv, .json, .npy), the bytes of a picture or recording, a row as a mapping,
                an array (N, *shape) or (*shape), or a list of these.
            private: For ``filter`` and others that ask for it: the private labels, one value for all records or one
                mapping each: {"sex": "Female"}. Rows of a table may hold them as well.
            raw: Arrays of signals and vectors are in the units of the training data, and not in [0, 1].

        Raises:
            DataError: A record cannot be read, or is none of this kind.
            UsageError: A private label is missing, or the bundle encrypts.
        """
        if self._company is not None:
            raise UsageError("this bundle encrypts, and a message needs its key: use encrypt() and decrypt().")
        x, single = self.records.encoded(given, raw=raw)
        codes = private_codes(self.manifest.private, private, given, len(x))
        randomness, origin = Secure(), Origin(x)
        nonces = origin.nonces if any(port.keyed for port in self._device.inputs) else None
        drawn_ones = {
            port.name: drawn(port, len(x), randomness, secret=self._secret, nonces=nonces)
            for port in self._device.inputs
            if port.source == "drawn"
        }
        parts = [
            self._device.run([_value(port, x, codes, drawn_ones)[at : at + _AT_ONCE] for port in self._device.inputs])
            for at in range(0, len(x), _AT_ONCE)
        ]
        payload = np.concatenate(parts)
        return np.asarray(payload[0] if single else payload)

    def encrypt(self, given: Given, *, raw: bool = False) -> tuple[FloatArray, EdgeKey]:
        """A message (N, d, …) for the cloud and the key to its answer; fresh rotations each time.

        Records of one call are each other's decoys, or decoys come from the pool. Who stands with whom follows from
        the device's secret and stays (docs/phase.md).
        """
        if self._company is None:
            raise UsageError(f"a bundle of {self.manifest.mechanism} does not encrypt: use encode().")
        x, single = self.records.encoded(given, raw=raw)
        randomness = Secure()
        with self._company.seats(x, randomness) as (everyone, rows):
            messages, keys = [], []
            for at in range(0, len(rows), _AT_ONCE):
                message, key = self._turned(everyone, rows[at : at + _AT_ONCE], randomness)
                messages.append(message)
                keys.append(key)
        return np.concatenate(messages), EdgeKey(np.concatenate(keys), single=single)

    def _turned(self, everyone: FloatArray, rows: IntArray, randomness: Randomness) -> tuple[FloatArray, FloatArray]:
        """Messages of these rows of records, encoded in a secret order, and their keys with the own column first.

        The last bits of a feature depend on its place in the batch and those of a sum on its order: both are drawn.
        """
        needed, rows = np.unique(rows, return_inverse=True)
        rows = rows.reshape(-1, self._rule_rows)
        order = np.argsort(randomness.uniform((len(needed),)))
        places = np.argsort(order)[rows]
        shuffled = np.tile(np.arange(rows.shape[1]), (len(rows), 1))
        if self.manifest.company is not None and self.manifest.company.reflections:
            shuffled = np.argsort(randomness.uniform(rows.shape), axis=1)
        key_port = next(port for port in self._device.inputs if port.source == "drawn")
        turns = drawn(key_port, len(rows), randomness)
        given: dict[str, npt.NDArray[Any]] = {
            "record": everyone[needed[order]],
            "company": np.take_along_axis(places, shuffled, axis=1).astype(np.int64),
            "drawn": turns,
        }
        message = self._device.run([given[str(port.source)] for port in self._device.inputs])
        keys = np.empty_like(turns)
        np.put_along_axis(keys, shuffled[:, None, :], turns, axis=2)
        return message, keys

    @property
    def _rule_rows(self) -> int:
        assert self.manifest.company is not None
        return self.manifest.company.rows

    def decrypt(self, answer: FloatArray, key: EdgeKey) -> FloatArray:
        """Class scores (N, Σ classes) of the cloud's answer (N, d, …), or (Σ classes,) of a single record."""
        if self._finish is None:
            raise UsageError(f"answers of {self.manifest.mechanism} are not encrypted: there is nothing to decrypt.")
        ports = self._finish.inputs
        wanted = next(port for port in ports if port.source == "answer")
        answer = np.asarray(answer, dtype=np.float32)
        if answer.shape != (len(key.rotations), *wanted.row):
            raise DataError(
                f"the answer has shape {answer.shape}, this key is for {(len(key.rotations), *wanted.row)}."
            )
        if not np.isfinite(answer).all():
            raise DataError("the cloud's answer holds NaN or infinite values: ask again.")
        given: dict[str, npt.NDArray[Any]] = {"answer": answer, "kept": key.rotations}
        scores = np.concatenate(
            [
                self._finish.run([given[str(port.source)][at : at + _AT_ONCE] for port in ports])
                for at in range(0, len(answer), _AT_ONCE)
            ]
        )
        return np.asarray(scores[0] if key.single else scores)

    def read(self, scores: FloatArray) -> list[dict[str, str | float]]:
        """What class scores (N, Σ widths) say: for each record label → class, or number."""
        return read_scores(np.atleast_2d(scores), self.manifest.labels)


def read_scores(scores: npt.NDArray[Any], labels: Sequence[AnswerLabel]) -> list[dict[str, str | float]]:
    """For each record label → likeliest class, or number in its own unit."""
    if scores.shape[1] != sum(label.width for label in labels):
        raise DataError(f"{scores.shape[1]} scores of a record are not those of this bundle's labels.")
    found: list[dict[str, str | float]] = [{} for _ in scores]
    at = 0
    for label in labels:
        part = scores[:, at : at + label.width]
        for one, row in zip(found, part, strict=True):
            number = label.mean + label.deviation * float(row[0])
            one[label.name] = label.classes[int(row.argmax())] if label.classes else number
        at += label.width
    return found


def _value(port: Port, x: FloatArray, codes: FloatArray, drawn_ones: Mapping[str, npt.NDArray[Any]]) -> Any:
    return (
        {"record": x, "private": codes}[port.source] if port.source in ("record", "private") else drawn_ones[port.name]
    )


def _secret_of(given: str | Path | bytes | None) -> tuple[bytes | None, Path | None]:
    """The secret, and the file that it comes from."""
    if isinstance(given, bytes):
        check_secret(given)
        return given, None
    file = secret_path() if given is None else Path(given).expanduser()
    return (None, None) if file is None else (secret_file(file), file)
