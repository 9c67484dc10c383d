"""Figures 3 to 5 of the ``phase`` paper: pictures, and what attackers rebuild of them."""

from __future__ import annotations

from pathlib import Path

from sfumato.core.dataset import FloatArray
from sfumato.studies.drawing import gallery_of, picture_rows
from sfumato.studies.phase_points import PUBLISHED
from sfumato.studies.phase_tables import STRATEGIES, likest, messages, of_several
from sfumato.studies.rows import Results, highest, points_of

_SHOWN = 10


def draw_pictures(_data: str, results: Results, path: Path) -> None:
    """From top to bottom what the paper has from left to right, with noisy features, and beside the paper's strategies
    the best attack on one message and the best on several."""
    decoded = f"recon/{STRATEGIES['strategy 2']}"
    published = next(result for result in results if result["point"] == PUBLISHED)
    ours = gallery_of(published)
    rows: dict[str, FloatArray] = {"input": ours["originals"]}
    for name, mechanism in (("original", "split"), ("additional layers", "split-extra")):
        (found,) = points_of(results, mechanism)
        rows[name] = gallery_of(found)[decoded]
    for noisy in points_of(results, "split-noisy"):
        rows[f"noise, gamma = {noisy['params']['gamma']:g}"] = gallery_of(noisy)[decoded]
    rows |= {f"phase, {strategy}": ours[f"recon/{attack}"] for strategy, attack in STRATEGIES.items()}
    best = likest(published)
    assert best is not None  # strategies are among the attacks on one message
    rows["phase, best of one message"] = ours[f"recon/{best['attack']}"]
    several = of_several(published, "ssim", highest)
    if several is not None:
        rows[f"phase, best of {messages(published)}"] = ours[f"recon/{several['attack']}"]
    picture_rows(path, {name: pictures[:_SHOWN] for name, pictures in rows.items()})
