"""Dates and times of day as numbers: days since 1970-01-01, or hours since midnight; and where they stand in a cycle.

``iso`` is 2024-03-31, with or without a time and an offset (times with an offset are taken to UTC). ``dmy`` and ``mdy``
are 31.03.2024 or 03/31/2024, divided by point, slash, hyphen or blank, months also by English name, with or without a
time. ``clock`` is 23:59 or 23:59:59. Arrow's own dates and times need no text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

DateForm = Literal["", "iso", "dmy", "mdy", "clock"]
FORMS: tuple[DateForm, ...] = ("iso", "dmy", "mdy", "clock")
CYCLES = {"day": 1.0, "week": 7.0, "year": 365.2425}
"""Their length in days."""
SINE, COSINE = "sine", "cosine"

_EPOCH = datetime(1970, 1, 1)
_MONDAY = 4.0
"""1970-01-05 was a Monday."""
_ISO = re.compile(r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$")
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?"
_PARTS = re.compile(
    rf"^(\d{{1,2}}|[A-Za-z]{{3,9}})[./\- ](\d{{1,2}}|[A-Za-z]{{3,9}})[./\-, ]\s?(\d{{4}})(?:[ T,]\s*{_TIME})?$"
)
_CLOCK = re.compile(rf"^{_TIME}$")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

Floats = npt.NDArray[np.float64]


def number_of(text: str, form: str) -> float | None:
    """Days since 1970 (``clock``: hours since midnight), or None if the text is not written in this form."""
    try:
        if form == "iso":
            return _days(_utc(datetime.fromisoformat(text))) if _ISO.match(text) else None
        if form == "clock":
            found = _CLOCK.match(text)
            return None if found is None else _clock(found.groups())
        parts = _PARTS.match(text)
        if parts is None:
            return None
        first, second, year, *clock = parts.groups()
        day, month = (first, second) if form == "dmy" else (second, first)
        hours = _clock(clock) if clock[0] is not None else 0.0
        return None if hours is None else _days(datetime(int(year), _month(month), int(day))) + hours / 24.0
    except (ValueError, OverflowError):
        return None


def text_of(number: float, form: str, *, whole: bool) -> str:
    """A number as ISO text: the date, and the time unless all are ``whole`` days; of ``clock`` the time."""
    if form == "clock":
        seconds = min(round(number * 3600.0), 86_399)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    moment = _EPOCH + timedelta(days=round(number)) if whole else _EPOCH + timedelta(seconds=round(number * 86_400.0))
    return moment.date().isoformat() if whole else moment.isoformat(sep=" ")


def as_dates(array: Any, form: str) -> tuple[Floats, dict[str, int]]:
    """The numbers of a column, NaN where there is none, and each text that is no date with its first place."""
    import pyarrow.compute as pc
    import pyarrow.types as pt

    from sfumato.data.encoding.tables import as_text

    if pt.is_temporal(array.type):
        return _of_arrow(array), {}
    coded = pc.dictionary_encode(as_text(array))
    texts: Sequence[str | None] = coded.dictionary.to_pylist()
    found = [None if text is None else number_of(text, form) for text in texts]
    values = np.array([np.nan if one is None else one for one in found] + [np.nan])
    codes = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
    odd = {
        text: int(np.argmax(codes == place))
        for place, text in enumerate(texts)
        if text is not None and found[place] is None
    }
    return np.asarray(values[codes], dtype=np.float64), odd


def in_cycle(numbers: Floats, cycle: str) -> Floats:
    """The sine or cosine of a place in a cycle (``"week sine"``), in [−1, 1]; 0 where the date is missing."""
    name, _, wave = cycle.partition(" ")
    turn = 2.0 * np.pi * ((numbers + _MONDAY - 1.0 if name == "week" else numbers) / CYCLES[name])
    found = np.sin(turn) if wave == SINE else np.cos(turn)
    return np.nan_to_num(np.asarray(found, dtype=np.float64), nan=0.0)


def _of_arrow(array: Any) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    if pt.is_time(array.type):
        steps = pc.cast(array.cast(pa.time64("ns")), pa.int64())
        scale = 3600.0 * 1e9
    else:
        steps = pc.cast(array.cast(pa.timestamp("us", getattr(array.type, "tz", None)), safe=False), pa.int64())
        scale = 86_400.0 * 1e6
    numbers: Floats = pc.cast(steps, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers / scale


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _days(moment: datetime) -> float:
    return (moment - _EPOCH).total_seconds() / 86_400.0


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS.index(text[:3].lower()) + 1


def _clock(parts: Sequence[str | None]) -> float | None:
    hours, minutes, seconds = (int(part or 0) for part in parts)
    return hours + minutes / 60.0 + seconds / 3600.0 if hours < 24 and minutes < 60 and seconds < 61 else None
