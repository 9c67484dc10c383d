"""What an audit reads from a run folder, and the scores, gallery and card that it stores there."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from sfumato.auditing import Audit, Controls, Effort
from sfumato.auditing.auditor import audit_steps
from sfumato.auditing.result import Say
from sfumato.auditing.steps import AuditSteps
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError
from sfumato.core.run_folder import EACH_RECORD, RunFolder, atomic, write_tensors
from sfumato.core.schema import Schema
from sfumato.core.score import each_record
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.capabilities import LearnsByCounter
from sfumato.report import render_card
from sfumato.workflow.fitting import neighbour_of, same_cut, same_records, splits_of
from sfumato.workflow.repeated_records import warn_of_repeats
from sfumato.workflow.warrant import audited_state


def to_be_audited(path: Path, *, again: bool) -> RunFolder:
    """A run folder whose mechanism can be attacked."""
    run = RunFolder.open(path)
    if (path / "scores.json").exists() and not again:
        raise DataError(f"{path} has been audited: see its scores.json, or audit it --again.")
    same_cut(run)
    return run


def opened(run: RunFolder, effort: Effort, splits: Splits | None, controls: Controls, say: Say) -> AuditSteps:
    """The steps of a run's audit, if its records (or ``splits``) are still those that it was fitted on."""
    config = run.config()
    mechanism = load_mechanism(run.path)
    splits = splits or splits_of(config)
    if splits.schema != mechanism.schema_:
        raise DataError(
            f"{config['data']['source']} has changed since {run.path} was fitted: restore it, or fit again."
        )
    same_records(run, splits)
    warn_of_repeats(splits.victim, mechanism.traits, say)
    steps = audit_steps(
        mechanism,
        splits,
        effort=effort,
        seed=config["run"]["seed"],
        controls=controls,
        neighbour=neighbour_of(config, splits) if isinstance(mechanism, LearnsByCounter) else None,
    )
    for note in steps.notes:
        say(f"{mechanism.name}: {note}")
    return steps


def store(run: RunFolder, result: Audit, effort: Effort) -> dict[str, Any]:
    """Write an audit into its run folder; ``scores.json`` comes last, as the mark that it is whole."""
    scores = {"run": str(run.path), **result.to_json(), "effort": asdict(effort)}
    scores["audited"] = audited_state(run.path)
    scores["precision"] = compute.precision_for(Schema.from_json(run.read_json("schema.json")).size)
    for attack in sorted({score.attack for score in result.attacks}):
        found = [score.to_json() for score in result.attacks if score.attack == attack]
        run.write_json(f"attacks/{attack}.json", {"attack": attack, "scores": found})
    each = {**each_record((*result.utility, *result.attacks)), **result.answers}
    write_tensors(run.path / EACH_RECORD, {key: torch.as_tensor(values) for key, values in each.items()})
    gallery = {name: torch.as_tensor(values.copy()) for name, values in result.gallery.items()}
    write_tensors(run.path / "gallery.safetensors", gallery)
    run.write_json("features.json", result.features)
    run.write_json("scores.json", scores)
    with atomic(run.path / "README.md") as part:
        part.write_text(render_card(run.path))
    return scores
