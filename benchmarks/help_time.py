"""``sfumato --help`` answers at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.interleaved import figure, interleaved

LIMIT = 0.4


def run(small: bool = False) -> dict[str, Any]:
    """Wall-clock time of ten calls, with the interpreter's own start beside it."""

    def call(*words: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    ways = {"help": call("-m", "sfumato", "--help"), "python": call("-c", "pass")}
    rounds = interleaved(ways, 3 if small else 10)
    return {
        "claim": f"sfumato --help answers in less than {LIMIT} s",
        "holds": rounds.median("help") < LIMIT,
        "ratios": {"help over the interpreter's own start": rounds.ratio("help", "python").to_json()},
        "figures": {"seconds": figure(rounds.median("help")), "Python alone": figure(rounds.median("python"))},
    }
