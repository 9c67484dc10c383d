"""Splits into owner, attacker and victims: three disjoint sets of subjects.

Where a subject goes depends on that subject and the seed, never on the others (see ``placement``). Two files that
differ in one subject give parts that differ in that subject: a promise about the owner's records is one about the file.

Attackers and victims can be cut once more, into those by whom somebody chooses among mechanisms and those who judge
the choice: the best of many on the same victims looks better than it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray, Splits
from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.origin import Hashes
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Names, of_schema, resolve
from sfumato.data.domain import DomainName
from sfumato.data.given_tables import Given, open_given
from sfumato.data.loading import pieces_of, rows_within, schema_of
from sfumato.data.placement import placed, subjects_in, subjects_of
from sfumato.data.readers.locate import LocatedSource, SourceName, beside, open_data
from sfumato.data.readers.thinned import without_subject
from sfumato.data.spool import Spool

SHARES = (0.6, 0.2, 0.2)
NAMES = ("owner", "attacker", "victim")
HELD_OUT = {"search": 0.4, "final": 0.6}
"""Shares of the attackers and of the victims who are for a search, and for the judgement of what it chose."""
_TRAIN_OWNER_SHARE = 2 / 3
_OWNER, _VICTIM, _NOBODY = NAMES.index("owner"), NAMES.index("victim"), -1


def split(data: Dataset, *, seed: int, shares: Sequence[float] = SHARES) -> Splits:
    """Split a data set into owner, attacker and victim, keeping together the records of a subject.

    Without named subjects, equal records stay together.

    Args:
        data: The data set to split.
        seed: Seed of the assignment.
        shares: Fractions of the records for owner, attacker and victim, adding up to 1; or the owner's alone, and the
            others get half of the rest each. Sizes come out as the shares on average.

    Returns:
        The three parts.

    Raises:
        UsageError: The shares are not positive numbers that add up to 1.
        DataError: A part is empty, or has only one class of some label.
    """
    return _parts(data, _place(data, seed, shares))


def part_rows(data: Dataset, *, seed: int, shares: Sequence[float] = SHARES) -> tuple[npt.NDArray[np.intp], ...]:
    """The rows of the three parts that ``split`` gives; it raises what ``split`` raises."""
    place = _place(data, seed, shares)
    _parts(data, place)
    return tuple(np.flatnonzero(place == which) for which in range(len(NAMES)))


def _place(data: Dataset, seed: int, shares: Sequence[float]) -> IntArray:
    _check_shares(shares)
    if len(shares) == 2:
        raise UsageError("split needs three shares, for owner, attacker and victims, but got two.")
    return placed(subjects_in(data), _three(shares), seed, "split")


def load_splits(
    source: Given,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    shares: Sequence[float] | None = None,
    domain: DomainName = None,
    holdout: SourceName | None = None,
    without: str | None = None,
    held_out: str | None = None,
) -> Splits:
    """Load a source and split it into owner, attacker and victim.

    Where a record goes depends on its subject (without named subjects: on its row) and on the seed; not on other
    records, and not on the labels asked for. If the source has train and test parts, the test part becomes the victims,
    and the train part is split into owner and attacker (2 : 1, unless the named set says otherwise). Named subjects who
    are in both parts are split into owner, attacker and victim; with three ``shares`` all subjects are.

    Args:
        source: As for ``load``; so are ``x``, ``utility``, ``private``, ``id`` and ``domain``.
        seed: Seed of the subset and of the split.
        limit: Number of records in all, about (see ``load``); by default every record is used.
        shares: Fractions of the records. Three for owner, attacker and victims; two for owner and attacker if the
            source has a test part; or the owner's alone, and the others get equal parts of the rest.
        holdout: Another file of the same columns, for the attacker and the victims: all of ``source`` is the owner's.
        without: A subject (one of ``Dataset.ids``) that is left out, as if the file had never had it: for audits.
        held_out: Only those attackers and victims who are for a "search", or for the "final" judgement of what it
            chose; the owner's records are the same.

    Returns:
        The three parts, with the labels asked for.

    Raises:
        UsageError: A name is unknown, or the shares do not fit the source.
        DataError: The source cannot be read, a part is empty, or has only one class of some label.
    """
    if shares is not None:
        _check_shares(shares)
    if held_out is not None and held_out not in HELD_OUT:
        raise unknown("part of the held-out records", held_out, HELD_OUT)
    opened = open_given(source, "data")
    if holdout is not None:
        if shares is not None:
            raise UsageError("with --holdout all of --data is the owner's: leave out --shares.")
        opened = beside(opened, open_data(holdout))
    if without is not None:
        roles = resolve(opened.reference, opened.entry, x=x, utility=utility, private=private, id=id)
        utility = [label.name for label in roles.utility] if utility is None else utility
        opened = without_subject(opened, without, roles.id)
    schema = schema_of(opened, x=x, utility=utility, private=private, id=id, domain=domain)
    _check_people(schema, opened.name)
    sources = opened.chosen("all")
    rows = rows_within(opened, sources, schema, limit, seed)
    keys = [subjects_of(one, of_schema(one, schema, opened.entry)) for one in sources]
    kept = keys if rows is None else [part[chosen] for part, chosen in zip(keys, rows, strict=True)]
    place = _places(opened, kept, shares, seed, schema.id_column is not None, apart=holdout is not None)
    if held_out is not None:
        part = placed(np.concatenate(kept), tuple(HELD_OUT.values()), seed, "held-out")
        place = np.where((place == _OWNER) | (part == list(HELD_OUT).index(held_out)), place, _NOBODY)
    del keys, kept
    spools, done, left_out = [Spool() for _ in NAMES], 0, 0
    for piece in pieces_of(opened, sources, schema, required=True, rows=rows):
        own, whole = place[done : done + len(piece)], piece.complete
        left_out += int((~whole).sum())
        for which, spool in enumerate(spools):
            spool.add(piece.take(np.flatnonzero((own == which) & whole)))
        done += len(piece)
    parts = [spool.dataset() for spool in spools]
    counted = [part if part is None else replace(part, left_out=left_out) for part in parts]
    return _checked(counted, opened.name, len(place) - left_out)


def _check_people(schema: Schema, name: str) -> None:
    """Raise if the label is who it is: people are never split, so nobody could learn or test it."""
    label = next(
        (one for one in (*schema.utility, *schema.private) if schema.label_text(one) == schema.id_column), None
    )
    if label is not None:
        raise UsageError(
            f"{name}: '{label}' names the people, who are never split between owner, attacker and victims, so it "
            "cannot be a label: leave it out. Every audit with named people tries to recognise them (reidentification)."
        )


def _places(
    opened: LocatedSource,
    keys: Sequence[Hashes],
    shares: Sequence[float] | None,
    seed: int,
    named: bool,
    *,
    apart: bool,
) -> IntArray:
    """Return the split of each record of all parts, by what its place hangs on."""
    every, pair = np.concatenate(keys), shares is not None and len(shares) == 2
    if set(opened.parts) != {"train", "test"} or (shares is not None and len(shares) == 3):
        if pair:
            raise UsageError(
                f"{opened.name} has no train and test parts: give three shares, for owner, attacker and victims."
            )
        return placed(every, _three(shares), seed, "split")
    if apart:
        if named and _in_both(keys).any():
            raise UsageError(f"{opened.name}: people of the held-out file are in the other one too: hold out others.")
        first = len(keys[0])
        others = np.where(placed(every[first:], (0.5, 0.5), seed, "split") == 0, NAMES.index("attacker"), _VICTIM)
        return np.concatenate([np.zeros(first, dtype=others.dtype), others])
    known = opened.entry.owner_share if opened.entry else _TRAIN_OWNER_SHARE
    owned = known if shares is None else shares[0]
    place = placed(every, (owned, 1 - owned), seed, "split")
    place[len(keys[0]) :] = _VICTIM
    both = _in_both(keys) if named else np.zeros(len(every), dtype=bool)
    if both.any() and pair:
        raise UsageError(
            f"{opened.name} has subjects in both parts: give three shares, for owner, attacker and victims."
        )
    return np.where(both, placed(every, _three(shares), seed, "split"), place)


def _in_both(keys: Sequence[Hashes]) -> npt.NDArray[np.bool_]:
    """Return which records have a subject who is in both parts."""
    train, test = ({key.tobytes() for key in part} for part in keys)
    return np.array([key.tobytes() in train and key.tobytes() in test for part in keys for key in part], dtype=bool)


def _check_shares(shares: Sequence[float]) -> None:
    whole = len(shares) == 1 or math.isclose(sum(shares), 1, abs_tol=1e-6)
    if not 1 <= len(shares) <= 3 or not all(0 < share < 1 for share in shares) or not whole:
        raise UsageError(
            f"shares must be the owner's between 0 and 1, or two or three that add up to 1, got {tuple(shares)}."
        )


def _three(shares: Sequence[float] | None) -> Sequence[float]:
    """Return the shares of owner, attacker and victim."""
    if shares is None:
        return SHARES
    return shares if len(shares) == 3 else (shares[0], (1 - shares[0]) / 2, (1 - shares[0]) / 2)


def _parts(data: Dataset, place: IntArray) -> Splits:
    """Return the three parts, unless one of them is of no use."""
    return _checked([data.take(np.flatnonzero(place == which)) for which in range(len(NAMES))], data.name, len(data))


def _checked(parts: Sequence[Dataset | None], source: str, records: int) -> Splits:
    """The three parts of so many records, unless one of them is of no use."""
    found = []
    for name, part in zip(NAMES, parts, strict=True):
        if part is None or len(part) == 0:
            raise DataError(
                f"{source}: no record or subject of {records} records falls to the {name}; use more records or "
                "subjects, other shares, or another seed."
            )
        for label in (*part.utility, *part.private):
            codes = part.label(label)
            if (codes == codes[0]).all():
                number = label in part.schema.numbers
                only = f"{part.numbers(label)[0]:g}" if number else part.schema.classes(label)[int(codes[0])]
                raise DataError(
                    f"{part.name}: the {name} split has only the {'number' if number else 'class'} '{only}' of "
                    f"'{label}'; use more records or "
                    "subjects, other shares, another seed, or another label."
                )
        found.append(part)
    return Splits(*found)
