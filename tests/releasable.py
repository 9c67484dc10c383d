"""Two audited runs that may release: features of a table, and synthetic rows with a promise for each person."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfumato.auditing.effort import SMOKE
from sfumato.core.policy import Policy, policy_of
from sfumato.testing.made_up_people import made_up_people
from sfumato.workflow import audit_run, fit_run, resolve

QUICK = replace(SMOKE, threats=("attribute", "reconstruction", "membership"), inverted=8, inversion_steps=5, shadows=2)
EASY = policy_of(["attribute=100%"], ["auroc=0.51"])
"""What the run of features passes."""
DOMAIN = """
[columns.age]
kind = "numeric"
low = 18
high = 90
[columns.sex]
kind = "categorical"
categories = ["f", "m"]
[columns.smoker]
kind = "categorical"
categories = ["no", "yes"]
[columns.weight]
kind = "numeric"
low = 30
high = 120
[columns.height]
kind = "numeric"
low = 140
high = 200
[columns.diagnosis]
kind = "categorical"
categories = ["ill", "well"]
"""
_COLUMNS = ("age", "sex", "smoker", "weight", "height", "diagnosis")


def write_people(folder: Path, count: int = 300) -> Path:
    """``people.csv`` with two rows of each person, and ``domain.toml``; height tells sex nearly always."""
    people = made_up_people(count, 0)
    tall = 164.0 + 14.0 * (people["sex"] == "m") + np.random.default_rng(1).normal(0.0, 5.0, count)
    people["height"] = np.round(tall.clip(140.0, 200.0), 1)
    with (folder / "people.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["who", *_COLUMNS])
        table.writerows([f"p{row // 2}", *(people[name][row] for name in _COLUMNS)] for row in range(count))
    (folder / "domain.toml").write_text(DOMAIN)
    return folder / "people.csv"


def features_run(folder: Path) -> Path:
    """Features that serve ``sex`` better than guessing, audited."""
    source = str(write_people(folder))
    data = {"source": source, "utility": ["sex"], "private": ["diagnosis"], "id": "who"}
    fit_run(resolve("dnn", data, {"epochs": 15}, seed=0), folder / "features")
    audit_run(folder / "features", effort=QUICK)
    return folder / "features"


def synthetic_run(folder: Path) -> Path:
    """Synthetic rows with ε = 3 for each person, audited; the ledger lies beside the file."""
    data = {"source": str(write_people(folder, 1200)), "utility": ["sex"], "private": ["diagnosis"], "id": "who"}
    data["domain"] = str(folder / "domain.toml")
    fit_run(resolve("synth", data, {"epsilon": 3.0}, seed=0), folder / "synthetic")
    audit_run(folder / "synthetic", effort=replace(QUICK, threats=("membership", "singling-out")))
    return folder / "synthetic"


def proven(**more: float) -> Policy:
    """What the synthetic run passes."""
    return replace(policy_of(["membership=100%"], require="dp"), epsilon=3.0, unit="person", name="proven", **more)
