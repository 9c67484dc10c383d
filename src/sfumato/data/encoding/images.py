"""Images as float32 in [0, 1], channels first, from encoded bytes or from arrays of pixels."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded
from sfumato.data.file_errors import FaultHere, Place
from sfumato.data.limits import MAX_CELL_BYTES, MAX_PIXELS

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
_GREY = ("1", "L", "LA")
_COLOUR = ("RGB", "RGBA", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB", "RGBX")


def cell_bytes(cell: Any, where: Place) -> bytes:
    """Return the bytes of one encoded cell (a binary or struct arrow scalar), checked for presence and size."""
    value = cell.as_py()
    if isinstance(value, dict):
        value = value.get("bytes")
    if not value:
        raise where.fault("the record is missing", "store the bytes or remove the row")
    if len(value) > MAX_CELL_BYTES:
        raise where.fault(f"the record is larger than {MAX_CELL_BYTES >> 20} MB", "make it smaller")
    return bytes(value)


def by_name(error: FaultHere, cell: Any) -> DataError:
    """The same error about an encoded cell, at the file's name if the cell is a file of a folder."""
    value = cell.as_py()
    name = value.get("path") if isinstance(value, dict) else None
    if not name or not Path(error.where.file).is_dir():
        return error
    return replace(error.where, record=str(name)).fault(error.what, error.remedy)


def decode(data: bytes, where: Place, *, channels: int | None = None, side: int | None = None) -> npt.NDArray[np.uint8]:
    """Decode one image to uint8 ``(C, H, W)``.

    With ``channels=3`` a grey image becomes colour. The reverse is an error, because it would silently lose
    information. With ``side`` the central square is cropped and scaled to that size.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                size = f"{image.width}×{image.height}"
                raise where.fault(f"the image has {size} pixels, more than {MAX_PIXELS}", "scale it down")
            if image.mode not in _GREY + _COLOUR:
                what = f"images of mode {image.mode} are not supported"
                raise where.fault(what, "store it as 8-bit grey or colour")
            grey = image.mode in _GREY
            if channels == 1 and not grey:
                what = "the image is in colour but the others are grey"
                raise where.fault(what, "store all images in the same mode")
            picture = image.convert("RGB" if channels == 3 or not grey else "L")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        why = "in no format that is known" if isinstance(error, UnidentifiedImageError) else str(error)[:80].rstrip(".")
        what = f"the image cannot be read ({why})"
        raise where.fault(what, "replace it or remove the row") from error
    if side is not None and picture.size != (side, side):
        edge = min(picture.size)
        left, top = (picture.width - edge) // 2, (picture.height - edge) // 2
        picture = picture.crop((left, top, left + edge, top + edge)).resize((side, side), Image.Resampling.LANCZOS)
    pixels = np.asarray(picture, dtype=np.uint8)
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def png(record: FloatArray) -> bytes:
    """Encode a record (C, H, W) in [0, 1] as a PNG file."""
    from PIL import Image

    pixels = np.rint(record * 255).clip(0, 255).astype(np.uint8)
    picture = pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


def encode(
    array: Any,
    shape: tuple[int, ...],
    where: Place,
    *,
    side: int | None = None,
    cell_shape: tuple[int, ...] | None = None,
) -> FloatArray:
    """Encode a column of images as float32 ``(rows, *shape)`` in [0, 1]. An image of another size raises.

    ``where`` is the place of the first image.
    """
    if not is_encoded(array.type):
        return _pixels(dense(array, where, cell_shape), shape, where)
    out = np.empty((len(array), *shape), dtype=np.uint8)
    for place, cell in enumerate(array):
        here = where.below(place)
        try:
            image = decode(cell_bytes(cell, here), here, channels=shape[0], side=side)
            if image.shape != shape:
                raise _wrong_size(image.shape, shape, here)
        except FaultHere as error:
            raise by_name(error, cell) from None
        out[place] = image
    return np.multiply(out, np.float32(1 / 255), dtype=np.float32)


def _pixels(values: npt.NDArray[Any], shape: tuple[int, ...], where: Place) -> FloatArray:
    rows, cell = len(values), values.shape[1:]
    if cell == shape or (cell == shape[1:] and shape[0] == 1) or cell == (int(np.prod(shape)),):
        values = values.reshape(rows, *shape)
    elif cell == (*shape[1:], shape[0]):
        values = np.moveaxis(values, -1, 1)
    else:
        raise _wrong_size(cell, shape, where)
    whole = values.dtype.kind in "iub"
    if not whole:
        check_finite(values, where)
    top = 255 if whole else 1
    if rows and values.dtype != np.uint8 and (values.min() < 0 or values.max() > top):
        outside = ((values < 0) | (values > top)).reshape(rows, -1).any(axis=1)
        remedy = "store pixels as whole numbers from 0 to 255 or as fractions from 0 to 1"
        raise where.below(int(np.argmax(outside))).fault(f"a pixel is outside [0, {top}]", remedy)
    out: FloatArray = np.ascontiguousarray(values, dtype=np.float32)
    return np.multiply(out, np.float32(1 / 255)) if whole else out


def _wrong_size(found: tuple[int, ...], expected: tuple[int, ...], where: Place) -> DataError:
    sizes = ["×".join(str(side) for side in shape) for shape in (found, expected)]
    return where.fault(f"the image is {sizes[0]}, expected {sizes[1]}", "resize it to match the others")
