"""Which of the d known records behind a message is the one it was sent for, given what the device sent later?

Whoever stands in two companies is their common line. The attacker knows which later message belongs to whom, as by the
place of a row in two files, or sees all messages that came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from sfumato.attacks.rotations.message_algebra import encoder_missing, features_of, span_basis
from sfumato.attacks.rotations.row_guesses import RowAttack
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge, Later
from sfumato.core.origin import hash_rows
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor

_INSIDE = 1 - 1e-4
"""Of a unit line's square, what lies in a message's span if the record stands in the message."""
_AT_ONCE = 128


class LaterAttack(RowAttack):
    """Compares the victims' messages with what their device sent after ``story`` (see ``core.knowledge.Later``)."""

    story: ClassVar[str]
    undefended: ClassVar[Mapping[str, float]] = {"rate": 1.0}  # in other company everybody is named

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = super().obstacle(knowledge) or encoder_missing(knowledge)
        return missing or ("needs what the device sent later" if knowledge.later is None else None)


class MeetAcrossReleases(LaterAttack):
    """The candidate that stands in the victim's later message as well, sent in a file that has grown."""

    name = "meet-across-releases"
    title = "Right row, by a second release"
    story = "grown"

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        later = _later(knowledge)
        inside = [
            _shares(lines, as_tensor(later.payload[start : start + len(lines)])[:, None]).squeeze(2)
            for start, lines in _lines(later.line_ups, knowledge)
        ]  # (n, d) each
        return np.asarray(torch.cat(inside).round(decimals=3).argmax(1).numpy(), dtype=np.int64)


class MeetAfterRefit(MeetAcrossReleases):
    """The same where the mechanism was fitted again in between, so that records are scaled otherwise."""

    name = "refit"
    title = "Right row, by a release after a refit"
    story = "rescaled"


class DecoyLaterSent(LaterAttack):
    """The candidate that never stands in other company: a decoy from a pool, sent itself later, may."""

    name = "decoy-later-sent"
    title = "Right row, by its decoys' own messages"
    story = "pool"

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        later = _later(knowledge)
        messages = as_tensor(later.payload)[None]  # (1, M, d, …)
        elsewhere = []
        for _, lines in _lines(later.line_ups, knowledge):
            inside = _shares(lines, messages) > _INSIDE  # (n, d, M)
            elsewhere.append((inside & ~inside.all(1, keepdim=True)).sum(2))
        return np.asarray(torch.cat(elsewhere).argmin(1).numpy(), dtype=np.int64)


class CountCopies(RowAttack):
    """The candidate that has most copies among the attacker's records, and then in the line-ups of the whole release.

    It wins where copies of a record share their company, and so send most of its messages.
    """

    name = "count-copies"
    title = "Right row, by counting copies"
    undefended: ClassVar[Mapping[str, float]] = {"rate": 1.0}  # without a key the record is the first row

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.line_ups is not None  # obstacle() has seen to it
        n, d = knowledge.line_ups.shape[:2]
        behind = hash_rows(knowledge.line_ups.reshape(n * d, -1))
        own = hash_rows(knowledge.auxiliary.x.reshape(len(knowledge.auxiliary), -1))
        kinds = np.unique(np.concatenate([behind, own]), axis=0, return_inverse=True)[1].reshape(-1)
        counts = np.bincount(kinds[n * d :], minlength=kinds.max() + 1).astype(np.float64)
        counts += np.bincount(kinds[: n * d], minlength=len(counts)) / (n * d + 1)  # tells apart what is equal
        return np.asarray(counts[kinds[: n * d]].reshape(n, d).argmax(axis=1), dtype=np.int64)


def _later(knowledge: Knowledge) -> Later:
    assert knowledge.later is not None  # obstacle() has seen to it
    return knowledge.later


def _lines(line_ups: FloatArray, knowledge: Knowledge) -> list[tuple[int, Tensor]]:
    """Some victims at a time, from which one on, the unit features of their candidates (n, d, F)."""
    found = []
    for start in range(0, len(line_ups), _AT_ONCE):
        some = line_ups[start : start + _AT_ONCE]
        features = features_of(knowledge, some.reshape(-1, *some.shape[2:])).flatten(1)
        found.append((start, torch.nn.functional.normalize(features, dim=1).view(*some.shape[:2], -1)))
    return found


def _shares(lines: Tensor, messages: Tensor) -> Tensor:
    """How much of each line lies in each message's span: (n, c, F) and (n or 1, M, d, …) → (n, c, M)."""
    count, many = messages.shape[:2]
    basis = span_basis(messages.flatten(0, 1))  # (count·M, d, F)
    basis = basis.view(count, many * basis.shape[1], -1)
    inside = lines @ basis.mT if count == len(lines) else lines @ basis[0].T  # (n, c, M·d)
    return inside.square().view(*lines.shape[:2], many, -1).sum(3)
