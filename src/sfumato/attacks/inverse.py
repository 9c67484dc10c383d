"""The inverse network: a decoder trained on the protected pipeline with the attacker's own records."""

from __future__ import annotations

import copy
import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.attacks.base import ReconstructionAttack
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge, Query
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.encoders import output_shape
from sfumato.nets.loop import as_tensor, channels_last, forward_in_batches, minibatches
from sfumato.nets.mirror import NotAChain, mirror
from sfumato.nets.residual import residual_decoder


class _Constant(nn.Module):
    """The same record for every payload."""

    def __init__(self, record: Tensor) -> None:
        super().__init__()
        self.record = record

    def forward(self, payload: Tensor) -> Tensor:  # (B, …) → (B, *record)
        return self.record.expand(len(payload), *self.record.shape)


class InverseNetwork(ReconstructionAttack):
    """Minimises |x − D(payload(x))|² over the auxiliary records.

    ``mirror`` is the paper's attacker, the encoder upside down; ``residual`` a stronger one for any payload. A
    randomised pipeline is queried anew every epoch. The epoch that is best on a held-out tenth of the auxiliary
    records is kept, or the mean record if that is better still: a failed training must not flatter the defence. An
    attacker with few records passes over them more often, until it has taken ``fewest_steps``.
    """

    def __init__(
        self,
        *,
        decoder: Literal["mirror", "residual"] = "residual",
        epochs: int = 6,
        batch: int = 128,
        rate: float = 4e-3,
        width: int = 32,
        fewest_steps: int = 500,
    ) -> None:
        self.decoder = decoder
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.width = width
        self.fewest_steps = fewest_steps
        self._trained: tuple[Query, nn.Module] | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"inverse-{self.decoder}"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        reason = super().obstacle(knowledge)
        if reason is None and self.decoder == "mirror":
            if knowledge.encoder is None:
                return "needs the public encoder to mirror"
            try:
                mirror(knowledge.encoder, knowledge.auxiliary.schema.shape)
            except NotAChain as error:
                return f"cannot mirror the encoder: {error}"
        return reason

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return forward_in_batches(self.train(knowledge), as_tensor(release.payload)).numpy()

    def train(self, knowledge: Knowledge) -> nn.Module:
        """The decoder for this pipeline; trained once, also for the attacks that build on it."""
        assert knowledge.query is not None  # obstacle() has seen to it
        if self._trained is None or self._trained[0] is not knowledge.query:
            self._trained = (knowledge.query, self._train(knowledge))
        return self._trained[1]

    def _train(self, knowledge: Knowledge) -> nn.Module:
        assert knowledge.query is not None  # obstacle() has seen to it
        seed = derive_seed(knowledge.seed, self.name)
        auxiliary = knowledge.auxiliary
        order = torch.randperm(len(auxiliary), generator=torch.Generator().manual_seed(seed)).numpy()
        held = max(1, len(auxiliary) // 10)
        val, fit = auxiliary.take(order[:held]), auxiliary.take(order[held:])
        payload = as_tensor(knowledge.query(fit))
        payload_val = as_tensor(knowledge.query(val))
        target, target_val = as_tensor(fit.x), as_tensor(val.x)

        torch.manual_seed(seed)
        network = channels_last(self._network(knowledge, tuple(payload.shape[1:])))
        in_epoch = len(fit) // self.batch + 1
        epochs = max(self.epochs, math.ceil(self.fewest_steps / in_epoch))
        optimiser = torch.optim.Adam(network.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=self.rate, total_steps=epochs * in_epoch)
        best = F.mse_loss(forward_in_batches(network, payload_val), target_val).item()
        kept = copy.deepcopy(network.state_dict())
        if best == 0.0:
            return network  # the payload is the record: there is nothing to learn
        for epoch in range(epochs):
            if epoch > 0 and knowledge.randomised:
                payload = as_tensor(knowledge.query(fit))
            network.train()
            for rows in minibatches(len(fit), self.batch, derive_seed(seed, epoch)):
                optimiser.zero_grad()
                F.mse_loss(network(payload[rows]), target[rows]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
            error = F.mse_loss(forward_in_batches(network, payload_val), target_val).item()
            if error < best:
                best, kept = error, copy.deepcopy(network.state_dict())
        network.load_state_dict(kept)
        mean = target.mean(0)
        if F.mse_loss(mean.expand_as(target_val), target_val).item() < best:
            return _Constant(mean)  # nobody is worse off for having seen the release
        return network

    def _network(self, knowledge: Knowledge, payload: tuple[int, ...]) -> nn.Module:
        record = knowledge.auxiliary.schema.shape
        if self.decoder == "residual":
            return residual_decoder(payload, record, self.width)
        assert knowledge.encoder is not None  # obstacle() has seen to it
        features = output_shape(knowledge.encoder, record)
        upside_down = mirror(knowledge.encoder, record)
        if payload == features:
            return upside_down
        return nn.Sequential(  # what left is not the feature itself: learn the way back to it first
            nn.Flatten(),
            nn.Linear(torch.Size(payload).numel(), torch.Size(features).numel()),
            nn.Unflatten(1, features),
            upside_down,
        )
