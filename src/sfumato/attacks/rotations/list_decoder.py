"""A list of d guesses for every message: what is left to an attacker who cannot tell the record from its decoys."""

from __future__ import annotations

import itertools
from dataclasses import field

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.attacks.base import Attack, Guess, Measured, measure_reconstruction
from sfumato.attacks.decoder_training import Constant, Memo, Pair, Schedule, drawn, fit_decoder, held_out
from sfumato.attacks.rotations.direction_critic import InverseCritic
from sfumato.attacks.rotations.message_algebra import Frame, along, device_missing, most_records, own_device
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches
from sfumato.nets.unet import map_decoder

_MOST_PERMUTED = 4
"""Of more rows the best assignment is searched for instead of trying all."""
_KMEANS_RECORDS = 5000


class ListAttack(Attack):
    """d guesses a record, (N, d, *shape), scored by the best of them.

    Without the release the best list is the d centres of the auxiliary records (k-means).
    """

    threat = "list-reconstruction"

    _centres: Memo[FloatArray] = field(default_factory=Memo, init=False)

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or device_missing(knowledge)

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """The centres: the best constant list under squared error."""
        d = own_device(knowledge, knowledge.auxiliary.take(slice(0, 64))).key.shape[1]
        centres = self.centres(knowledge, d)
        return np.broadcast_to(centres, (n, *centres.shape))

    def centres(self, knowledge: Knowledge, d: int) -> FloatArray:
        """d records that are near to many, (d, *shape)."""
        return self._centres.get((knowledge.auxiliary, d), lambda: self._cluster(knowledge, d))

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        victim = truth.open()
        return measure_reconstruction(victim, metrics.best_of(victim.x, guess))

    def _cluster(self, knowledge: Knowledge, d: int) -> FloatArray:
        from sklearn.cluster import KMeans

        seed = derive_seed(knowledge.seed, self.name, "centres") % 2**32
        x = knowledge.auxiliary.x
        rows = np.random.default_rng(seed).permutation(len(x))[:_KMEANS_RECORDS]
        found = KMeans(d, n_init=4, random_state=seed).fit(x[rows].reshape(len(rows), -1)).cluster_centers_
        return np.asarray(found, dtype=np.float32).clip(0.0, 1.0).reshape(d, *x.shape[1:])


class ListCritic(ListAttack):
    """Finds the directions of all d rows by the critic, one at right angles to the other, and decodes each."""

    name = "list-critic"

    inverse: InverseCritic

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or self.inverse.obstacle(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        messages = as_tensor(release.payload)
        rows = as_tensor(self.inverse.rows(release, knowledge))
        guesses = [
            self.inverse.decoder.decode(along(messages, rows[:, row]), knowledge) for row in range(rows.shape[1])
        ]
        return np.stack(guesses, axis=1)


class ListDecoder(ListAttack):
    """A network on the messages' own frames, trained on the d records behind each message in whatever order fits its
    guesses best."""

    name = "list-decoder"
    title = "list decoder"

    epochs: int = 6
    width: int = 32
    fewest_steps: int = 500
    records: int = 10_000

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return forward_in_batches(self._train(knowledge), as_tensor(release.payload)).numpy()

    def _train(self, knowledge: Knowledge) -> nn.Module:
        seed = derive_seed(knowledge.seed, self.name)
        val, fit = held_out(knowledge.auxiliary, seed, most=most_records(knowledge, self.records))
        draw = drawn(lambda: _pairs(knowledge, fit), every=2)
        sample = draw(0)[0][:512]
        d, *row = sample.shape[1:]
        record = knowledge.auxiliary.schema.shape
        torch.manual_seed(seed)
        decoder = channels_last(map_decoder((d + 1, *row), record, self.width, outputs=d))
        return fit_decoder(
            nn.Sequential(Frame(sample), decoder),
            draw,
            _pairs(knowledge, val),
            schedule=Schedule(epochs=self.epochs, fewest_steps=self.fewest_steps),
            seed=seed,
            loss=in_any_order,
            judge=_best_of_list,
            otherwise=Constant(as_tensor(self.centres(knowledge, d))),
        )


def _pairs(knowledge: Knowledge, data: Dataset) -> Pair:
    """Messages, and the d records behind each, the record first."""
    opened = own_device(knowledge, data)
    return as_tensor(opened.payload), as_tensor(data.x[opened.rows])


def _pairwise(guesses: Tensor, records: Tensor) -> Tensor:
    """Mean squared error of each guess for each record, (B, d, …) twice → (B, d, d)."""
    return (guesses.flatten(2)[:, :, None] - records.flatten(2)[:, None]).square().mean(3)


def in_any_order(guesses: Tensor, records: Tensor) -> Tensor:
    """The mean squared error of a list under the best assignment of guesses to records."""
    errors = _pairwise(guesses, records)
    d = errors.shape[1]
    places = torch.arange(d)
    if d <= _MOST_PERMUTED:
        orders = torch.tensor(list(itertools.permutations(range(d))))
        return errors[:, places, orders].mean(2).amin(1).mean()
    from scipy.optimize import linear_sum_assignment

    chosen = [linear_sum_assignment(each)[1] for each in errors.detach().numpy()]
    assigned = torch.as_tensor(np.stack(chosen))  # (B, d)
    return errors.gather(2, assigned[:, :, None]).mean()


def _best_of_list(guesses: Tensor, records: Tensor) -> Tensor:
    """What the attack is scored by: the error of the best guess for the record itself."""
    return (guesses - records[:, :1]).square().flatten(2).mean(2).amin(1).mean()
