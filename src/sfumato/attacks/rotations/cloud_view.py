"""Labels from the cloud's own view: the message, and what the public network makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.attacks.attribute.principal_components import Narrowed
from sfumato.attacks.attribute.probes import class_scores, fit_probe
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.rotations.message_algebra import Frame, device_missing, most_records
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor

CloudKind = Literal["linear", "mlp", "trees"]
CLOUD_KINDS: tuple[CloudKind, ...] = ("linear", "mlp", "trees")

_COMPONENTS: dict[CloudKind, int] = {"linear": 256, "mlp": 256, "trees": 32}
"""Principal components of the message, and as many of the result."""
_LEARNT_FROM = 1000


@dataclass(frozen=True)
class _View:
    """How a message is looked at."""

    frame: Frame
    narrow: tuple[Narrowed, ...]

    def see(self, payload: FloatArray, cloud: nn.Module | None) -> tuple[FloatArray, ...]:
        """Components of each message and, if there is a cloud, of each result."""
        parts = [
            [narrow.transform(block) for narrow, block in zip(self.narrow, blocks, strict=True)]
            for blocks in _invariants(self.frame, cloud, payload)
        ]
        return tuple(np.concatenate(block) for block in zip(*parts, strict=True))


@dataclass(frozen=True)
class _Own:
    """The attacker's own records, seen that way."""

    view: _View
    data: Dataset
    seen: tuple[FloatArray, ...]


class CloudView:
    """Messages by what keys leave as it is: in their own frame, through the cloud's network, in few components."""

    def __init__(self, *, records: int = 10_000) -> None:
        self.records = records
        self._own: Memo[_Own] = Memo()
        self._seen: Memo[tuple[FloatArray, ...]] = Memo()

    def __repr__(self) -> str:
        return f"CloudView(records={self.records})"

    def own(self, knowledge: Knowledge) -> _Own:
        """The view and the attacker's own records in it."""
        return self._own.get((knowledge.query, knowledge.auxiliary), lambda: self._learn(knowledge))

    def released(self, release: Release, knowledge: Knowledge) -> tuple[FloatArray, ...]:
        """The victims' messages in it."""
        view = self.own(knowledge).view
        return self._seen.get((release.payload, view), lambda: view.see(release.payload, knowledge.cloud))

    def _learn(self, knowledge: Knowledge) -> _Own:
        assert knowledge.query is not None  # obstacle() has seen to it
        seed = derive_seed(knowledge.seed, "cloud-view") % 2**32
        order = np.random.default_rng(seed).permutation(len(knowledge.auxiliary))
        data = knowledge.auxiliary.take(order[: most_records(knowledge, self.records)])
        payload = knowledge.query(data)
        first = payload[:_LEARNT_FROM]
        frame = Frame(as_tensor(first))
        blocks = [np.concatenate(block) for block in zip(*_invariants(frame, knowledge.cloud, first), strict=True)]
        most = max(_COMPONENTS.values())
        view = _View(frame, tuple(Narrowed(components=min(most, b.shape[1]), seed=seed).fit(b) for b in blocks))
        return _Own(view, data, view.see(payload, knowledge.cloud))


def _invariants(frame: Frame, cloud: nn.Module | None, payload: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Batches of flat messages in their frames and, if there is a cloud, of what it makes of these.

    The cloud turns with its input, so its result for a message in its frame is the result in that frame.
    """
    if cloud is not None:
        cloud.eval()
    for start in range(0, len(payload), 256):
        with torch.inference_mode():
            turned = frame.turned(as_tensor(payload[start : start + 256]))
            results = [] if cloud is None else [cloud(turned)]
        yield tuple(_with_norms(values) for values in (turned, *results))


def _with_norms(turned: Tensor) -> FloatArray:
    """(B, d, …) → (B, (d + 1)·F)."""
    if turned.dim() < 3:
        return turned.flatten(1).numpy()
    return torch.cat([turned, turned.square().sum(1, keepdim=True).sqrt()], 1).flatten(1).numpy()


class CloudProbe(AttributeAttack):
    """Predicts a private label from the cloud's view of a message; of all kinds the best one counts."""

    label: str
    view: CloudView
    kind: CloudKind = "linear"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"probe-cloud-{self.kind}"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or device_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        own = self.view.own(knowledge)
        labels = own.data.label(self.label)
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        model = fit_probe(self.kind, self._leading(own.seen), labels, seed)
        victims = self._leading(self.view.released(release, knowledge))
        return class_scores(model, victims, len(own.data.schema.classes(self.label)))

    def _leading(self, blocks: tuple[FloatArray, ...]) -> FloatArray:
        return np.concatenate([block[:, : _COMPONENTS[self.kind]] for block in blocks], axis=1)


class LabelByCloud(CloudProbe):
    """The same for a label that the network was made to tell: does the cloud learn the result it computes?"""

    threat = "result"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"label-cloud-{self.kind}"
