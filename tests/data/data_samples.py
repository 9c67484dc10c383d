"""Makers of small files and cells."""

from __future__ import annotations

import io
import math
import wave
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def wav(samples: np.ndarray, rate: int = 8000, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(width)
        writer.setframerate(rate)
        scale = {1: 127, 2: 32767, 4: 2147483647}[width]
        values = np.round(samples * scale)
        writer.writeframes(
            (values + 128).astype("u1").tobytes() if width == 1 else values.astype(f"<i{width}").tobytes()
        )
    return out.getvalue()


def tone(hertz: float, seconds: float = 1.0, rate: int = 8000) -> np.ndarray:
    return np.sin(2 * math.pi * hertz * np.arange(round(seconds * rate)) / rate)


def image_cells(images: list[bytes | None]) -> pa.Array:
    return pa.array(
        [{"bytes": data, "path": None} for data in images],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def table_columns(rows: int = 60, seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {
        "age": pa.array(rng.integers(18, 90, rows)),
        "height": pa.array(rng.normal(170, 10, rows)),
        "job": pa.array(rng.choice(["cook", "clerk", "?"], rows).tolist()),
        "sex": pa.array(np.array(["f", "m"])[np.arange(rows) % 2].tolist()),
        "income": pa.array(np.array(["low", "high", "high"])[np.arange(rows) % 3].tolist()),
    }
