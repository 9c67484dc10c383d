"""Columns that seem to name people who have several rows: whoever splits or promises by row should know."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from sfumato.data.column_roles import Names, as_names
from sfumato.data.encoding.dates import FORMS, number_of
from sfumato.data.encoding.list_cells import is_encoded
from sfumato.data.encoding.tables import as_numbers, as_text, is_text
from sfumato.data.file_errors import Place, Problem
from sfumato.data.label_expressions import parse
from sfumato.data.readers.locate import SourceName, open_data
from sfumato.data.readers.source import Source

_WORDS = frozenset(
    {
        "id", "uid", "uuid", "guid", "person", "patient", "user", "subject", "client", "customer", "member", "employee",
        "student", "participant", "household", "email", "passport", "account", "ssn",
    }
)  # fmt: skip
_ENDINGS = ("id", "no", "nr", "name", "number", "code")
_LEAST, _MOST_ROWS = 10, 100
"""Fewer values are classes rather than people, and so is a value with more rows than this on average."""
_ROWS = 65_536
_SOME = 50


def likely_subjects(source: SourceName, labels: Names = None) -> list[Problem]:
    """Return a warning for each column of a file that looks like an id whose values repeat, but for the ``labels``.

    A column looks like an id by its name, or if it is text that is different in more than half of the rows. Named sets
    say themselves who is who.
    """
    opened = open_data(source)
    if opened.entry is not None:
        return []
    return [
        found
        for part in opened.parts.values()
        for name in sorted(set(part.columns) - {parse(label, part.columns).column for label in as_names(labels)})
        if not _nested(part, name) and (found := _warning(part, name)) is not None
    ]


def _warning(source: Source, name: str) -> Problem | None:
    counts: Counter[str] = Counter()
    words = False
    for _, batch in source.batches([name], _ROWS):
        array = batch.column(name)
        if is_text(array.type) and _are_dates(array):
            return None
        words = words or (is_text(array.type) and as_numbers(array) is None)
        counts.update(value for value in as_text(array).to_pylist() if value is not None)
    rows = counts.total()
    if not _LEAST <= len(counts) < rows <= _MOST_ROWS * len(counts):
        return None
    if not (_is_name(name) or (words and 2 * len(counts) > rows)):
        return None
    what = f"looks like an id, with {len(counts):,} values in {rows:,} rows"
    remedy = "if it names people, give it with --id: otherwise they are split, and protected, row by row"
    return Place(source.label, name).warning(what, remedy)


def _are_dates(array: Any) -> bool:
    """Whether some texts are dates or times: they repeat without naming people."""
    some = [text for text in as_text(array.slice(0, _SOME)).to_pylist() if text is not None]
    return bool(some) and any(all(number_of(text, form) is not None for text in some) for form in FORMS)


def _is_name(column: str) -> bool:
    """Whether a column is called like people: person_id, userId, PatientNo, email …"""
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", column)
    words = [word.lower() for word in re.split(r"[^A-Za-z]+", parts) if word]
    cut = [word.removesuffix(ending) for word in words for ending in _ENDINGS if word.endswith(ending)]
    return any(word in _WORDS for word in (*words, *cut))


def _nested(source: Source, name: str) -> bool:
    import pyarrow.types as pt

    kind = source.schema.field(name).type
    return bool(pt.is_nested(kind) or is_encoded(kind) or pt.is_temporal(kind))
