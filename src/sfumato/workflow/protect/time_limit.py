"""How long a search may take, and what is known of how long things take."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from sfumato.core.errors import SfumatoError, UsageError

_WITHIN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
HARDER = 8.0
"""How many times longer an audit at full effort takes than a cheap one, until one was done."""
WHOLE = 1.5
"""How many times longer an audit by all threats takes than one by those that are limited, for the same effort."""


class OutOfTime(SfumatoError):
    """A fit that was stopped, because the time limit left no more for it."""


def seconds_of(text: str) -> float:
    """ "15m", "90s", "1h" or a number of seconds."""
    found = _WITHIN.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"--within {text}: write a time such as 90s, 15m or 1h.")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def as_text(seconds: float) -> str:
    """A time as it is written on the command line, rounded up."""
    if seconds < 90:
        return f"{max(1, -(-int(seconds * 10) // 10))}s"
    return f"{-(-int(seconds) // 60)}m"


@dataclass
class Costs:
    """Seconds of what was done so far: of fits with their cheap audits by mechanism, and of audits by kind."""

    tried: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cheap: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)

    def note(self, mechanism: str, fit: float, audit: float, *, whole: bool = True) -> None:
        """A candidate was tried; its audit counts for others if it was a ``whole`` one."""
        self.tried[mechanism].append(fit + audit)
        if whole:
            self.cheap.append(audit)

    def of(self, mechanism: str) -> float:
        """What trying that mechanism is likely to take: as before, or as the others did."""
        own = self.tried.get(mechanism) or [one for each in self.tried.values() for one in each]
        return max(own, default=0.0)

    def harder(self, same: bool) -> float:
        """What an audit at full effort is likely to take; the ``same`` effort takes the same time."""
        if self.full:
            return max(self.full)
        mean = sum(self.cheap) / max(1, len(self.cheap))
        return mean * (1.0 if same else HARDER)


class TimeLimit:
    """A span of time from now on; None: no end."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._began = clock()
        self.seconds = seconds

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return float("inf") if self.seconds is None else self.seconds - self.spent

    @property
    def end(self) -> float | None:
        """The moment when it is over, by the clock of the machine."""
        return None if self.seconds is None else self._began + self.seconds

    def leaves(self, seconds: float) -> bool:
        """Whether something that takes so long would still be over in time."""
        return seconds <= self.left
