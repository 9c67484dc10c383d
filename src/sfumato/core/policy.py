"""A policy: what a release must keep useful and must not leak, who answers for it, and until when.

It is a TOML file of this form; every table may be left out, and a policy may extend another one:

    version = 1
    name = "hospital-extract"
    owner = "Data protection office"
    purpose = "A study of readmissions"
    recipient = "University hospital, under contract"
    review = 2027-06-30
    extends = "house-rules.toml"

    [max]                        # percent is leakage, a bare number the threat's own metric
    attribute = "10%"            # every private label
    "attribute:sex" = "5%"       # one of them
    reconstruction = "30%"

    [max-group]                  # the same for the group of people that is worst off
    attribute = "20%"

    [max-share]                  # the share of people of whom more than half is leaked
    attribute = "5%"

    [min]                        # utility: a metric, or metric:label
    accuracy = 0.70
    "auroc:readmitted" = 0.75

    [guarantee]
    require = "dp"               # dp, anonymity or proven
    epsilon = 3.0
    delta = 1e-5
    unit = "person"
    epsilon-total = 6.0          # of all private fits and releases of the same records, by their ledger
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sfumato.core.documents import toml_table
from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.threats import (
    ATTRIBUTE,
    ATTRIBUTE_WITH_LABELS,
    FAIRNESS,
    FIDELITY,
    INFORMATION,
    RECONSTRUCTION,
    RECONSTRUCTION_WITH_LABELS,
    UTILITY,
    known_threats,
    threat,
)

VERSION = 1
Limit = Literal["max", "max-group", "max-share", "min"]
_LIMITS: tuple[Limit, ...] = ("max", "max-group", "max-share", "min")
UTILITY_METRICS = ("accuracy", "balanced-accuracy", "auroc", "r2", "mae")
_SMALLER_IS_BETTER = ("mae",)
_ABOUT = ("name", "owner", "purpose", "recipient")
_REQUIRED = {"dp": ("dp",), "anonymity": ("anonymity",), "proven": ("dp", "anonymity")}
_UNITS = ("record", "person")
_NOT_THREATS = (UTILITY, FAIRNESS, INFORMATION, FIDELITY)
_TOTAL = "epsilon-total"
_WITH_LABELS = {ATTRIBUTE: ATTRIBUTE_WITH_LABELS, RECONSTRUCTION: RECONSTRUCTION_WITH_LABELS}


@dataclass(frozen=True)
class Threshold:
    """One limit: ``what`` is a threat or a utility metric, ``label`` narrows it to one label.

    ``share`` says that the value is leakage, a share of 1; otherwise it is in the metric's own unit.
    """

    limit: Limit
    what: str
    value: float
    share: bool = False
    label: str | None = None

    def __str__(self) -> str:
        name = self.what if self.label is None else f"{self.what}:{self.label}"
        value = f"{100 * self.value:g}%" if self.share else f"{self.value:g}"
        return f"{self.limit} {name} = {value}"


@dataclass(frozen=True)
class Policy:
    """Thresholds and, if asked, a kind of guarantee; see the module for the file.

    ``require`` is the kind of guarantee, ``epsilon`` and ``delta`` the most that a dp promise may spend, ``unit``
    whom it must protect, ``epsilon_total`` the most ε of everything on the same records. ``review`` is the day after
    which the policy may not be used any more.
    """

    thresholds: tuple[Threshold, ...] = ()
    require: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    unit: str | None = None
    epsilon_total: float | None = None
    name: str = ""
    owner: str = ""
    purpose: str = ""
    recipient: str = ""
    review: datetime.date | None = None

    @property
    def empty(self) -> bool:
        """Whether it asks for nothing."""
        return not self.thresholds and self.require is None and self.epsilon_total is None

    def content(self) -> bytes:
        """Everything it says, wherever the parts came from, in one canonical form."""
        return json.dumps(self.to_json(), sort_keys=True).encode()

    @property
    def digest(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.content()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "review": None if self.review is None else self.review.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Policy:
        limits = tuple(Threshold(**one) for one in value["thresholds"])
        review = value["review"]
        return cls(
            **{**value, "thresholds": limits, "review": review and datetime.date.fromisoformat(review)}
        ).checked()

    def checked(self) -> Policy:
        """This policy if it can be met at all, else a ``UsageError``."""
        keys = [(one.limit, one.what, one.label, one.share) for one in self.thresholds]
        twice = next((one for one, key in zip(self.thresholds, keys, strict=True) if keys.count(key) > 1), None)
        if twice is not None:
            raise UsageError(f"the limit '{twice}' is given twice: keep one.")
        self._check_labels()
        if self.epsilon is not None and self.epsilon_total is not None and self.epsilon_total < self.epsilon:
            raise UsageError(
                f"{_TOTAL} ≤ {self.epsilon_total:g} contradicts epsilon ≤ {self.epsilon:g}: one release may not spend "
                "more than all of them together."
            )
        for name in ("epsilon", "delta", "unit"):
            if getattr(self, name) is not None and self.require not in ("dp", "proven"):
                raise UsageError(f'a limit on {name} needs a proof: say require = "dp" (--require dp), too.')
        return self

    def _check_labels(self) -> None:
        """Raise if a limit on one label is looser than that on every label, which would hold for it all the same."""
        every = {(one.limit, one.what, one.share): one for one in self.thresholds if one.label is None}
        for one in self.thresholds:
            general = every.get((one.limit, one.what, one.share))
            if one.label is None or general is None:
                continue
            if one.value < general.value if one.limit == "min" else one.value > general.value:
                raise UsageError(
                    f"the limit '{one}' contradicts '{general}', which holds for every label: make it at least as "
                    "strict."
                )

    def with_labels(self) -> Policy:
        """This policy for a release with its labels: limits on what the payload tells hold for who reads both."""
        named = {(one.what, one.label) for one in self.thresholds}
        more = [
            replace(one, what=beside)
            for one in self.thresholds
            if one.limit in ("max", "min") and (beside := _WITH_LABELS.get(one.what)) is not None
            if (beside, one.label) not in named
        ]
        return replace(self, thresholds=(*self.thresholds, *more))

    def extended(self, by: Policy) -> Policy:
        """This policy with what ``by`` says in place of its own; limits on other things stay."""
        theirs = {(one.limit, one.what, one.label) for one in by.thresholds}
        kept = tuple(one for one in self.thresholds if (one.limit, one.what, one.label) not in theirs)
        said = {
            name: value
            for name in (*_ABOUT, "review", "require", "epsilon", "delta", "unit", "epsilon_total")
            if (value := getattr(by, name)) not in (None, "")
        }
        return replace(self, thresholds=(*kept, *by.thresholds), **said).checked()


def read_policy(path: Path) -> Policy:
    """The policy in a file, with those that it extends."""
    return _read(path, ())


def policy_of(
    most: Sequence[str] = (),
    least: Sequence[str] = (),
    groups: Sequence[str] = (),
    require: str | None = None,
    shares: Sequence[str] = (),
) -> Policy:
    """The same from the command line: ``threat=10%`` and ``epsilon=3`` in ``most``, ``accuracy=0.7`` in ``least``."""
    limits: list[Threshold] = []
    proof: dict[str, Any] = {}
    given: tuple[tuple[Limit, Sequence[str]], ...] = (
        ("max", most),
        ("max-group", groups),
        ("max-share", shares),
        ("min", least),
    )
    for option, items in given:
        for item in items:
            name, sign, text = item.partition("=")
            where = f"--{option} {item}"
            if not sign or not text:
                raise UsageError(f"{where}: write it as name=value.")
            if option == "max" and name in ("epsilon", "delta", _TOTAL):
                proof[name.replace("-", "_")] = _positive(text, where)
            else:
                limits.append(_threshold(option, name, text, where))
    return Policy(tuple(limits), require=_requirement(require, "--require"), **proof).checked()


def _read(path: Path, before: tuple[Path, ...]) -> Policy:
    here = path.resolve()
    if here in before:
        raise UsageError(f"{path} extends itself: take out one of the 'extends'.")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the policy {path} ({error.strerror}): name a TOML file.") from None
    table = toml_table(raw, str(path))
    known = {"version", "review", "extends", "guarantee", *_LIMITS, *_ABOUT}
    if strange := set(table) - known:
        raise UsageError(f"{path}: {unknown('entry of a policy', min(strange), known)}")
    if table.get("version") != VERSION:
        raise UsageError(f"{path}: this version of sfumato reads policies of version = {VERSION}.")
    policy = Policy(tuple(_limits(table, path)), **_about(table, path), **_proof(table, path))
    base = table.get("extends")
    if base is not None and not isinstance(base, str):
        raise UsageError(f"{path}: extends must be the path of another policy.")
    extended = None if base is None else _read(path.parent / base, (*before, here))
    try:
        return policy.checked() if extended is None else extended.extended(policy.checked())
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _limits(table: Mapping[str, Any], path: Path) -> Iterator[Threshold]:
    for limit in _LIMITS:
        entries = table.get(limit, {})
        if not isinstance(entries, Mapping):
            raise UsageError(f"{path}: write [{limit}] as a table of name = value.")
        for name, value in entries.items():
            yield _threshold(limit, name, value, f"{path}: [{limit}] {name} = {value!r}")


def _about(table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found = {name: table[name] for name in _ABOUT if name in table}
    for name, value in found.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: {name} must be a text.")
    review = table.get("review")
    if review is not None and (not isinstance(review, datetime.date) or isinstance(review, datetime.datetime)):
        raise UsageError(f"{path}: review must be a day, as review = 2027-06-30 (without quotes).")
    return {**found, "review": review}


def _proof(table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    asked = table.get("guarantee", {})
    known = ("require", "epsilon", "delta", "unit", _TOTAL)
    if not isinstance(asked, Mapping):
        raise UsageError(f"{path}: write [guarantee] as a table.")
    if strange := set(asked) - set(known):
        raise UsageError(f"{path}: [guarantee] {unknown('entry', min(strange), known)}")
    where = f"{path}: [guarantee]"
    found: dict[str, Any] = {"require": _requirement(asked.get("require"), f"{where} require")}
    for name in ("epsilon", "delta", _TOTAL):
        limit = _positive(asked[name], f"{where} {name}") if name in asked else None
        found[name.replace("-", "_")] = limit
    unit = asked.get("unit")
    if unit is not None and unit not in _UNITS:
        raise UsageError(f"{where} unit = {unit!r}: expected record or person.")
    return {**found, "unit": unit}


def _requirement(value: Any, where: str) -> str | None:
    if value is not None and value not in _REQUIRED:
        raise UsageError(f"{where} = {value!r}: expected one of {', '.join(_REQUIRED)}.")
    return None if value is None else str(value)


def kinds_required(require: str) -> tuple[str, ...]:
    """The kinds of guarantee that meet a requirement."""
    return _REQUIRED[require]


def _threshold(limit: Limit, name: str, value: Any, where: str) -> Threshold:
    what, _, label = name.partition(":")
    share, number = _number(value, where)
    if what in UTILITY_METRICS and limit in ("min", "max"):
        _check_utility(limit, what, share, number, where)
        return Threshold(limit, what, number, label=label or None)
    allowed = [one for one in known_threats() if one not in _NOT_THREATS]
    if what not in allowed:
        raise UsageError(
            f"{where}: {unknown('threat', what, [*allowed, *(UTILITY_METRICS if limit == 'min' else ())])}"
        )
    if limit == "max-share" and not share:
        raise UsageError(f'{where}: write the share of people in percent, as "5%".')
    if share and limit == "min":
        raise UsageError(f"{where}: leakage has an upper limit only: write it under max.")
    if not share:
        _check_direction(limit, what, name, number, where)
    return Threshold(limit, what, number, share, label or None)


def _check_utility(limit: Limit, what: str, share: bool, number: float, where: str) -> None:
    """A limit on utility must be on the side where more is lost, and within reach of an interval's end."""
    if share:
        raise UsageError(f"{where}: percent is leakage; write {what} as a number.")
    if what in _SMALLER_IS_BETTER:
        if limit == "min":
            raise UsageError(f"{where}: a smaller {what} is better: write it under max.")
        return
    if limit == "max":
        raise UsageError(f"{where}: a larger {what} is better: write it under min.")
    if number > 1.0:
        raise UsageError(f"{where}: {what} lies between 0 and 1.")
    if number == 1.0:
        raise UsageError(f"{where}: no audit can show that {what} is 1, because the lower end of its interval counts.")


def _check_direction(limit: Limit, what: str, name: str, number: float, where: str) -> None:
    """A raw limit must be on the side where the metric gets worse for the owner."""
    asked = threat(what)
    safer = "min" if asked.better_for_owner == "higher" else "max"
    if not asked.metric:
        raise UsageError(f"{where}: {what} has no metric of its own: give leakage in percent.")
    if limit == "max-group":
        raise UsageError(f"{where}: limits on groups are leakage: write it in percent.")
    if limit != safer:
        more = "more" if safer == "min" else "less"
        raise UsageError(
            f"{where}: {what} is measured by {asked.metric}, of which {more} is safer: write "
            f"{safer} {name} = {number:g}, or leakage in percent under max."
        )


def _number(value: Any, where: str) -> tuple[bool, float]:
    """Whether it is a percentage, and the value as a share or as it stands."""
    text = str(value).strip()
    share = text.endswith("%")
    try:
        number = float(text.rstrip("%").strip())
    except ValueError:
        raise UsageError(f'{where}: expected a number, or leakage as "10%".') from None
    if isinstance(value, bool) or not math.isfinite(number) or number < 0:
        raise UsageError(f"{where}: expected a number of at least 0.")
    if share and number > 100:
        raise UsageError(f"{where}: leakage lies between 0% and 100%.")
    return share, number / 100 if share else number


def _positive(value: Any, where: str) -> float:
    share, number = _number(value, where)
    if share or number <= 0:
        raise UsageError(f"{where}: expected a number above 0.")
    return number
