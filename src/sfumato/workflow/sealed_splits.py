"""What a run remembers of its records: enough to notice a change, and nothing that confirms a guess about them.

A plain digest would: whoever knows all records but one tries each value for that one. So a run keeps keyed digests
(*seals*) under a salt of its own, and the key stays outside of the run folder (``core.owner_key``). How many records
there are is kept only where no promise may be about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError
from sfumato.core.owner_key import key_file, keyed_digest, owner_key

_SALT_BYTES = 16


def sealed(splits: Splits, *, counted: bool) -> dict[str, Any]:
    """Seals of each part and of each of its labels under a fresh salt, and its number of records if ``counted``."""
    key, salt = owner_key(), os.urandom(_SALT_BYTES)

    def seals(part: Dataset) -> dict[str, Any]:
        labels = {name: keyed_digest(key, salt, part.label_digest(name)) for name in (*part.utility, *part.private)}
        return {"seal": keyed_digest(key, salt, part.digest), "labels": labels}

    parts = {
        name: {**seals(part), **({"records": len(part)} if counted else {})} for name, part in splits.parts.items()
    }
    return {"salt": salt.hex(), "key": keyed_digest(key, salt, "key"), **parts}


def same_part(stored: Mapping[str, Any], name: str, part: Dataset, run: Path) -> bool:
    """Whether ``part`` holds the records that were sealed under ``name`` in ``run``, whatever their labels."""
    with _well_formed(run):
        return bool(_digested(stored, part.digest, run) == stored[name]["seal"])


def same_labels(stored: Mapping[str, Any], name: str, part: Dataset, run: Path) -> bool:
    """Whether those labels of ``part`` that were sealed (older runs sealed none) are what they were."""
    with _well_formed(run):
        kept = stored[name].get("labels", {})
        shared = [label for label in (*part.utility, *part.private) if label in kept]
        return all(_digested(stored, part.label_digest(label), run) == kept[label] for label in shared)


def _digested(stored: Mapping[str, Any], digest: str, run: Path) -> str:
    key, salt = owner_key(), bytes.fromhex(stored["salt"])
    if keyed_digest(key, salt, "key") != stored["key"]:
        raise DataError(
            f"the records of {run} were sealed with another owner's key than {key_file()}: bring that key here to "
            "check that they are the same, or fit again."
        )
    return keyed_digest(key, salt, digest)


@contextmanager
def _well_formed(run: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(f"{run / 'splits.json'} does not have the expected form: fit again.") from None
