"""``phase`` with less for the list decoder: a narrow generator, and ``ran``'s objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sfumato.studies.base import Part, Scale
from sfumato.studies.phase_points import EFFORTS, EPOCHS, SMOKE_LIMIT
from sfumato.studies.rows import Results, Row, accuracy, attack_score, score_row
from sfumato.workflow import Point

_FRONT: Mapping[str, tuple[tuple[int, float], ...]] = {
    "smoke": ((16, 1.0), (2, 0.5)),
    "cpu": ((16, 1.0), (16, 0.3), (4, 1.0), (1, 1.0)),
    "full": tuple((channels, lam) for channels in (16, 8, 4, 2, 1) for lam in (1.0, 0.5, 0.1)),
}
"""K of the generator and λ of ``ran``'s objective."""


def front_scale(data: str, scale: str) -> Scale:
    epochs = {"smoke": 1, "cpu": 2 * EPOCHS[data], "full": 5 * EPOCHS[data]}[scale]
    plain = {"model": "lenet", "epochs": epochs}
    points = tuple(
        Point("phase", {**plain, "channels": channels, "lam": lam}, "lam", tag=f"k{channels}")
        for channels, lam in _FRONT[scale]
    )
    limit = {"smoke": SMOKE_LIMIT, "cpu": 12_000}.get(scale)
    effort = replace(EFFORTS[scale], threats=("list-reconstruction",))
    if scale == "cpu":
        effort = replace(effort, attack_epochs=2, attack_steps=250)
    return Scale((Part(points),), effort, limit=limit, warm_start=False)


def front(_data: str, results: Results) -> list[Row]:
    rows = []
    for result in results:
        rows.append(score_row(f"{result['point']}: accuracy", accuracy(result)))
        listed = result["worst"]["list-reconstruction"]
        rows.append(score_row(f"{result['point']}: best of d guesses", listed))
        alike = attack_score(result, listed["attack"], "ssim")
        if alike is not None:
            rows.append(score_row(f"{result['point']}: the same, likeness", alike))
    return rows
