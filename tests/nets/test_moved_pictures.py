"""Pictures that are moved in training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema
from sfumato.mechanisms import mechanism_class
from sfumato.nets.moved_pictures import moved


def test_every_picture_is_a_shift_or_a_mirrored_shift_of_itself() -> None:
    torch.manual_seed(0)
    picture = torch.arange(1, 257, dtype=torch.float32).reshape(1, 1, 16, 16)
    wide = torch.nn.functional.pad(picture, (2, 2, 2, 2))[0, 0]
    places = [(top, left) for top in range(5) for left in range(5)]
    windows = {tuple(wide[top : top + 16, left : left + 16].flatten().tolist()) for top, left in places}
    mirrored = 0
    seen = set()
    for one in moved(picture.repeat(200, 1, 1, 1)):
        plain, turned = (tuple(each.flatten().tolist()) for each in (one[0], one[0].flip(1)))
        assert (plain in windows) != (turned in windows)
        mirrored += turned in windows
        seen.add(plain)
    assert 70 < mirrored < 130
    assert len(seen) > 40, "50 are possible"


def test_channels_move_together() -> None:
    one = torch.rand(1, 1, 8, 8).repeat(20, 3, 1, 1)
    out = moved(one)
    assert torch.equal(out[:, 0], out[:, 1]) and torch.equal(out[:, 0], out[:, 2])


def test_training_sees_moved_pictures_and_a_release_does_not(digits: Splits) -> None:
    few = digits.owner.take(slice(None, None, 8))
    plain, shifted = (mechanism_class("split")(augment=augment, epochs=1).fit(few) for augment in (False, True))
    again = mechanism_class("split")(augment=True, epochs=1).fit(few)
    state, other = shifted.state(), plain.state()
    assert any(not torch.equal(state[key], other[key]) for key in state)
    assert all(torch.equal(state[key], value) for key, value in again.state().items()), "repeatable"
    once, twice = (shifted.release(few, seed=seed).payload for seed in (1, 2))
    assert (once == twice).all()


def test_only_pictures_are_moved() -> None:
    schema = Schema("signal", (3, 32), utility={"u": ("a", "b")})
    codes = np.arange(40) % 2
    x = np.random.default_rng(0).random((40, 3, 32), dtype=np.float32)
    signals = Dataset(x, schema, name="signals", utility={"u": codes}, private={})
    with pytest.raises(UsageError, match="augment moves pictures, and these records are a signal"):
        mechanism_class("phase")(augment=True).fit(signals)
