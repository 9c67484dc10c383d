"""What the studies of the ``phase`` paper compare: data sets, networks, points and scales.

A part of a study is one network on one data set, named as in the paper's tables. All tables and figures share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.auditing.utility import MEAN_ACCURACY
from sfumato.studies.base import Part, Scale
from sfumato.studies.rows import accuracy
from sfumato.workflow import Point

ATTRIBUTES = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips", "Big_Nose",
    "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses",
    "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes",
    "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks", "Sideburns", "Smiling",
    "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick", "Wearing_Necklace",
    "Wearing_Necktie", "Young",
)  # fmt: skip
"""The 40 of CelebA, in its order; the paper's face task is all of them at once (§4.2)."""
DATA: dict[str, Mapping[str, Any]] = {
    "cifar10": {"utility": ["label"]},
    "cifar100": {"utility": ["label"]},
    "cub200": {"utility": ["species"]},
    "mnist": {"utility": ["digit"]},
    "celeba": {"utility": list(ATTRIBUTES), "private": []},
    "har": {"utility": ["activity"]},
    "digits": {"utility": ["digit"]},
}
_NETWORKS = {"celeba": "alexnet", "cub200": "vgg16"}
"""Table 2's; LeNet for all others."""
_RESNETS_OF_TABLE_2 = ("resnet56-alpha", "resnet110-alpha")
"""On CIFAR-100, beside LeNet."""
_DEPTHS = (20, 32, 44, 56, 110)
_PHOTOGRAPHS = ("cifar10", "cifar100", "cub200", "celeba")
EPOCHS = {"cifar10": 12, "cifar100": 12, "cub200": 30, "mnist": 4, "celeba": 12, "har": 12, "digits": 8}
_LONG = {"cifar10": 120, "cifar100": 120, "cub200": 200, "celeba": 60}
"""At ``full``, with pictures moved in every pass; five times as many as at ``cpu`` for the others."""
_RESNET_EPOCHS = {"smoke": 1, "cpu": 16, "full": 160}
EFFORTS: Mapping[str, Effort] = {
    "smoke": replace(SMOKE, task_epochs=0),
    "cpu": replace(CPU, attack_epochs=3, task_epochs=0),
    "full": replace(FULL, task_epochs=0),
}
"""The networks' own answers are the paper's error rates: no fresh classifier reads features."""
_LARGE: Mapping[str, Effort] = {**EFFORTS, "cpu": replace(EFFORTS["cpu"], attack_steps=250)}
"""Faces and birds: messages of 16,384 and 49,152 numbers."""
_WIDE: Mapping[str, Effort] = {**EFFORTS, "cpu": replace(EFFORTS["cpu"], threats=("key",))}
"""Residual networks: at ``cpu`` error rates and the critic's angle only, as decoders of their messages of 32,768
numbers take two cores hours."""
SMOKE_LIMIT = 1500
_SMOKE_LIMITS = {"celeba": 20_000, "cifar100": 3000, "cub200": 3000}
"""Rare attributes, and many classes."""
_CPU_LIMIT = {"cifar10": 24_000, "cifar100": 24_000}
"""Of 60,000: two cores and an hour."""
_RESNET_LIMIT: Mapping[str, int | None] = {"smoke": 400, "cpu": 9_000, "full": None}
SEEDS: Mapping[str, tuple[int, ...]] = {"smoke": (0,), "cpu": (0, 1, 2), "full": (0, 1, 2)}

PUBLISHED = "phase-published-d-2"
"""The point that is the paper's scheme, on networks cut as ours are."""
PAPERS_CUT = "phase-published-fc3-d-2"
"""The same with the paper's cut of LeNet, whose cloud computes all but the softmax layer (§4.1)."""
_FC3 = {"encrypt_to": "pool1", "decrypt_from": "fc3"}


def _phase(more: Mapping[str, Any], *tag: str, **params: Any) -> Point:
    return Point("phase", {**params, **more}, tag="-".join(tag))


def _published(more: Mapping[str, Any], *tag: str) -> Point:
    return _phase(more, "published", *tag, variant="published", keyed=False, d=2)


def _points(more: Mapping[str, Any], *, noisy: bool, papers_cut: bool, larger: bool) -> tuple[Point, ...]:
    """The original network, the paper's baselines, its scheme, and ours at d = 2 (and 4)."""
    return (
        Point("split", more),
        Point("split-extra", more),
        *(Point("split-noisy", {"gamma": g, **more}) for g in ((0.2, 0.5, 1.0) if noisy else ())),
        _published(more),
        *((_published({**more, **_FC3}, "fc3"),) if papers_cut else ()),
        *(_phase(more, d=d) for d in ((2, 4) if larger else (2,))),
    )


def network_part(data: str, scale: str) -> Part:
    """Table 2's LeNet, VGG-16 or AlexNet; LeNet for the data sets that are ours."""
    name = _NETWORKS.get(data, "lenet")
    long = scale == "full" and data in _LONG
    epochs = {"smoke": 1, "cpu": EPOCHS[data], "full": _LONG.get(data, 5 * EPOCHS[data])}[scale]
    model = "lenet-wide" if name == "lenet" and long else name
    more = {"model": model, "epochs": epochs, **({"augment": True} if long else {})}
    points = _points(
        more,
        noisy=data in ("cifar10", "cifar100", "cub200"),
        papers_cut=name == "lenet",
        larger=data in ("mnist", "digits") or (data == "cifar10" and scale == "full"),
    )
    limit = _SMOKE_LIMITS.get(data, SMOKE_LIMIT) if scale == "smoke" else _CPU_LIMIT.get(data)
    effort = (_LARGE if data in _NETWORKS else EFFORTS)[scale]
    return Part(points, name=name, data={"limit": None if scale == "full" else limit}, effort=effort)


def resnet_part(data: str, name: str, scale: str) -> Part:
    """A residual network; Table 2 has noisy features on CIFAR-100, Table 1 none on CIFAR-10."""
    more = {"model": name, "epochs": _RESNET_EPOCHS[scale], **({"augment": True} if scale == "full" else {})}
    points = _points(more, noisy=data == "cifar100" and scale != "smoke", papers_cut=False, larger=False)
    return Part(points, name=name, data={"limit": _RESNET_LIMIT[scale]}, effort=_WIDE[scale])


def resnet_parts(data: str, scale: str) -> tuple[Part, ...]:
    """Table 1's ten networks on CIFAR-10, at ``smoke`` ResNet-20 alone, at ``cpu`` ResNet-20-α; Table 2's two on
    CIFAR-100, below ``full`` the smaller one."""
    names: tuple[str, ...] = ()
    if data == "cifar100":
        names = _RESNETS_OF_TABLE_2 if scale == "full" else _RESNETS_OF_TABLE_2[:1]
    elif data == "cifar10":
        cuts = ("alpha",) if scale == "cpu" else ("alpha", "beta")
        names = tuple(f"resnet{n}-{cut}" for n in (_DEPTHS if scale == "full" else _DEPTHS[:1]) for cut in cuts)
    return tuple(resnet_part(data, name, scale) for name in names)


def resnet_scale(data: str, scale: str) -> Scale:
    """Residual networks."""
    return _scale(resnet_parts(data, scale), scale)


def network_scale(data: str, scale: str) -> Scale:
    """LeNet, VGG-16 or AlexNet."""
    return _scale((network_part(data, scale),), scale)


def table2_scale(data: str, scale: str) -> Scale:
    """Table 2: residual networks stand in it on CIFAR-100 only."""
    more = resnet_parts(data, scale) if data == "cifar100" else ()
    return _scale((network_part(data, scale), *more), scale)


def every_scale(data: str, scale: str) -> Scale:
    """Table 3: every network of the data set."""
    return _scale((network_part(data, scale), *resnet_parts(data, scale)), scale)


def _scale(parts: tuple[Part, ...], scale: str) -> Scale:
    """One limit stands with the scale, several with their parts."""
    first, *others = (part.data["limit"] for part in parts)
    if all(limit == first for limit in others):
        parts = tuple(replace(part, data={}) for part in parts)
        return Scale(parts, EFFORTS[scale], limit=first, warm_start=False, seeds=SEEDS[scale])
    return Scale(parts, EFFORTS[scale], warm_start=False, seeds=SEEDS[scale])


def title(result: Mapping[str, Any]) -> str:
    return f"{result['part']} {result['point']}".strip()


def answered(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """How often a label is read right; of several labels, the mean (§4.2: "average estimation error rate")."""
    several = (score for score in result["utility"] if score["metric"] == MEAN_ACCURACY)
    return next(several, None) or accuracy(result)
