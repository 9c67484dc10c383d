"""The points of the ``ran`` paper's figures, by data set and scale, and what rows call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.mechanisms.ran.multiplier import our_lambda, papers_lambda
from sfumato.studies.base import Part, Scale
from sfumato.studies.papers import paper
from sfumato.studies.rows import Results
from sfumato.workflow import Point

DATA: dict[str, Mapping[str, Any]] = {
    "mnist": {"utility": ["digit"]},
    "har": {"utility": ["activity"]},
    "cifar10": {"utility": ["label"]},
    "fsdd": {"utility": ["digit"], "private": ["speaker"]},
    "digits": {"utility": ["digit"]},
    "imagenet": {"utility": ["label"]},
    "ubisound": {"utility": ["event"]},
}
"""The last two are the paper's, and not public: fsdd and cifar10 stand in for them."""
NUMBERS = {
    "mnist": 784,
    "har": 9 * 128,
    "cifar10": 3 * 32 * 32,
    "fsdd": 32 * 32,
    "digits": 784,
    "imagenet": 3 * 64 * 64,
    "ubisound": 32 * 32,
}
"""D, the numbers in a record: by them the paper's λ and ours convert."""

CLEAN = "clean"
"""The part whose baselines are trained without the noise, as in the paper; nobody attacks them a second time."""
FEW_PEOPLE = {"har": "the victims are nine people"}
"""Data sets whose victims are too few to settle anything, and why."""

_EPOCHS = {"mnist": 3, "har": 8, "cifar10": 4, "fsdd": 12, "digits": 8, "imagenet": 4, "ubisound": 12}
_NETWORKS = {"imagenet": {"architecture": "vgg16"}}
"""What the paper takes; elsewhere the default is of its kind."""
_NOISES = {"smoke": (0.5,), "cpu": (0.1, 0.5, 0.9), "full": tuple(round(0.1 * i, 1) for i in range(1, 10))}
_OURS = {"smoke": (0.1,), "cpu": (0.5, 0.1, 1e-3, 1e-4), "full": (0.5, 0.1, 0.01, 1e-3, 1e-4)}
_PAPERS = {
    "smoke": (0.5,),
    "cpu": (0.9, 0.5, 0.1, 0.01),
    "full": (0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01),
}
_FEWER = {(data, "cpu"): ((0.1, 0.5), (0.1, 1e-3), (0.9, 0.1)) for data in ("cifar10", "imagenet")}
"""Noises, our λ and the paper's where the whole list would take two cores hours."""

_K = 3
"""ran takes k discriminative steps a batch, so the baselines train k times its epochs."""

_CPU = {"mnist": Effort(attack_epochs=4, task_epochs=1), "cifar10": Effort(attack_steps=300)}
_CPU_LIMIT = {"cifar10": 12_000, "imagenet": 50_000}


def scale(data: str, name: str) -> Scale:
    """Every point is trained from the start, with epochs of its own; at ``cpu`` and ``full`` for three seeds.

    The paper's attacker rebuilds records, so no other threat is tried.
    """
    effort = replace({"smoke": SMOKE, "cpu": _CPU.get(data, CPU), "full": FULL}[name], threats=("reconstruction",))
    parts = (
        Part(_points(data, name), "release"),
        Part(_clean_points(data, name), CLEAN, effort=replace(effort, threats=())),
    )
    if name == "smoke":
        return Scale(parts, effort, limit=1500, warm_start=False)
    limit = _CPU_LIMIT.get(data) if name == "cpu" else None
    return Scale(parts, effort, limit=limit, warm_start=False, seeds=(0, 1, 2))


def _points(data: str, name: str) -> tuple[Point, ...]:
    noises, ours, papers = _settings(data, name)
    epochs = _epochs(data, name)
    lambdas = sorted({*ours, *(our_lambda(one, NUMBERS[data]) for one in papers)}, reverse=True)
    network = _NETWORKS.get(data, {})
    plain = {"epochs": _K * epochs, **network}
    return (
        Point("none", plain),
        *(Point("noisy", {"noise": noise, **plain}) for noise in noises),
        Point("dnn", plain),
        *(Point("dnn-resized", {"noise": noise, **plain}) for noise in noises),
        *(Point("ran", {"lam": lam, "epochs": epochs, **network}) for lam in lambdas),
    )


def _clean_points(data: str, name: str) -> tuple[Point, ...]:
    noises, _, _ = _settings(data, name)
    plain = {"epochs": _K * _epochs(data, name), "clean": True, **_NETWORKS.get(data, {})}
    kinds = ("noisy", "dnn-resized")
    return tuple(Point(kind, {"noise": noise, **plain}, tag=CLEAN) for kind in kinds for noise in noises)


def _settings(data: str, name: str) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    return _FEWER.get((data, name), (_NOISES[name], _OURS[name], _PAPERS[name]))


def _epochs(data: str, name: str) -> int:
    return {"smoke": 1, "cpu": _EPOCHS[data], "full": 5 * _EPOCHS[data]}[name]


def title(data: str, result: Mapping[str, Any]) -> str:
    """What a row calls a point: ran with λ in the paper's unit and in ours."""
    params = result["params"]
    if result["mechanism"] == "ran":
        return f"ran, λ = {papers_lambda(params['lam'], NUMBERS[data]):.3g} (lam = {params['lam']:.3g})"
    noise = f", noise {params['noise']:g}" if "noise" in params else ""
    trained = ", trained on clean data" if params.get("clean") else ""
    return f"{result['mechanism']}{noise}{trained}"


def in_papers_range(data: str, result: Mapping[str, Any]) -> bool:
    """Whether the paper tried this λ."""
    low, high = (paper("ran").figure("§3.1, settings", "λ", end) for end in ("lowest", "highest"))
    return low - 1e-9 <= papers_lambda(result["params"]["lam"], NUMBERS[data]) <= high + 1e-9


def attacked(results: Results) -> Results:
    """The points that attacks were run on."""
    return [result for result in results if result["part"] != CLEAN]


def clean(results: Results, mechanism: str) -> Results:
    """The points of a baseline that was trained without its noise."""
    return [result for result in results if result["part"] == CLEAN and result["mechanism"] == mechanism]
