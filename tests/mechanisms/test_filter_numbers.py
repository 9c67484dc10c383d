"""The game of ``filter`` on labels that are numbers: by squared errors, whose units are those of the classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from sfumato.core.errors import DataError
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.filter.label_choices import refuse_impossible
from sfumato.mechanisms.filter.min_max_game import ROUNDS, Choice, Labels, MinMaxGame, _loss
from sfumato.mechanisms.label_targets import guess_loss, label_loss, targets, told
from sfumato.testing import numbered, parity_digits


def test_loss_of_a_number_is_its_squared_error_and_a_guess_costs_one() -> None:
    wanted = torch.tensor([-1.0, 1.0])
    assert label_loss(torch.zeros(2, 1), wanted).item() == 1.0 == guess_loss(1)
    assert label_loss(torch.tensor([[-1.0], [0.0]]), wanted).item() == 0.5
    assert guess_loss(4) == pytest.approx(math.log(4))
    assert label_loss(torch.zeros(2, 4), torch.tensor([0, 3])).item() == pytest.approx(math.log(4))


def test_a_number_is_told_as_it_is_and_a_class_one_hot() -> None:
    assert told(torch.tensor([0.5, -2.0]), 1).tolist() == [[0.5], [-2.0]]
    assert told(torch.tensor([1.0]), 3).tolist() == [[0.0, 1.0, 0.0]]


def test_classes_and_numbers_stand_side_by_side() -> None:
    data = numbered(parity_digits().victim).standardised()
    mixed = targets({"ink": data.utility["ink"], "height": data.private["height"]}, data.schema)
    assert mixed.shape == (2, len(data)) and mixed.mean(1).abs().max() < 1e-4


def test_misleading_the_adversary_beyond_a_guess_gains_nothing() -> None:
    scores, codes = torch.full((1, 3, 1), 5.0), torch.zeros(1, 1, 3)
    assert _loss(scores, codes, (1,), 1.0).item() == 1.0
    assert _loss(scores, codes, (1,)).item() == 25.0


@pytest.mark.parametrize("name", ["filter-linear", "filter"])
def test_a_filter_hides_a_number_and_serves_another(name: str) -> None:
    torch.manual_seed(0)
    mean = torch.randn(1500, 4)
    age, pay = mean[:, 0], mean[:, 1]
    everybody = torch.arange(len(mean))
    choice = Choice(Labels(age[None], (1,)), Labels(pay[None], (1,)), everybody, everybody[:0], 20.0)
    mechanism = mechanism_class(name)(steps=150, batch=128, adversary_steps=2, budget=20.0)
    variance = torch.full_like(mean, 0.05)
    game = MinMaxGame(mean, variance, [choice], mechanism.rules(4))  # type: ignore[attr-defined]
    for number in range(ROUNDS):
        game.round(number)
    mechanism.filter_ = game.f  # type: ignore[attr-defined]
    normal = torch.randn(len(mean), 8 + game.f.chance)
    released = torch.as_tensor(mechanism.apply(mean, variance, age[:, None], normal))  # type: ignore[attr-defined]
    assert _linear_r2(released, age) < 0.5 * _linear_r2(mean + variance.sqrt() * normal[:, :4], age)
    assert _linear_r2(released, pay) > 0.5


def _linear_r2(z: Tensor, wanted: Tensor) -> float:
    design = torch.cat([z, torch.ones(len(z), 1)], dim=1)
    weights = torch.linalg.lstsq(design[::2], wanted[::2, None]).solution
    left = (wanted[1::2] - (design[1::2] @ weights)[:, 0]).square().mean()
    return float(1 - left / wanted[1::2].var())


def test_a_private_number_that_is_the_served_one_is_refused() -> None:
    codes = np.arange(200)
    with pytest.raises(DataError, match="the private column 'age' is a function of the utility column 'pay'"):
        refuse_impossible({"age": codes}, {"pay": codes}, "people", {"age": 0, "pay": 0})
    refuse_impossible({"age": codes[::-1].copy()}, {"pay": codes}, "people", {"age": 0, "pay": 0})
