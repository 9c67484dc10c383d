"""Secret rotations: Haar measure on O(d), or on SO(d) as published."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
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


def hide(plain: FloatArray, randomness: Randomness, *, reflections: bool) -> tuple[FloatArray, FloatArray]:
    """Messages key · plain for tuples (N, d, …), and their keys (N, d, d).

    The rows are shuffled before they are turned and the columns of the key set back: sums of floating-point numbers
    depend on their order, and what is promised about the rows shall hold to the last bit.
    """
    count, d = plain.shape[:2]
    shuffled = np.argsort(randomness.uniform((count, d)), axis=1)
    turns = draw_keys(randomness, count, d, reflections=reflections)
    message = turn(np.take_along_axis(plain, _like(shuffled, plain), axis=1), turns)
    keys = np.empty_like(turns)
    np.put_along_axis(keys, shuffled[:, None, :], turns, axis=2)
    return message, keys


def _like(rows: npt.NDArray[np.intp], values: FloatArray) -> npt.NDArray[np.intp]:
    return rows.reshape(*rows.shape, *(1 for _ in values.shape[2:]))


def turn(messages: FloatArray, keys: FloatArray, *, back: bool = False) -> FloatArray:
    """key · message on axis 1 of (N, d, …); ``back`` undoes it (keyᵀ)."""
    flat = messages.reshape(*messages.shape[:2], -1)
    turned = np.matmul(keys.transpose(0, 2, 1) if back else keys, flat)
    return np.asarray(turned.reshape(messages.shape), dtype=np.float32)
