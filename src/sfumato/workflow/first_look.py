"""Right after a fit: whether what would leave is of any use, before anybody spends an audit on it."""

from __future__ import annotations

from sfumato.auditing.utility import own_scores
from sfumato.core.dataset import Splits
from sfumato.core.usefulness import useless
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Classifies, NeedsSecret, ReleasesWhole

MOST, FEWEST = 2000, 50
"""Records that are looked at, and below which nothing is said."""


def useless_at_first_look(mechanism: Mechanism, splits: Splits) -> tuple[str, ...]:
    """A sentence for each label that the mechanism's own classifier reads no better than a guesser, on records that it
    was not fitted on and that are no victims either; nothing for a mechanism without a classifier that others may use.
    """
    if not isinstance(mechanism, Classifies) or isinstance(mechanism, NeedsSecret | ReleasesWhole):
        return ()
    seen = splits.attacker.take(slice(0, MOST))
    if mechanism.traits.hides_result or len(seen) < FEWEST:
        return ()
    logits = mechanism.predict(mechanism.release(seen).payload)
    return () if logits is None else useless(own_scores(logits, seen, mechanism.schema_))
