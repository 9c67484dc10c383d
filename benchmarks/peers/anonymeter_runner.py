"""Linkability and inference by Anonymeter. It imports nothing of sfumato."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator


def main(path: Path) -> None:
    """Each question of the job on the same tables: rates on members and on held-out people, and the risk."""
    job = json.loads(path.read_text())
    np.random.seed(job["seed"])
    tables = {name: pd.read_csv(file) for name, file in job["tables"].items()}
    found = [asked(question, tables) for question in job["questions"]]
    Path(job["report"]).write_text(json.dumps(found))


def asked(question: dict[str, Any], tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    parts = [tables[name].copy() for name in ("owner", question["release"], "holdout")]
    for part in parts:
        for name in question["categories"]:
            part[name] = part[name].map("{:g}".format)
    owner, release, holdout = parts
    if question["kind"] == "linkability":
        evaluator = LinkabilityEvaluator(
            ori=owner, syn=release, control=holdout, aux_cols=tuple(question["cut"]), n_attacks=len(holdout),
            n_neighbors=question["k"],
        )  # fmt: skip
        of = {"n_neighbors": question["k"]}
    else:
        others = [name for name in owner.columns if name != question["secret"]]
        evaluator = InferenceEvaluator(
            ori=owner, syn=release, control=holdout, aux_cols=others, secret=question["secret"], regression=True,
            n_attacks=len(holdout),
        )  # fmt: skip
        of = {}
    evaluator.evaluate(n_jobs=1)
    results, risk = evaluator.results(**of), evaluator.risk(confidence_level=0.95, **of)
    return {
        "members": float(results.attack_rate.value), "held out": float(results.control_rate.value),
        "risk": float(risk.value), "ci": [float(end) for end in risk.ci],
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
