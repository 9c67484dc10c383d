"""Figure 6 of the ``ran`` paper: raw, noisy and rebuilt pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.core.dataset import FloatArray
from sfumato.studies.drawing import gallery_of, picture_rows
from sfumato.studies.ran_choice import MIRROR, choose
from sfumato.studies.ran_front import OWN
from sfumato.studies.ran_points import attacked, title
from sfumato.studies.rows import Results, Row, attack_score, difference, highest, points_of, score_row
from sfumato.studies.verdicts import Asked

UNRECOGNISABLE = 0.3
"""Below this SSIM pictures are usually called unrecognisable (He et al. 2019); the paper says it in words."""


def figure6(data: str, results: Results) -> list[Row]:
    """SSIM of what the paper's attackers and the best attack rebuild."""
    points = attacked(results)
    rows: list[Row] = []
    for result in points:
        for attack, who in ((OWN, "RAN's own decoder"), (MIRROR, "a fresh mirror decoder")):
            score = attack_score(result, attack, "ssim")
            rows += [] if score is None else [score_row(f"{title(data, result)}: SSIM of {who}", score)]
        rows.append(score_row(f"{title(data, result)}: SSIM of the best reconstruction", _best(result)))
    chosen = choose(points)
    own, plain = (attack_score(result, MIRROR, "ssim") for result in (chosen.hiding, chosen.dnn))
    told = attack_score(chosen.hiding, OWN, "ssim")
    assert own is not None and plain is not None and told is not None
    name = "ran at the λ that hides most within a point of dnn"
    value, interval = difference((chosen.hiding, own), (chosen.dnn, plain))
    return [
        *rows,
        Row(f"{name}: SSIM of a fresh mirror decoder, less dnn's", "ssim difference", "lower", None, value, interval),
        score_row(f"{name}: SSIM of RAN's own decoder", told, asked=Asked("ran-corrupted", "below", UNRECOGNISABLE)),
        score_row(
            f"{name}: SSIM of the best reconstruction",
            _best(chosen.hiding),
            asked=Asked("ran-corrupted", "below", UNRECOGNISABLE, "adaptive"),
        ),
    ]


def _best(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return highest(score for score in result["attacks"] if score["metric"] == "ssim")


def draw_figure6(data: str, results: Results, path: Path) -> None:
    """From top to bottom what the paper has from left to right, and the best reconstruction of ran."""
    points = attacked(results)
    chosen = choose(points)
    noisy = min(points_of(points, "noisy"), key=lambda result: abs(result["params"]["noise"] - 0.5))
    resized = min(points_of(points, "dnn-resized"), key=lambda result: abs(result["params"]["noise"] - 0.5))
    rebuilt = f"recon/{MIRROR}"
    ran = gallery_of(chosen.hiding)
    rows: dict[str, FloatArray] = {
        "raw": ran["originals"],
        title(data, noisy): gallery_of(noisy)["release"],
        "dnn, rebuilt": gallery_of(chosen.dnn)[rebuilt],
        f"{title(data, resized)}, rebuilt": gallery_of(resized)[rebuilt],
        "ran, its own decoder": ran[f"recon/{OWN}"],
        "ran, fresh mirror": ran[rebuilt],
        "ran, best attack": ran[f"recon/{_best(chosen.hiding)['attack']}"],
    }
    picture_rows(path, {name: pictures[:10] for name, pictures in rows.items()})
