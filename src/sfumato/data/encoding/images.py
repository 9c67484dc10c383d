"""Images as float32 in [0, 1], channels first, from encoded bytes or from arrays of pixels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded
from sfumato.data.file_errors import fault
from sfumato.data.limits import MAX_CELL_BYTES, MAX_PIXELS

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
_GREY = ("1", "L", "LA")
_COLOUR = ("RGB", "RGBA", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB", "RGBX")


def cell_bytes(cell: Any, file: str, column: str, row: int) -> bytes:
    """Return the bytes of one encoded cell (a binary or struct arrow scalar), checked for presence and size."""
    value = cell.as_py()
    if isinstance(value, dict):
        value = value.get("bytes")
    if not value:
        raise fault(file, "the record is missing", column=column, row=row, remedy="store the bytes or remove the row")
    if len(value) > MAX_CELL_BYTES:
        raise fault(
            file,
            f"the record is larger than {MAX_CELL_BYTES >> 20} MB",
            column=column,
            row=row,
            remedy="make it smaller",
        )
    return bytes(value)


def decode(
    data: bytes, file: str, column: str, row: int, *, channels: int | None = None, side: int | None = None
) -> npt.NDArray[np.uint8]:
    """Decode one image to uint8 ``(C, H, W)``.

    With ``channels=3`` a grey image becomes colour. The reverse is an error, because it would silently lose
    information. With ``side`` the central square is cropped and scaled to that size.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise fault(
                    file,
                    f"the image has {image.width}×{image.height} pixels, more than {MAX_PIXELS}",
                    column=column,
                    row=row,
                    remedy="scale it down",
                )
            if image.mode not in _GREY + _COLOUR:
                raise fault(
                    file,
                    f"images of mode {image.mode} are not supported",
                    column=column,
                    row=row,
                    remedy="store it as 8-bit grey or colour",
                )
            grey = image.mode in _GREY
            if channels == 1 and not grey:
                raise fault(
                    file,
                    "the image is in colour but the others are grey",
                    column=column,
                    row=row,
                    remedy="store all images in the same mode",
                )
            picture = image.convert("RGB" if channels == 3 or not grey else "L")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise fault(
            file,
            f"the image cannot be read ({str(error)[:80].rstrip('.')})",
            column=column,
            row=row,
            remedy="replace it or remove the row",
        ) from error
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
    file: str,
    column: str,
    first_row: int,
    *,
    side: int | None = None,
    cell_shape: tuple[int, ...] | None = None,
) -> FloatArray:
    """Encode a column of images as float32 ``(rows, *shape)`` in [0, 1]. An image of another size raises."""
    if not is_encoded(array.type):
        return _pixels(dense(array, file, column, first_row, cell_shape), shape, file, column, first_row)
    out = np.empty((len(array), *shape), dtype=np.uint8)
    for place, cell in enumerate(array):
        row = first_row + place
        image = decode(cell_bytes(cell, file, column, row), file, column, row, channels=shape[0], side=side)
        if image.shape != shape:
            raise fault(
                file,
                f"the image is {_size(image.shape)}, expected {_size(shape)}",
                column=column,
                row=row,
                remedy="resize it to match the others",
            )
        out[place] = image
    return np.multiply(out, np.float32(1 / 255), dtype=np.float32)


def _pixels(values: npt.NDArray[Any], shape: tuple[int, ...], file: str, column: str, first_row: int) -> FloatArray:
    rows, cell = len(values), values.shape[1:]
    if cell == shape or (cell == shape[1:] and shape[0] == 1) or cell == (int(np.prod(shape)),):
        values = values.reshape(rows, *shape)
    elif cell == (*shape[1:], shape[0]):
        values = np.moveaxis(values, -1, 1)
    else:
        raise fault(
            file,
            f"the image is {_size(cell)}, expected {_size(shape)}",
            column=column,
            row=first_row,
            remedy="resize it to match the others",
        )
    whole = values.dtype.kind in "iub"
    if not whole:
        check_finite(values, file, column, first_row)
    top = 255 if whole else 1
    if rows and values.dtype != np.uint8 and (values.min() < 0 or values.max() > top):
        outside = ((values < 0) | (values > top)).reshape(rows, -1).any(axis=1)
        raise fault(
            file,
            f"a pixel is outside [0, {top}]",
            column=column,
            row=first_row + int(np.argmax(outside)),
            remedy="store pixels as whole numbers from 0 to 255 or as fractions from 0 to 1",
        )
    out: FloatArray = np.ascontiguousarray(values, dtype=np.float32)
    return np.multiply(out, np.float32(1 / 255)) if whole else out


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(str(side) for side in shape)
