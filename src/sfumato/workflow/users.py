"""``sfumato fit filter --users``: a table of people and their choices becomes a folder of filters."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing import CPU, Effort
from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder, atomic, read_json, write_json
from sfumato.data import load_splits
from sfumato.data.label_expressions import parse
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.mechanisms.filter.latent_mechanism import SMALLEST_BUDGET
from sfumato.mechanisms.filter.many_users import User, fit_together
from sfumato.mechanisms.filter.mechanism import Filter
from sfumato.mechanisms.filter.vae import VAE
from sfumato.workflow.auditing import audit_run
from sfumato.workflow.fitting import SPLITS, records_of, resolve, same_records
from sfumato.workflow.sealed_splits import sealed

COLUMNS = ("user", "private", "utility", "rows")
MOST_USERS = 1000
"""Each has a copy of the labels in memory while they train."""


def fit_users(
    mechanism: str,
    table: Path,
    base: Path,
    out: Path,
    params: Mapping[str, Any],
    *,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Train a filter for every user in ``table`` on the records of ``base``, a fitted ``vae``, all together.

    ``out/USER`` is a run folder like any other: it can be audited and releases records. Nothing is written unless all
    filters are done. Gives the users with what they spent of their budget.
    """
    kind = mechanism_class(mechanism)
    if not issubclass(kind, Filter):
        raise UsageError(f"--users trains filters; {mechanism} is none: sfumato fit filter --users {table}.")
    RunFolder.refuse_used(out)
    run = RunFolder.open(base)
    vae = VAE.load(base)
    options, seed = records_of(base)
    settings = kind(**{**params, "seed": seed})
    settings._check_params()
    records = int(run.read_json(SPLITS)["owner"]["records"])
    users = read_users(table, records, settings.budget)
    _refuse_overlap(users, records, table)
    labels = sorted({name for user in users.values() for name in (*user.private, *user.utility)})
    splits = load_splits(**options, utility=labels, private=[], seed=seed)
    same_records(run, splits)
    named = {
        name: replace(user, private=_called(user.private), utility=_called(user.utility))
        for name, user in users.items()
    }
    fitted = fit_together(named, splits.owner, vae, settings, progress=progress)
    found = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as part:
        for name, one in fitted.items():
            one.base = str(base)
            user = users[name]
            data = {**options, "utility": list(user.utility), "private": list(user.private)}
            shared = {key: value for key, value in one.stored_params().items() if key != "seed"}
            folder = RunFolder.create(part / name, resolve(mechanism, data, shared, seed=seed))
            folder.write_json(SPLITS, sealed(splits, counted=True))
            one.save(folder.path)
            folder.finish()
            found.append(
                {
                    "user": name,
                    "run": str(out / name),
                    "private": list(user.private),
                    "utility": list(user.utility),
                    "records": len(user.rows),
                    "budget": user.budget,
                    "spent": one.spent_.divergence,
                }
            )
        write_json(part / "users.json", found)
    return found


def compare_users(
    mechanism: str,
    table: str,
    base: Path,
    out: Path,
    params: Mapping[str, Any],
    *,
    effort: Effort = CPU,
    progress: Progress = no_progress,
    say: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Fit and audit the users of a ``table`` (the text of a CSV file) below ``out``; what is done is not done again."""
    folder = out / "users"
    if not folder.exists():
        out.mkdir(parents=True, exist_ok=True)
        with atomic(out / "users.csv") as part:
            part.write_text(table)
        say(f"{mechanism}: fit")
        fit_users(mechanism, out / "users.csv", base, folder, params, progress=progress)
    names = [user["user"] for user in read_json(folder / "users.json")]
    write_json(out / "front.json", {"points": [f"users/{name}" for name in names]})
    results = []
    for name in names:
        if not (folder / name / "seconds.json").exists():
            started = time.perf_counter()
            audit_run(folder / name, effort=effort, say=say, again=True)
            write_json(folder / name / "seconds.json", round(time.perf_counter() - started, 1))
        seconds, scores = (read_json(folder / name / file) for file in ("seconds.json", "scores.json"))
        told = {"point": name, "params": dict(params), "seconds": seconds, "folder": str(folder / name)}
        results.append({**told, **scores})
    return results


def read_users(table: Path, records: int, budget: float) -> dict[str, User]:
    """The users of a CSV file with columns user, private, utility, rows and perhaps budget; ``a;b`` names two labels.

    ``rows`` is a Python slice of the owner's ``records``: ``0:4000``, or ``0::10`` for every tenth.
    """
    try:
        with table.open(newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{table} cannot be read ({error}): give a CSV file with columns {', '.join(COLUMNS)}."
        ) from None
    if not lines:
        raise DataError(f"{table} names no user.")
    if len(lines) > MOST_USERS:
        raise DataError(f"{table} names {len(lines)} users; {MOST_USERS} are the most that are trained together.")
    users: dict[str, User] = {}
    for number, line in enumerate(lines, 2):
        where = f"{table}, line {number}"
        missing = next((column for column in COLUMNS if not (line.get(column) or "").strip()), None)
        if missing is not None:
            raise DataError(f"{where}: column '{missing}' is missing or empty.")
        name = line["user"].strip()
        if not name.replace("-", "").replace("_", "").isalnum():
            raise DataError(f"{where}: user '{name}' becomes a folder's name: use letters, digits, - and _ only.")
        if name in users:
            raise DataError(f"{where}: user '{name}' is named twice.")
        users[name] = User(
            name=name,
            private=_names(line["private"]),
            utility=_names(line["utility"]),
            rows=_rows(line["rows"], records, where),
            budget=_number(line.get("budget"), budget, where),
        )
    return users


def _called(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The names of labels that may be questions, ``name=question``."""
    return tuple(parse(label, ()).name for label in labels)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


def _rows(text: str, records: int, where: str) -> IntArray:
    parts = text.strip().split(":")
    try:
        numbers = [int(part) if part.strip() else None for part in parts]
    except ValueError:
        numbers = []
    if not 2 <= len(numbers) <= 3 or any(n is not None and n < 0 for n in numbers) or numbers[2:] == [0]:
        raise DataError(
            f"{where}: rows '{text}' is no range: write it as first:after or first:after:step, like 0:4000."
        )
    last = numbers[1]
    if last is not None and last > records:
        raise DataError(f"{where}: rows '{text}' go beyond the owner's {records} records.")
    return np.arange(records, dtype=np.int64)[slice(*numbers)]


def _number(text: str | None, default: float, where: str) -> float:
    try:
        value = float(text) if text and text.strip() else default
    except ValueError:
        value = 0.0
    if not SMALLEST_BUDGET <= value < 1e9:
        raise UsageError(f"{where}: budget '{text}' must be a number, {SMALLEST_BUDGET:g} at least.")
    return value


def _refuse_overlap(users: Mapping[str, User], records: int, table: Path) -> None:
    """Raise if a record belongs to two users."""
    owner = np.full(records, -1, dtype=np.int64)
    names = list(users)
    for place, user in enumerate(users.values()):
        taken = user.rows[owner[user.rows] >= 0]
        if len(taken):
            first = names[owner[taken[0]]]
            raise DataError(
                f"{table}: record {int(taken[0])} belongs to both '{first}' and '{user.name}': give it to one of them."
            )
        owner[user.rows] = place
