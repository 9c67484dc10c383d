"""What a base keeps of the utility label, found before anything is built on it.

Two quick readers, ridge regression and a small network, learn the label from one half of the owner's people, from the
records and from the base's latents; the other half is judged by the area under the ROC curve, which is 0.5 for a guess
whatever the shares of the classes. The better reader of each side counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.intervals import Interval, bootstrap
from sfumato.core.metrics import auroc_statistic
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.filter.vae_networks import elu_chain
from sfumato.nets.training_loop import as_tensor, decay_rate, minibatches, take_step

if TYPE_CHECKING:
    from sfumato.mechanisms.filter.bases import Base

_READ = 3_000
"""Records that are read, at most; half of them teach."""
_FEWEST = 60
_WIDE = 256
"""Records of more numbers are read by so many of their components."""
_HIDDEN, _STEPS, _BATCH, _RATE = 64, 240, 128, 3e-3
_RIDGE = 0.1
"""Weight of the ridge, in units of the mean square of an input number."""
_RESAMPLES = 200
_BEARABLE = 0.02
"""Of the area under the ROC curve: losses that are surely larger are told."""
_CHANCE = 0.5


@dataclass(frozen=True)
class Kept:
    """How well the utility label is read from the records and from the base, by the area under the ROC curve.

    ``difference`` is the 95 % interval of what is lost, over the same records.
    """

    label: str
    records: float
    records_ci: Interval
    base: float
    base_ci: Interval
    difference: Interval

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Kept:
        plain: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}
        return cls(**plain)

    @property
    def nothing(self) -> bool:
        """The records tell the label, and the base does no better than guessing."""
        return self.records_ci[0] > _CHANCE and self.base_ci[0] <= _CHANCE and self.difference[0] > _BEARABLE

    @property
    def lost(self) -> bool:
        """The base lost more of the label than can be borne."""
        return self.difference[0] > _BEARABLE

    def __str__(self) -> str:
        told = (
            f"'{self.label}' is read from the records with an AUROC of {_figure(self.records, self.records_ci)}, from "
            f"the base with {_figure(self.base, self.base_ci)}"
        )
        if self.nothing:
            return (
                f"{told}: the base lost it, and what is built on it would serve nobody. Take another base (base=raw, "
                "base=pca, a larger latent, or your own encoder)."
            )
        if self.lost:
            return f"{told}: the release cannot serve it better than that. Another base may (base=raw, base=pca)."
        return told


def _figure(value: float, interval: Interval) -> str:
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def kept_by(base: Base, data: Dataset, seed: int) -> Kept | None:
    """What the base keeps of the first utility label with classes; None where the records are too few to say."""
    label = next(iter(data.schema.with_classes(data.utility)), None)
    if label is None:
        return None
    seed = derive_seed(seed, "base", "probe")
    learn, judge = _halves(data, seed)
    codes = data.utility[label]
    if min(len(learn), len(judge)) < _FEWEST or len(np.unique(codes[learn])) < 2 or len(np.unique(codes[judge])) < 2:
        return None
    generator = torch.Generator().manual_seed(seed)
    x, some = as_tensor(data.x[learn]).flatten(1), as_tensor(data.x[judge]).flatten(1)
    raw = _narrow(x, some, seed)
    mean, variance = base.posterior(np.concatenate([data.x[learn], data.x[judge]]))
    z = mean + variance.sqrt() * torch.randn(mean.shape, generator=generator)
    classes = len(data.schema.classes(label))
    areas = [
        _best(*parts, codes[learn], codes[judge], classes, seed) for parts in (raw, (z[: len(learn)], z[len(learn) :]))
    ]
    weights = np.ones(len(judge))
    whose = data.ids[judge]

    def interval(statistic: Any, limits: Interval) -> Interval:
        return bootstrap(statistic, len(judge), whose, resamples=_RESAMPLES, limits=limits)

    here, there = areas
    return Kept(
        label=label,
        records=here(weights),
        records_ci=interval(here, (0.0, 1.0)),
        base=there(weights),
        base_ci=interval(there, (0.0, 1.0)),
        difference=interval(lambda w: here(w) - there(w), (-1.0, 1.0)),
    )


def _halves(data: Dataset, seed: int) -> tuple[IntArray, IntArray]:
    """Rows to learn from and rows to be judged by, of different people."""
    rng = np.random.default_rng(seed)
    people, person = np.unique(data.ids, return_inverse=True)
    first = rng.permutation(len(people)) < len(people) / 2
    rows = rng.permutation(len(data))[:_READ].astype(np.int64)
    return rows[first[person[rows]]], rows[~first[person[rows]]]


def _narrow(x: Tensor, other: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Records by their leading components, where they have very many numbers."""
    if x.shape[1] <= _WIDE:
        return x, other
    middle = x.mean(0)
    torch.manual_seed(seed)
    _, _, axes = torch.pca_lowrank(x - middle, q=min(_WIDE, *x.shape), center=False, niter=1)
    return (x - middle) @ axes, (other - middle) @ axes


def _best(known: Tensor, seen: Tensor, codes: IntArray, truth: IntArray, classes: int, seed: int) -> Any:
    """The area of the better reader, as a statistic of the judged records."""
    middle, spread = known.mean(0), known.std(0)
    spread = spread.clamp(min=0.1 * float(spread.square().mean().sqrt()) + 1e-6)
    known, seen = (known - middle) / spread, (seen - middle) / spread
    target = F.one_hot(as_tensor(codes), classes).float()
    answers = [_ridge(known, target, seen), _network(known, as_tensor(codes), seen, classes, seed)]
    areas = [auroc_statistic(truth, answer) for answer in answers]
    return max(areas, key=lambda area: area(np.ones(len(truth))))


def _ridge(known: Tensor, target: Tensor, seen: Tensor) -> FloatArray:
    size = known.shape[1]
    square = known.T @ known + _RIDGE * len(known) * torch.eye(size)
    found: FloatArray = (seen @ torch.linalg.solve(square, known.T @ (target - target.mean(0)))).numpy()
    return found


def _network(known: Tensor, codes: Tensor, seen: Tensor, classes: int, seed: int) -> FloatArray:
    torch.manual_seed(seed)
    network = elu_chain(known.shape[1], _HIDDEN, classes)
    optimiser = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=0.1)
    step = 0
    while step < _STEPS:
        for rows in minibatches(len(known), _BATCH, derive_seed(seed, step)):
            decay_rate(optimiser, step / _STEPS)
            take_step(optimiser, F.cross_entropy(network(known[rows]), codes[rows]))
            step += 1
    with torch.inference_mode():
        return np.asarray(network(seen).numpy())
