"""From a configuration to a fitted run folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.core import compute, ranks
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.core.schema import Schema
from sfumato.data import load_splits
from sfumato.data.likely_subjects import likely_subjects
from sfumato.data.readers.locate import open_data
from sfumato.data.summary import readings
from sfumato.mechanisms import load_mechanism, mechanism_class
from sfumato.mechanisms.base import Mechanism, Progress, no_progress
from sfumato.mechanisms.capabilities import SpendsByFit
from sfumato.workflow.first_look import useless_at_first_look
from sfumato.workflow.repeated_records import Warn, warn_of_repeats
from sfumato.workflow.sealed_splits import same_labels, same_part, sealed
from sfumato.workflow.spent_budget import BudgetLedger, Charge

Config = dict[str, Any]
SPLITS = "splits.json"
STABLE_SPLITS = 3
"""The first format of run folders in which a record's part depends on that record alone."""


def resolve(mechanism: str, data: Mapping[str, Any], params: Mapping[str, Any], *, seed: int) -> Config:
    """The full configuration of a fit: every default written out, every name checked."""
    kind = mechanism_class(mechanism)
    fresh = kind().set_params(**params, seed=seed)
    fresh._check_params()
    stored = fresh.stored_params()
    del stored["seed"]
    return {
        "run": {"command": "fit", "mechanism": mechanism, "seed": seed, "version": sfumato.__version__},
        "data": {key: value for key, value in {**_own_shares(kind, data), **data}.items() if value is not None},
        "params": stored,
    }


def _own_shares(kind: type[Mechanism], data: Mapping[str, Any]) -> dict[str, Any]:
    return {} if kind.owner_share is None or data.get("holdout") else {"shares": [kind.owner_share]}


def splits_of(config: Mapping[str, Any]) -> Splits:
    """The owner, attacker and victim records that a configuration speaks of."""
    return load_splits(**config["data"], seed=config["run"]["seed"])


def neighbour_of(config: Mapping[str, Any], splits: Splits) -> Dataset:
    """The owner's records if the file lacked one of the owner's people, the one with the most records."""
    people, first, each = np.unique(splits.owner.ids, return_index=True, return_counts=True)
    gone = str(people[np.lexsort((first, -each))[0]])
    return load_splits(**config["data"], seed=config["run"]["seed"], without=gone).owner


def same_cut(run: RunFolder) -> None:
    """Raise if the run's parts were cut by an older sfumato, whose cut cannot be made again."""
    if run.format < STABLE_SPLITS:
        raise DataError(
            f"{run.path} was fitted by an older sfumato, which cut owner, attacker and victims in another way: it can "
            "release records, but to audit it or go on with it, fit it again."
        )


def same_records(run: RunFolder, splits: Splits) -> None:
    """Raise if these are not the records and labels that the run began with: victims might have been trained on."""
    same_cut(run)
    stored = run.read_json(SPLITS) if (run.path / SPLITS).exists() else None
    if stored is None:
        return
    if not all(same(stored, *part, run.path) for part in splits.parts.items() for same in (same_part, same_labels)):
        raise DataError(f"the data have changed since {run.path} was begun: restore them, or fit into another --out.")


def records_of(base: Path) -> tuple[dict[str, Any], int]:
    """How to load the records of a finished run, perhaps with other labels, and its seed."""
    config = RunFolder.open(base).config()
    schema = Schema.from_json(read_json(base / "schema.json"))
    kept = {key: value for key, value in config["data"].items() if key not in ("utility", "private")}
    columns = {"x": list(schema.x_columns)} if schema.kind == "table" else {}
    return {**columns, **kept}, int(config["run"]["seed"])


def _disjoint_base(config: Config, splits: Splits) -> None:
    """Raise if the base of this fit was trained on other parts of the same data: it may know the victims."""
    declared = mechanism_class(config["run"]["mechanism"]).declared()
    named = next((str(config["params"][name]) for name, p in declared.items() if p.builds_on), "")
    base = Path(named)
    if not named or not (base / SPLITS).is_file():
        return
    theirs = RunFolder.open(base).config()["data"]
    sources = [str(data.get("source")) for data in (theirs, config["data"])]
    same_source = len({str(Path(source).resolve()) if Path(source).exists() else source for source in sources}) == 1
    if same_source and not same_part(read_json(base / SPLITS), "owner", splits.owner, base):
        raise DataError(
            f"{base} was trained on other records of '{theirs['source']}' and may have seen these victims: use its "
            "--limit, --id and --seed (sfumato fit --base does), or fit a vae on these records."
        )


def load_run(path: str | Path) -> Mechanism:
    """The fitted mechanism of a run folder.

    Args:
        path: A folder that ``sfumato fit``, ``sweep`` or ``reproduce`` made.

    Returns:
        The mechanism, ready to release and to be audited.

    Raises:
        DataError: The folder holds no finished run, is damaged, or was made by a newer sfumato.
    """
    return load_mechanism(RunFolder.open(Path(path)).path)


def fitted_on(path: Path) -> str:
    """What a run was fitted on, in a sentence: a wrongly read column shows here."""
    parts, schema = read_json(path / SPLITS), Schema.from_json(read_json(path / "schema.json"))
    what = f"{schema.kind} records of shape {'×'.join(map(str, schema.shape))}"
    if schema.columns:
        numeric, dates = (
            sum(bool(one.form) is dated and one.kind == "numeric" and not one.cycle for one in schema.columns)
            for dated in (False, True)
        )
        categories = sum(one.kind == "categorical" for one in schema.columns)
        days = f", {dates} date{'s' * (dates > 1)}" if dates else ""
        what = f"rows of {numeric} numeric{days} and {categories} categorical columns"
    numbers = [f"'{label}' is a number from {one.low:,g} to {one.high:,g}" for label, one in schema.numbers.items()]
    told = "".join(f"; {number}" for number in numbers)
    if "records" not in parts["owner"]:
        return f"fitted on {what}; how many is not kept, because the promise may cover that"
    return (
        f"fitted on {parts['owner']['records']:,} {what}; "
        f"{parts['attacker']['records']:,} go to the attacker, {parts['victim']['records']:,} are the victims{told}"
    )


def _refuse_together(kind: type[Mechanism], resume: bool) -> None:
    """Raise if several processes cannot fit this together."""
    if not kind.by_shares:
        raise UsageError(
            f"{kind.name} is fitted in one process, because it does not train on shares of a batch: start the command "
            "without torchrun."
        )
    if resume:
        raise UsageError("--resume goes on in one process: start the command without torchrun.")


def _warn_of_subjects(config: Config, splits: Splits, warn: Warn) -> None:
    """Say which columns look as if they told people apart, where none was named."""
    if splits.owner.named:
        return
    schema = splits.schema
    labels = [schema.label_text(name) for name in (*schema.utility, *schema.private)]
    for problem in likely_subjects(config["data"]["source"], labels):
        warn(str(problem))


def _fit_beside(config: Config, start: Path | None, splits: Splits | None) -> Mechanism:
    """This process's part of a fit that the first process keeps."""
    mechanism = mechanism_class(config["run"]["mechanism"])().set_params(**config["params"], seed=config["run"]["seed"])
    splits = splits or splits_of(config)
    _disjoint_base(config, splits)
    return mechanism.fit(splits.owner, start=None if start is None else load_mechanism(start))


def _say_what_is_read(config: Config, splits: Splits, warn: Warn) -> None:
    """What is left out, counts as missing or had to be assumed: nothing is lost without a word."""
    source = config["data"]["source"]
    for part in open_data(source).parts.values():
        for what, remedy in part.remarks:
            warn(f"{part.label}: {what}; {remedy}")
    for sentence in readings(splits.schema):
        warn(sentence)


def _warn_of_gaps(splits: Splits, warn: Warn) -> None:
    if splits.owner.left_out:
        numbers = ", ".join(splits.schema.numbers)
        warn(f"{splits.owner.left_out:,} records have no number in {numbers} and are left out")


def fit_run(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    splits: Splits | None = None,
    ledger: Path | None = None,
    look: bool = False,
    progress: Progress = no_progress,
    warn: Warn = lambda _: None,
) -> Mechanism:
    """Fit what ``config`` says into the folder ``out``; ``start`` is a finished run to train on from.

    Of several processes that fit it together (``core.ranks``) the first alone writes.

    What a private fit spends is noted in the ``ledger`` of the data, by default beside them. With ``look``, ``warn``
    hears of labels that the fitted mechanism serves no better than a guesser would.
    """
    if start is not None:
        config = {**config, "run": {**config["run"], "start": start.name}}
    if ranks.count() > 1:
        _refuse_together(mechanism_class(config["run"]["mechanism"]), resume)
        if not ranks.first():
            return _fit_beside(config, start, splits)
    if not resume:
        RunFolder.refuse_used(out)  # before the data are read: that may take long
    splits = splits or splits_of(config)
    _disjoint_base(config, splits)
    precision = compute.precision_for(splits.owner.x[0].size)
    if precision != "fp32":  # it decides figures, so that a run goes on in the same one
        config = {**config, "run": {**config["run"], "precision": precision}}
    _say_what_is_read(config, splits, warn)
    _warn_of_subjects(config, splits, warn)
    _warn_of_gaps(splits, warn)
    run = RunFolder.create(out, config, resume=resume)
    same_records(run, splits)
    if run.done:
        return load_mechanism(out)
    mechanism = mechanism_class(config["run"]["mechanism"])().set_params(**config["params"], seed=config["run"]["seed"])
    warn_of_repeats(splits.owner, mechanism.traits, warn)
    if not (out / SPLITS).exists():
        run.write_json(SPLITS, sealed(splits, counted=not mechanism.traits.synthetic))
    key = str(run.read_json(SPLITS)["salt"])  # drawn once for each run, and kept when it goes on
    account = BudgetLedger.of(config["data"]["source"], ledger) if isinstance(mechanism, SpendsByFit) else None
    try:
        if account is not None and isinstance(mechanism, SpendsByFit):
            epsilon, delta = mechanism.spends()
            unit = "person" if splits.owner.named else "record"
            for sentence in account.charge(Charge(f"fit of {mechanism.name}", str(out), epsilon, delta, unit), key):
                warn(sentence)
        begun_from = None if start is None else load_mechanism(start)
        fitted = mechanism.fit(splits.owner, run=run, progress=progress, start=begun_from, warn=warn)
    except SfumatoError:
        begun = run.progress_file.exists() or (out / "budget.json").exists()  # a ledger says what was spent: it stays
        if not begun:  # refused before the first epoch: leave nothing behind
            shutil.rmtree(out, ignore_errors=True)
            if account is not None:
                account.refund(key)
        raise
    return _looked_at(fitted, splits, warn) if look else fitted


def _looked_at(fitted: Mechanism, splits: Splits, warn: Warn) -> Mechanism:
    for sentence in useless_at_first_look(fitted, splits):
        warn(f"{sentence}; train longer or hide less before you audit it")
    return fitted
