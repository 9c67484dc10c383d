"""An ordinary network cut in three: what the device computes first, what the cloud does, what the device reads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sfumato.core.errors import UsageError, unknown
from sfumato.core.randomness import Randomness
from sfumato.core.schema import Schema
from sfumato.mechanisms.parameters import anything, flag, learning_rate, text
from sfumato.mechanisms.phase import NETWORKS, SplitError, split
from sfumato.mechanisms.training import TrainedByGame
from sfumato.nets.encoders import output_shape
from sfumato.nets.moved_pictures import moved
from sfumato.nets.training_loop import channels_last

Model = str | nn.Module | Callable[[tuple[int, ...], int], nn.Module]
"""A provided name, the user's own module, or a function of record shape and number of class scores that makes one."""

CUSTOM = "custom"
_SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Thirds:
    """``head`` → ``middle`` → ``tail`` is the original network; ``features`` is one record's shape after the head."""

    head: nn.Module
    middle: nn.Module
    tail: nn.Module
    features: tuple[int, ...]


class CutNetwork(TrainedByGame):
    """An ordinary network, provided or the user's own, of which the device keeps the first part."""

    model: Model = anything(
        default="auto",
        kw_only=False,
        help=f"network: auto, {', '.join(NETWORKS)}, or an nn.Module of your own (Python only)",
    )
    encrypt_to: str = text(default="auto", help="name of the last module on the device; auto: the paper's cut")
    decrypt_from: str = text(default="auto", help="name of the first module back on the device; auto: the paper's cut")
    rate: float = learning_rate(default=3e-3)
    augment: bool = flag(default=False, help="shift and mirror pictures in training, anew in every pass")

    def _check_params(self) -> None:
        super()._check_params()
        if (self.encrypt_to == "auto") != (self.decrypt_from == "auto"):
            raise UsageError(f"{self.name}: give encrypt_to and decrypt_from together.")
        if isinstance(self.model, str):
            if self.model not in ("auto", CUSTOM, *NETWORKS):
                raise unknown(f"network of {self.name}", self.model, ("auto", *NETWORKS))
        elif self.encrypt_to == "auto":
            raise UsageError(
                f"{self.name}: name the modules of your network to split at with encrypt_to and decrypt_from."
            )

    def _thirds(self, schema: Schema) -> Thirds:
        if self.augment and schema.kind != "image":
            what = f"augment moves pictures, and these records are a {schema.kind}"
            raise UsageError(f"{self.name}: {what}: leave it out.")
        return cut(self.name, self.model, self.encrypt_to, self.decrypt_from, schema, self._task(schema).width)

    def _protect(self, x: Tensor, randomness: Randomness) -> Tensor:
        return moved(x) if self.augment else x

    def stored_params(self) -> dict[str, Any]:
        own = not isinstance(self.model, str)
        return {**super().stored_params(), **({"model": CUSTOM} if own else {})}


def cut(mechanism: str, model: Model, encrypt_to: str, decrypt_from: str, schema: Schema, classes: int) -> Thirds:
    """The network with so many class scores, cut at the named modules (the paper's for provided ones)."""
    try:
        if isinstance(model, nn.Module):
            network = copy.deepcopy(model)
        elif not isinstance(model, str):
            network = model(schema.shape, classes)
        elif model == CUSTOM:
            raise UsageError("this run's network is your own: Phase.load(folder, model=…).")
        else:
            blueprint = NETWORKS[default_network(schema) if model == "auto" else model]
            network = blueprint.build(schema.shape, classes)
            if encrypt_to == "auto":
                encrypt_to, decrypt_from = blueprint.encrypt_to, blueprint.decrypt_from
        parts = split(network, encrypt_to, decrypt_from, schema.shape)
        features = output_shape(parts.head, schema.shape)
        scores = output_shape(nn.Sequential(parts.head, parts.middle, parts.tail), schema.shape)
    except SplitError as error:
        raise UsageError(f"{mechanism}: {error}") from None
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"{mechanism}: the network cannot take records of shape {schema.shape} ({error}).") from None
    if scores != (classes,):
        raise UsageError(
            f"{mechanism}: the network gives {scores} for a record, the utility labels have {classes} classes."
        )
    return Thirds(parts.head, parts.middle, parts.tail, features)


def default_network(schema: Schema) -> str:
    """LeNet for pictures, log-mel pictures and signals, an MLP for tables and very small records."""
    small = schema.kind == "table" or min(schema.shape[1:]) < _SMALLEST_SIDE
    return "mlp" if small else "lenet"


def generator(features: tuple[int, ...], channels: int) -> nn.Module:
    """The added layer of the adversarial module (§4.1): a convolution of 3×3×K, or a linear layer for vectors."""
    if len(features) == 1:
        return nn.Linear(features[0], channels)
    conv = nn.Conv1d if len(features) == 2 else nn.Conv2d
    return channels_last(conv(features[0], channels, 3, padding=1))


def widen(features: tuple[int, ...], channels: int) -> nn.Module:
    """Back from K channels to as many as the network has at the cut, without a bias: the cloud's first layer."""
    if len(features) == 1:
        return nn.Linear(channels, features[0], bias=False)
    conv = nn.Conv1d if len(features) == 2 else nn.Conv2d
    return conv(channels, features[0], 1, bias=False)
