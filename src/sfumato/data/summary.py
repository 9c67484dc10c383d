"""Summaries of data sets as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.dataset import Dataset
from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.dates import text_of
from sfumato.data.registry import REGISTRY, ByHand, Embedded, Entry


def listing() -> list[dict[str, Any]]:
    """Return the named data sets as plain JSON values, with the place each would be read from."""
    from sfumato.data.download import at_hand

    return [
        {
            "name": entry.name,
            "title": entry.title,
            "kind": entry.kind,
            "size": sum(entry.rows),
            "utility": ", ".join(entry.utility),
            "private": ", ".join(entry.private),
            "where": "embedded" if isinstance(entry.source, Embedded) else _where(entry, at_hand(entry)),
            "source": str(entry.source),
            "licence": entry.licence,
        }
        for entry in REGISTRY.values()
    ]


def _where(entry: Entry, parts: dict[str, Path]) -> str:
    if parts:
        return str(next(iter(parts.values())).parent)
    return "to be put there by hand" if isinstance(entry.source, ByHand) else "to download"


def describe(dataset: Dataset) -> dict[str, Any]:
    """Summarise a data set.

    Args:
        dataset: The data set to describe.

    Returns:
        Plain JSON values: size, kind, shape, ranges, subjects, and for each label the records per class.
    """
    schema = dataset.schema
    out: dict[str, Any] = {
        "name": dataset.name,
        "kind": schema.kind,
        "records": len(dataset),
        "subjects": len(np.unique(dataset.ids)),
        "shape": list(schema.shape),
        "numbers_per_record": schema.size,
        "x_columns": list(schema.x_columns),
        "id_column": schema.id_column,
        "mean": float(dataset.x.mean(dtype=np.float64)) if len(dataset) else None,
        "left_out": dataset.left_out,
        "megabytes": round(dataset.x.nbytes / 2**20, 1),
        "utility": {},
        "private": {},
    }
    for role, labels in (("utility", dataset.utility), ("private", dataset.private)):
        for name, codes in labels.items():
            if name in schema.numbers:
                values, source = dataset.numbers(name), schema.sources.get(name, name)
                out[role][name] = {"from": source, "number": [float(values.min()), float(values.max())]}
                out[role][name] |= {"mean": float(values.mean()), "median": float(np.median(values))}
                continue
            classes = schema.classes(name)
            counts = np.bincount(codes, minlength=len(classes))
            out[role][name] = {
                "from": schema.sources.get(name, name),
                "classes": {shown: int(count) for shown, count in zip(classes, counts, strict=True)},
                "most_frequent": float(counts.max() / max(len(codes), 1)),
            }
    if schema.kind == "signal":
        out["ranges"] = [list(pair) for pair in schema.ranges]
    if schema.kind == "table":
        out["columns"] = [_column(column, schema.columns) for column in schema.columns if not column.cycle]
        out["not_in_records"] = dict(schema.left_out)
    return out


def _column(column: Column, others: Sequence[Column]) -> dict[str, Any]:
    about: dict[str, Any] = {"name": column.name, "kind": column.kind, "missing": column.nullable}
    if column.kind == "categorical":
        return about | {"categories": len(column.categories)}
    if column.form:
        cycles = {one.cycle.partition(" ")[0]: None for one in others if one.of == column.name}
        low, high = (text_of(end, column.form, whole=column.integer) for end in (column.low, column.high))
        return about | {"kind": "date", "low": low, "high": high, "form": column.form, "cycles": list(cycles)}
    absent = {"absent": list(column.absent)} if column.absent else {}
    return about | {"low": column.low, "high": column.high} | absent


def readings(schema: Schema) -> list[str]:
    """What a user should know before a fit: columns that are left out, and texts that count as missing."""
    reasons: dict[str, list[str]] = {}
    for name, why in schema.left_out.items():
        reasons.setdefault(why, []).append(name)
    told = [f"left out of the records: {', '.join(names)} ({why})" for why, names in reasons.items()]
    absent = {one.name: one.absent for one in schema.columns if one.absent and not one.cycle}
    for name, texts in absent.items():
        shown = " and ".join(f"'{text}'" for text in texts)
        told.append(f"column '{name}' holds numbers or dates; {shown} there counts as missing")
    return told
