"""Secret rotations: Haar measure on O(d), or on SO(d) as published. Keys can be drawn where there is no torch."""

from __future__ import annotations

import numpy as np

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.randomness import Randomness


def draw_keys(randomness: Randomness, count: int, d: int, *, reflections: bool) -> FloatArray:
    """Independent keys (count, d, d) from the Haar measure: of O(d), or of SO(d) without ``reflections``.

    QR of a Gaussian matrix with the signs of R's diagonal moved into Q is Haar on O(d) (Mezzadri 2007); turning one
    column of every reflection gives Haar on SO(d). At d = 2 without reflections the key is the paper's angle θ.
    """
    gaussian = randomness.normal((count, d, d))
    if d == 2:  # the same by hand: Q's first column is the normalised first column, its second is at a right angle
        first = gaussian[:, :, 0] / np.linalg.norm(gaussian[:, :, 0], axis=1, keepdims=True)
        second = np.stack([-first[:, 1], first[:, 0]], axis=1)
        if reflections:
            side = np.einsum("nd,nd->n", second, gaussian[:, :, 1])
            second *= np.where(side < 0, -1.0, 1.0)[:, None]
        return np.stack([first, second], axis=2).astype(np.float32)
    q, r = np.linalg.qr(gaussian)
    keys = q * np.where(np.diagonal(r, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None, :]
    if not reflections:
        keys[:, :, 0] *= np.linalg.det(keys)[:, None]
    return np.asarray(keys, dtype=np.float32)


def hide(
    features: FloatArray, rows: IntArray, randomness: Randomness, *, reflections: bool
) -> tuple[FloatArray, FloatArray]:
    """Messages key · features[rows] (N, d, …) and their keys (N, d, d), for features (M, …) and rows (N, d).

    With ``reflections`` the rows are shuffled before they are turned and the columns of the key set back: sums of
    floating-point numbers depend on their order, and what is promised about the rows shall hold to the last bit.
    """
    count, d = rows.shape
    turns = draw_keys(randomness, count, d, reflections=reflections)
    if not reflections:
        return _turned(features, rows, turns), turns
    shuffled = np.argsort(randomness.uniform((count, d)), axis=1)
    message = _turned(features, np.take_along_axis(rows, shuffled, axis=1), turns)
    keys = np.empty_like(turns)
    np.put_along_axis(keys, shuffled[:, None, :], turns, axis=2)
    return message, keys


def turn(messages: FloatArray, keys: FloatArray, *, back: bool = False) -> FloatArray:
    """key · message on axis 1 of (N, d, …); ``back`` undoes it (keyᵀ)."""
    import torch

    from sfumato.nets.training_loop import as_tensor

    flat = as_tensor(np.ascontiguousarray(messages)).flatten(2) if messages.ndim > 2 else as_tensor(messages)[..., None]
    turns = as_tensor(np.ascontiguousarray(keys.transpose(0, 2, 1) if back else keys))
    return torch.bmm(turns, flat).reshape(messages.shape).numpy()


_CHUNK = 1 << 18
"""Numbers turned at once: what was gathered is still in the processor's cache when it is turned."""


def _turned(features: FloatArray, rows: IntArray, turns: FloatArray) -> FloatArray:
    """turns · features[rows], without a copy of all the gathered rows."""
    import torch

    from sfumato.nets.training_loop import as_tensor

    source = as_tensor(np.ascontiguousarray(features)).flatten(1)  # (M, F)
    gathered, keys = as_tensor(rows), as_tensor(turns)
    count, d = rows.shape
    out = torch.empty(count, d, source.shape[1])
    step = max(1, _CHUNK // (d * source.shape[1]))
    for start in range(0, count, step):
        chosen = source[gathered[start : start + step]]  # (n, d, F)
        torch.bmm(keys[start : start + step], chosen, out=out[start : start + step])
    return out.reshape(count, d, *features.shape[1:]).numpy()
