"""What was spent on the same people: every private fit and release writes to a ledger of its data file.

The promise of one fit is about that fit. Whoever sees two of them knows more: their ε and δ add up (basic composition,
Dwork and Roth 2014, Theorem 3.16), whatever parts of the file they used. The ledger lies beside the file, holds no
record and no number of records, and belongs to the owner alone. A copy of the file elsewhere has a ledger of its own.
"""

from __future__ import annotations

import datetime
import fcntl
import math
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.errors import DataError, GateFailed, UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.data.registry import REGISTRY

FORMAT = 1
SLACK = 1e-9
"""Rounding of sums."""


@dataclass(frozen=True)
class Charge:
    """One fit or release with a proven (ε, δ)."""

    what: str
    where: str
    epsilon: float
    delta: float
    unit: str
    day: str = field(default_factory=lambda: datetime.date.today().isoformat())


@dataclass(frozen=True)
class Account:
    """Everything that was spent on one file, and the most that may be."""

    spent: Mapping[str, Charge] = field(default_factory=dict)
    cap: float | None = None

    @property
    def epsilon(self) -> float:
        return math.fsum(one.epsilon for one in self.spent.values())

    @property
    def delta(self) -> float:
        return math.fsum(one.delta for one in self.spent.values())

    def to_json(self) -> dict[str, Any]:
        entries = {key: asdict(one) for key, one in self.spent.items()}
        return {"format": FORMAT, "cap": self.cap, "epsilon": self.epsilon, "delta": self.delta, "spent": entries}


class BudgetLedger:
    """The account of one data file, in a file of its own; processes that write at once take turns."""

    def __init__(self, source: str, file: Path) -> None:
        self.source, self.file = source, file

    @classmethod
    def of(cls, source: object, file: Path | None = None) -> BudgetLedger | None:
        """The ledger beside a file or folder; None for a public data set, unless a ``file`` is named."""
        name = str(source)
        if file is not None:
            return cls(name, file)
        if name in REGISTRY:
            return None
        if "://" in name:
            raise UsageError(f"no ledger can lie beside {name}: name a file with --ledger.")
        path = Path(name).resolve()
        return cls(name, path.with_name(f"{path.name}.budget.json"))

    def account(self) -> Account:
        if not self.file.exists():
            return Account()
        stored = read_json(self.file)
        try:
            if stored["format"] != FORMAT:
                raise DataError(f"{self.file} was written by another version of sfumato: upgrade, or move it away.")
            cap = None if stored["cap"] is None else float(stored["cap"])
            return Account({str(key): Charge(**one) for key, one in stored["spent"].items()}, cap)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError(f"{self.file} does not have the form of a budget ledger: restore it.") from None

    def charge(self, spent: Charge, key: str | None = None) -> list[str]:
        """Note what is about to be spent, and return what the owner should know.

        A ``key`` that is there already (a run that goes on) costs nothing more.

        Raises:
            GateFailed: The sum would pass the cap.
        """
        with self._turn():
            before = self.account()
            if key in before.spent:
                return []
            after = Account({**before.spent, key or uuid.uuid4().hex: spent}, before.cap)
            self._check(after, spent)
            write_json(self.file, after.to_json())
        return [] if not before.spent else [self._told(before, after)]

    def check(self, spent: Charge) -> None:
        """Raise ``GateFailed`` if this would pass the cap; nothing is noted."""
        before = self.account()
        self._check(Account({**before.spent, "": spent}, before.cap), spent)

    def refund(self, key: str) -> None:
        """Take back what was noted for a fit that was refused before its first question."""
        with self._turn():
            account = self.account()
            kept = {name: one for name, one in account.spent.items() if name != key}
            if kept or account.cap is not None:
                write_json(self.file, Account(kept, account.cap).to_json())
            else:
                self.file.unlink(missing_ok=True)

    def limit(self, cap: float) -> Account:
        """Let all fits and releases together spend at most this ε."""
        if not 0.0 < cap < math.inf:
            raise UsageError(f"--cap {cap:g}: give an ε above 0.")
        with self._turn():
            account = Account(self.account().spent, cap)
            write_json(self.file, account.to_json())
        return account

    def _check(self, after: Account, spent: Charge) -> None:
        if after.cap is None or after.epsilon <= after.cap * (1.0 + SLACK):
            return
        raise GateFailed(
            f"{self.source}: ε = {after.epsilon - spent.epsilon:.4g} was spent on these records and {spent.what} would "
            f"spend {spent.epsilon:.4g} more, beyond the cap of {after.cap:.4g}: spend less, or raise the cap "
            f"('sfumato data budget {self.source} --cap …')."
        )

    def _told(self, before: Account, after: Account) -> str:
        times = f"{len(before.spent)} private {'fit or release' if len(before.spent) == 1 else 'fits and releases'}"
        return (
            f"{self.source}: {times} before this one spent ε = {before.epsilon:.4g}, δ = {before.delta:.3g}; whoever "
            f"sees all of them has ε = {after.epsilon:.4g}, δ = {after.delta:.3g}."
        )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        lock = self.file.with_name(f".{self.file.name}.lock")
        try:
            with lock.open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise DataError(
                f"cannot keep the budget of {self.source} in {self.file} ({error.strerror or error}): name another "
                "file with --ledger."
            ) from None
