"""Recordings as log-mel images in [0, 1].

The decibel range is fixed, not fitted, so a recording is encoded the same way in every data set and its encoding
reveals nothing about other recordings.
"""

from __future__ import annotations

import io
import wave
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.schema import AudioFrame
from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_SAMPLE_RATE

LOW_DB, HIGH_DB = -80.0, 0.0
"""The decibel range; 0 dB is a full-scale sine."""

WINDOW_SECONDS = 0.064
_WIDTHS = {1: ("u1", 128.0), 2: ("<i2", 32768.0), 4: ("<i4", 2147483648.0)}

Samples = npt.NDArray[np.float64]


def read_wav(data: bytes, seconds: float, where: Place) -> tuple[Samples, int]:
    """Return the first ``seconds`` of a PCM recording as mono samples in [−1, 1], and its sample rate."""
    try:
        with wave.open(io.BytesIO(data)) as reader:
            rate, channels, width = reader.getframerate(), reader.getnchannels(), reader.getsampwidth()
            if width not in _WIDTHS or not 0 < rate <= MAX_SAMPLE_RATE:
                raise wave.Error(f"{8 * width}-bit at {rate} Hz")
            raw = reader.readframes(int(np.ceil(seconds * rate)))
    except (wave.Error, EOFError, RuntimeError) as error:
        what = f"the recording cannot be read ({error})"
        raise where.fault(what, "store it as PCM .wav with 8, 16 or 32 bits") from error
    kind, scale = _WIDTHS[width]
    raw = raw[: len(raw) - len(raw) % (width * channels)]
    samples = np.frombuffer(raw, kind).astype(np.float64)
    if width == 1:
        samples -= 128.0
    if not len(samples):
        raise where.fault("the recording is empty", "remove the row")
    return samples.reshape(-1, channels).mean(axis=1) / scale, rate


def log_mel(samples: Samples, rate: int, frame: AudioFrame) -> FloatArray:
    """Return the first ``frame.seconds`` as a ``(1, mels, frames)`` image; short recordings are padded with silence."""
    if rate != frame.rate:
        count = max(1, round(len(samples) * frame.rate / rate))
        samples = np.interp(np.arange(count) * (rate / frame.rate), np.arange(len(samples)), samples)
    window, filters = _analysis(frame)
    span = round(frame.rate * frame.seconds)
    padded = np.zeros(span + len(window))
    kept = min(span, len(samples))
    padded[len(window) // 2 : len(window) // 2 + kept] = samples[:kept]
    starts = np.linspace(0, span, frame.frames, endpoint=False).astype(int)
    pieces = padded[starts[:, None] + np.arange(len(window))] * window
    power = np.abs(np.fft.rfft(pieces, axis=1)) ** 2 / (window.sum() / 2) ** 2
    decibel = 10 * np.log10(np.maximum(power @ filters.T, 1e-12)).T
    picture: FloatArray = np.clip((decibel - LOW_DB) / (HIGH_DB - LOW_DB), 0, 1).astype(np.float32)
    return picture[None]


@lru_cache(maxsize=8)
def _analysis(frame: AudioFrame) -> tuple[Samples, Samples]:
    """Return the analysis window and the triangular mel filters."""
    size = 2 ** int(np.ceil(np.log2(WINDOW_SECONDS * frame.rate)))
    window = np.hanning(size + 1)[:-1]
    frequencies = np.fft.rfftfreq(size, 1 / frame.rate)
    top = 2595 * np.log10(1 + frame.rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, frame.mels + 2) / 2595) - 1)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters = np.clip(np.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle)), 0, None)
    return window, filters
