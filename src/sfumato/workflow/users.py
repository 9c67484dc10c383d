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
from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import USERS, RunFolder, atomic, read_json, write_json
from sfumato.data import load_splits
from sfumato.data.label_expressions import parse
from sfumato.mechanisms import load_mechanism, mechanism_class
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.mechanisms.filter.base_probe import kept_by
from sfumato.mechanisms.filter.bases import Base, given
from sfumato.mechanisms.filter.latent_mechanism import BASE, SMALLEST_BUDGET
from sfumato.mechanisms.filter.many_users import User, fit_together
from sfumato.mechanisms.filter.mechanism import Filter
from sfumato.workflow.auditing import audit_run
from sfumato.workflow.fitting import SPLITS, records_of, resolve, same_records
from sfumato.workflow.sealed_splits import sealed

COLUMNS = ("user", "private", "utility")
WHOSE = ("id", "rows")
"""Either says which records are a user's: by the column --id of the data, or by their places among the owner's."""
MOST_USERS = 1000
"""Each has a copy of the labels in memory while they train."""
_NAMED = 5


def fit_users(
    mechanism: str,
    table: Path,
    base: Path,
    out: Path,
    params: Mapping[str, Any],
    *,
    progress: Progress = no_progress,
    warn: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Train a filter for every user in ``table`` on the records of ``base``, a fitted run, all together.

    ``out/USER`` is a run folder like any other: it can be audited and releases records; ``out`` is audited and reported
    as a whole. Nothing is written unless all filters are done. Users whose records are set aside for the audit are left
    out, and ``warn`` says so. Gives the users with what they spent of their budget.
    """
    kind = mechanism_class(mechanism)
    if not issubclass(kind, Filter):
        raise UsageError(f"--users trains filters; {mechanism} is none: sfumato fit filter --users {table}.")
    RunFolder.refuse_used(out)
    run = RunFolder.open(base)
    options, seed = records_of(base)
    settings = kind(**{**params, "seed": seed})
    settings._check_params()
    records = int(run.read_json(SPLITS)["owner"]["records"])
    users, ids = read_users(table, records, settings.budget)
    if ids and options.get("id") is None:
        raise UsageError(
            f"{table} names users by id, and {base} was fitted without --id: fit it again with the column that says "
            "whose a record is, or give their rows."
        )
    _refuse_overlap(users, records, table)
    labels = sorted({name for user in users.values() for name in (*user.private, *user.utility)})
    splits = load_splits(**options, utility=labels, private=[], seed=seed)
    same_records(run, splits)
    if ids:
        aside = np.concatenate([splits.attacker.ids, splits.victim.ids])
        users = _found(users, ids, splits.owner, aside, table, warn)
    named = {
        name: replace(user, private=_called(user.private), utility=_called(user.utility))
        for name, user in users.items()
    }
    shared = given(load_mechanism(base), splits.owner, settings.components)
    for label in dict.fromkeys(user.utility[0] for user in named.values()):
        _tell(shared, label, splits.owner, seed, warn)
    fitted = fit_together(named, splits.owner, shared, settings, progress=progress)
    found = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as part:
        own = not isinstance(load_mechanism(base), Base)  # an encoder on the scale of these records, kept once for all
        if own:
            shared.save(part / BASE)
        for name, one in fitted.items():
            user = users[name]
            one.base = str(out / BASE if own else base)
            data = {**options, "utility": list(user.utility), "private": list(user.private)}
            stored = {key: value for key, value in one.stored_params().items() if key != "seed"}
            folder = RunFolder.create(part / name, resolve(mechanism, data, stored, seed=seed))
            folder.write_json(SPLITS, sealed(splits, counted=True))
            one.save(folder.path)
            if own:  # relative to where the folder will be
                about = folder.path / "base.json"
                write_json(about, {**read_json(about), "folder": f"../{BASE}"})
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
        write_json(part / USERS, found)
        write_json(part / "front.json", {"points": list(fitted)})
    return found


def _tell(base: Base, label: str, owner: Dataset, seed: int, warn: Callable[[str], None]) -> None:
    """Say what the base lost of a label that some user serves."""
    schema = replace(owner.schema, utility={label: owner.schema.classes(label)}, private={})
    kept = kept_by(base, Dataset(owner.x, schema, utility={label: owner.label(label)}, ids=owner.ids), seed)
    if kept is not None and (kept.nothing or kept.lost):
        warn(str(kept))


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
    names = [user["user"] for user in read_json(folder / USERS)]
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


def read_users(table: Path, records: int, budget: float) -> tuple[dict[str, User], dict[str, tuple[str, ...]]]:
    """The users of a CSV file with columns user, private, utility, id or rows, and perhaps budget; ``a;b`` names two
    labels or two ids. And the ids of each, if the table gives these; then the users have no rows yet.

    ``rows`` is a Python slice of the owner's ``records``: ``0:4000``, or ``0::10`` for every tenth.
    """
    try:
        with table.open(newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        columns = ", ".join((*COLUMNS, " or ".join(WHOSE)))
        raise DataError(f"{table} cannot be read ({error}): give a CSV file with columns {columns}.") from None
    if not lines:
        raise DataError(f"{table} names no user.")
    if len(lines) > MOST_USERS:
        raise DataError(f"{table} names {len(lines)} users; {MOST_USERS} are the most that are trained together.")
    given = [column for column in WHOSE if column in lines[0]]
    if len(given) != 1:
        raise DataError(
            f"{table} has {'both of' if given else 'neither of'} the columns {' and '.join(WHOSE)}: give one of them, "
            "id for the values of the data's --id column, rows for places among the owner's records."
        )
    users: dict[str, User] = {}
    ids: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 2):
        where = f"{table}, line {number}"
        missing = next((column for column in (*COLUMNS, *given) if not (line.get(column) or "").strip()), None)
        if missing is not None:
            raise DataError(f"{where}: column '{missing}' is missing or empty.")
        name = line["user"].strip()
        if not name.replace("-", "").replace("_", "").isalnum() or name == BASE:
            raise DataError(
                f"{where}: user '{name}' becomes a folder's name: use letters, digits, - and _ only, and not '{BASE}'."
            )
        if name in users:
            raise DataError(f"{where}: user '{name}' is named twice.")
        by_id = given == ["id"]
        if by_id:
            ids[name] = _names(line["id"])
            _refuse_shared(ids, name, where)
        users[name] = User(
            name=name,
            private=_names(line["private"]),
            utility=_names(line["utility"]),
            rows=np.zeros(0, dtype=np.int64) if by_id else _rows(line["rows"], records, where),
            budget=_number(line.get("budget"), budget, where),
        )
    return users, ids


def _refuse_shared(ids: Mapping[str, tuple[str, ...]], name: str, where: str) -> None:
    """Raise if somebody named before has one of this user's ids."""
    for other, theirs in ids.items():
        both = set(theirs) & set(ids[name])
        if other != name and both:
            raise DataError(
                f"{where}: id '{min(both)}' belongs to both '{other}' and '{name}': give it to one of them."
            )


def _found(
    users: Mapping[str, User],
    ids: Mapping[str, tuple[str, ...]],
    owner: Dataset,
    aside: Any,
    table: Path,
    warn: Callable[[str], None],
) -> dict[str, User]:
    """The users with the rows of their ids among the owner's records; without those who are set aside for the audit."""
    places: dict[str, list[int]] = {}
    for row, one in enumerate(owner.ids.tolist()):
        places.setdefault(str(one), []).append(row)
    others = {str(one) for one in aside.tolist()}
    kept, left_out = dict[str, User](), list[str]()
    for name, user in users.items():
        unknown = next((one for one in ids[name] if one not in places and one not in others), None)
        if unknown is not None:
            raise DataError(f"{table}: user '{name}' has id '{unknown}', of whom {owner.name} has no record.")
        rows = [row for one in ids[name] for row in places.get(one, ())]
        if rows:
            kept[name] = replace(user, rows=np.array(sorted(rows), dtype=np.int64))
        else:
            left_out.append(name)
    some = f"{', '.join(left_out[:_NAMED])}{' …' if len(left_out) > _NAMED else ''}"
    if not kept:
        raise DataError(
            f"{table}: the records of all users ({some}) are set aside for the audit: name people of the owner's part, "
            "or fit the base with another --seed."
        )
    if left_out:
        warn(f"{len(left_out)} of {len(users)} users get no filter ({some}): their records are set aside for the audit")
    return kept


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
