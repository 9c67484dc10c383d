"""What sharing is worth to a party: the same task, learnt without the others.

Three learners beside the classifier on the pool, each with as many steps as that one: a network of the encoder's make
with the same classifier on it, on the party's own raw records; the classifier on the party's own share of the release;
and the classifier on the party's own clean latents, which is tested on clean ones. The party is the first, which
trained the encoder.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from sfumato.auditing.plans.base import Scene
from sfumato.auditing.plans.shared import latents
from sfumato.auditing.task_learning import fit_classifier, lesson, task_steps
from sfumato.core.dataset import FloatArray
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import HasBlocks
from sfumato.nets.autoencoders import autoencoder
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches

ALONE_RAW = "alone, on its raw records"
ALONE_SHARE = "alone, on its share of the release"
INITIATOR = "initiator's own classifier"


def alone_answers(mechanism: Mechanism, scene: Scene, owner: Release, label: str) -> Iterator[tuple[str, FloatArray]]:
    """Each learner's name and its class scores of the victims, (N, classes), or standardised numbers, (N, 1); none
    where nobody shares with anybody.

    ``owner`` is the release of all parties, from which the pool's classifier learns.
    """
    parties, encoder = mechanism.traits.parties, scene.knowledge.encoder
    if parties < 2 or encoder is None or not isinstance(mechanism, HasBlocks):
        return
    blocks, everybody, victim = mechanism.blocks_, scene.splits.owner, scene.splits.victim
    own = slice(None) if len(blocks) > 1 else slice(0, None, parties)  # by columns each has a part of every record
    width = owner.payload.shape[1] // len(blocks)
    mine = everybody.take(own)
    taught, _ = lesson(label, everybody.utility[label], victim.schema)
    codes, classes = taught[own], victim.schema.width(label)
    steps = task_steps(len(everybody), scene.effort.task_epochs, scene.effort.task_steps)
    seed = derive_seed(scene.seed, "fresh", label)

    def raw_answers() -> FloatArray:
        torch.manual_seed(derive_seed(seed, "alone"))
        raw = blocks[0].take(mine.x)
        front = channels_last(autoencoder(mine.schema.kind, raw.shape[1:], width)[0])
        network = fit_classifier(raw, codes, classes, steps, seed, after=front)
        return forward_in_batches(network, as_tensor(blocks[0].take(victim.x))).numpy()

    def answers(known: FloatArray, seen: FloatArray) -> FloatArray:
        network = fit_classifier(known[:, :width], codes, classes, steps, seed)
        return forward_in_batches(network, as_tensor(seen[:, :width])).numpy()

    yield ALONE_RAW, scene.controls.answers(f"{label}:{parties}:{len(blocks)}:{width}", raw_answers)
    yield ALONE_SHARE, answers(owner.payload[own], scene.release.payload)
    yield INITIATOR, answers(latents(encoder, mine), latents(encoder, victim))
