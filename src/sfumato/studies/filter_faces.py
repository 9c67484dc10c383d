"""The `filter` paper on faces: Table 3 and Figures 5 and 10 to 13, on as many faces as there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.intervals import mean_interval
from sfumato.core.metrics import Values
from sfumato.core.run_folder import read_json
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.drawing import gallery_of, picture_rows
from sfumato.studies.filter_base import (
    EFFORTS,
    PAPER,
    READER,
    SETTINGS,
    Result,
    average,
    few_steps,
    paired,
    private,
    real,
    useful,
)
from sfumato.studies.rows import Results, Row, Scored, aligned, attack_score, plain_row, points_of, score_row
from sfumato.studies.verdicts import Asked
from sfumato.workflow import Point

FACES = ("Male", "Young", "Attractive", "High_Cheekbones", "Big_Lips", "Big_Nose", "Eyeglasses", "Wavy_Hair")
SHOWN: Mapping[str, str] = {
    "filter-figure5": "Male",
    "filter-figure11": "Attractive",
    "filter-figure12": "Eyeglasses",
    "filter-figure13": "Wavy_Hair",
}
LATENT = "latent"
_SEEDS = {"smoke": (0,), "cpu": (0, 1, 2), "full": (0, 1, 2)}
_FEW = "200 people with 30 pictures each; the paper has 202,599 pictures"


def _kinds(scale: str) -> tuple[str, ...]:
    return ("filter-linear",) if scale == "smoke" else ("filter-linear", "filter")


def _scale(_data: str, scale: str) -> Scale:
    """One autoencoder, for every private attribute filters of its own, and pictures decoded from one of them.

    Only probes attack: rebuilding raw pictures of 12,288 numbers, which nobody asked for here, took hours.
    """
    kind = {"smoke": "conv", "cpu": "conv", "full": "densenet"}[scale]
    epochs = {"smoke": 1, "cpu": 20, "full": 60}[scale]
    vae = {"latent": 50, "architecture": kind, "gamma": 0.02, "kappa": 0.01, "epochs": epochs, "batch": 48}
    faces = FACES[:2] if scale == "smoke" else FACES
    base = Part((Point("vae", vae),), name=LATENT, data={"private": list(faces)})
    above = f"../{LATENT}/points/vae"
    filters = [
        Part(
            tuple(Point(name, few_steps(scale), base=above) for name in _kinds(scale)),
            name=face,
            data={"private": [face]},
        )
        for face in faces
    ]
    decoded = {"output": "data", **few_steps(scale)}
    pictures = Part(
        (Point("none"), Point("filter-linear", decoded, base=above), Point("filter", decoded, base=above)),
        name="pictures",
        data={"private": ["Male"]},
    )
    effort = replace(EFFORTS[scale], geometry="pca")
    limit = 600 if scale == "smoke" else None
    return Scale((base, *filters, pictures), effort, limit=limit, warm_start=False, seeds=_SEEDS[scale])


def _latent(results: Results) -> Result:
    return next(result for result in results if result["part"] == LATENT)


def _filtered(results: Results, kind: str) -> dict[str, Result]:
    return {r["part"]: r for r in points_of(results, kind) if r["part"] in FACES}


def _table3(_data: str, results: Results) -> list[Row]:
    """Each attribute and Smiling, with the latent and after each filter; their averages are put to the claims."""
    latent, rows = _latent(results), []
    faces = [face for face in FACES if face in _filtered(results, "filter-linear")]
    whole = len(faces) == len(FACES)
    for kind in ("vae", *dict.fromkeys(r["mechanism"] for r in results if r["part"] in FACES)):
        found = dict.fromkeys(faces, latent) if kind == "vae" else _filtered(results, kind)
        line = {"vae": "VAE-emb", "filter-linear": "VAE-g-filter"}.get(kind)
        for setting in SETTINGS:
            leaks: list[Scored] = [(found[face], private(found[face], face, setting)) for face in faces]
            for face, (_, score) in zip(faces, leaks, strict=True):
                printed = PAPER.figure("Table 3", line, face) if line and setting == "paper" else None
                rows.append(score_row(f"{kind}: {face}, {READER[setting]}", score, paper=printed))
            printed = PAPER.figure("Table 3", line, "average") if line and setting == "paper" and whole else None
            rows.append(average(f"{kind}: private, average, {READER[setting]}", leaks, printed=printed))
            if kind == "filter-linear":
                rows.append(_above_guessing(rows[-1], setting))
            if kind == "vae" and setting == "paper":
                asked = Asked(
                    "filter-faces-autoencoder", "above", PAPER.figure("Table 3", "VAE-emb", "average"), unless=_FEW
                )
                rows[-1] = replace(rows[-1], asked=asked)
        printed = PAPER.figure("Table 3", line, "Smiling") if line and whole else None
        smiles: list[Scored] = [(found[face], useful(found[face], "Smiling")) for face in faces]
        rows.append(average(f"{kind}: Smiling, average", smiles, printed=printed))
        if kind == "filter-linear":
            rows.append(_smiling_kept(smiles, (latent, useful(latent, "Smiling"))))
    return [*rows, _one_autoencoder(results, faces), *_decoded(results)]


def _above_guessing(row: Row, setting: Any) -> Row:
    """The average private accuracy less what guessing gets, on the same people."""
    above = PAPER.figure("text", "faces", "private above guessing")
    share = row.majority or 0.0
    ci = None if row.ci is None else (row.ci[0] - share, row.ci[1] - share)
    asked = Asked("filter-faces-private", "below", above, setting)
    name = f"filter-linear: private above guessing, average, {READER[setting]}"
    return replace(
        row, name=name, paper=above if setting == "paper" else None, ours=row.ours - share, ci=ci, asked=asked
    )


def _smiling_kept(smiles: list[Scored], before: Scored) -> Row:
    (first, *after), whose = aligned(before, *smiles)
    change = np.mean(after, axis=0) - first  # (N,)
    bound = -PAPER.figure("text", "faces", "utility drop")
    asked = Asked("filter-faces-utility", "above", bound)
    name = "filter-linear: change of Smiling from the raw latent, average"
    score, ci = before[1], real(mean_interval(change, whose))
    return Row(
        name,
        "accuracy",
        "higher",
        None,
        float(change.mean()),
        ci,
        asked=asked,
        n=score.get("n"),
        people=score.get("people"),
    )


def _one_autoencoder(results: Results, faces: list[str]) -> Row:
    """How many encoders the filters of all attributes were made for."""
    found = _filtered(results, "filter-linear")
    digests = {read_json(Path(found[face]["folder"]) / "base.json")["digest"] for face in faces}
    few = "" if len(faces) == len(FACES) else f"{len(faces)} of {len(FACES)} attributes"
    asked = Asked("filter-one-autoencoder", "below", 1.5, unless=few)
    name = f"autoencoders behind the filters of {len(faces)} attributes"
    return plain_row(name, "count", "lower", float(len(digests)), asked=asked, exact=True)


def _decoded(results: Results) -> list[Row]:
    """What a convolutional network reads of decoded pictures, and of the raw ones."""
    inside = [r for r in results if r["part"] == "pictures"]
    plain = next(r for r in inside if r["mechanism"] == "none")
    rows = []
    for result in inside:
        score = attack_score(result, "probe-cnn", "accuracy")
        if score is not None:
            rows.append(score_row(f"{result['mechanism']}, pictures: Male by probe-cnn", score))
        best = private(result, "Male", "adaptive")
        rows.append(score_row(f"{result['mechanism']}, pictures: Male, best probe", best))
        rows.append(score_row(f"{result['mechanism']}, pictures: Smiling", useful(result, "Smiling")))
    for result in points_of(inside, "filter-linear"):
        ours, theirs = (attack_score(r, "probe-cnn", "accuracy") for r in (result, plain))
        if ours is not None and theirs is not None:
            asked = Asked("filter-faces-pictures", "below", 0.0)
            name = "filter-linear less raw, pictures: Male by probe-cnn"
            rows.append(paired(name, (result, ours), (plain, theirs), better="lower", asked=asked))
        pair = (result, private(result, "Male", "adaptive")), (plain, private(plain, "Male", "adaptive"))
        asked = Asked("filter-faces-pictures", "below", 0.0, "adaptive")
        rows.append(paired("filter-linear less raw, pictures: Male, best probe", *pair, better="lower", asked=asked))
    return rows


def _attribute(_data: str, results: Results, *, face: str) -> list[Row]:
    """What is read of the attribute and of Smiling from the latents behind the pictures."""
    latent = _latent(results)
    if face not in _filtered(results, "filter-linear"):  # smoke scale has few attributes
        face = FACES[0]
    shown = [latent, *(r for r in results if r["part"] == face)]
    rows = [score_row(f"{r['point']}: {face}, best probe", private(r, face, "adaptive")) for r in shown]
    return rows + [score_row(f"{r['point']}: Smiling", useful(r, "Smiling")) for r in shown]


def draw_faces(_data: str, results: Results, path: Path, *, face: str) -> None:
    """Originals, decoded latents, and decoded filtered latents."""
    latent = _latent(results)
    rows: dict[str, FloatArray] = {
        "original": gallery_of(latent)["originals"],
        "decoded": gallery_of(latent)["decoded"],
    }
    if face not in _filtered(results, "filter-linear"):
        face = FACES[0]
    rows |= {f"{r['mechanism']}, {face}": gallery_of(r)["decoded"] for r in results if r["part"] == face}
    picture_rows(path, rows, scale=1)


def sharpness(pictures: FloatArray) -> Values:
    """The mean absolute difference of neighbouring pixels of each picture (N, C, H, W) → (N,)."""
    across = np.abs(np.diff(pictures, axis=3)).mean(axis=(1, 2, 3))
    down = np.abs(np.diff(pictures, axis=2)).mean(axis=(1, 2, 3))
    return np.asarray((across + down) / 2, dtype=np.float64)


def _figure10(_data: str, results: Results) -> list[Row]:
    """Sharpness of the gallery's pictures: raw, decoded, and decoded after a filter."""
    latent = gallery_of(_latent(results))
    before, after = sharpness(latent["originals"]), sharpness(latent["decoded"])
    filtered = sharpness(gallery_of(_filtered(results, "filter-linear")["Male"])["decoded"])
    rows = []
    for name, values in (("raw", before), ("decoded", after), ("filtered and decoded", filtered)):
        mean, n = float(values.mean()), len(values)
        rows.append(
            Row(
                f"{name}: sharpness",
                "difference of neighbouring pixels",
                "higher",
                None,
                mean,
                real(mean_interval(values)),
                n=n,
            )
        )
    more = (before - after) - (after - filtered)
    asked = Asked("filter-faces-blur", "above", 0.0)
    name = "sharpness lost by encoding and decoding less what the filter loses"
    metric, n = "difference of neighbouring pixels", len(more)
    rows.append(Row(name, metric, "higher", None, float(more.mean()), real(mean_interval(more)), asked=asked, n=n))
    return rows


def draw_figure10(_data: str, results: Results, path: Path) -> None:
    latent = gallery_of(_latent(results))
    picture_rows(path, {"raw": latent["originals"], "decoded": latent["decoded"]}, scale=1)


_faces = partial(Study, family="filter-faces", scale=_scale, data={"celeba": {"utility": ["Smiling"]}})

STUDIES = (
    _faces(
        name="filter-table3",
        title="Filter, Table 3: CelebA, hide one of eight attributes and serve Smiling",
        about=f"Of {_FEW}. At cpu a lighter convolutional autoencoder than the paper's DenseNet. One autoencoder, a "
        "filter for each attribute; for Male also pictures decoded from it.",
        rows=_table3,
        claims=(
            "filter-faces-private",
            "filter-faces-utility",
            "filter-faces-autoencoder",
            "filter-one-autoencoder",
            "filter-faces-pictures",
        ),
    ),
    *(
        _faces(
            name=name,
            title=f"Filter, Figure {name.removeprefix('filter-figure')}: faces before and after, {face} hidden",
            about=f"Decoded latents of the same victims with and without a filter, of {_FEW}.",
            rows=partial(_attribute, face=face),
            picture=partial(draw_faces, face=face),
        )
        for name, face in SHOWN.items()
    ),
    _faces(
        name="filter-figure10",
        title="Filter, Figure 10: raw and decoded faces",
        about="How sharp the gallery's eight pictures are: raw, decoded, and decoded after a filter that hides Male.",
        rows=_figure10,
        claims=("filter-faces-blur",),
        picture=draw_figure10,
    ),
)
