"""Which payload of a foreign release belongs to which record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import DataError
from sfumato.data.label_expressions import is_number
from sfumato.data.payload_columns import PayloadTable, centred

Rows = npt.NDArray[np.intp]
FEWEST = 30
"""Pairs of which an audit can say anything."""


@dataclass(frozen=True)
class Paired:
    """Records with their payloads.

    records    those that have a payload, in the order of their file
    payload    (N, …), that of each, with mean 0 and deviation 1 unless it is in the records' units
    raw        (N, …), the same as it was read
    leave      the utility labels that stand in the release beside the payload, as they are in the records
    in_record_units  whether payloads are in the records' units
    missing    records without a payload
    """

    records: Dataset
    payload: FloatArray
    raw: FloatArray
    leave: tuple[str, ...]
    in_record_units: bool
    missing: int


def paired(records: Dataset, table: PayloadTable, release: str) -> Paired:
    """Line up records and payloads by their ids, where both name every subject once, else row by row.

    Raises:
        DataError: They cannot be lined up without a guess; the message says at which row or id.
    """
    kept, order = _by_id(records, table, release)
    data = records.take(kept)
    if len(data) < FEWEST:
        raise DataError(
            f"{release} holds payloads of {len(data)} records of {records.name}: an audit needs {FEWEST} or more."
        )
    payload, leave = table.payload[order], []
    for name, texts in table.labels.items():
        if _unchanged(data, name, texts[order]):
            leave.append(name)
        else:  # a changed label is a payload like any other number
            payload = np.concatenate([payload.reshape(len(payload), -1), _one_hot(texts[order])], axis=1)
    same = table.in_record_units and payload.shape[1:] == table.payload.shape[1:]
    scaled = payload if same else centred(payload, payload)
    return Paired(data, scaled, payload, tuple(leave), same, len(records) - len(data))


def _by_id(records: Dataset, table: PayloadTable, release: str) -> tuple[Rows, Rows]:
    """Rows of the records, and for each the row in the release."""
    theirs = table.ids
    every = np.arange(len(records))
    if theirs is None or not records.named:
        _equally_many(records, table, release)
        return every, every
    once = len(np.unique(records.ids)) == len(records)
    if once:
        return _matched(records, theirs, release)
    _equally_many(records, table, release)
    if (records.ids != theirs).any():
        row = int(np.argmax(records.ids != theirs))
        raise DataError(
            f"{release}, row {row}: the payload is of '{theirs[row]}', the record in that row of {records.name} of "
            f"'{records.ids[row]}'; somebody has several records, so that both files must have one order: sort them "
            "alike."
        )
    return every, every


def _matched(records: Dataset, theirs: npt.NDArray[np.str_], release: str) -> tuple[Rows, Rows]:
    names, first, counts = np.unique(theirs, return_index=True, return_counts=True)
    if counts.max() > 1:
        twice = names[int(np.argmax(counts > 1))]
        raise DataError(
            f"{release} holds {counts.max()} payloads of '{twice}', {records.name} one record: give one payload for "
            "each record, or name the second release as one (--release twice)."
        )
    strangers = np.setdiff1d(names, records.ids)
    if len(strangers):
        raise DataError(
            f"{release} holds a payload of '{strangers[0]}' ({len(strangers)} such ids), of whom {records.name} has no "
            "record: give the record of every payload."
        )
    place: Mapping[str, int] = dict(zip(names.tolist(), first.tolist(), strict=True))
    kept = np.array([row for row, id in enumerate(records.ids.tolist()) if id in place], dtype=np.intp)
    return kept, np.array([place[id] for id in records.ids[kept].tolist()], dtype=np.intp)


def _equally_many(records: Dataset, table: PayloadTable, release: str) -> None:
    if len(table.payload) != len(records):
        raise DataError(
            f"{release} holds {len(table.payload)} payloads, {records.name} {len(records)} records, and no id lines "
            "them up: give one payload for each record in the same order, or name the column of both files that says "
            "whose it is (--id)."
        )


def _unchanged(data: Dataset, name: str, texts: npt.NDArray[np.str_]) -> bool:
    """Whether these are the labels of the records; a number may be written in another form."""
    if name not in data.schema.numbers:
        return bool((np.array(data.schema.classes(name))[data.utility[name]] == texts).all())
    if not all(is_number(text) for text in texts.tolist()):
        return False
    step = data.schema.numbers[name].step
    return bool(np.allclose(texts.astype(np.float64), data.numbers(name), rtol=0.0, atol=step))


def _one_hot(texts: npt.NDArray[np.str_]) -> FloatArray:
    names, codes = np.unique(texts, return_inverse=True)
    return np.eye(len(names), dtype=np.float32)[codes]
