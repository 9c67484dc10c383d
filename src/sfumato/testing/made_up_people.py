"""People who do not exist, with numbers, categories and missing values that depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_TOWNS = 12


def made_up_people(count: int, seed: int) -> dict[str, npt.NDArray[Any]]:
    """So many people, drawn independently of one another: column name → values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, count)
    town = rng.choice([f"town {place}" for place in range(_TOWNS)], count, p=_falling(_TOWNS))
    sex = rng.choice(["f", "m"], count)
    smoker = np.where(rng.random(count) < 0.15 + 0.2 * (sex == "m"), "yes", "no")
    weight = np.round(62.0 + 12.0 * (sex == "m") + 0.1 * age + rng.normal(0.0, 11.0, count), 1)
    pressure = np.rint(100.0 + 0.4 * age + 0.3 * weight + rng.normal(0.0, 10.0, count))
    income = np.round(np.exp(rng.normal(10.0, 0.6, count)), -2)
    risk = 0.03 * (age - 50) + 0.8 * (smoker == "yes") + 0.02 * (pressure - 140)
    ill = np.where(rng.random(count) < 1.0 / (1.0 + np.exp(1.0 - risk)), "ill", "well")
    known = np.where(rng.random(count) < 0.05, np.nan, income)
    return {
        "age": age, "sex": sex, "town": town, "smoker": smoker, "weight": weight, "pressure": pressure,
        "income": known, "diagnosis": ill,
    }  # fmt: skip


def _falling(count: int) -> npt.NDArray[np.float64]:
    shares = 1.0 / np.arange(1, count + 1)
    return np.asarray(shares / shares.sum())
