"""Looking at a network leaves every part of it in the mode that it was in."""

from __future__ import annotations

import torch
from torch import nn

from sfumato.nets.encoders import output_shape
from sfumato.nets.training_loop import forward_in_batches


def test_a_wrapper_in_training_mode_leaves_fitted_parts_in_evaluation_mode() -> None:
    fitted = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval()
    wrapper = nn.Sequential(fitted)  # in training mode, as every new module is
    output_shape(wrapper, (3,))
    forward_in_batches(wrapper, torch.zeros(4, 3))
    assert wrapper.training
    assert not any(module.training for module in fitted.modules())
