"""A picture of what left: each payload as a point, with the victims' labels to colour it by."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sfumato.auditing.effort import Geometry
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import UsageError
from sfumato.core.metrics import Values

POINTS: dict[Geometry, int] = {"pca": 600, "umap": 2000}


def picture(payload: FloatArray, victim: Dataset, method: Geometry, seed: int) -> dict[str, Any]:
    """Some victims' payloads in three principal components, or by UMAP in a plane (the third coordinate is 0)."""
    rows = np.random.default_rng(seed).permutation(len(victim))[: POINTS[method]]  # victims may be sorted by class
    few = victim.take(rows)
    flat = payload[rows].reshape(len(few), -1)
    coordinates = _pca(flat) if method == "pca" else _umap(flat, seed)
    points = np.zeros((len(few), 3))
    points[:, : coordinates.shape[1]] = coordinates
    colours = {
        label: {"classes": list(names), "codes": groups.tolist()}
        for label, codes in (*few.utility.items(), *few.private.items())
        for names, groups in [few.schema.groups(label, codes)]
    }
    if not colours:
        colours = {"payload": {"classes": ["payload"], "codes": [0] * len(few)}}
    first = next(iter(colours))
    return {
        "method": method,
        "points": np.round(points, 4).tolist(),
        "labels": colours[first]["codes"],
        "classes": colours[first]["classes"],
        "label": first,
        "colours": colours,
        "rows": rows.tolist(),
    }


def _pca(flat: FloatArray) -> Values:
    from sklearn.decomposition import PCA

    return np.asarray(PCA(min(3, flat.shape[1], len(flat)), random_state=0).fit_transform(flat))


def _umap(flat: FloatArray, seed: int) -> Values:
    try:
        from umap import UMAP
    except ImportError:
        raise UsageError("the geometry 'umap' needs umap-learn: pip install 'sfumato[viz]', or take pca.") from None
    if len(flat) < 10:
        raise UsageError(f"{len(flat)} victims are too few for the geometry 'umap': give 10, or take pca.")
    threads = torch.get_num_threads()
    embedding = UMAP(n_components=2, n_neighbors=min(15, len(flat) - 1), random_state=seed % 2**32, n_jobs=1)
    points = np.asarray(embedding.fit_transform(flat))
    torch.set_num_threads(threads)  # numba sets the number of OpenMP threads for everybody, and figures depend on it
    return points
