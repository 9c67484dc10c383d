"""The frame of every training: epoch by epoch, saved after each, taken up where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from sfumato.core.errors import DataError
from sfumato.core.run_folder import RunFolder
from sfumato.nets.training_loop import load_optimiser_state, optimiser_state

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Progress


class Trainable(Protocol):
    """What has weights to train."""

    def _modules(self) -> dict[str, nn.Module]: ...

    def state(self) -> dict[str, Tensor]: ...

    def load_state(self, tensors: Mapping[str, Tensor]) -> None: ...


def train(
    trainee: Trainable,
    epochs: int,
    epoch: Callable[[int], dict[str, float]],
    optimisers: Mapping[str, torch.optim.Adam],
    run: RunFolder | None,
    progress: Progress,
) -> None:
    """Call ``epoch`` with 0 … ``epochs`` − 1 (it trains and gives its losses), leaving out what ``run`` has done."""
    saved = None if run is None else run.load_progress()
    done = 0
    if saved is not None:
        done, tensors = saved
        trainee.load_state(tensors)
        load_optimiser_state(optimisers, tensors)
    for module in trainee._modules().values():
        module.train()
    for number in range(done, epochs):
        losses = epoch(number)
        if run is not None:
            run.save_progress(number + 1, trainee.state() | optimiser_state(optimisers), losses)
        progress(number + 1, epochs, losses)


def state_of(modules: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Every weight and buffer, by module and name."""
    return {
        f"{module}.{name}": tensor
        for module, network in modules.items()
        for name, tensor in network.state_dict().items()
    }


def load_state_of(modules: Mapping[str, nn.Module], tensors: Mapping[str, Tensor], owner: object) -> None:
    """Put stored weights into built networks; ``owner`` is named if they do not fit."""
    for module, network in modules.items():
        own = {k.removeprefix(f"{module}."): v for k, v in tensors.items() if k.startswith(f"{module}.")}
        try:
            network.load_state_dict(own)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"the stored weights do not fit {owner} ({reason}): restore them or fit again.") from None
