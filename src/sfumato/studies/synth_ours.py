"""What we offer in place of the `synth` paper's GAN: `synth-ours`, `synth-methods` and `synth-canaries`.

The paper claims nothing about these methods: there are no verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sfumato import load_splits
from sfumato.auditing import CPU, FULL, SMOKE
from sfumato.auditing.canaries import canary_scores
from sfumato.core.errors import unknown
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.studies.base import Measurement, Part, Scale, Study
from sfumato.studies.rows import Results, Row, bound_row, score_row
from sfumato.studies.synth import (
    DATA,
    DELTA,
    EFFORTS,
    METRICS,
    SAID,
    STUDENTS,
    epsilon_of,
    likeness_rows,
    member_rows,
    promise,
    real_row,
    student_of,
)
from sfumato.workflow import Point

_DATA: Mapping[str, Mapping[str, Any]] = {
    **DATA,
    "fashion-mnist": {"utility": ["article"], "shares": [0.95, 0.05]},
}
_DELTA = {**DELTA, "fashion-mnist": 1e-5}
_EPSILONS = {"svhn": (8.0,), "digits": (3.45,)}
_OTHERS = (1.0, 3.45, 10.0)
_SEEDS = {"mnist": (0, 1, 2, 3, 4), "svhn": (0, 1, 2)}
"""At every scale but smoke; on other sets, which the paper does not have, one."""
_METHODS = ("mixture", "embedding", "dpsgd-gan", "frozen-front", "noise-layer")
_MEMBERS = ("membership",)
_LIMITS = {"smoke": 2000}


def _steps(scale: str) -> dict[str, Any]:
    return {"steps": 10} if scale == "smoke" else {}


def _scale(data: str, scale: str) -> Scale:
    """Our method for pictures at every ε of the data set; canaries have a study of their own."""
    points = tuple(
        Point("synth", {"epsilon": epsilon, "delta": _DELTA[data], **_steps(scale)})
        for epsilon in _EPSILONS.get(data, _OTHERS)
    )
    seeds = (0,) if scale == "smoke" else _SEEDS.get(data, (0,))
    effort = replace(EFFORTS[scale], threats=_MEMBERS)
    return Scale((Part(points),), effort, limit=_LIMITS.get(scale), warm_start=False, seeds=seeds)


def _rows(data: str, results: Results) -> list[Row]:
    """Students, likeness and members of every ε; the paper's figures stand beside the ε that they are for."""
    rows: list[Row] = []
    for result in results:
        said = f"mixture, {promise(result)}"
        same = result["params"]["epsilon"] == epsilon_of(data)
        printed = SAID.figures["Table 1"].get(data, {}) if same else {}
        other = SAID.figures["§5.3"].get(data, {}) if same else {}
        cnn, logistic = (student_of(result, student) for student in STUDENTS)
        rows += [
            score_row(f"{said}: the paper's student", cnn, paper=printed.get("student")),
            score_row(f"{said}: logistic regression", logistic, paper=other.get("logistic")),
            *likeness_rows(said, result, tuple(METRICS), {})[::3],
            *member_rows(said, result)[:-1],
        ]
    last, printed, other = results[-1], SAID.figures["Table 1"].get(data, {}), SAID.figures["§5.3"].get(data, {})
    cnn, logistic = (student_of(last, student) for student in STUDENTS)
    alike = likeness_rows("", last, tuple(METRICS), {})
    return [
        *rows,
        real_row("not private: the paper's student on the owner's records", cnn, printed.get("not private")),
        real_row(
            "not private: logistic regression on the owner's records", logistic, other.get("logistic on real records")
        ),
        *alike[1::3],
        *alike[2::3],
        *member_rows("", last)[-1:],
    ]


def _methods_scale(data: str, scale: str) -> Scale:
    """Every method for pictures at one (ε, δ): students and members."""
    common = {"epsilon": epsilon_of(data), "delta": DELTA[data], **_steps(scale)}
    straight = Point("synth", {"method": "mixture", "bend": 0.0, **common}, tag="mixture-straight")
    points = (straight, *(Point("synth", {"method": method, **common}, tag=method) for method in _METHODS))
    effort = replace(EFFORTS[scale], threats=_MEMBERS)
    return Scale((Part(points),), effort, limit=_LIMITS.get(scale), warm_start=False)


def _methods(_data: str, results: Results) -> list[Row]:
    """Both students and every membership attack, for each method."""
    rows: list[Row] = []
    for result in results:
        method = result["params"]["method"]
        bent = ", pictures not bent" if result["params"].get("bend") == 0.0 else ""
        said = f"{method}{bent} ({result['guarantee']['kind']})"
        rows += [score_row(f"{said}: student {student}", student_of(result, student)) for student in STUDENTS]
        rows += member_rows(said, result)[:-1]
    return rows + member_rows("", results[-1])[-1:]


def canary_rows(
    *,
    data: str = "mnist",
    scale: str = "cpu",
    limit: int | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **_: Any,
) -> list[Row]:
    """A lower bound of ε from each kind of canary that hears every answer of a run. It needs no folder."""
    efforts = {"smoke": SMOKE, "cpu": CPU, "full": FULL}
    if scale not in efforts:
        raise unknown("scale", scale, efforts)
    owner = load_splits(data, limit=limit, seed=seed, **_DATA[data]).owner
    rows = []
    for epsilon in _EPSILONS.get(data, _OTHERS):
        say(f"ε = {epsilon:g}: fit")
        mechanism = Synth(epsilon=epsilon, delta=_DELTA[data], seed=seed, **_steps(scale)).fit(owner)
        answers = sum(ask.count for ask in mechanism.ledger_.plan)
        say(f"ε = {epsilon:g}: canaries hear {answers} answers")
        effort = replace(efforts[scale], questions=answers)
        for score in canary_scores(mechanism, owner, effort, seed):
            name = f"claimed ε = {epsilon:g}: {score.attack}, all {answers} answers heard"
            rows.append(bound_row(name, score.value, n=score.n))
    return rows


STUDIES = (
    Study(
        name="synth-ours",
        family="synth-ours",
        title="Students, likeness and members of our method for pictures",
        about="The same figures as of the paper's GAN, for `mixture`, whose ε is proven. The column of the paper holds "
        "what it prints for its GAN at this ε.",
        data=_DATA,
        scale=_scale,
        rows=_rows,
    ),
    Study(
        name="synth-methods",
        family="synth-methods",
        title="Every method for pictures at the same ε and δ",
        about="Students and membership attacks for every method at the paper's (ε, δ). `noise-layer` is the paper's, "
        "and its ε is as published; that of the others is proven.",
        data={name: DATA[name] for name in ("mnist", "digits")},
        scale=_methods_scale,
        rows=_methods,
    ),
)
CANARIES = Measurement(
    name="synth-canaries",
    family="synth-canaries",
    title="Lower bounds of ε by canaries",
    about="The ε that canaries show in runs of `mixture`, with 95 % confidence; the claimed one is in the row's name. "
    "A bound above the claim would refute it; one below proves nothing.",
    data=tuple(_DATA),
    run=canary_rows,
    limits=_LIMITS,
)
