"""What a network is taught about a label: the class, or the number in deviations from the mean.

A label has as many outputs as classes (two or more), and a number has one. The loss of an output layer is the cross
entropy of the classes, −log p(y), or the squared error (ŷ − y)² of the standardised number. Whoever always gives the
best constant loses about log(classes) or 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.nets.training_loop import as_tensor

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism


def widths(schema: Schema, labels: Sequence[str]) -> tuple[int, ...]:
    """Outputs of a network for each label: its classes, or 1 for a number."""
    return tuple(schema.width(label) for label in labels)


def target(label: str, codes: IntArray, schema: Schema) -> Tensor:
    """(N,): class codes, or standardised numbers."""
    scale = schema.numbers.get(label)
    return as_tensor(codes if scale is None else scale.standard(codes))


def targets(labels: Mapping[str, IntArray], schema: Schema) -> Tensor:
    """(labels, N); with a number among them the class codes are floats, too."""
    each = [target(label, codes, schema) for label, codes in labels.items()]
    return torch.stack([one.float() for one in each] if any(one.is_floating_point() for one in each) else each)


def label_loss(scores: Tensor, wanted: Tensor) -> Tensor:
    """The mean loss of scores (B, width) for targets (B,)."""
    if scores.shape[1] == 1:
        return F.mse_loss(scores[:, 0], wanted.to(scores.dtype))
    return F.cross_entropy(scores, wanted.long())


def guess_loss(width: int) -> float:
    """What a constant guess loses: log(classes), or the variance 1 of a standardised number."""
    return math.log(width) if width > 1 else 1.0


def told(wanted: Tensor, width: int) -> Tensor:
    """Targets (…,) as a network is told them, (…, width): one-hot, or the number itself."""
    return wanted[..., None].float() if width == 1 else F.one_hot(wanted.long(), width).float()


def refuse_numbers(mechanism: Mechanism, data: Dataset) -> None:
    """Raise if the mechanism looks at a label that is a number and cannot be taught one, or if a number is missing."""
    numbers = data.schema.numbers
    if not (whole := data.complete).all():
        raise DataError(
            f"{data.name}: record {int(whole.argmin())} has no number in {', '.join(numbers)}: leave such records out."
        )
    served = [label for label in data.utility if label in numbers]
    if served and mechanism.traits.needs_labels and not mechanism.serves_numbers:
        _refuse(mechanism, data, served[0], "serve", _able(lambda one: one.serves_numbers))
    hidden = [label for label in data.private if label in numbers]
    if hidden and mechanism.fights_private and not mechanism.hides_numbers:
        _refuse(mechanism, data, hidden[0], "hide", _able(lambda one: one.fights_private and one.hides_numbers))


def _refuse(mechanism: Mechanism, data: Dataset, label: str, verb: str, able: Sequence[str]) -> None:
    scale = data.schema.numbers[label]
    middle = scale.raw(0.0) if scale.mean is not None else (scale.low + scale.high) / 2
    raise UsageError(
        f"{mechanism.name} cannot {verb} a number, and '{label}' is one: use {', '.join(able)}, or ask for "
        f"'{label}:class' or a question such as '{label} >= {float(middle):.4g}'."
    )


def _able(can: Callable[[Mechanism], bool]) -> list[str]:
    """The names of our mechanisms that can."""
    from sfumato.mechanisms.registry import mechanism_class, names

    return [name for name in names() if (one := mechanism_class(name)()).traits.role == "mechanism" and can(one)]
