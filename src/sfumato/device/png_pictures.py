"""PNG files without Pillow: 8-bit and smaller pictures, which is what cameras, scanners and canvases write."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_PIXELS

Pixels = npt.NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PILLOW = "install Pillow (pip install pillow) or store it as a plain 8-bit PNG"


def png_pixels(data: bytes, where: Place) -> tuple[Pixels, bool]:
    """Pixels (H, W, 1 or 3) and whether they are grey; transparency is dropped, as when records are read for a fit."""
    if not data.startswith(_SIGNATURE):
        raise where.fault("the picture is no PNG, and Pillow, which reads other formats, is missing", _PILLOW)
    try:
        header, palette, packed = _chunks(data)
        width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", header)
        if not 0 < width * height <= MAX_PIXELS:
            raise where.fault(f"the image has {width}×{height} pixels, more than {MAX_PIXELS}", "scale it down")
        if interlaced or depth > 8 or kind not in _CHANNELS or (depth < 8 and kind not in (0, 3)):
            raise where.fault("the PNG is interlaced or has more than 8 bits a channel", _PILLOW)
        row = (width * depth * _CHANNELS[kind] + 7) // 8
        raw = zlib.decompressobj().decompress(packed, height * (row + 1))
        lines = np.frombuffer(raw, np.uint8).reshape(height, row + 1)
    except (ValueError, zlib.error, struct.error) as error:
        raise where.fault(f"the image cannot be read ({error})", "replace it") from None
    values = _unfiltered(lines, max(1, depth * _CHANNELS[kind] // 8))
    if depth < 8:
        bits = np.unpackbits(values, axis=1).reshape(height, -1, depth)
        values = np.packbits(bits, axis=2).reshape(height, -1)[:, :width] >> (8 - depth)
        values = values if kind == 3 else values * np.uint8(255 // (2**depth - 1))
    if kind == 3:
        colours = np.zeros((256, 3), dtype=np.uint8)
        colours[: len(palette) // 3] = np.frombuffer(palette, np.uint8)[: len(palette) // 3 * 3].reshape(-1, 3)
        return colours[values.reshape(height, width)], False
    pixels = values.reshape(height, width, _CHANNELS[kind])
    return (pixels[:, :, :1], True) if kind in (0, 4) else (pixels[:, :, :3], False)


def _chunks(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Header, palette and packed pixels."""
    header, palette, packed, at = b"", b"", [], len(_SIGNATURE)
    while at + 8 <= len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if len(body) < size:
            raise ValueError("it is cut off")
        if name == b"IHDR":
            header = body
        elif name == b"PLTE":
            palette = body
        elif name == b"IDAT":
            packed.append(body)
        elif name == b"IEND":
            break
        at += 12 + size
    if not header or not packed:
        raise ValueError("it is cut off")
    return header, palette, b"".join(packed)


def _unfiltered(lines: Pixels, step: int) -> Pixels:
    """Undo the filter of each line (PNG specification, section 9); ``step`` bytes are a pixel."""
    out = np.zeros((len(lines), lines.shape[1] - 1), dtype=np.uint8)
    above = np.zeros(lines.shape[1] - 1, dtype=np.uint8)
    for number, line in enumerate(lines):
        method, here = int(line[0]), line[1:].copy()
        if method == 2:
            here += above
        elif method == 1:
            padded = np.zeros((-(-len(here) // step)) * step, dtype=np.uint8)
            padded[: len(here)] = here
            here = np.cumsum(padded.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)[: len(here)]
        elif method in (3, 4):
            _by_neighbours(here, above, step, method)
        elif method != 0:
            raise ValueError(f"it has lines of filter {method}")
        out[number] = above = here
    return out


def _by_neighbours(here: Pixels, above: Pixels, step: int, method: int) -> None:
    """The filters Average (3) and Paeth (4), in place."""
    line, up = here.tolist(), above.tolist()
    for at, value in enumerate(line):
        left, corner = (line[at - step], up[at - step]) if at >= step else (0, 0)
        if method == 3:
            guess = (left + up[at]) // 2
        else:
            first = left + up[at] - corner
            guess = min((left, up[at], corner), key=lambda one: abs(first - one))
        line[at] = (value + guess) & 255
    here[:] = line
