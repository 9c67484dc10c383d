"""A search through the public encoder rebuilds digits from plain features, after one block of LeNet and after two."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sfumato.attacks.base import Attack
from sfumato.attacks.registry import features_suite
from sfumato.auditing.effort import CPU, SMOKE, Effort
from sfumato.core.dataset import Splits
from sfumato.data import load_splits
from sfumato.mechanisms.baselines.plain_features import DNN
from sfumato.nets.encoders import lenet
from sfumato.testing import AuditStage

LAYERS = 4
"""Of one block: convolution, batch norm, ReLU, max-pool."""
TARGETS = {1: 0.95, 2: 0.6}
WHITE_BOX = ("inverse-encoder", "inverse-latent")


def run(small: bool = False) -> dict[str, Any]:
    """SSIM of the embedded digits of MNIST, rebuilt from ``dnn``'s features by each attacker at default effort."""
    splits = load_splits("digits", utility=["odd"], private=["ge5"], limit=600 if small else None, seed=0)
    effort = SMOKE if small else CPU
    found = {blocks: _likeness(blocks, splits, effort) for blocks in TARGETS}
    return {
        "claim": f"from plain LeNet features a search through the encoder reaches SSIM ≥ {TARGETS[1]} after the first "
        f"block and ≥ {TARGETS[2]} after the second",
        "figures": {f"SSIM after block {blocks}": likeness for blocks, likeness in found.items()},
        "holds": all(found[blocks][WHITE_BOX[0]] >= least for blocks, least in TARGETS.items()),
    }


def _likeness(blocks: int, splits: Splits, effort: Effort) -> dict[str, float]:
    def first_blocks(shape: tuple[int, ...]) -> nn.Module:
        return lenet(shape)[: LAYERS * blocks]

    torch.set_num_threads(1)
    stage = AuditStage(DNN(architecture=first_blocks).fit(splits.owner), splits, effort)
    suite = [attack for attack in features_suite(splits.schema) if attack.threat == "reconstruction"]
    found = ((attack.name, _ssim(attack, stage)) for attack in suite)
    return {name: likeness for name, likeness in found if likeness is not None}


def _ssim(attack: Attack, stage: AuditStage) -> float | None:
    """None where the attack has nothing to go by: the attacker's own digits do not repeat, so there is no codebook."""
    knowledge, release, truth = stage.stage(attack)
    if attack.obstacle(knowledge) is not None:
        return None
    return round(attack(release, knowledge, truth).values()["ssim"], 4)
