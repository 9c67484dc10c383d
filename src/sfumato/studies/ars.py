"""The `ars` paper: accuracy and reconstruction over the defence intensity (Figures 4 to 6, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sfumato.auditing.utility import CLEAN
from sfumato.studies.ars_alone import accuracy_by, alone_rows
from sfumato.studies.ars_base import (
    AGNOSTIC,
    EFFORTS,
    FACES,
    FEW_FACES,
    FIFTY,
    HUNDRED,
    KNOWN,
    LIMIT,
    NO_UNIT,
    PAPERS_ATTACKER,
    READ,
    SEEDS,
    attackers,
    difference_row,
    is_supervised,
    is_variant,
    ours,
    papers_epsilon,
    published,
    worst,
)
from sfumato.studies.ars_drawings import draw_figure4, draw_rebuilt
from sfumato.studies.ars_masks import guessed_share
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.papers import paper
from sfumato.studies.rows import Results, Row, accuracy, attack_score, ratio, score_row
from sfumato.studies.verdicts import Asked
from sfumato.workflow import Point


def _simple(way: str, value: float, parties: int, few: Mapping[str, Any]) -> Point:
    knob = "keep" if way == "pca" else "epsilon"
    amount = int(value) if way == "pca" else value
    return Point("latent-noise", {"way": way, knob: amount, "one_in": parties, **few}, knob, tag=way)


def _supervised(way: str, value: float, parties: int, few: Mapping[str, Any]) -> Point:
    """The hardened variant's encoder under simple noise, trained for the labels without anybody to hide from."""
    params = {"way": way, "epsilon": value, "learns": "labels", "one_in": parties, **few}
    return Point("latent-noise", params, tag=f"supervised-{way}")


_WAYS: Mapping[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "smoke": (("uniform", (1.0,)), ("pca", (8.0,))),
    "cpu": (
        ("uniform", (0.5, 0.75, 1.0)),
        ("gaussian", (0.4, 0.5, 0.6)),
        ("pca", (10.0, 12.0, 16.0)),
        ("dithered", (1.2, 1.6, 2.0)),
    ),
    "full": (
        ("uniform", (0.25, 0.5, 1.0, 2.0)),
        ("gaussian", (0.3, 0.4, 0.5, 0.6, 0.8)),
        ("pca", (6.0, 8.0, 10.0, 12.0, 16.0, 24.0)),
        ("dithered", (1.0, 1.5, 2.0, 2.5)),
    ),
}
_INTENSITIES = {"smoke": (1.0,), "cpu": (0.5, 1.0, 2.0), "full": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)}
_SUPERVISED: Mapping[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "smoke": (("gaussian", (0.5, 1.0)),),
    "cpu": (("gaussian", (0.5, 1.0, 1.5, 2.0)), ("uniform", (1.0, 2.0))),
    "full": (("gaussian", (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)), ("uniform", (0.5, 1.0, 2.0, 3.0))),
}
_HARDENED = {"smoke": (1.0,), "cpu": (0.5, 1.0, 1.5), "full": (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)}


def _intensity(data: str, scale: str) -> Scale:
    """The published noise from nothing on, the hardened variant and the simple ways over ε; of faces also without the
    mask. Every point is trained from the start, so that all have as many passes."""
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    faces = data == "celeba"
    parties = 3 if faces else 5
    share = {"parties": parties}
    ways = (("uniform", (1.0, 2.0)),) if faces and scale == "cpu" else _WAYS[scale]
    served = (("gaussian", (1.0, 2.0)),) if faces and scale == "cpu" else _SUPERVISED[scale]
    strengths = (1.0, 2.0) if faces and scale == "cpu" else _INTENSITIES[scale]
    points = [
        *(ours("hardened", epsilon, few, **share) for epsilon in (strengths if faces else _HARDENED[scale])),
        *(_simple(way, value, parties, few) for way, values in ways for value in values),
        *(_supervised(way, value, parties, few) for way, values in served for value in values),
        *(ours("published", epsilon, few, **share) for epsilon in (0.0, *strengths)),
    ]
    if faces and scale != "smoke":
        points.append(ours("published", FIFTY, few, **share, masked=False))
    return Scale(
        (Part(tuple(points)),),
        (FACES if faces else EFFORTS)[scale],
        limit=LIMIT.get(scale),
        warm_start=False,
        seeds=(0,) if faces else SEEDS[scale],
    )


def _figure4(data: str, results: Results) -> list[Row]:
    """Accuracy and error of every point, of the published noise by attacker; then what the paper says of them."""
    rows = []
    said = paper("ars")
    clean = published(results)[0]
    for result in results:
        name, is_ours = result["point"], is_variant(result, "published")
        epsilon = float(result["params"].get("epsilon", -1.0))
        masked = is_ours and result["params"].get("masked", True)
        theirs = said.figure_or_none("Figure 4", data, papers_epsilon(epsilon)) if masked else None
        rows.append(score_row(f"{name}: accuracy", accuracy(result), paper=theirs))
        own = accuracy_by(result, CLEAN)
        if own is not None:
            rows.append(score_row(f"{name}: accuracy on a party's own, clean latents", own, paper=theirs))
        for attack in (PAPERS_ATTACKER, AGNOSTIC, READ, KNOWN) if is_ours else ():
            score = attack_score(result, attack, "mse")
            if score is not None:
                half = masked and data == "mnist" and attack == PAPERS_ATTACKER  # what two random masks agree by
                error = said.figure_or_none("Table 6", papers_epsilon(epsilon), "50 %") if half else None
                rows.append(score_row(f"{name}: error of {attack}", score, paper=error))
        read = attack_score(result, "mask-by-spread", "overlap")
        if read is not None and epsilon > 0.0 and masked:
            enough = said.figure("§6.1", "lucky mask", "overlap")
            asked = Asked("ars-mask-preserves", "below", enough, "adaptive")
            rows.append(score_row(f"{name}: share of the mask that is read off the release", read, asked=asked))
        rows.append(score_row(f"{name}: error of the worst attacker", worst(result)))
        if result is not clean:
            rows.append(_times(f"{name}: error of the worst attacker, × no noise", result, clean))
    return [
        *rows,
        guessed_share(),
        *_rises(results),
        *_slightly(data, results),
        *_beside_uniform(results),
        *_beside_supervised(results),
        *_transfers(results),
        *alone_rows(results, unless=FEW_FACES.get(data, "")),
    ]


def _times(name: str, result: Mapping[str, Any], clean: Mapping[str, Any]) -> Row:
    """The worst attacker's error, as a multiple of that on clean latents of the autoencoder, over the same victims."""
    score = worst(result)
    value, interval = ratio((result, score), (clean, worst(clean)))
    return Row(name, "mse ratio", "higher", None, value, interval, None, score.get("n"), score.get("people"))


def _rises(results: Results) -> list[Row]:
    """The error at the strongest noise less that at the weakest."""
    noised = [r for r in published(results) if r["params"]["epsilon"] > 0.0]
    first, last = (published(results)[0], noised[-1])
    theirs = {who: score for who, _, score in attackers(first, "mse")}
    return [
        difference_row(
            f"published noise: error of {who} at the largest ε, less that at the smallest",
            (last, score),
            (first, theirs[who]),
            Asked("ars-error-rises", "above", 0.0, setting),
        )
        for who, setting, score in attackers(last, "mse")
        if who in theirs
    ]


_WHICH = "the paper gives ε no unit, and does not say whether protected or clean latents are classified"


def _slightly(data: str, results: Results) -> list[Row]:
    """How much accuracy the noise of the paper's ε = 100 costs, on protected and on clean latents."""
    said = paper("ars")
    points = {float(r["params"]["epsilon"]): r for r in published(results)}
    if HUNDRED not in points or not said.has("Figure 4", data, papers_epsilon(HUNDRED)):
        return []
    loss = said.figure("Figure 4", data, papers_epsilon(HUNDRED)) - said.figure("Figure 4", data, papers_epsilon(0.0))
    asked = Asked("ars-accuracy-slightly", "above", loss, unless=FEW_FACES.get(data, _WHICH))
    last, clean = points[HUNDRED], points[0.0]
    name = "published noise: accuracy at the paper's ε = 100, less that at 0"
    rows = [difference_row(f"{name}, protected latents", (last, accuracy(last)), (clean, accuracy(clean)), asked)]
    own = accuracy_by(last, CLEAN)
    if own is not None:
        rows.append(
            difference_row(f"{name}, a party's own, clean latents", (last, own), (clean, accuracy(clean)), asked)
        )
    return rows


def _beside_uniform(results: Results) -> list[Row]:
    """The strongest adversarial noise that serves as well as some uniform noise, less the best served of those."""
    uniform = [r for r in results if is_variant(r, "uniform")]
    for result in reversed([r for r in published(results) if r["params"]["epsilon"] > 0.0]):
        below = [r for r in uniform if accuracy(r)["value"] <= accuracy(result)["value"]]
        if below:
            other = max(below, key=lambda r: float(accuracy(r)["value"]))
            name = "published noise that serves no worse than uniform noise"
            return [
                difference_row(
                    f"{name}: error of {who}, less the worst attacker's of uniform noise",
                    (result, score),
                    (other, worst(other)),
                    Asked("ars-better-than-uniform", "above", 0.0, setting),
                )
                for who, setting, score in attackers(result, "mse")
            ]
    return []


def _beside_supervised(results: Results) -> list[Row]:
    """Each hardened point less the supervised encoder whose noise costs the attacker most while it serves no worse."""
    rows = []
    for result in (r for r in results if is_variant(r, "hardened")):
        least = float(accuracy(result)["value"])
        enough = [r for r in results if is_supervised(r) and float(accuracy(r)["value"]) >= least]
        if enough:
            other = max(enough, key=lambda r: float(worst(r)["value"]))
            name = "error of the worst attacker, less that of a supervised encoder with noise that serves no worse"
            rows.append(difference_row(f"{result['point']}: {name}", (result, worst(result)), (other, worst(other))))
    return rows


def _transfers(results: Results) -> list[Row]:
    """The error of a decoder of clean latents, at the paper's ε = 50 and without noise."""
    points = {float(r["params"]["epsilon"]): r for r in published(results)}
    with_noise, without = (attack_score(points[epsilon], "sdec", "mse") for epsilon in (FIFTY, 0.0))
    if with_noise is None or without is None:
        return []
    name = "published noise: error of a decoder of clean latents at the paper's ε = 50, less that without noise"
    asked = Asked("ars-transfer", "above", 0.0)
    return [difference_row(name, (points[FIFTY], with_noise), (points[0.0], without), asked)]


def _figure5(_data: str, results: Results) -> list[Row]:
    """Errors and likeness of the digits that are shown."""
    return [
        score_row(f"{result['point']}: {metric.upper()} of {who}", score)
        for result in published(results)
        for metric in ("mse", "ssim")
        for who, _, score in attackers(result, metric)
    ]


def _figure6(_data: str, results: Results) -> list[Row]:
    """Likeness of rebuilt faces, with and without the mask; the report shows them."""
    rows = []
    for result in results:
        likeness = attack_score(result, str(worst(result)["attack"]), "ssim")
        if likeness is not None:
            rows.append(score_row(f"{result['point']}: SSIM of the worst attacker", likeness))
    for result in published(results):
        if result["params"]["epsilon"] == HUNDRED:
            rows += [_less_mean_face(result, who, Asked("ars-unrecognizable", "above", 0.0, setting), score)
                     for who, setting, score in attackers(result, "mse")]  # fmt: skip
    return rows + _mask_needed(results)


def _less_mean_face(result: Mapping[str, Any], who: str, asked: Asked, score: Mapping[str, Any]) -> Row:
    mean = float(score["baseline"])
    return Row(
        f"{result['point']}: error of {who}, less that of the mean face",
        "mse difference",
        "higher",
        None,
        score["value"] - mean,
        (score["ci"][0] - mean, score["ci"][1] - mean),
        asked,
        score.get("n"),
        score.get("people"),
    )


def _mask_needed(results: Results) -> list[Row]:
    """Without a mask the paper's attacker, who makes such noise itself, is the one who knows that all bits are 1."""
    masked = [r for r in published(results) if r["params"]["epsilon"] == FIFTY]
    bare = [r for r in results if r["params"].get("masked") is False]
    rows = []
    for one, other in zip(masked, bare, strict=False):
        with_mask, without = attack_score(one, PAPERS_ATTACKER, "mse"), attack_score(other, KNOWN, "mse")
        if with_mask is not None and without is not None:
            name = "published noise at the paper's ε = 50: error of the paper's attacker with the mask, less without it"
            rows.append(
                difference_row(name, (one, with_mask), (other, without), Asked("ars-mask-needed", "above", 0.0))
            )
    return rows


def _table2(_data: str, results: Results) -> list[Row]:
    """PSNR and SSIM by the paper's attacker where there is a mask, and by the worst one."""
    said = paper("ars")
    claims = {("psnr", FIFTY): "ars-lower-psnr", ("ssim", HUNDRED): "ars-lower-ssim"}
    rows = []
    for result in results:
        epsilon = float(result["params"].get("epsilon", -1.0))
        masked = is_variant(result, "published") and result["params"].get("masked", True)
        line = f"{'ARS' if masked else 'uniform'}, {papers_epsilon(epsilon)}"
        known = masked or is_variant(result, "uniform")
        for metric in ("psnr", "ssim"):
            for who, setting, score in attackers(result, metric):
                quoted = said.figure_or_none("Table 2", line, metric) if known else None
                claim = claims.get((metric, epsilon)) if masked else None
                bound = said.figure("Table 2", "[6]", metric)
                rows.append(
                    score_row(
                        f"{result['point']}: {metric.upper()} of {who}",
                        score,
                        paper=None if masked and setting == "adaptive" else quoted,
                        asked=None if claim is None else Asked(claim, "below", bound, setting, NO_UNIT),
                    )
                )
    return [*rows, *_beside_uniform(results), *_beside_supervised(results)]


_DIGIT: Mapping[str, Any] = {"utility": ["digit"], "shares": [5 / 6, 1 / 6]}
_MALE: Mapping[str, Any] = {"utility": ["Male"], "private": []}
_INTENSITY_DATA: Mapping[str, Mapping[str, Any]] = {
    "mnist": _DIGIT,
    "celeba": _MALE,
    "digits": {"utility": ["digit"]},
}
_study = partial(Study, family="ars", scale=_intensity)
STUDIES = (
    _study(
        name="ars-figure4",
        title="Accuracy and reconstruction error over the defence intensity, Figure 4",
        about="Accuracy of a classifier of the pool and the error of each attacker, over ε, beside random noise and "
        "principal directions; and what a party gets without the others. The hardened variant is compared with simple "
        "noise on an encoder of its make that was trained for the labels (supervised), the published noise with "
        "uniform noise on its own encoder, which has seen no label.",
        data=_INTENSITY_DATA,
        rows=_figure4,
        claims=(
            "ars-error-rises",
            "ars-accuracy-slightly",
            "ars-better-than-uniform",
            "ars-transfer",
            "ars-mask-preserves",
            "ars-more-data",
        ),
        picture=draw_figure4,
    ),
    _study(
        name="ars-figure5",
        title="Rebuilt digits, Figure 5",
        about="Digits that the paper's attacker and the worst one rebuild, without noise and with it.",
        data={name: _INTENSITY_DATA[name] for name in ("mnist", "digits")},
        rows=_figure5,
        picture=partial(draw_rebuilt, epsilons=(0.0, FIFTY)),
    ),
    _study(
        name="ars-figure6",
        title="Rebuilt faces, Figure 6",
        about="How like the faces are what attackers rebuild, with the mask and without it, beside the mean face.",
        data={"celeba": _MALE},
        rows=_figure6,
        claims=("ars-unrecognizable", "ars-mask-needed"),
        picture=partial(draw_rebuilt, epsilons=(0.0, 0.5, FIFTY, HUNDRED)),
    ),
    _study(
        name="ars-table2",
        title="PSNR and SSIM of rebuilt faces, Table 2",
        about="PSNR and SSIM of faces rebuilt by the paper's attacker and by the worst one, beside uniform noise, and "
        "the hardened variant beside a supervised encoder with noise. The paper quotes two other mechanisms; they are "
        "not run.",
        data={"celeba": _MALE},
        rows=_table2,
        claims=("ars-lower-psnr", "ars-lower-ssim", "ars-better-than-uniform"),
    ),
)
