"""A schema as a domain file: the draft that the owner of the records corrects."""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.dates import text_of
from sfumato.data.label_expressions import parse
from sfumato.data.numeric_labels import column_of

_DRAFT = """\
# A draft of the domain of {source}, READ FROM ITS RECORDS: it is not private.
# Before you use it with --domain, correct every range and list from public knowledge (a questionnaire, a standard, a
# manual): a bound set by a single record, or a category that only one record has, gives that record away.
# Then delete the next line. As long as it is there, mechanisms with a privacy guarantee refuse the file.
draft = true

"""
CONSTANT = "it has one value only"


def draft(schema: Schema, source: str) -> str:
    """Return a schema as a domain file, marked as a draft for the owner to correct if it was read from records.

    What a domain would refuse is left out: columns with one value only. A constant entry of a list gets a range.
    """
    import tomli_w

    columns: dict[str, Any] = {}
    left_out = dict(schema.left_out)
    if schema.kind == "signal":
        ranges = [[low, high if low < high else low + 1.0] for low, high in schema.ranges]
        columns[schema.x_columns[0]] = {"kind": "signal", "ranges": ranges}
    for column in schema.columns:
        if column.cycle:
            continue
        if column.name in schema.x_columns and is_constant(column):
            left_out[column.name] = CONSTANT
        else:
            columns[column.name] = declared(column)
    for label, classes in {**schema.utility, **schema.private}.items():
        asked = parse(schema.sources.get(label, label), ())
        if label in schema.numbers:
            columns[asked.column] = declared(column_of(asked.column, schema.numbers[label]))
        elif not asked.derived:  # the classes of a question are always no and yes
            columns[asked.column] = {"kind": "categorical", "categories": list(classes)}
    sums = [{"columns": list(one.columns), "total": one.total} for one in schema.sums]
    rules = [rule.declared() for rule in schema.rules]
    content = {"columns": columns, **({"sums": sums} if sums else {}), **({"rules": rules} if rules else {})}
    head = f"# The domain of {source}, as declared.\n\n" if schema.declared else _DRAFT.format(source=source)
    return head + leaving_out(left_out) + tomli_w.dumps(content)


def is_constant(column: Column) -> bool:
    """Whether every value of a table's column is the same, so that a domain refuses it."""
    if column.kind == "categorical":
        return column.width < 2
    return column.low >= column.high


def leaving_out(columns: dict[str, str]) -> str:
    """The columns that a domain leaves out, as TOML, with the reasons."""
    if not columns:
        return ""
    lines = [f"    {_text(name)},  # {why}" for name, why in columns.items()]
    return "\n".join(["# No part of a record:", "leave_out = [", *lines, "]", "", ""])


def _text(name: str) -> str:
    import tomli_w

    return tomli_w.dumps({"a": name}).removeprefix("a = ").strip()


def declared(column: Column) -> dict[str, Any]:
    """A column as a domain declares it."""
    gaps: dict[str, Any] = {"nullable": True} if column.nullable and not column.absent else {}
    if column.kind == "categorical":
        return {"kind": "categorical", "categories": list(column.categories), **gaps}
    if column.absent:
        gaps = {"absent": list(column.absent)}
    ends: list[Any] = [column.low, column.high if column.low < column.high else column.low + 1.0]
    if column.form:
        scale = 3_600 if column.form == "clock" else 86_400
        if not column.integer:  # text tells seconds
            ends = [math.floor(ends[0] * scale) / scale, math.ceil(ends[1] * scale) / scale]
        shown = [text_of(end, column.form, whole=column.integer) for end in ends]
        form = {} if column.form == "iso" else {"form": column.form}
        return {"kind": "date", "low": shown[0], "high": shown[1], **form, "integer": column.integer, **gaps}
    if column.integer:
        ends = [int(end) for end in ends]
    return {"kind": "numeric", "low": ends[0], "high": ends[1], "integer": column.integer, **gaps}
