"""What ``ran`` and its baselines share: an encoder on the device, read by an MLP classifier in the cloud."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.core import compute
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import UsageError, unknown
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.schema import Schema
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.parameters import anything, learning_rate
from sfumato.mechanisms.training import TrainedByGame
from sfumato.mechanisms.utility_task import UtilityTask
from sfumato.nets.encoders import ENCODERS, classifier, default_encoder, output_shape
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches, take_step

Architecture = str | nn.Module | Callable[[tuple[int, ...]], nn.Module]
"""A provided name, the user's own module, or a function of the record shape that makes one."""


class EncoderMechanism(TrainedByGame):
    """Builds E and C for the schema and trains them; a subclass says what leaves and what the game is."""

    architecture: Architecture = anything(
        default="auto", help=f"encoder: auto, {', '.join(ENCODERS)}, or an nn.Module of your own (Python only)"
    )

    def _check_params(self) -> None:
        super()._check_params()
        if isinstance(self.architecture, str):
            if self.architecture not in ("auto", *ENCODERS):
                raise unknown("architecture", self.architecture, ("auto", *ENCODERS))
        elif not callable(self.architecture):
            raise UsageError(f"{self.name}: architecture must be a text or a network, got {self.architecture!r}.")

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, self.name, "weights"))
        try:
            self.encoder_ = channels_last(self._make_encoder(schema))
            features = output_shape(self.encoder_, schema.shape)
        except (RuntimeError, ValueError) as error:
            raise UsageError(
                f"{self.name}: the encoder cannot take records of shape {schema.shape} ({error})."
            ) from None
        self.classifier_ = classifier(features, self._task(schema).width)

    def _make_encoder(self, schema: Schema) -> nn.Module:
        if isinstance(self.architecture, nn.Module):
            return compute.bring(copy.deepcopy(self.architecture))
        if not isinstance(self.architecture, str):
            return compute.bring(self.architecture(schema.shape))
        if self.architecture == "custom":
            raise UsageError(f"this run's encoder is your own: {type(self).__name__}.load(folder, architecture=…).")
        name = self.architecture
        return ENCODERS[default_encoder(schema.kind, schema.shape) if name == "auto" else name](schema.shape)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return forward_in_batches(self.encoder_, as_tensor(x)).numpy()

    def predict(self, payload: FloatArray) -> FloatArray:
        return forward_in_batches(self.classifier_, as_tensor(payload)).numpy()

    def public_encoder(self) -> nn.Module | None:
        return self.encoder_

    def halves(self) -> Halves:
        """E on the device, C in the cloud."""
        return plain_halves(self.encoder_, self.classifier_, self.schema_, self._task(self.schema_).labels)

    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_, "classifier": self.classifier_}

    def stored_params(self) -> dict[str, Any]:
        own = not isinstance(self.architecture, str)
        return {**super().stored_params(), **({"architecture": "custom"} if own else {})}


class Discriminative:
    """The ordinary way: minimise the cross entropy of C(E(x)), Eq. 2, summed over labels."""

    def __init__(self, encoder: nn.Module, head: nn.Module, task: UtilityTask, rate: float) -> None:
        self.network, self.task = nn.Sequential(encoder, head), task
        self.optimisers = {"d": torch.optim.Adam(self.network.parameters(), rate)}

    def play(self, x: Tensor, y: Tensor) -> dict[str, float]:
        O_d = self.task.loss(self.network(x), y)  # Eq. 2
        take_step(self.optimisers["d"], O_d)
        return {"O_d": O_d.item()}


class PlainNetwork(EncoderMechanism):
    """Encoder and classifier trained for the task alone: what every baseline starts from."""

    rate: float = learning_rate(default=1e-3)

    def _game(self) -> Discriminative:
        return Discriminative(self.encoder_, self.classifier_, self._task(self.schema_), self.rate)
