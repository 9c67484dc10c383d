"""What the studies of the ``phase`` paper compare: data sets, networks, points and scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.studies.base import Part, Scale
from sfumato.workflow import Point

DATA: dict[str, Mapping[str, Any]] = {
    "cifar10": {"utility": ["label"]},
    "mnist": {"utility": ["digit"]},
    "celeba": {"utility": ["Smiling"]},
    "har": {"utility": ["activity"]},
    "digits": {"utility": ["digit"]},
}
_MODEL = {"celeba": "alexnet"}
EPOCHS = {"cifar10": 12, "mnist": 4, "celeba": 12, "har": 12, "digits": 8}
_RESNETS = {"smoke": (20,), "cpu": (20,), "full": (20, 32, 44, 56, 110)}
_RESNET_EPOCHS = {"smoke": 1, "cpu": 16, "full": 100}
EFFORTS: Mapping[str, Effort] = {"smoke": SMOKE, "cpu": replace(CPU, attack_epochs=3), "full": FULL}
_WIDE = {**EFFORTS, "cpu": replace(CPU, threats=("attribute",))}
"""Messages of tens of thousands of numbers: at ``cpu`` error rates only, their decoders take two cores hours."""
SMOKE_LIMIT = 1500
_CPU_LIMIT = {"cifar10": 24_000}
"""Of 60,000: two cores and an hour."""
_SEEDS: Mapping[str, tuple[int, ...]] = {"smoke": (0,), "cpu": (0, 1, 2), "full": (0, 1, 2)}

PUBLISHED = "phase-published-d-2"
"""The point that is the paper's scheme."""


def _phase(more: Mapping[str, Any], **params: Any) -> Point:
    tag = "published" if params.get("variant") == "published" else ""
    return Point("phase", {**params, **more}, tag=tag)


def _points(more: Mapping[str, Any], *, baselines: bool, larger: bool) -> tuple[Point, ...]:
    """The original network, the paper's baselines, its scheme, and ours at d = 2 (and 4)."""
    extra = (Point("split-extra", more), *(Point("split-noisy", {"gamma": g, **more}) for g in (0.2, 0.5, 1.0)))
    return (
        Point("split", more),
        *(extra if baselines else ()),
        _phase(more, variant="published", keyed=False, d=2),
        *(_phase(more, d=d) for d in ((2, 4) if larger else (2,))),
    )


def lenet_scale(data: str, scale: str) -> Scale:
    """LeNet (AlexNet for faces)."""
    epochs = {"smoke": 1, "cpu": EPOCHS[data], "full": 5 * EPOCHS[data]}[scale]
    more = {"model": _MODEL.get(data, "lenet"), "epochs": epochs}
    larger = data in ("mnist", "digits") or (data == "cifar10" and scale == "full")
    points = _points(more, baselines=data == "cifar10" and scale != "smoke", larger=larger)
    limit = SMOKE_LIMIT if scale == "smoke" else _CPU_LIMIT.get(data) if scale == "cpu" else None
    effort = (_WIDE if data == "celeba" else EFFORTS)[scale]
    return Scale((Part(points),), effort, limit=limit, warm_start=False, seeds=_SEEDS[scale])


def resnet_scale(_data: str, scale: str) -> Scale:
    """ResNet-α and -β with all baselines; at ``cpu`` ResNet-20-α alone without additional layers, on 9,000 pictures."""

    def part(depth: int, cut: str) -> Part:
        name = f"resnet{depth}-{cut}"
        more = {"model": name, "epochs": _RESNET_EPOCHS[scale]}
        extra = () if scale == "cpu" else (Point("split-extra", more),)
        published = _phase(more, variant="published", keyed=False, d=2)
        return Part((Point("split", more), *extra, published, _phase(more, d=2)), name=name)

    cuts = ("alpha",) if scale == "cpu" else ("alpha", "beta")
    parts = tuple(part(depth, cut) for depth in _RESNETS[scale] for cut in cuts)
    limit = {"smoke": 400, "cpu": 9_000}.get(scale)
    return Scale(parts, _WIDE[scale], limit=limit, warm_start=False, seeds=_SEEDS[scale])


def title(result: Mapping[str, Any]) -> str:
    return f"{result['part']} {result['point']}".strip()
