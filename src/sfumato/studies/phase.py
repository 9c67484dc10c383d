"""The ``phase`` paper: Tables 1 to 4, Figures 3 to 5 and Eq. 8, and what its variant with O(d) and exchangeable decoys
is worth."""

from __future__ import annotations

from typing import Any

from sfumato.studies.base import Study
from sfumato.studies.phase_anonymity import anonymity, keys
from sfumato.studies.phase_front import front, front_scale
from sfumato.studies.phase_pictures import draw_pictures
from sfumato.studies.phase_points import DATA, every_scale, network_scale, resnet_scale, table2_scale
from sfumato.studies.phase_tables import likeness, table3, table4, utility_and_privacy

_PAPERS = ("cifar10", "cifar100", "cub200", "celeba")
_ALL = (*_PAPERS, "mnist", "har", "digits")
_PICTURES = (*_PAPERS, "mnist", "digits")
_OURS = ("cifar10", "mnist", "celeba", "har", "digits")
_SHARED = ("phase-limited-decrease", "phase-hides-more", "phase-by-a-factor", "phase-not-recovered")


_LIKENESS = "How alike rebuilt pictures are to the record, as SSIM, from one message and from several."


def _study(name: str, title: str, about: str, rows: Any, data: tuple[str, ...] = _ALL, **more: Any) -> Study:
    options = {"family": "phase", "scale": network_scale, **more}
    return Study(name=name, title=title, about=about, data={k: DATA[k] for k in data}, rows=rows, **options)


STUDIES = (
    _study(
        "phase-table1",
        "Phase, Table 1: residual networks on CIFAR-10",
        "Error rates of residual networks, and the mean absolute error of what attackers rebuild from one message. "
        "Those of CIFAR-100 stand in the paper's Table 2.",
        utility_and_privacy,
        ("cifar10", "cifar100"),
        scale=resnet_scale,
        claims=_SHARED,
    ),
    _study(
        "phase-table2",
        "Phase, Table 2: error rates and reconstruction errors",
        "Error rates of LeNet (of AlexNet on faces, of VGG-16 on birds, of residual networks, too, on CIFAR-100), the "
        "mean absolute error of what attackers rebuild from one message and from several, and how far the label is "
        "read from what the cloud sees. Faces have 40 labels, and the error rate is the mean over them.",
        utility_and_privacy,
        scale=table2_scale,
        claims=(*_SHARED, "phase-better-than-noise", "phase-result-hidden"),
    ),
    _study(
        "phase-table3",
        "Phase, Table 3: the angle that a critic finds",
        "The error of a critic's angle (a blind guess of it gets π/2), and how often the record's row is told from its "
        "decoys'.",
        table3,
        scale=every_scale,
        claims=("phase-angle", "phase-indistinguishable"),
    ),
    _study(
        "phase-table4",
        "Phase, Table 4: re-identification",
        "How often a record is not found among candidates, by what a decoder rebuilds and by algebra; by machine, "
        "where the paper asked five people.",
        table4,
        _PICTURES,
        scale=table2_scale,
        claims=("phase-not-reidentified",),
    ),
    _study(
        "phase-figure3",
        "Phase, Figure 3: reconstructed pictures",
        _LIKENESS,
        likeness,
        ("cifar10", "mnist", "digits"),
        claims=("phase-hides-more",),
        picture=draw_pictures,
    ),
    _study(
        "phase-figure4",
        "Phase, Figure 4: reconstructed birds",
        _LIKENESS,
        likeness,
        ("cub200",),
        claims=("phase-hides-more",),
        picture=draw_pictures,
    ),
    _study(
        "phase-figure5",
        "Phase, Figure 5: reconstructed faces",
        f"{_LIKENESS} On 6,000 pictures of 200 people here; the paper has 202,599 pictures.",
        likeness,
        ("celeba",),
        claims=("phase-hides-more",),
        picture=draw_pictures,
    ),
    _study(
        "phase-anonymity",
        "Phase, which row is the record: one in d",
        "Our question: whether, with keys from O(d) and exchangeable decoys, an attacker can tell which of d rows is "
        "the record.",
        anonymity,
        _OURS,
    ),
    _study(
        "phase-keys",
        "Phase, the worth of a key: accuracy with the wrong one",
        "Our question: how well the answer is read with a key that is off by an angle, or drawn at random.",
        keys,
        _OURS,
    ),
    _study(
        "phase-front",
        "Phase, less for the list decoder: a narrow generator and ran's objective",
        "Our question: how much fewer channels and ran's objective take from the list decoder, at which accuracy.",
        front,
        ("mnist", "digits"),
        family="phase-front",
        scale=front_scale,
    ),
)
