"""Column roles: which columns form the record, which are labels, and which one names the subject."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.errors import UsageError, unknown
from sfumato.core.schema import Schema
from sfumato.data.encoding.list_cells import is_encoded, is_list
from sfumato.data.file_errors import Place
from sfumato.data.label_expressions import Expression, parse
from sfumato.data.readers.media_folder import CLASS, FolderSource
from sfumato.data.readers.source import Source
from sfumato.data.registry import Entry

Names = str | Sequence[str] | None

_SHAPED = re.compile(r"^(?P<column>.+):(?P<shape>\d+(x\d+)*)$")


@dataclass(frozen=True)
class Roles:
    """The columns of a file by role.

    ``shape`` is the record shape that the user gave, for cells stored flat; ``named`` says that the user named the
    columns of ``x``.
    """

    x: tuple[str, ...]
    utility: tuple[Expression, ...]
    private: tuple[Expression, ...]
    id: str | None = None
    shape: tuple[int, ...] | None = None
    named: bool = False

    @property
    def labels(self) -> tuple[Expression, ...]:
        """The utility labels, followed by the private ones."""
        return self.utility + self.private

    def columns(self) -> list[str]:
        """Return every column that has to be read, without repeats."""
        wanted = [*self.x, *(label.column for label in self.labels), *([self.id] if self.id else [])]
        return list(dict.fromkeys(wanted))


def as_names(value: Names) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def resolve(
    source: Source,
    entry: Entry | None,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
) -> Roles:
    """Resolve the roles a user asked for, with defaults from the entry or the file. Unknown names raise."""
    aliases = entry.labels if entry is not None else {}
    if utility is None:
        utility = entry.utility if entry else ((CLASS,) if _has_classes(source) else ())
    if private is None:
        private = entry.private if entry else ()
    if id is None and entry is not None and entry.id in source.columns:
        id = entry.id
    labels = [tuple(parse(spec, source.columns, aliases) for spec in as_names(specs)) for specs in (utility, private)]
    _check_labels(source, labels[0] + labels[1], aliases)
    if id is not None and id not in source.columns:
        raise unknown(f"id column of {source.label}", id, source.columns)
    taken = {label.column for label in labels[0] + labels[1]} | ({id} if id else set())
    names, shape = _records(source, as_names(x) or ((entry.x,) if entry and entry.x else ()), taken)
    return Roles(names, labels[0], labels[1], id, shape, named=bool(as_names(x)))


def of_schema(
    source: Source,
    schema: Schema,
    entry: Entry | None,
    *,
    utility: bool = True,
    private: bool = True,
    required: bool = True,
) -> Roles:
    """Resolve the roles a fitted schema needs. A missing column raises, a missing label only if ``required``."""
    for column in schema.x_columns:
        if column not in source.columns:
            remedy = f"provide the columns of training (this file has {', '.join(source.columns[:12])})"
            raise Place(source.label, column).fault("the column is missing", remedy)
    chosen: list[tuple[Expression, ...]] = []
    for group, wanted in ((schema.utility, utility), (schema.private, private)):
        found = []
        for name in group if wanted else ():
            label = _label_of(source, schema, entry, name)
            if label is not None:
                found.append(label)
            elif required:
                where = Place(source.label, schema.sources.get(name, name))
                remedy = "add the column, or run without labels if they are not needed"
                raise where.fault(f"the label '{name}' is missing", remedy)
        chosen.append(tuple(found))
    id = schema.id_column if schema.id_column in source.columns else None
    return Roles(schema.x_columns, chosen[0], chosen[1], id, schema.shape)


def _label_of(source: Source, schema: Schema, entry: Entry | None, name: str) -> Expression | None:
    spec = schema.sources.get(name, name)
    label = parse(spec, source.columns, entry.labels if entry else {}, name)
    if label.column in source.columns:
        return label
    return Expression(name, name) if name in source.columns else None


def _has_classes(source: Source) -> bool:
    return isinstance(source, FolderSource) and CLASS in source.columns


def _check_labels(source: Source, labels: Sequence[Expression], aliases: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for label in labels:
        if label.column not in source.columns:
            raise unknown(f"label column of {source.label}", label.column, (*source.columns, *aliases))
        if label.name in seen:
            raise UsageError(f"label '{label.name}' is given twice: name each label once, as utility or as private.")
        seen.add(label.name)


def _records(
    source: Source, wanted: tuple[str, ...], taken: set[str]
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Return the record columns, and the shape if x was written as ``name:9x128``."""
    if not wanted:
        return _default_records(source, taken), None
    shape = None
    shaped = _SHAPED.match(wanted[0])
    if len(wanted) == 1 and wanted[0] not in source.columns and shaped is not None:
        wanted = (shaped["column"],)
        shape = tuple(int(side) for side in shaped["shape"].split("x"))
    for name in wanted:
        if name not in source.columns:
            raise unknown(f"column of {source.label}", name, source.columns)
        if name in taken:
            raise UsageError(f"column '{name}' is a label or the id, so it cannot be part of x: remove it from x.")
    whole = [name for name in wanted if _is_whole_record(source, name)]
    if whole and len(wanted) > 1:
        raise UsageError(f"column '{whole[0]}' holds whole records, so it must be the only column of x.")
    return wanted, shape


def _default_records(source: Source, taken: set[str]) -> tuple[str, ...]:
    free = [name for name in source.columns if name not in taken]
    whole = [name for name in free if _is_whole_record(source, name)]
    if len(whole) > 1 and "x" not in whole:
        raise UsageError(f"{source.label} has several record columns ({', '.join(whole)}): choose one with x=.")
    if whole:
        return ("x",) if "x" in whole else (whole[0],)
    if not free:
        raise UsageError(f"{source.label} has no column left for x: every column is a label or the id.")
    return tuple(free)


def _is_whole_record(source: Source, name: str) -> bool:
    arrow_type = source.schema.field(name).type
    return is_encoded(arrow_type) or is_list(arrow_type)
