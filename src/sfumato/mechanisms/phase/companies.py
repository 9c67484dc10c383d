"""Which record stands with which under one secret, for ever."""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Hashes, Origin
from sfumato.core.randomness import Randomness
from sfumato.core.run_folder import atomic
from sfumato.core.schema import Schema
from sfumato.core.tensor_file import packed, unpacked
from sfumato.mechanisms.device_secret import derived, fingerprint
from sfumato.mechanisms.phase.decoys import Tags, check_crowd, copies_of, dealt_groups, message_rows, record_tags

_NAMED_AT_MOST = 8


@dataclass(frozen=True)
class CompanyTerms:
    """What must not change while records stand in their companies: rows a message, columns, how subjects are named."""

    d: int
    records: str
    named: bool


def terms_of(d: int, schema: Schema, origin: Origin) -> CompanyTerms:
    """Scaling, categories and class names are no part of them: a refit may change these.

    Where records come without their raw values, the scaling is all that says which record it is, and belongs to them.
    """
    if schema.kind == "image":
        said: object = schema.shape
    elif origin.raw:
        kinds = sorted((column.name, column.kind) for column in schema.columns)
        said = kinds or (schema.x_columns, schema.shape if schema.kind == "signal" else ())
    else:
        said = ("encoded", schema.shape, schema.ranges, schema.columns, schema.audio)
    return CompanyTerms(d, repr((schema.kind, said)), origin.named)


def encoded_terms(d: int, schema: Schema) -> CompanyTerms:
    """Of records that come as numbers, without their raw values and subjects, as a device has them."""
    return terms_of(d, schema, Origin(np.empty((0, *schema.shape), dtype=np.float32)))


class Candidates(NamedTuple):
    """Records that may stand in messages: hashes of where they come from, and of what they look like to a network."""

    nonces: Hashes  # (N, 16)
    likeness: Hashes  # (N, 16)


class _Standing(NamedTuple):
    """Everybody who stands somewhere, by tag in rising order, with the number of the group."""

    tags: Tags
    groups: IntArray

    def find(self, tags: Tags) -> IntArray:
        """(N,): the group of each tag, −1 for those who stand nowhere yet."""
        if len(self.tags) == 0:
            return np.full(len(tags), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tags, tags), len(self.tags) - 1)
        return np.where(self.tags[place] == tags, self.groups[place], -1)

    def with_more(self, tags: Tags, groups: IntArray) -> _Standing:
        """With new groups, numbered from 0."""
        above = self.groups.max() + 1 if len(self.groups) else 0
        everybody = np.concatenate([self.tags, tags])
        order = np.argsort(everybody)
        return _Standing(everybody[order], np.concatenate([self.groups, groups + above])[order])


_NOBODY = _Standing(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))


class Companies:
    """Who stands with whom under one secret.

    ``file`` keeps it across processes, readable by its owner only: keyed hashes of records, and no record. What a
    release adds is kept when the release is whole, and before it leaves. ``strict`` refuses what cannot be hidden; an
    experiment goes on and measures.
    """

    def __init__(self, secret: bytes, file: Path | None = None, *, strict: bool = True) -> None:
        self._secret, self._file, self._strict = secret, file, strict
        self._standing, self._terms = _NOBODY, None
        self._lock = threading.Lock()

    _terms: CompanyTerms | None

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._secret)

    def tags(self, hashes: Hashes) -> Tags:
        """What only this device can tell from random numbers, the same for the same record."""
        return record_tags(hashes, derived(self._secret, "company"))

    @contextmanager
    def arranged(
        self, terms: CompanyTerms, crowd: Candidates, randomness: Randomness, pool: Candidates | None = None
    ) -> Iterator[IntArray]:
        """(N, d) positions among the crowd, then the pool: each record, then its decoys.

        Records that stood somewhere stand there again, with mates from crowd or pool; new ones form groups among
        themselves or, if there is a pool, with decoys that have never stood anywhere, nor their copies; copies of a
        record then share its company. When the block ends well, this is kept for ever.
        """
        with self._lock, self._stored():
            self._check(terms)
            rows, standing = self._arrange(terms.d, self.tags(crowd.nonces), crowd, randomness, pool)
            yield rows
            self._keep(standing, terms)

    def check_strangers(self, crowd: Candidates) -> None:
        """Raise ``UsageError`` if a record stands somewhere: it must not be sent in company that is not kept."""
        with self._lock, self._stored():
            known = int((self._standing.find(self.tags(crowd.nonces)) >= 0).sum())
        if known:
            raise UsageError(
                f"{known} record(s) have hidden under this device's secret ({self.fingerprint}), and variant=published "
                "would name them by other company: use another secret and records that were never sent."
            )

    def _arrange(
        self, d: int, tags: Tags, crowd: Candidates, randomness: Randomness, pool: Candidates | None
    ) -> tuple[IntArray, _Standing]:
        here, likeness, standing = tags, crowd.likeness, self._standing
        if pool is not None:
            here = np.concatenate([tags, self.tags(pool.nonces)])
            likeness = np.concatenate([crowd.likeness, pool.likeness])
            tags = _places(here, copies_of(likeness), standing.find(here) >= 0)[: len(tags)]
        new = np.flatnonzero(standing.find(tags) < 0)
        if len(new) and pool is None:
            if self._strict:
                old = len(tags) - len(new)
                check_crowd(likeness[new], d, "new record(s)" if old else "record(s)")
            standing = standing.with_more(tags[new], dealt_groups(tags[new], likeness[new], d))
        elif len(new):
            new = new[np.unique(tags[new], return_index=True)[1]]
            free = _free_decoys(copies_of(likeness), standing.find(here) >= 0, len(tags))
            chosen = _drawn_decoys(likeness, new, free, d, randomness)  # (new, d)
            standing = standing.with_more(here[chosen].reshape(-1), np.repeat(np.arange(len(new)), d))
        return self._rows(d, tags, here, likeness, standing), standing

    def _rows(self, d: int, tags: Tags, here: Tags, likeness: Hashes, standing: _Standing) -> IntArray:
        """The rows of every message, once everybody who is needed is here."""
        mine = standing.find(tags)
        needed = np.isin(standing.groups, mine)
        members, groups = standing.tags[needed], standing.groups[needed]
        absent = ~np.isin(members, here)
        if absent.any():
            self._refuse_absent(np.flatnonzero(np.isin(mine, groups[absent])))
        order = np.argsort(here, kind="stable")  # a record that is in the pool as well: the crowd's own
        position = order[np.searchsorted(here[order], members)]
        rows = position[message_rows(members, groups, d)]
        rows = rows[np.searchsorted(members, tags)]
        if self._strict:
            _check_different(likeness, rows)
        return rows

    def _refuse_absent(self, rows: IntArray) -> None:
        listed = ", ".join(map(str, rows[:_NAMED_AT_MOST])) + (" …" if len(rows) > _NAMED_AT_MOST else "")
        raise UsageError(
            f"{len(rows)} record(s) were sent before in the company of records that are not here (rows {listed}, from "
            "0), and two companies of one record name it: add the missing records, or leave these out."
        )

    def _check(self, terms: CompanyTerms) -> None:
        known = self._terms
        if known is None or known == self._kept(terms):
            return
        if known.d != terms.d:
            what = f"messages of d = {known.d}, and these would have d = {terms.d}"
        elif known.named != terms.named:
            what = "records with" + ("" if known.named else "out") + " subject ids, and these are the other kind"
        else:
            what = "records of other columns or kinds"
        raise UsageError(
            f"this device's secret ({self.fingerprint}) has hidden {what}; a record in two kinds of company is named: "
            "release as before, or make another secret for records that were never sent."
        )

    def _kept(self, terms: CompanyTerms) -> CompanyTerms:
        """With a keyed hash for the columns."""
        return CompanyTerms(terms.d, derived(self._secret, "records", terms.records)[:16].hex(), terms.named)

    def _keep(self, standing: _Standing, terms: CompanyTerms) -> None:
        if len(standing.tags) == len(self._standing.tags):
            return
        self._standing, self._terms = standing, self._kept(terms)
        if self._file is not None:
            _write(self._file, self._standing, self._terms, self.fingerprint)

    @contextmanager
    def _stored(self) -> Iterator[None]:
        """As it stands in the file, with no other process in between."""
        if self._file is None:
            yield
            return
        try:
            handle = os.open(self._file.with_name(self._file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(f"cannot keep {self._file} ({error.strerror}): move the secret elsewhere.") from None
        with os.fdopen(handle) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._file.exists():
                self._standing, self._terms = _read(self._file, self.fingerprint)
            elif self._terms is not None:
                raise _gone(self._file)
            yield


def companies_of(secret: bytes, file: Path | None) -> Companies:
    """Kept beside the file of the secret, if there is one."""
    return Companies(secret, None if file is None else companies_file(file))


def companies_file(secret: Path) -> Path:
    """Beside the secret itself, whatever link or relative path leads there: one secret has one store."""
    return secret.resolve().with_name(secret.resolve().name + ".companies")


def check_companies_file(secret: Path) -> None:
    """Raise ``DataError`` if the store of a secret that has hidden records is not beside it."""
    file = companies_file(secret)
    if not file.exists():
        raise _gone(file)


def _gone(file: Path) -> DataError:
    return DataError(f"{file} is gone, and with it who stood with whom: restore it.")


def _places(here: Tags, kinds: IntArray, stands: npt.NDArray[np.bool_]) -> Tags:
    """(N,): everybody's own tag if it stands, else that of its like: of one that stands, or else of the first one.

    With decoys of their own, copies of a record would be the only rows that their messages have in common.
    """
    order = np.lexsort((~stands, kinds))  # stable: of each kind those who stand come first
    first = order[np.unique(kinds[order], return_index=True)[1]]
    return np.where(stands, here, here[first[kinds]])


def _free_decoys(kinds: IntArray, stands: npt.NDArray[np.bool_], crowd: int) -> npt.NDArray[np.intp]:
    """One of each kind in the pool, which follows the crowd; none that looks like a record or like one that stands."""
    first = np.unique(kinds, return_index=True)[1]
    taken = np.concatenate([kinds[:crowd], kinds[stands]])
    return first[~np.isin(kinds[first], taken)]


def _drawn_decoys(
    likeness: Hashes, new: npt.NDArray[np.intp], free: npt.NDArray[np.intp], d: int, randomness: Randomness
) -> IntArray:
    """(new, d): each new record and d − 1 of the free ones, drawn without replacement; all d look different."""
    left = deque(free[np.argsort(randomness.uniform((len(free),)))].tolist())
    chosen = []
    for record in new.tolist():
        group, alike = [record], list[int]()
        seen = {likeness[record].tobytes()}
        while left and len(group) < d:
            decoy = left.popleft()
            look = likeness[decoy].tobytes()
            (alike if look in seen else group).append(decoy)
            seen.add(look)
        left.extendleft(reversed(alike))
        if len(group) < d:
            raise UsageError(
                f"the pool of decoys is used up: {len(new)} new record(s) need {len(new) * (d - 1)} different ones, "
                f"and {len(free)} are free. A decoy that serves two records gives both away: enlarge it."
            )
        chosen.append(group)
    return np.array(chosen, dtype=np.int64)


def _check_different(likeness: Hashes, rows: IntArray) -> None:
    """Raise ``UsageError`` where a record stands with one that the network cannot tell from it."""
    for other in range(1, rows.shape[1]):
        equal = (likeness[rows[:, 0]] == likeness[rows[:, other]]).all(axis=1)
        if equal.any():
            raise UsageError(
                f"record {int(np.argmax(equal))} stands with one that differed from it when they were first sent, and "
                "is encoded alike now: a message of equal rows shows the record. Fit with finer columns."
            )


def _write(file: Path, standing: _Standing, terms: CompanyTerms, secret: str) -> None:
    about = {"secret": secret, "d": str(terms.d), "named": str(int(terms.named)), "records": terms.records}
    tags = standing.tags.astype("<u8").view(np.uint8).reshape(-1, 8)
    stored = packed({"tags": tags, "groups": standing.groups}, about)
    with atomic(file) as part:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(stored)
            out.flush()
            os.fsync(out.fileno())


def _read(file: Path, secret: str) -> tuple[_Standing, CompanyTerms]:
    try:
        found, about = unpacked(file.read_bytes())
        tags, groups = found["tags"], found["groups"].astype(np.int64)
        terms = CompanyTerms(int(about["d"]), about["records"], bool(int(about["named"])))
        theirs = about["secret"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file} cannot be read ({error}): restore it, it says who stood with whom.") from None
    if theirs != secret:
        raise DataError(f"{file} was written under another secret ({theirs}, not {secret}): restore that one.")
    return _Standing(np.ascontiguousarray(tags).view("<u8").reshape(-1).astype(np.uint64), groups), terms
