"""The ``phase`` paper: Tables 1 to 4 and Figure 3, and what its variant with O(d) and exchangeable decoys is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.rows import Results, Row, accuracy, attack_score, highest, lowest, score_row
from sfumato.workflow import Point

DATA: dict[str, Mapping[str, Any]] = {
    "cifar10": {"utility": ["label"]},
    "mnist": {"utility": ["digit"]},
    "celeba": {"utility": ["Smiling"]},
    "har": {"utility": ["activity"]},
    "digits": {"utility": ["digit"]},
}
_MODEL = {"celeba": "alexnet"}
_EPOCHS = {"cifar10": 12, "mnist": 4, "celeba": 12, "har": 12, "digits": 8}
_RESNETS = {"smoke": (20,), "cpu": (20,), "full": (20, 32, 44, 56, 110)}
_RESNET_EPOCHS = {"smoke": 1, "cpu": 16, "full": 100}
_EFFORTS: Mapping[str, Effort] = {"smoke": SMOKE, "cpu": replace(CPU, attack_epochs=3), "full": FULL}
_WIDE = {**_EFFORTS, "cpu": replace(CPU, threats=("attribute",))}
"""Messages of tens of thousands of numbers: at ``cpu`` error rates only, their decoders take two cores hours."""
_SMOKE_LIMIT = 1500
_CPU_LIMIT = {"cifar10": 24_000}
"""Of 60,000: two cores and an hour."""

# error rate of (original, with additional layers, γ = 0.2, 0.5, 1.0, ours), then mean absolute reconstruction error of
# (original, with additional layers, γ = 0.2, 0.5, 1.0, ours by strategy 1, ours by strategy 2)
PAPER_ERRORS = {
    "cifar10": (0.1978, 0.2152, 0.2415, 0.2753, 0.3443, 0.1795),
    "celeba": (0.1417, 0.0949, None, None, None, 0.1594),
    "resnet20-alpha": (0.1156, 0.0968, None, None, None, 0.1091),
    "resnet20-beta": (0.1199, 0.0979, None, None, None, 0.1228),
    "resnet32-alpha": (0.1113, 0.0967, None, None, None, 0.1048),
    "resnet32-beta": (0.1091, 0.0940, None, None, None, 0.1112),
    "resnet44-alpha": (0.1067, 0.0943, None, None, None, 0.1108),
    "resnet44-beta": (0.1050, 0.1015, None, None, None, 0.1051),
    "resnet56-alpha": (0.1017, 0.0916, None, None, None, 0.1153),
    "resnet56-beta": (0.1078, 0.0904, None, None, None, 0.1128),
    "resnet110-alpha": (0.1019, 0.0914, None, None, None, 0.1197),
    "resnet110-beta": (0.1021, 0.0936, None, None, None, 0.1185),
}
PAPER_RECONSTRUCTION = {
    "cifar10": (0.0769, 0.1208, 0.0948, 0.1076, 0.1274, 0.2405, 0.2353),
    "celeba": (0.0687, 0.1068, None, None, None, 0.3272, 0.2597),
    "resnet20-alpha": (0.0906, 0.1225, None, None, None, 0.2664, 0.2420),
    "resnet20-beta": (0.0967, 0.1210, None, None, None, 0.2424, 0.2420),
    "resnet32-alpha": (0.0930, 0.1171, None, None, None, 0.2569, 0.2412),
    "resnet32-beta": (0.0959, 0.1189, None, None, None, 0.2515, 0.2425),
    "resnet44-alpha": (0.0933, 0.1109, None, None, None, 0.2746, 0.2419),
    "resnet44-beta": (0.0973, 0.1210, None, None, None, 0.2511, 0.2397),
    "resnet56-alpha": (0.0989, 0.1304, None, None, None, 0.2804, 0.2377),
    "resnet56-beta": (0.0907, 0.1176, None, None, None, 0.2585, 0.2358),
    "resnet110-alpha": (0.0896, 0.1079, None, None, None, 0.3081, 0.2495),
    "resnet110-beta": (0.0932, 0.1152, None, None, None, 0.2582, 0.2414),
}
PAPER_ANGLE = {"cifar10": 0.7884, "celeba": 0.85, "resnet20-alpha": 0.7890, "resnet20-beta": 0.7859}
PAPER_FAILURE = {
    "cifar10": (0.16, 0.12, 0.20, 0.20, 0.24, 0.82, 0.92),
    "celeba": (0.04, 0.24, None, None, None, 0.96, 1.0),
}

_PLACE = {
    "split": 0,
    "split-extra": 1,
    "split-noisy-gamma-0.2": 2,
    "split-noisy-gamma-0.5": 3,
    "split-noisy-gamma-1": 4,
    "phase-published-d-2": 5,
}
_STRATEGY1, _STRATEGY2 = "inverse-critic", "inverse-residual"
_ALLOWED = 0.02
"""The error rate may rise by so much over the original network's."""


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


def _scale(data: str, scale: str) -> Scale:
    """LeNet (AlexNet for faces)."""
    epochs = {"smoke": 1, "cpu": _EPOCHS[data], "full": 5 * _EPOCHS[data]}[scale]
    more = {"model": _MODEL.get(data, "lenet"), "epochs": epochs}
    larger = data in ("mnist", "digits") or (data == "cifar10" and scale == "full")
    points = _points(more, baselines=data == "cifar10" and scale != "smoke", larger=larger)
    limit = _SMOKE_LIMIT if scale == "smoke" else _CPU_LIMIT.get(data) if scale == "cpu" else None
    effort = (_WIDE if data == "celeba" else _EFFORTS)[scale]
    return Scale((Part(points),), effort, limit=limit, warm_start=False)


def _resnet_scale(_data: str, scale: str) -> Scale:
    """ResNet-α and -β with all baselines; at ``cpu`` ResNet-20-α and its original alone, on 9,000 pictures."""

    def part(depth: int, cut: str) -> Part:
        name = f"resnet{depth}-{cut}"
        more = {"model": name, "epochs": _RESNET_EPOCHS[scale]}
        theirs = (Point("split-extra", more), _phase(more, variant="published", keyed=False, d=2))
        points = (Point("split", more), *(() if scale == "cpu" else theirs), _phase(more, d=2))
        return Part(points, name=name)

    cuts = ("alpha",) if scale == "cpu" else ("alpha", "beta")
    parts = tuple(part(depth, cut) for depth in _RESNETS[scale] for cut in cuts)
    limit = {"smoke": 400, "cpu": 9_000}.get(scale)
    return Scale(parts, _WIDE[scale], limit=limit, warm_start=False)


def _key(data: str, result: Mapping[str, Any]) -> str:
    """The row of the paper's tables."""
    return str(result["part"]) if result["part"] else data


def _title(result: Mapping[str, Any]) -> str:
    return f"{result['part']} {result['point']}".strip()


def _at(values: tuple[float | None, ...] | None, place: int | None) -> float | None:
    return None if values is None or place is None else values[place]


def _rest(interval: Sequence[float]) -> tuple[float, float]:
    """The interval of what a share leaves of 1."""
    return 1.0 - interval[1], 1.0 - interval[0]


def _errors(data: str, results: Results) -> list[Row]:
    """Error rates; ``holds``: not more than two points above the original network."""
    rows = []
    original: dict[str, float] = {}
    for result in results:
        score = accuracy(result)
        error = 1.0 - score["value"]
        if result["mechanism"] == "split":
            original[result["part"]] = error
        within = error <= original[result["part"]] + _ALLOWED if result["mechanism"] == "phase" else None
        paper = _at(PAPER_ERRORS.get(_key(data, result)), _PLACE.get(result["point"]))
        name = f"{_title(result)}: error rate"
        rows.append(Row(name, "error", "lower", paper, error, _rest(score["ci"]), within))
    return rows


def _reconstructions(data: str, results: Results) -> list[Row]:
    """Mean absolute error by both strategies, then by the best attack of all; ``holds``: as hidden as published.

    Nothing for points on which no attack was run.
    """
    rows = []
    for result in results:
        figures = PAPER_RECONSTRUCTION.get(_key(data, result))
        place = _PLACE.get(result["point"])
        for attack, shift in ((_STRATEGY1, 0), (_STRATEGY2, 1)):
            score = attack_score(result, attack, "l1")
            if score is None:
                continue
            paper = _at(figures, None if place is None else place if result["mechanism"] != "phase" else 5 + shift)
            rows.append(score_row(f"{_title(result)}: {attack}", score, paper=paper))
        single = [s for s in result["attacks"] if s["threat"] == "reconstruction" and s["metric"] == "l1"]
        if not single:
            continue
        best = lowest(single)
        claim = _at(figures, 6) if result["point"] == "phase-published-d-2" else None
        holds = None if claim is None else best["value"] >= claim
        rows.append(score_row(f"{_title(result)}: best attack ({best['attack']})", best, paper=claim, holds=holds))
    return rows


def _utility_and_privacy(data: str, results: Results) -> list[Row]:
    return _errors(data, results) + _reconstructions(data, results)


def _table3(data: str, results: Results) -> list[Row]:
    """The angle of a critic; a uniform guess gets π/2, or π/4 if angle and opposite angle count as one."""
    rows = []
    for result in results:
        paper = PAPER_ANGLE.get(_key(data, result)) if result["point"] == "phase-published-d-2" else None
        for metric in ("angle", "angle-folded"):
            score = attack_score(result, "angle", metric)
            if score is not None:
                rows.append(score_row(f"{_title(result)}: {metric}", score, paper=paper))
    return rows


def _table4(data: str, results: Results) -> list[Row]:
    """Share of records not found among the candidates: by decoding (people did it in the paper) and by algebra."""
    rows = []
    for result in results:
        place = _PLACE.get(result["point"])
        for attack in ("reid-decode", "reid-query", "reid-span"):
            score = attack_score(result, attack, "rate")
            if score is None:
                continue
            shift = 1 if result["mechanism"] == "phase" else 0
            figures = PAPER_FAILURE.get(_key(data, result)) if attack == "reid-decode" else None
            paper = _at(figures, None if place is None else place + shift)
            failure = 1.0 - score["value"]
            holds = None if paper is None or shift == 0 else failure >= paper
            name = f"{_title(result)}: {attack}"
            rows.append(Row(name, "failure rate", "higher", paper, failure, _rest(score["ci"]), holds))
    return rows


def _figure3(_data: str, results: Results) -> list[Row]:
    """How alike the best reconstruction is to the picture; the pictures are in the report."""
    rows = []
    for result in results:
        scores = [s for s in result["attacks"] if s["metric"] == "ssim" and s["threat"] == "reconstruction"]
        if scores:
            worst = highest(scores)
            rows.append(score_row(f"{_title(result)}: best single guess ({worst['attack']})", worst))
        listed = attack_score(result, "list-decoder", "ssim")
        if listed is not None:
            rows.append(score_row(f"{_title(result)}: best of d guesses", listed))
    return rows


def _anonymity(_data: str, results: Results) -> list[Row]:
    """The theorem, measured: single guesses stay at (d − 1)/d of the mean record's error, rows at 1/d."""
    rows = []
    for result in (r for r in results if r["mechanism"] == "phase"):
        d, proven = result["params"]["d"], result["params"].get("variant") != "published"
        floor = (d - 1) / d
        guess = result["worst"]["reconstruction"]
        scale = 1.0 / (guess["baseline"] * floor)
        low, high = guess["ci"][0] * scale, guess["ci"][1] * scale
        rows.append(score_row(f"{_title(result)}: accuracy", accuracy(result)))
        rows.append(score_row(f"{_title(result)}: best single guess ({guess['attack']})", guess))
        name = f"{_title(result)}: the same over (d − 1)/d of the mean record's"
        holds = guess["value"] * scale >= 0.9 if proven else None
        rows.append(Row(name, "mse ratio", "higher", None, guess["value"] * scale, (low, high), holds))
        listed = result["worst"]["list-reconstruction"]
        rows.append(score_row(f"{_title(result)}: best of {d} guesses ({listed['attack']})", listed))
        for score in (s for s in result["attacks"] if s["threat"] == "row" and s["primary"]):
            within = score["ci"][0] <= 1 / d <= score["ci"][1]
            rows.append(score_row(f"{_title(result)}: which row ({score['attack']})", score, holds=within))
        for threat in ("reidentification", "result"):
            for name, score in result["worst"].items():
                if name.split(":")[0] == threat:
                    rows.append(score_row(f"{_title(result)}: {threat} ({score['attack']})", score))
    return rows


def _keys(_data: str, results: Results) -> list[Row]:
    """Accuracy against the angle between the right key and the one used, and with a key drawn at random."""
    rows = []
    for result in results:
        curve = result.get("wrong_key")
        if not curve:
            continue
        for angle, read in zip(curve["angles"], curve["curve"], strict=True):
            name = f"{_title(result)}: {angle / 3.141592653589793:.2f} π off"
            rows.append(Row(name, "accuracy", "higher", None, read["accuracy"], tuple(read["ci"])))
        name = f"{_title(result)}: a key drawn at random (chance {curve['chance']:.2f})"
        uniform = curve["uniform"]
        rows.append(Row(name, "accuracy", "lower", None, uniform["accuracy"], tuple(uniform["ci"])))
    return rows


_FRONT: Mapping[str, tuple[tuple[int, float], ...]] = {
    "smoke": ((16, 1.0), (2, 0.5)),
    "cpu": ((16, 1.0), (16, 0.3), (4, 1.0), (1, 1.0)),
    "full": tuple((channels, lam) for channels in (16, 8, 4, 2, 1) for lam in (1.0, 0.5, 0.1)),
}
"""K of the generator and λ of ``ran``'s objective."""


def _front_scale(data: str, scale: str) -> Scale:
    epochs = {"smoke": 1, "cpu": 2 * _EPOCHS[data], "full": 5 * _EPOCHS[data]}[scale]
    plain = {"model": "lenet", "epochs": epochs}
    points = tuple(
        Point("phase", {**plain, "channels": channels, "lam": lam}, "lam", tag=f"k{channels}")
        for channels, lam in _FRONT[scale]
    )
    limit = {"smoke": _SMOKE_LIMIT, "cpu": 12_000}.get(scale)
    effort = replace(_EFFORTS[scale], threats=("list-reconstruction",))
    if scale == "cpu":
        effort = replace(effort, attack_epochs=2, attack_steps=250)
    return Scale((Part(points),), effort, limit=limit, warm_start=False)


def _front(_data: str, results: Results) -> list[Row]:
    rows = []
    for result in results:
        rows.append(score_row(f"{result['point']}: accuracy", accuracy(result)))
        listed = result["worst"]["list-reconstruction"]
        rows.append(score_row(f"{result['point']}: best of d guesses ({listed['attack']})", listed))
        alike = attack_score(result, listed["attack"], "ssim")
        if alike is not None:
            rows.append(score_row(f"{result['point']}: the same, likeness", alike))
    return rows


_ALL = ("cifar10", "mnist", "celeba", "har", "digits")
_PICTURES = ("cifar10", "mnist", "celeba", "digits")


def _study(name: str, title: str, statement: str, rows: Any, data: tuple[str, ...] = _ALL, **more: Any) -> Study:
    options = {"family": "phase", "scale": _scale, **more}
    return Study(name=name, title=title, about=statement, data={k: DATA[k] for k in data}, rows=rows, **options)


STUDIES = (
    _study(
        "phase-table1",
        "Phase, Table 1: residual networks on CIFAR-10",
        "The rotated network errs little more than the original, and decoders rebuild far less from its messages.",
        _utility_and_privacy,
        ("cifar10",),
        family="phase-resnet",
        scale=_resnet_scale,
    ),
    _study(
        "phase-table2",
        "Phase, Table 2: error rates and reconstruction errors",
        "The rotated network errs little more than the original, and decoders rebuild far less from its messages.",
        _utility_and_privacy,
    ),
    _study("phase-table3", "Phase, Table 3: the angle that a critic finds", "A critic cannot find the angle.", _table3),
    _study(
        "phase-table4",
        "Phase, Table 4: re-identification",
        "People cannot tell which record a reconstruction shows.",
        _table4,
        _PICTURES,
    ),
    _study(
        "phase-figure3",
        "Phase, Figure 3: reconstructed pictures",
        "Pictures rebuilt from messages show little of the record.",
        _figure3,
        _PICTURES,
    ),
    _study(
        "phase-anonymity",
        "Phase, which row is the record: one in d",
        "With keys from O(d) and exchangeable decoys no attacker can tell which of d rows is the record.",
        _anonymity,
    ),
    _study(
        "phase-keys",
        "Phase, the worth of a key: accuracy with the wrong one",
        "Without the key the answer cannot be read.",
        _keys,
    ),
    _study(
        "phase-front",
        "Phase, less for the list decoder: a narrow generator and ran's objective",
        "Fewer channels and ran's objective take from the list decoder what the task can spare.",
        _front,
        ("mnist", "digits"),
        family="phase-front",
        scale=_front_scale,
    ),
)
