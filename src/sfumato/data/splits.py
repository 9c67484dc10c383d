"""Splits into owner, attacker and victims: three disjoint sets of subjects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Names, as_names
from sfumato.data.domain import DomainName
from sfumato.data.label_expressions import parse
from sfumato.data.loading import join, read, schema_of
from sfumato.data.readers.locate import LocatedSource, SourceName, open_data

SHARES = (0.6, 0.2, 0.2)
NAMES = ("owner", "attacker", "victim")
_TRAIN_OWNER_SHARE = 2 / 3

MOST_BALANCED_CLASSES = 200
"""A label with more classes, such as an identity, is not balanced when whole subjects are split."""


def split(data: Dataset, *, seed: int, shares: Sequence[float] = SHARES) -> Splits:
    """Split a data set into owner, attacker and victim, keeping the records of a subject together.

    If every record is its own subject, the split is stratified by the first utility label. Otherwise whole subjects
    are assigned so that the sizes, and the classes of all labels, come close to the shares.

    Args:
        data: The data set to split.
        seed: Seed of the random assignment.
        shares: Fractions of the records for owner, attacker and victim, adding up to 1.

    Returns:
        The three parts.

    Raises:
        UsageError: The shares are not three positive numbers that add up to 1.
        DataError: There are too few subjects, or a part has only one class of some label.
    """
    _check_shares(shares)
    if len(shares) == 2:
        raise UsageError("split needs three shares, for owner, attacker and victims, but got two.")
    return _checked(*(data.take(rows) for rows in _cut(data, shares, seed)))


def load_splits(
    source: SourceName,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    shares: Sequence[float] | None = None,
    balance: Names = None,
    domain: DomainName = None,
) -> Splits:
    """Load a source and split it into owner, attacker and victim.

    If the source has train and test parts with no subject in common, the test part becomes the victims, and the train
    part is split into owner and attacker (2 : 1, unless the named set says otherwise). If they share subjects, or if
    three ``shares`` are given, all records are pooled and split by subject.

    Args:
        source, x, utility, private, id, domain: As for ``load``.
        seed: Seed of the subset and of the split.
        limit: Number of records in all; by default every record is used.
        shares: Fractions of the records. Three for owner, attacker and victims, or two for owner and attacker if the
            source has a test part.
        balance: Labels to balance the split for, by default those asked for. With the labels of an earlier run here,
            the same records are split as in that run, even if other labels are asked for.

    Returns:
        The three parts, with the labels asked for.

    Raises:
        UsageError: A name is unknown, or the shares do not fit the source.
        DataError: The source cannot be read, has too few subjects, or a part has only one class of some label.
    """
    if shares is not None:
        _check_shares(shares)
    opened = open_data(source)
    asked = schema_of(opened, x=x, utility=utility, private=private, id=id, domain=domain)
    if balance is None:
        return _read_and_cut(opened, asked, seed, limit, shares)
    first = {parse(label, ()).name: label for label in as_names(balance)}
    for name in (*asked.utility, *asked.private):
        if name in first and parse(first[name], (), {}).text() != asked.sources.get(name, name) and name != first[name]:
            raise UsageError(f"label '{name}' was '{first[name]}' in the earlier run: give the new label another name.")
    rest = [asked.label_text(name) for name in (*asked.utility, *asked.private) if name not in first]
    schema = schema_of(opened, x=x, utility=[*first.values(), *rest], private=(), id=id, domain=domain)
    every = _read_and_cut(opened, schema, seed, limit, shares, tuple(first))
    return _checked(*(_in_roles_of(asked, part) for part in (every.owner, every.attacker, every.victim)))


def _read_and_cut(
    opened: LocatedSource,
    schema: Schema,
    seed: int,
    limit: int | None,
    shares: Sequence[float] | None,
    balanced: tuple[str, ...] | None = None,
) -> Splits:
    """Read every record and split it as ``load_splits`` says, balanced for the given labels (None: for all)."""
    if set(opened.parts) != {"train", "test"}:
        if shares is not None and len(shares) == 2:
            raise UsageError(
                f"{opened.name} has no train and test parts: give three shares, for owner, attacker and victims."
            )
        data = read(opened, opened.chosen("all"), schema, required=True, limit=limit, seed=seed)
        return _checked(*(data.take(rows) for rows in _cut(data, shares or SHARES, seed, balanced)))
    rows = {part: one.rows or 0 for part, one in opened.parts.items()}
    limits = {part: None if limit is None else max(1, round(limit * rows[part] / sum(rows.values()))) for part in rows}
    train, test = (
        read(opened, opened.chosen(part), schema, required=True, limit=limits[part], seed=seed)
        for part in ("train", "test")
    )
    shared = set(train.ids.tolist()) & set(test.ids.tolist())
    three = None if shares is None or len(shares) == 2 else shares
    if shared and three is None and shares is not None:
        raise UsageError(
            f"{opened.name} has subjects in both parts: give three shares, for owner, attacker and victims."
        )
    if three is not None or shared:
        both = join([train, test])
        return _checked(*(both.take(rows) for rows in _cut(both, three or SHARES, seed, balanced)))
    owned = opened.entry.owner_share if opened.entry else _TRAIN_OWNER_SHARE
    owned = owned if shares is None else shares[0]
    owner, attacker = (train.take(places) for places in _cut(train, (owned, 1 - owned), seed, balanced))
    return _checked(owner, attacker, test)


def _in_roles_of(schema: Schema, part: Dataset) -> Dataset:
    """Return the records with the labels of a schema in their roles, and no others."""
    return replace(
        part,
        schema=replace(part.schema, utility=schema.utility, private=schema.private, sources=schema.sources),
        utility={name: part.label(name) for name in schema.utility},
        private={name: part.label(name) for name in schema.private},
    )


def _check_shares(shares: Sequence[float]) -> None:
    many = len(shares) in (2, 3)
    if not many or not all(share > 0 for share in shares) or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise UsageError(f"shares must be two or three positive numbers that add up to 1, got {tuple(shares)}.")


def _cut(
    data: Dataset, shares: Sequence[float], seed: int, balanced: tuple[str, ...] | None = None
) -> list[npt.NDArray[np.intp]]:
    """Return the rows of each share, balanced for the given labels (None: for all)."""
    _, group, sizes = np.unique(data.ids, return_inverse=True, return_counts=True)
    if len(sizes) < len(shares):
        raise DataError(f"{data.name}: {len(sizes)} subjects are too few for {len(shares)} splits; give more records.")
    rng = np.random.default_rng(seed)
    if (sizes == 1).all():
        codes = next(iter(data.utility.values()), np.zeros(len(data), dtype=np.int64))
        place = _by_record(codes, shares, rng)
    else:
        counts = _class_counts(data, group, len(sizes), balanced)
        place = _by_group(counts, sizes.astype(np.float64), shares, rng)[group]
    return [np.flatnonzero(place == which) for which in range(len(shares))]


def _class_counts(
    data: Dataset, group: npt.NDArray[np.intp], groups: int, balanced: tuple[str, ...] | None
) -> npt.NDArray[np.float64]:
    """Count the records of each class in each group, with all labels side by side.

    Private labels count too: many are facts about the subject, so a split by subject could lose one of their classes.
    """
    blocks = []
    for name in (*data.utility, *data.private) if balanced is None else balanced:
        classes = len(data.schema.classes(name))
        if classes <= MOST_BALANCED_CLASSES:
            block = np.zeros((groups, classes))
            np.add.at(block, (group, data.label(name)), 1)
            blocks.append(block)
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((groups, 0))


def _by_record(codes: IntArray, shares: Sequence[float], rng: np.random.Generator) -> IntArray:
    """Assign records class by class; rounding errors of one class carry over to the next."""
    place = np.empty(len(codes), dtype=np.int64)
    owed = np.zeros(len(shares))
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        counts = _whole_counts(len(members), shares, owed)
        owed += len(members) * np.asarray(shares) - counts
        place[members] = np.repeat(np.arange(len(shares)), counts)
    return place


def _whole_counts(total: int, shares: Sequence[float], owed: npt.NDArray[np.float64]) -> IntArray:
    """Round ``total * shares`` to whole numbers with the same sum, each at least one if ``total`` allows it."""
    exact = total * np.asarray(shares)
    counts: IntArray = np.floor(exact).astype(np.int64)
    for _ in range(total - int(counts.sum())):
        counts[int(np.argmax(exact - counts + owed))] += 1
    while total >= len(shares) and counts.min() == 0:
        counts[int(np.argmax(counts))] -= 1
        counts[int(np.argmin(counts))] += 1
    return counts


def _by_group(
    table: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64],
    shares: Sequence[float],
    rng: np.random.Generator,
) -> IntArray:
    """Assign groups, largest first, each to the split where it brings the counts closest to the shares."""
    wanted = np.outer(shares, table.sum(axis=0))
    weight = np.divide(1, wanted, out=np.zeros_like(wanted), where=wanted > 0)
    wanted_size = np.asarray(shares) * sizes.sum()
    have, have_size = np.zeros_like(wanted), np.zeros_like(wanted_size)
    place = np.empty(len(table), dtype=np.int64)
    shuffled = rng.permutation(len(table))
    for one in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        counts, size = table[one], sizes[one]
        # Growth of the squared distance to the wanted counts: by class, and for the size alone.
        by_class = ((2 * (have - wanted) * counts + counts**2) * weight).sum(axis=1)
        by_size = (2 * (have_size - wanted_size) * size + size**2) / wanted_size
        best = int(np.argmin(by_class + by_size))
        place[one] = best
        have[best] += counts
        have_size[best] += size
    _fill_empty(place, sizes, len(shares))
    _mend(place, table > 0, sizes, len(shares))
    return place


def _fill_empty(place: IntArray, sizes: npt.NDArray[np.float64], splits: int) -> None:
    """Give each empty split the smallest group of the split with the most groups."""
    for target in range(splits):
        if not (place == target).any():
            donor = int(np.argmax(np.bincount(place, minlength=splits)))
            groups = np.flatnonzero(place == donor)
            place[groups[int(np.argmin(sizes[groups]))]] = target


def _mend(place: IntArray, has: npt.NDArray[np.bool_], sizes: npt.NDArray[np.float64], splits: int) -> None:
    """Where a split lacks a class, move a small group with that class there if its old split loses no class."""
    for target in range(splits):
        for code in np.flatnonzero(has.any(axis=0)):
            if has[place == target, code].any():
                continue
            carriers = np.array([has[place == which].sum(axis=0) for which in range(splits)])
            spare = ((carriers[place] > 1) | ~has).all(axis=1)
            givers = np.flatnonzero(has[:, code] & (place != target) & spare)
            if len(givers):
                place[givers[int(np.argmin(sizes[givers]))]] = target


def _checked(*parts: Dataset) -> Splits:
    for name, part in zip(NAMES, parts, strict=True):
        for label in (*part.utility, *part.private):
            codes = part.label(label)
            if len(codes) and (codes == codes[0]).all():
                only = part.schema.classes(label)[int(codes[0])]
                raise DataError(
                    f"{part.name}: the {name} split has only the class '{only}' of '{label}'; use more records or "
                    "subjects, other shares, or another label."
                )
    return Splits(*parts)
