"""Tables of ``sfumato data show``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.cli.output import OUT, new_table, print_text

_CLASSES = 8


def print_description(about: Mapping[str, Any]) -> None:
    """A data set in words and tables: what it is, its labels, its columns, what is no part of a record."""
    shape = "×".join(map(str, about["shape"]))
    records, subjects = about["records"], about["subjects"]
    of = f" of {subjects:,} subjects ('{about['id_column']}')" if about["id_column"] else ""
    print_text(f"{about['name']}: {records:,} {about['kind']} records{of}, shape {shape}, {about['megabytes']} MB")
    if about["left_out"]:
        print_text(f"{about['left_out']:,} further rows have no number as their label and are left out")
    if about["utility"] or about["private"]:
        _print_labels(about)
    if about.get("columns"):
        _print_columns(about["columns"])
    for low, high in about.get("ranges", ())[:_CLASSES]:
        print_text(f"a channel from {low:g} to {high:g}")
    for name, why in about.get("not_in_records", {}).items():
        print_text(f"not in the records: '{name}', because {why}")


def _print_labels(about: Mapping[str, Any]) -> None:
    table = new_table("label", "role", "from", "values")
    for role in ("utility", "private"):
        for name, label in about[role].items():
            table.add_row(name, role, label["from"], _values(label))
    OUT.print(table)


def _values(label: Mapping[str, Any]) -> str:
    if "number" in label:
        low, high = label["number"]
        return f"a number from {low:,g} to {high:,g}, mean {label['mean']:,.4g}, median {label['median']:,.4g}"
    classes = sorted(label["classes"].items(), key=lambda pair: -pair[1]) if len(label["classes"]) > _CLASSES else None
    shown = classes[:_CLASSES] if classes else label["classes"].items()
    more = f", … ({len(label['classes']):,} classes)" if classes else ""
    return ", ".join(f"{name} {count:,}" for name, count in shown) + more


def _print_columns(columns: Any) -> None:
    listed = [one for one in columns if one["name"].endswith("]")]
    if len(listed) == len(columns) and len(columns) > _CLASSES:
        low, high = min(one["low"] for one in columns), max(one["high"] for one in columns)
        print_text(f"{len(columns):,} numbers a record, from {low:g} to {high:g}")
        return
    table = new_table("column", "read as", "values", "may be missing")
    for one in columns:
        absent = "".join(f", '{text}'" for text in one.get("absent", ()))
        table.add_row(one["name"], one["kind"], _range(one), (f"yes{absent}" if one["missing"] else ""))
    OUT.print(table)


def _range(column: Mapping[str, Any]) -> str:
    if column["kind"] == "categorical":
        return f"{column['categories']:,} categories"
    if column["kind"] == "date":
        cycles = f"; and its place in the {', '.join(column['cycles'])}" if column["cycles"] else ""
        return f"{column['low']} to {column['high']}{cycles}"
    return f"{column['low']:,g} to {column['high']:,g}"
