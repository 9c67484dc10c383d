"""Files, bytes, rows and arrays as records, exactly as at the fit; parsed without torch, pyarrow and pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.documents import json_value
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import AudioFrame
from sfumato.data.encoding import audio, signals
from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_CELL_BYTES
from sfumato.deploy.manifest import Preprocessing
from sfumato.device.png_pictures import png_pixels
from sfumato.device.table_rows import columns_of, encoded_rows

Given = Any
"""A path, the bytes of a picture or recording, a row (a mapping), an array, or a list of any of these."""

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")
_SUFFIXES = {
    "image": PICTURES,
    "audio": (".wav",),
    "table": (".csv", ".tsv", ".json"),
    "signal": (".npy", ".csv", ".json"),
    "vectors": (".npy", ".csv", ".json"),
}


class IncomingRecords:
    """What a bundle says about records, put into practice."""

    def __init__(self, preprocessing: Preprocessing) -> None:
        self.kind, self.shape, self._about = preprocessing.kind, preprocessing.shape, preprocessing.about
        self._columns = columns_of(self._about["columns"]) if self.kind == "table" else ()
        self._frame = self._audio_frame() if self.kind == "audio" else None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of files that hold such records."""
        return _SUFFIXES[self.kind]

    def encoded(self, given: Given, *, raw: bool = False) -> tuple[FloatArray, bool]:
        """Records (N, *shape) in [0, 1], and whether a single one was given.

        Arrays of floats are records already, in [0, 1]; with ``raw`` they are in the units of the training data.
        Arrays of bytes are pixels.
        """
        if isinstance(given, (list, tuple)) and not self._is_numbers(given):
            if not given:
                raise DataError("no records were given: give one at least.")
            return np.concatenate([self.encoded(one, raw=raw)[0] for one in given]), False
        if isinstance(given, (str, Path)):
            return self._file(Path(given))
        if isinstance(given, (bytes, bytearray, memoryview)):
            return self._bytes(bytes(given), "the record")[None], True
        if isinstance(given, Mapping):
            return self._rows([given], "the record"), True
        return self._array(np.asarray(given), raw)

    def _is_numbers(self, given: Sequence[Any]) -> bool:
        return all(isinstance(one, (int, float, np.number)) for one in given)

    def _file(self, path: Path) -> tuple[FloatArray, bool]:
        if path.suffix.lower() not in self.suffixes:
            raise DataError(f"{path} is no file of {self.kind} records: give one of {', '.join(self.suffixes)}.")
        try:
            if path.stat().st_size > MAX_CELL_BYTES:
                raise DataError(f"{path} is larger than {MAX_CELL_BYTES >> 20} MB: make it smaller.")
            raw = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path} ({error.strerror}): give another file.") from None
        if self.kind in ("image", "audio"):
            return self._bytes(raw, path.name)[None], True
        if path.suffix.lower() == ".npy":
            try:
                found = np.load(io.BytesIO(raw), allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise DataError(
                    f"{path} is no array of numbers ({str(error)[:80]}): save it with numpy.save."
                ) from None
            return self._array(found, raw=True)
        value = json_value(raw, str(path)) if path.suffix.lower() == ".json" else _cells(raw, path)
        if self.kind == "table":
            rows = value if isinstance(value, list) else [value]
            if not rows or not all(isinstance(row, Mapping) for row in rows):
                raise DataError(f"{path} holds no rows: give a column name for every value.")
            return self._rows(rows, path.name), len(rows) == 1
        if path.suffix.lower() != ".json":
            lines = _numbers([list(row.values()) for row in value], path)
            return self._array(lines.T if self.kind == "signal" else lines, raw=True)  # a signal's line is a moment
        return self._array(_numbers(value, path), raw=True)

    def _bytes(self, data: bytes, name: str) -> FloatArray:
        where = Place(name, record=name)
        if self.kind == "image":
            return self._pixels(_picture(data, where, self.shape), where)
        if self._frame is not None:
            samples, rate = audio.read_wav(data, self._frame.seconds, where)
            return audio.log_mel(samples, rate, self._frame)
        raise UsageError(f"bytes are pictures or recordings, and this bundle takes {self.kind} records: give arrays.")

    def _rows(self, rows: Sequence[Mapping[str, Any]], name: str) -> FloatArray:
        if self.kind != "table":
            raise UsageError(f"rows are for tables, and this bundle takes {self.kind} records: give arrays or files.")
        return encoded_rows(rows, self._columns, name)

    def _array(self, array: npt.NDArray[Any], raw: bool) -> tuple[FloatArray, bool]:
        where = Place("the array")
        if self.kind == "image" and array.dtype == np.uint8:
            single = array.ndim <= 2 or (array.ndim == 3 and array.shape[-1] in (1, 3, 4))
            pictures = array[None] if single else array
            pictures = pictures[..., None] if pictures.ndim == 3 else pictures
            return np.stack([self._pixels(one[:, :, :3], where) for one in pictures]), single
        if array.dtype.kind not in "fiub":
            raise DataError(f"an array of {array.dtype} holds no records: give numbers.")
        single = array.shape == self.shape
        records = array[None] if single else array
        if records.shape[1:] != self.shape or len(records) == 0:
            raise DataError(
                f"records have shape {self.shape}, the array has {array.shape}: give (N, *shape) or (*shape)."
            )
        if raw and self.kind in ("signal", "vectors"):
            return self._scaled(records.astype(np.float64), where), single
        values = records.astype(np.float32)
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise DataError("the array holds NaN, infinite or out-of-range values: records lie in [0, 1].")
        return values, single

    def _scaled(self, values: npt.NDArray[np.float64], where: Place) -> FloatArray:
        """In the units of the training data → [0, 1]."""
        if self.kind == "signal":
            ranges = tuple((float(low), float(high)) for low, high in self._about["ranges"])
        else:
            ranges = tuple(zip(self._about["low"], self._about["high"], strict=True))
        windows = values if self.kind == "signal" else values[:, :, None]
        windows = signals.as_windows(windows, windows.shape[1:], where)
        if self._about.get("strict"):
            signals.check_inside(windows, ranges, where)
        return signals.scale(windows, ranges).reshape(values.shape)

    def _pixels(self, pixels: npt.NDArray[np.uint8], where: Place) -> FloatArray:
        """(H, W, channels) → a record."""
        channels, height, width = self.shape
        if pixels.shape[2] == 1 and channels == 3:
            pixels = np.repeat(pixels, 3, axis=2)
        if pixels.shape[2] != channels:
            raise where.fault("the image is in colour but the others are grey", "store it in grey")
        if pixels.shape[:2] != (height, width):
            pixels = _resized(pixels, (height, width), where)
        return np.multiply(pixels.transpose(2, 0, 1), np.float32(1 / 255), dtype=np.float32)

    def _audio_frame(self) -> AudioFrame:
        about = self._about
        ours = (audio.LOW_DB, audio.HIGH_DB, audio.WINDOW_SECONDS)
        if (about["low_db"], about["high_db"], about["window_seconds"]) != ours:
            raise DataError(
                "the bundle analyses recordings otherwise than this sfumato does: use the one that made it."
            )
        return AudioFrame(int(about["rate"]), float(about["seconds"]), int(about["mels"]), int(about["frames"]))


def _picture(data: bytes, where: Place, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """(H, W, channels), by Pillow where it is installed, so that any format can come."""
    if len(data) > MAX_CELL_BYTES:
        raise where.fault(f"the record is larger than {MAX_CELL_BYTES >> 20} MB", "make it smaller")
    if not _has_pillow():
        pixels, grey = png_pixels(data, where)
        return pixels if grey or shape[0] == 3 else _refuse_colour(where)
    from sfumato.data.encoding.images import decode

    return decode(data, where, channels=shape[0]).transpose(1, 2, 0)


def _has_pillow() -> bool:
    try:
        import PIL  # noqa: F401
    except ImportError:
        return False
    return True


def _refuse_colour(where: Place) -> npt.NDArray[np.uint8]:
    raise where.fault("the image is in colour but the others are grey", "store it in grey")


def _resized(pixels: npt.NDArray[np.uint8], size: tuple[int, int], where: Place) -> npt.NDArray[np.uint8]:
    """The central square, scaled as named sets are."""
    height, width = size
    if height != width:
        found = f"{pixels.shape[0]}×{pixels.shape[1]}"
        raise where.fault(f"the image is {found}, expected {height}×{width}", "resize it to match the others")
    if not _has_pillow():
        raise where.fault(f"the image is not {height}×{width}, and Pillow, which scales it, is missing", "scale it")
    from PIL import Image

    edge = min(pixels.shape[:2])
    top, left = (pixels.shape[0] - edge) // 2, (pixels.shape[1] - edge) // 2
    square = pixels[top : top + edge, left : left + edge]
    image = Image.fromarray(square[:, :, 0] if square.shape[2] == 1 else square)
    scaled = np.asarray(image.resize((width, height), Image.Resampling.LANCZOS), dtype=np.uint8)
    return scaled[:, :, None] if scaled.ndim == 2 else scaled


def _cells(raw: bytes, path: Path) -> list[dict[str, Any]]:
    """The rows of a text file with a header, divided by comma, semicolon or tab."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text in UTF-8: store it so.") from None
    head = text.split("\n", 1)[0]
    divider = max(",;\t", key=head.count)
    rows = list(csv.DictReader(io.StringIO(text), delimiter=divider))
    for number, row in enumerate(rows):
        if None in row or None in row.values():
            raise DataError(f"{path}, line {number + 2}: it has more or fewer values than the header: correct it.")
    if not rows:
        raise DataError(f"{path} holds no rows below its header: give one at least.")
    return rows


def _numbers(value: Any, path: Path) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError(
            f"{path} holds something that is no number, or rows of different lengths: correct it."
        ) from None
