"""A domain file from a data dictionary: what is declared comes from the publisher, and nothing from the records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.core.errors import DataError
from sfumato.data.column_names import names_people, names_weight
from sfumato.data.column_roles import Names, Roles, resolve
from sfumato.data.dictionaries import DictionaryEntry, read_dictionary
from sfumato.data.drafted_domain import leaving_out
from sfumato.data.limits import MAX_CATEGORIES
from sfumato.data.readers.locate import SourceName, open_data
from sfumato.data.table_inference import IDS, SURVEY_WEIGHT, TOO_MANY

_HEAD = """\
# The domain of {of}, from the data dictionary {dictionary}; no record was looked at.
"""
_LACKING = """\
# The dictionary does not say enough about these columns. Declare each from public knowledge, or add it to leave_out:
"""


def domain_from(
    dictionary: Path,
    source: SourceName | None = None,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
) -> str:
    """The domain as TOML that a dictionary declares, for all its columns or for those of a file.

    Args:
        dictionary: See ``read_dictionary``.
        source: The file that the domain is for; only its header is read.
        x, utility, private, id: As for ``load``; columns that are in no role are not declared.

    Returns:
        The domain. Columns of which the dictionary does not say enough are named in comments, and weights, ids and
        columns of more values than sfumato takes are left out, with the reason.

    Raises:
        DataError: The dictionary cannot be read, or has none of the file's columns.
    """
    import tomli_w

    entries = {entry.name: entry for entry in read_dictionary(dictionary)}
    roles, of = None, dictionary.stem
    if source is not None:
        opened = open_data(source)
        of = opened.name
        roles = resolve(opened.reference, opened.entry, x=x, utility=utility, private=private, id=id)
        if not set(roles.columns()) & set(entries):
            raise DataError(
                f"{dictionary} describes none of the columns of {opened.reference.label} (it has "
                f"{', '.join(list(entries)[:6])}): give the dictionary of this file."
            )
    left_out: dict[str, str] = {}
    lacking: dict[str, str] = {}
    columns: dict[str, Any] = {}
    for name in _wanted(entries, roles):
        entry = entries.get(name, DictionaryEntry(name, why="the dictionary does not name it"))
        label = roles is not None and name not in roles.x
        why = None if label else _no_part(entry)
        if why is not None:
            left_out[name] = why
        elif entry.why:
            lacking[name] = entry.why
        else:
            columns[name] = _declared(entry)
    if not columns:
        raise DataError(f"{dictionary} says of no column what its values can be: declare them by hand.")
    text = _HEAD.format(of=of, dictionary=dictionary.name)
    if lacking:
        text += _LACKING + "".join(f"#   {name}: {why}\n" for name, why in lacking.items())
    return f"{text}\n{leaving_out(left_out)}{tomli_w.dumps({'columns': columns})}"


def _wanted(entries: dict[str, DictionaryEntry], roles: Roles | None) -> Sequence[str]:
    """The columns to declare: those of x and the labels whose values are classes or numbers."""
    if roles is None:
        return list(entries)
    plain = [label.column for label in roles.labels if not label.derived]
    return list(dict.fromkeys([*roles.x, *plain]))


def _no_part(entry: DictionaryEntry) -> str | None:
    if names_weight(entry.name):
        return SURVEY_WEIGHT
    if len(entry.codes) > MAX_CATEGORIES:
        return TOO_MANY
    if entry.why and names_people(entry.name):
        return IDS
    constant = len(entry.codes) + entry.nullable < 2 if entry.kind == "categorical" else entry.low == entry.high
    return "it has one value only" if constant and not entry.why and entry.kind != "date" else None


def _declared(entry: DictionaryEntry) -> dict[str, Any]:
    if entry.kind == "categorical":
        gaps: dict[str, Any] = {"nullable": True} if entry.nullable else {}
        return {"kind": "categorical", "categories": list(dict.fromkeys(entry.codes)), **gaps}
    gaps = {"absent": list(entry.absent)} if entry.absent else {"nullable": True} if entry.nullable else {}
    if entry.dates is not None:
        return {"kind": "date", "low": entry.dates[0], "high": entry.dates[1], "integer": entry.integer, **gaps}
    ends: list[Any] = [entry.low, entry.high]
    if entry.integer:
        ends = [int(end) for end in ends]
    return {"kind": "numeric", "low": ends[0], "high": ends[1], "integer": entry.integer, **gaps}
