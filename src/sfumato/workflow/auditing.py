"""From a fitted run folder to scores, gallery and card."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from sfumato.auditing import CPU, Audit, Controls, Effort, audit
from sfumato.auditing.result import Say
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError
from sfumato.core.run_folder import EACH_RECORD, RunFolder, atomic, write_tensors
from sfumato.core.score import each_record
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.capabilities import LearnsByCounter
from sfumato.report import render_card
from sfumato.workflow.fitting import neighbour_of, same_cut, same_records, splits_of
from sfumato.workflow.repeated_records import warn_of_repeats


def audit_run(
    path: Path,
    *,
    effort: Effort = CPU,
    again: bool = False,
    splits: Splits | None = None,
    controls: Controls | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Attack the mechanism in a run folder and store what was found there."""
    run = RunFolder.open(path)
    if (path / "scores.json").exists() and not again:
        raise DataError(f"{path} has been audited: see its scores.json, or audit it --again.")
    same_cut(run)
    config = run.config()
    mechanism = load_mechanism(path)
    splits = splits or splits_of(config)
    if splits.schema != mechanism.schema_:
        raise DataError(f"{config['data']['source']} has changed since {path} was fitted: restore it, or fit again.")
    same_records(run, splits)
    warn_of_repeats(splits.victim, mechanism.traits, say)
    result = audit(
        mechanism,
        splits,
        effort=effort,
        seed=config["run"]["seed"],
        controls=controls,
        neighbour=neighbour_of(config, splits) if isinstance(mechanism, LearnsByCounter) else None,
        say=say,
    )
    return store(run, result, effort)


def store(run: RunFolder, result: Audit, effort: Effort) -> dict[str, Any]:
    """Write an audit into its run folder; ``scores.json`` comes last, as the mark that it is whole."""
    scores = {"run": str(run.path), **result.to_json(), "effort": asdict(effort)}
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
