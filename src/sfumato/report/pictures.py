"""Records as small pictures: PNG for images and log-mel, SVG lines for signals, SVG bars for table rows."""

from __future__ import annotations

import base64
import io
import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.schema import Schema
from sfumato.report.audited_runs import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 112  # pixels: pictures are shown at most this large
MAX_STEPS = 160  # points of a drawn line, bars of a drawn row
MAX_CHANNELS = 6
_SHADES = 16  # on either side of zero
_BELOW, _ABOVE = (11, 79, 138), (180, 70, 15)
_DASHES = ("", "4 2", "1.5 1.5", "6 2 1.5 2", "8 3", "3 3")


def record_pictures(records: Floats, schema: Schema) -> list[str]:
    """One data URI for each record of the schema's kind and shape."""
    if schema.kind == "table" or len(schema.shape) == 1:
        return [_bars(record.reshape(-1)) for record in records]
    if schema.kind == "signal" or len(schema.shape) == 2:
        return [_lines(record.reshape(-1, record.shape[-1])) for record in records]
    return [_png(_picture(record, flip=schema.kind == "audio")) for record in records]


def payload_pictures(payload: Floats, schema: Schema) -> list[str]:
    """What was released: as a record where it has the shape of one, else as a tile of its numbers."""
    if payload.shape[1:] == schema.shape:
        return record_pictures(payload, schema)
    flat = np.nan_to_num(payload.reshape(len(payload), -1))[:, : 64 * 64]
    low, high = np.percentile(flat, 1), np.percentile(flat, 99)
    scaled = np.clip((flat - low) / max(float(high - low), 1e-12), 0, 1)
    width = math.ceil(math.sqrt(scaled.shape[1]))
    tiles = np.ones((len(scaled), width * math.ceil(scaled.shape[1] / width)), dtype=np.float32)
    tiles[:, : scaled.shape[1]] = scaled
    return [_png(tile.reshape(-1, width)) for tile in tiles]


def heat(values: Floats, limit: float, *, most: int) -> str:
    """(H, W) in colours from −limit over 0 to limit, at most ``most`` pixels a side (a single row may be longer)."""
    from PIL import Image

    image = Image.fromarray(np.clip(values / max(limit, 1e-12), -1, 1).astype(np.float32))
    side = most if len(values) > 1 else MAX_STEPS
    if max(image.size) > side:
        width, height = (max(1, round(size * side / max(image.size))) for size in image.size)
        image = image.resize((width, height), Image.Resampling.BOX)
    steps = np.round((np.asarray(image) + 1) * _SHADES).astype(np.uint8)  # 0 … 2·_SHADES
    painted = Image.fromarray(steps, mode="L").convert("P")
    painted.putpalette(_palette())
    return _saved(painted)


def _palette() -> list[int]:
    """From blue over white to orange, in few enough shades for small files."""
    white = np.full(3, 255.0)
    shades = []
    for i in range(2 * _SHADES + 1):
        share = i / _SHADES - 1
        end = np.array(_BELOW if share < 0 else _ABOVE, dtype=np.float64)
        shades += [int(value) for value in np.round(white + abs(share) * (end - white))]
    return shades


def _picture(record: Floats, *, flip: bool) -> Floats:
    """(C, H, W) to (H, W) or (H, W, 3); low frequencies at the bottom where ``flip``."""
    picture = record.reshape(-1, *record.shape[-2:])
    picture = picture[:3].transpose(1, 2, 0) if len(picture) >= 3 else picture[0]
    return picture[::-1] if flip else picture


def _png(picture: Floats) -> str:
    from PIL import Image

    pixels = np.round(np.clip(np.nan_to_num(picture), 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    if max(image.size) > MAX_SIDE:
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    return _saved(image)


def _saved(image: Image) -> str:
    stream = io.BytesIO()
    image.save(stream, format="PNG", optimize=True)
    return _uri("image/png", stream.getvalue())


def _lines(channels: Floats) -> str:
    """Channels over time as lines that differ in dash and shade."""
    width, height = 120, 60
    paths = []
    for i, channel in enumerate(channels[:MAX_CHANNELS]):
        step = max(1, math.ceil(len(channel) / MAX_STEPS))
        values = np.clip(np.nan_to_num(channel[::step]), 0, 1)
        xs = np.linspace(1, width - 1, len(values))
        ys = height - 2 - values * (height - 4)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
        shade = 25 + 95 * i // max(1, min(len(channels), MAX_CHANNELS))
        paths.append(
            f'<polyline points="{points}" fill="none" stroke="rgb({shade},{shade},{shade})" '
            f'stroke-width="1.3" stroke-dasharray="{_DASHES[i]}"/>'
        )
    return _svg(width, height, "".join(paths))


def _bars(values: Floats) -> str:
    """The encoded entries of a table row, one bar each."""
    width, height = 120, 60
    shown = np.clip(np.nan_to_num(values[:MAX_STEPS]), 0, 1)
    step = width / max(1, len(shown))
    bars = "".join(
        f'<rect x="{i * step:.2f}" y="{height - 1 - v * (height - 4):.1f}" width="{max(step * 0.8, 0.4):.2f}" '
        f'height="{max(v * (height - 4), 0.4):.1f}"/>'
        for i, v in enumerate(shown)
    )
    return _svg(width, height, f'<g fill="#33405a">{bars}</g>')


def _svg(width: int, height: int, body: str) -> str:
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><rect width="{width}" height="{height}" fill="#fff"/>{body}</svg>'
    )
    return _uri("image/svg+xml", text.encode())


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
