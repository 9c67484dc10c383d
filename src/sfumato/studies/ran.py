"""The figures of the ``ran`` paper: Pareto front (3), feature space (4, 5), reconstructions (6)."""

from __future__ import annotations

from functools import partial

from sfumato.studies.base import Study
from sfumato.studies.ran_features import draw_figure4, draw_figure5, figure4, figure5
from sfumato.studies.ran_front import draw_figure3, figure3
from sfumato.studies.ran_pictures import draw_figure6, figure6
from sfumato.studies.ran_points import DATA, scale

_study = partial(Study, family="ran", scale=scale)
FIGURE3 = _study(
    name="ran-figure3",
    title="RAN, Figure 3: accuracy against reconstruction error",
    about="Accuracy and the errors of a fresh mirror decoder, of RAN's own and of the worst attack, for every setting. "
    "λ is given in the paper's unit (the error summed) and in ours (lam, the mean). Each λ is trained from the start.",
    data=DATA,
    rows=figure3,
    claims=(
        "ran-more-accurate",
        "ran-accuracy",
        "ran-hides-more",
        "ran-better-tradeoff",
        "ran-stable",
        "ran-own-decoder-errs-more",
        "ran-own-decoder-is-more-potent",
        "ran-worst-decoder",
    ),
    picture=draw_figure3,
)
FIGURE4 = _study(
    name="ran-figure4",
    title="RAN, Figure 4: the features in three dimensions",
    about="The accuracy of a fresh classifier on what left; the picture has three principal components.",
    data=DATA,
    rows=figure4,
    claims=("ran-separable",),
    picture=draw_figure4,
)
FIGURE5 = _study(
    name="ran-figure5",
    title="RAN, Figure 5: two classes in the feature space",
    about="How much of the features' variance lies within a class, for two classes in three principal components.",
    data=DATA,
    rows=figure5,
    claims=("ran-constrictive",),
    picture=draw_figure5,
)
FIGURE6 = _study(
    name="ran-figure6",
    title="RAN, Figure 6: raw, noisy and reconstructed pictures",
    about="How much rebuilt pictures are like the raw ones (SSIM), by RAN's own decoder, a fresh mirror and the best "
    "attack.",
    data={name: DATA[name] for name in ("cifar10", "mnist", "digits", "imagenet")},
    rows=figure6,
    claims=("ran-corrupted",),
    picture=draw_figure6,
)
STUDIES = (FIGURE3, FIGURE4, FIGURE5, FIGURE6)
