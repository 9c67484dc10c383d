"""``check``: find all problems of a file in one pass, without stopping at the first one."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.core.errors import DataError, SfumatoError
from sfumato.core.number_scale import NumberScale
from sfumato.core.schema import Schema
from sfumato.data.column_checks import TableColumn, counted, reading_notes
from sfumato.data.column_roles import Names, Roles, as_names, resolve
from sfumato.data.domain import DomainName, domain_for
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded, is_list
from sfumato.data.encoding.records import encode_records
from sfumato.data.encoding.tables import as_text
from sfumato.data.file_errors import FaultHere, Place, Problem, problem_of, rows_text
from sfumato.data.label_expressions import Expression, parse
from sfumato.data.labels import is_unusable, values_of
from sfumato.data.likely_subjects import likely_subjects
from sfumato.data.numeric_labels import fit_of, number_problems
from sfumato.data.readers.locate import LocatedSource, SourceName, open_data
from sfumato.data.readers.source import Source
from sfumato.data.registry import Entry
from sfumato.data.schema_inference import shape_of
from sfumato.data.splits import load_splits

CHECK_ROWS = 2048
FEW_RECORDS = 10
SHOWN_CLASSES = 5
FILL_IN = "fill them in or remove the rows"
SEVERITIES = ("error", "warning", "note")


def check(
    path: SourceName,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
) -> list[Problem]:
    """Find the problems of a file, or of each part of a named set.

    Args:
        path: A named data set, a file or a folder, as for ``load``.
        x, utility, private, id: The columns, as for ``load``.
        domain: A declared domain. Its fit to the values is checked only if there are no other errors, and only the
            first value that does not fit is reported.

    Returns:
        The findings: errors, warnings, notes. Without an error the file is ready to use.
    """
    try:
        opened = open_data(path)
    except SfumatoError as error:
        return [problem_of(error, str(path), "correct the path or the file")]
    problems: list[Problem] = []
    checkers = [_Checker(opened, source) for source in opened.parts.values()]
    for checker in checkers:
        problems += checker.run(x, utility, private, id, domain)
    if len(checkers) == 2:
        problems += _shared_subjects(opened, checkers[0].subjects & checkers[1].subjects)
    if id is None and not any(problem.severity == "error" for problem in problems):
        problems += likely_subjects(path, (*as_names(utility), *as_names(private)))
    if opened.entry is None and not any(problem.severity == "error" for problem in problems):
        problems += _refused(path, x, utility, private, id, domain)
    return sorted(problems, key=lambda problem: SEVERITIES.index(problem.severity))


def _refused(
    path: SourceName, x: Names, utility: Names, private: Names, id: str | None, domain: DomainName
) -> list[Problem]:
    """What a fit would refuse although nothing was found: values outside a domain, parts without records."""
    try:
        load_splits(path, x=x, utility=utility, private=private, id=id, domain=domain)
    except SfumatoError as error:
        return [problem_of(error, str(path), "correct the records, or the domain if there is one")]
    return []


def _shared_subjects(opened: LocatedSource, shared: set[str]) -> list[Problem]:
    if not shared:
        return []
    what = f"{len(shared)} subjects (for instance '{min(shared)}') are in both the train and the test part"
    return [Place(opened.name).warning(what, "load_splits will cut these subjects into owner, attacker and victims")]


class _Checker:
    """Collects the problems of one source."""

    def __init__(self, opened: LocatedSource, source: Source) -> None:
        self._opened = opened
        self._source = source
        self._where = Place(source.label)
        self._problems: list[Problem] = []
        self.subjects: set[str] = set()

    def run(self, x: Names, utility: Names, private: Names, id: str | None, domain: DomainName) -> list[Problem]:
        self._problems += [self._where.warning(*remark) for remark in self._source.remarks]
        roles = self._roles(x, utility, private, id)
        if roles is not None:
            try:
                declared = domain_for(domain, self._opened.entry, self._source)
            except SfumatoError as error:
                self._problems.append(problem_of(error, self._source.label, "correct the domain"))
                return self._problems
            if declared is not None and not roles.named:
                kept = tuple(name for name in roles.x if name not in declared.leave_out)
                roles = replace(roles, x=kept or roles.x)
            self._pass(roles, judged=declared is None)
        return self._problems

    def _error(self, what: str, remedy: str) -> None:
        """Report an error of the whole source."""
        self._problems.append(self._where.error(what, remedy))

    def _roles(self, x: Names, utility: Names, private: Names, id: str | None) -> Roles | None:
        """Resolve the roles, reporting and leaving out every missing column."""
        entry, columns = self._opened.entry, self._source.columns
        aliases = entry.labels if entry else {}
        kept: dict[str, tuple[str, ...] | None] = {}
        for role, names in (("utility", utility), ("private", private)):
            if names is None:
                kept[role] = None
                continue
            specs = as_names(names)
            kept[role] = tuple(s for s in specs if self._known(s, parse(s, columns, aliases).column, tuple(aliases)))
        if x is not None:
            names = as_names(x)
            if len(names) > 1:
                x = tuple(name for name in names if self._known(name, name)) or None
            elif names[0].split(":", 1)[0] not in columns and not self._known(names[0], names[0]):
                x = None
        if id is not None and not self._known(id, id):
            id = None
        try:
            return resolve(self._source, entry, x=x, utility=kept["utility"], private=kept["private"], id=id)
        except SfumatoError as error:
            self._problems.append(problem_of(error, self._source.label, "correct the column names"))
            return None

    def _known(self, spec: str, column: str, further: Sequence[str] = ()) -> bool:
        if column in self._source.columns:
            return True
        near = difflib.get_close_matches(column, [*self._source.columns, *further], n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"the file has {', '.join(self._source.columns[:12])}"
        self._error(f"no column '{column}'" + (f" (for '{spec}')" if spec != column else ""), hint.rstrip("?"))
        return False

    def _pass(self, roles: Roles, *, judged: bool) -> None:
        import pyarrow.compute as pc

        source = self._source
        try:
            schema = shape_of(source, roles, self._opened.entry)
        except SfumatoError as error:
            remedy = "remove these columns from x (--x) or correct them"
            self._problems.append(problem_of(error, source.label, remedy))
            schema = None
        records = _Records(schema, roles, source, self._opened.side, judged=judged)
        labels = {label.name: _Label(label, source, self._opened.entry) for label in roles.labels}
        pairs: Counter[tuple[str, ...]] = Counter()
        missing_ids: list[int] = []
        rows = 0
        try:
            for first_row, batch in source.batches(roles.columns(), CHECK_ROWS):
                rows += batch.num_rows
                records.add(first_row, batch)
                values = [labels[label.name].add(first_row, batch.column(label.column)) for label in roles.labels]
                if all(one is not None for one in values):
                    pairs.update(zip(*[one for one in values if one is not None], strict=True))
                if roles.id:
                    ids = as_text(batch.column(roles.id))
                    self.subjects.update(one for one in pc.unique(ids).to_pylist() if one is not None)
                    empty = ids.is_null().to_numpy(zero_copy_only=False)
                    missing_ids += (first_row + np.flatnonzero(empty)).tolist()
        except DataError as error:
            self._problems.append(problem_of(error, source.label, "repair the file"))
            return
        if rows == 0:
            self._error("contains no records", "provide a file with at least one row")
            return
        self._problems += records.problems()
        for one in labels.values():
            self._problems += one.problems()
        if missing_ids:
            where = Place(source.label, roles.id, missing_ids[0])
            what = f"{counted(len(missing_ids), 'id is', 'ids are')} missing"
            self._problems.append(where.error(what, FILL_IN))
        self._relations(roles, pairs, {name for name, one in labels.items() if one.number is not None})

    def _relations(self, roles: Roles, pairs: Counter[tuple[str, ...]], numbers: set[str]) -> None:
        """Report private labels determined by a utility label: no mechanism can hide them and keep the utility."""
        names = [label.name for label in roles.labels]
        for utility in roles.utility:
            for private in roles.private:
                if {utility.name, private.name} & numbers:
                    continue
                u, p = names.index(utility.name), names.index(private.name)
                seen = {(pair[u], pair[p]) for pair in pairs}
                utilities, privates = {one for one, _ in seen}, {two for _, two in seen}
                if len(utilities) < 2 or len(seen) > len(utilities):
                    continue
                if len(seen) == len(privates):
                    what = f"the private label is the utility label '{utility.name}' under other names"
                    remedy = "choose another one, because what others may learn cannot also be hidden"
                else:
                    what = f"the private label follows from the utility label '{utility.name}'"
                    remedy = "expect it to leak to the extent that the utility is kept"
                self._problems.append(replace(self._where, column=private.name).warning(what, remedy))


class _Label:
    """Counts the classes of one label."""

    def __init__(self, label: Expression, source: Source, entry: Entry | None) -> None:
        self._label = label
        self._fit, self._failed = fit_of(label, source, entry), False
        self._source = source
        self._column = Place(source.label, label.column)
        self._counts: Counter[str] = Counter()
        self._missing: list[int] = []
        self._wrong: Problem | None = None

    @property
    def number(self) -> NumberScale | None:
        """Its scale if it is a number."""
        try:
            return None if self._failed else self._fit.scale()
        except DataError:
            return None

    def _look(self, first_row: int, array: Any) -> None:
        """See whether it is a number; what keeps it from being a class is reported elsewhere."""
        try:
            if not self._failed:
                self._fit.add(first_row, array)
        except DataError:
            self._failed = True

    def add(self, first_row: int, array: Any) -> list[str] | None:
        """Return the class of each record ("" if missing), or None if the column cannot be a label."""
        self._look(first_row, array)
        if self._wrong is not None:
            return None
        if is_unusable(array.type):
            what = f"values of type {array.type} cannot be a label"
            self._wrong = self._column.error(what, "use text, whole numbers or booleans")
            return None
        empty = as_text(array).is_null().to_numpy(zero_copy_only=False)
        self._missing += (first_row + np.flatnonzero(empty)).tolist()
        out = [""] * len(array)
        present = np.flatnonzero(~empty)
        try:
            values = values_of(self._label, array.take(present), self._source.label, first_row).to_pylist()
        except DataError as error:
            self._wrong = problem_of(error, self._source.label, "correct the column or use an expression as the label")
            return None
        for place, value in zip(present, values, strict=True):
            out[place] = value
        self._counts.update(values)
        return out

    def problems(self) -> Iterator[Problem]:
        """Return what keeps the column from being a label, or else what is wrong with the label."""
        label = Place(self._source.label, self._label.name)
        if self.number is not None:
            yield from number_problems(self.number, self._fit.gaps, label)
            return
        if self._wrong is not None:
            yield self._wrong
            return
        if self._missing:
            what = f"{counted(len(self._missing), 'label is', 'labels are')} missing"
            yield label.below(self._missing[0]).error(what, FILL_IN)
        if len(self._counts) == 1:
            what = f"the label has only one class, '{next(iter(self._counts))}'"
            yield label.error(what, "add records of other classes or use another label")
        few = sorted((count, name) for name, count in self._counts.items() if count < FEW_RECORDS)
        if few:
            shown = ", ".join(f"'{name}' {count}" for count, name in few[:SHOWN_CLASSES])
            what = f"{len(few)} of {len(self._counts)} classes have fewer than {FEW_RECORDS} records ({shown})"
            yield label.warning(what, "add records or merge classes")


class _Records:
    """Checks that records are readable, of one shape, finite, not constant and not repeated."""

    def __init__(self, schema: Schema | None, roles: Roles, source: Source, side: int | None, *, judged: bool) -> None:
        self._schema = schema
        self._roles = roles
        self._source = source
        self._side = side
        self._bad: list[tuple[int, DataError]] = []
        self._seen: dict[bytes, tuple[int, str | None]] = {}  # digest of a record: where it was first, and whose
        self._twice: list[tuple[int, int]] = []
        self._columns = {
            name: TableColumn(
                Place(source.label, name),
                source.schema.field(name).type,
                source.untyped,
                judged=judged and (schema is None or not schema.columns),
                named=roles.named,
            )
            for name in roles.x
        }
        self._not_finite: list[int] = []

    def add(self, first_row: int, batch: Any) -> None:
        """Add a batch of records."""
        column = self._roles.x[0]
        arrow_type = batch.column(column).type
        if is_encoded(arrow_type):
            self._remember(first_row, batch, self._encoded(first_row, batch, column))
        elif is_list(arrow_type):
            self._lists(first_row, batch)
        else:
            for name, seen in self._columns.items():
                seen.add(first_row, batch.column(name))
            # A row counts as repeated only if its labels are repeated as well.
            rows = zip(
                *(
                    as_text(array).to_pylist() if not is_list(array.type) else array.to_pylist()
                    for name, array in zip(batch.schema.names, batch.columns, strict=True)
                    if name != self._roles.id
                ),
                strict=True,
            )
            self._remember(first_row, batch, (_digest(repr(row).encode()) for row in rows))

    def _encoded(self, first_row: int, batch: Any, column: str) -> Iterator[bytes]:
        for place, cell in enumerate(batch.column(column)):
            value = cell.as_py()
            data = value.get("bytes") if isinstance(value, dict) else value
            self._try(first_row + place, batch.slice(place, 1))
            yield _digest(data) if data else b""

    def _lists(self, first_row: int, batch: Any) -> None:
        try:
            values = self._dense(first_row, batch)
        except DataError:
            self._try_each(first_row, batch)
            return
        flat = np.ascontiguousarray(values).reshape(len(values), -1)
        if flat.dtype.kind == "f":
            self._not_finite += (first_row + np.flatnonzero(~np.isfinite(flat).all(axis=1))).tolist()
        elif self._schema is not None and self._schema.kind == "image":
            self._try_all(first_row, batch)
        self._remember(first_row, batch, (_digest(row.tobytes()) for row in flat))

    def _try_all(self, first_row: int, batch: Any) -> None:
        """Encode the whole batch, and go through its records one by one only if that fails."""
        before = len(self._bad)
        self._try(first_row, batch)
        if len(self._bad) > before:
            del self._bad[before:]
            self._try_each(first_row, batch)

    def _try_each(self, first_row: int, batch: Any) -> None:
        for place in range(batch.num_rows):
            self._try(first_row + place, batch.slice(place, 1))

    def _try(self, row: int, one: Any) -> None:
        if self._schema is None:
            return
        try:
            if self._schema.kind in ("image", "audio"):
                encode_records(self._source, one, row, self._schema, self._side)
            else:
                self._check_numbers(row, one)
        except DataError as error:
            self._bad.append((row, error))

    def _check_numbers(self, row: int, one: Any) -> None:
        cells = self._dense(row, one)
        if self._schema is not None and cells[0].size != self._schema.size:
            what = f"the record has {cells[0].size} values, others have {self._schema.size}"
            raise Place(self._source.label, self._roles.x[0], row).fault(what, "make all records the same length")
        check_finite(cells, Place(self._source.label, self._roles.x[0], row))

    def _dense(self, first_row: int, batch: Any) -> Any:
        column = self._roles.x[0]
        where = Place(self._source.label, column, first_row)
        return dense(batch.column(column), where, self._source.cell_shapes.get(column))

    def _remember(self, first_row: int, batch: Any, digests: Iterator[bytes]) -> None:
        subject = self._roles.id
        whose = as_text(batch.column(subject)).to_pylist() if subject else [None] * batch.num_rows
        for place, (digest, who) in enumerate(zip(digests, whose, strict=True)):
            before, other = self._seen.setdefault(digest, (first_row + place, who))
            if digest and before != first_row + place and (subject is None or who != other):
                self._twice.append((first_row + place, before))

    def problems(self) -> Iterator[Problem]:
        """Return what is wrong with the records, then with single columns, then the repeats."""
        where = Place(self._source.label, self._roles.x[0] if len(self._roles.x) == 1 else None)
        reasons: dict[str, list[tuple[int, Place]]] = {}
        for row, error in self._bad:
            what = error.what if isinstance(error, FaultHere) else _sentence(error)
            place = error.where if isinstance(error, FaultHere) and error.where.record else where.below(row)
            reasons.setdefault(what, []).append((row, place))
        for what, found in reasons.items():
            shown = f" ({len(found)} records: {_shown(found, where.file)})" if len(found) > 1 else ""
            yield found[0][1].error(what + shown, "replace them or remove them")
        if self._not_finite:
            what = f"{counted(len(self._not_finite), 'record holds', 'records hold')} NaN or infinity"
            yield where.below(self._not_finite[0]).error(what, FILL_IN)
        for seen in self._columns.values():
            yield from seen.problems()
        yield from reading_notes(Place(self._source.label), self._columns.values())
        if self._twice:
            row, before = self._twice[0]
            many = "1 record repeats" if len(self._twice) == 1 else f"{len(self._twice)} records repeat"
            whose = " of somebody else" if self._roles.id else ""
            first, second = (rows_text(where.file, [one]) for one in (row, before))
            what = f"{many} an earlier one{whose} ({first} repeats {second})"
            remedy = "remove repeats or give them the same id, so that they stay in one split"
            yield where.below(row).warning(what, remedy)


def _shown(found: Sequence[tuple[int, Place]], file: str) -> str:
    """Where some records are: by name where they are files."""
    if found[0][1].record is None:
        return rows_text(file, [row for row, _ in found])
    names = ", ".join(str(place.record) for _, place in found[:SHOWN_CLASSES])
    return names + (", …" if len(found) > SHOWN_CLASSES else "")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".")
