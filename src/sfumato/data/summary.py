"""Summaries of data sets as plain JSON values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.dataset import Dataset
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
        out["columns"] = [
            {"name": column.name, "kind": column.kind, "missing": column.nullable}
            | (
                {"categories": len(column.categories)}
                if column.kind == "categorical"
                else {"low": column.low, "high": column.high}
            )
            for column in schema.columns
        ]
    return out
