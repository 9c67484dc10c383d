"""A record is found in a payload, whatever the shape and the place."""

from __future__ import annotations

import numpy as np

from sfumato.core.release import unchanged_row

X = np.random.default_rng(0).random((6, 1, 4, 4)).astype(np.float32)
OTHER = np.random.default_rng(1).random((6, 40)).astype(np.float32)


def test_record_in_another_shape_or_row_is_found() -> None:
    assert unchanged_row(X.reshape(6, 16), X) == 0
    mixed = OTHER[:, :16].copy()
    mixed[4] = X[1].reshape(-1)
    assert unchanged_row(mixed, X) == 4


def test_record_within_a_longer_row_is_found() -> None:
    longer = OTHER.copy()
    assert unchanged_row(longer, X) is None
    longer[2, 7:23] = X[2].reshape(-1)
    assert unchanged_row(longer, X) == 2


def test_blank_record_is_nobodys() -> None:
    blank = np.zeros_like(X)
    assert unchanged_row(np.zeros((6, 40), np.float32), blank) is None
    assert unchanged_row(blank.reshape(6, 16), blank) is None
    assert unchanged_row(OTHER[:, :3], X) is None
