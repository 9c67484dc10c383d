"""``ran-background``: what the ``ran`` paper explains itself by (§3.3, §4). Does training against a decoder keep the
object and drop the background? Measured where both are known: digits pasted on photographs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sfumato.auditing import CPU, FULL, SMOKE, Controls, Effort
from sfumato.auditing.staging import plans_for, scene_of
from sfumato.auditing.trials import trials
from sfumato.auditing.utility import utility_scores
from sfumato.core.dataset import FloatArray, Splits
from sfumato.core.intervals import Interval, bootstrap, mean_interval
from sfumato.core.run_folder import read_tensors, write_tensors
from sfumato.core.score import Score, each_record
from sfumato.core.threats import ATTRIBUTE, RECONSTRUCTION
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import Classifies
from sfumato.mechanisms.ran.multiplier import our_lambda, papers_lambda
from sfumato.studies.base import Measurement
from sfumato.studies.drawing import picture_rows
from sfumato.studies.pasted_digits import Pasted, crossed, layers, pasted
from sfumato.studies.ran_choice import MIRROR, choose
from sfumato.studies.rows import Better, Row, Values, accuracy, aligned, difference, each_of, highest, ratio, score_row
from sfumato.studies.verdicts import Asked, Setting

NUMBERS = 3 * 32 * 32
TIED = 0.9
"""Share of the owner's pictures whose background follows the digit, where generalisation is measured."""
WORST = "worst"
"""The attack that errs least on a mechanism, as a key."""
_LIMITS = {"smoke": 700, "cpu": 5000}
_EFFORTS: dict[str, Effort] = {"smoke": SMOKE, "cpu": CPU, "full": FULL}
_EPOCHS = {"smoke": 1, "cpu": 4, "full": 20}
_K = 3
"""ran takes k discriminative steps a batch, so dnn trains k times its epochs."""
_LAMBDAS = {"smoke": (0.5,), "cpu": (0.9, 0.5, 0.1), "full": (0.9, 0.5, 0.1, 0.01)}
"""In the paper's unit, beside our default."""
_READERS = ("probe-mlp", "probe-residual")
_CROSSED = {"smoke": 10, "cpu": 40, "full": 40}
_SHOWN = 10
_PARTS = ("inside", "outside")

Result = dict[str, Any]


def rows(
    *, data: str, scale: str, limit: int | None, seed: int, out: Path, say: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Every mechanism's accuracy, errors in and around the digit and reading of the background; then the claims."""
    material = layers(data, limit, seed)
    pictures = pasted(material, seed)
    fitted: dict[str, Mechanism] = {}
    results: list[Result] = []
    for name, mechanism in _mechanisms(scale, seed).items():
        say(f"{name}: fit")
        fitted[name] = mechanism.fit(pictures.splits.owner)
        say(f"{name}: attacks")
        results.append(_attack(name, fitted[name], pictures, _EFFORTS[scale], seed))
    _keep(out, pictures, results)
    grid = crossed(material["victim"], _CROSSED[scale])
    found = [row for result in results for row in _rows_of(result, results[0])]
    found += _claims(results)
    found += _crossed_rows({name: fitted[name] for name in fitted if _kind(name) in ("dnn", "ran")}, grid, results)
    say(f"generalisation, with {TIED:.0%} of the backgrounds tied to the digit")
    return [*found, _generalisation(pasted(material, seed, tied=TIED).splits, scale, seed, results)]


def _mechanisms(scale: str, seed: int) -> dict[str, Mechanism]:
    """One setting each, and several λ; what a row calls each."""
    epochs = _EPOCHS[scale]
    lambdas = sorted({0.1, *(our_lambda(one, NUMBERS) for one in _LAMBDAS[scale])}, reverse=True)
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        "none": ("none", {"epochs": 1}),
        "dnn": ("dnn", {"epochs": _K * epochs}),
        **{_called(lam): ("ran", {"lam": lam, "epochs": epochs}) for lam in lambdas},
        "filter": ("filter", {"steps": 60 if scale == "smoke" else 1000}),
        "phase": ("phase", {"epochs": epochs}),
        "ars": ("ars", {"epochs": _K * epochs}),
    }
    return {name: mechanism_class(kind)().set_params(seed=seed, **given) for name, (kind, given) in settings.items()}


def _called(lam: float) -> str:
    return f"ran, λ = {papers_lambda(lam, NUMBERS):.3g} (lam = {lam:.3g})"


def _kind(name: str) -> str:
    return name.split(",", maxsplit=1)[0]


def _attack(name: str, mechanism: Mechanism, pictures: Pasted, effort: Effort, seed: int) -> Result:
    """Fresh decoders and readers of the background's class; the scorer alone knows the masks."""
    scene = scene_of(mechanism, pictures.splits, effort, seed, Controls())
    plans = plans_for(mechanism, scene)
    scores: list[Score] = []
    rebuilt: dict[str, FloatArray] = {}
    wanted = [attack for plan in plans for attack in plan.attacks() if _wanted(attack)]
    for trial in trials(plans, wanted):
        if (trial.obstacle or trial.attack.obstacle(trial.stage.knowledge)) is not None:
            continue
        outcome = trial.attack(trial.stage.release, trial.stage.knowledge, trial.stage.truth)
        scores += outcome.scores
        if trial.attack.threat == RECONSTRUCTION and len(outcome.guess) == len(pictures.masks):  # of all victims
            rebuilt[trial.attack.name] = outcome.guess
    utility = utility_scores(mechanism, scene, lambda _: None)
    victims = pictures.splits.victim
    each: dict[str, Any] = dict(each_record((*scores, *utility)))
    errors = {attack: parts_error(victims.x, guess, pictures.masks) for attack, guess in rebuilt.items()}
    worst = min(rebuilt, key=lambda attack: float(each[f"{attack}||mse"].mean()))
    for attack, found in {**errors, WORST: errors[worst]}.items():
        each |= {f"{attack}|{part}|mse": values for part, values in found.items()}
    mean = np.broadcast_to(pictures.splits.attacker.x.mean(axis=0), victims.x.shape)
    each |= {f"mean|{part}|mse": v for part, v in parts_error(victims.x, mean, pictures.masks).items()}
    return {
        "point": name,
        "mechanism": mechanism.name,
        "params": mechanism.stored_params(),
        "part": "",
        "utility": [score.to_json() for score in utility],
        "attacks": [score.to_json() for score in scores],
        "each": each,
        "pictures": {MIRROR: rebuilt.get(MIRROR, rebuilt[worst])[:_SHOWN], WORST: rebuilt[worst][:_SHOWN]},
    }


def _wanted(attack: Any) -> bool:
    if attack.threat == RECONSTRUCTION:
        return not attack.one_by_one  # a search costs as much for every victim
    return attack.threat == ATTRIBUTE and attack.name in _READERS


def parts_error(x: FloatArray, guess: FloatArray, masks: Any) -> dict[str, Values]:
    """The mean squared error of each record (N, C, H, W) over its mask (N, 1, H, W), and over the rest."""
    squared = np.square(x.astype(np.float64) - guess).mean(axis=1, keepdims=True)  # (N, 1, H, W)
    axes = (1, 2, 3)
    inside = (squared * masks).sum(axes) / np.maximum(masks.sum(axes), 1)
    outside = (squared * ~masks).sum(axes) / np.maximum((~masks).sum(axes), 1)
    return {"inside": inside, "outside": outside}


def _keep(out: Path, pictures: Pasted, results: list[Result]) -> None:
    """What the picture shows."""
    kept = {"original": pictures.splits.victim.x[:_SHOWN].copy()}
    for result in results[1:]:  # raw records need no rebuilding
        best = MIRROR if result["mechanism"] in ("dnn", "ran") else WORST
        kept[result["point"]] = result["pictures"][best].astype(np.float32)
    write_tensors(out / "rebuilt.safetensors", {name: torch.as_tensor(values) for name, values in kept.items()})


def draw(_data: str, folder: Path, path: Path) -> None:
    """Originals over what a fresh mirror decoder (for the other mechanisms: the best one) makes of each release."""
    stored = {name: values.numpy() for name, values in read_tensors(folder / "rebuilt.safetensors").items()}
    order = sorted(stored, key=lambda name: ("original", "dnn", "ran", "filter", "phase", "ars").index(_kind(name)))
    picture_rows(path, {name.replace("λ", "lambda"): stored[name] for name in order})  # its font has no Greek


def _rows_of(result: Result, raw: Result) -> list[Row]:
    """Accuracy, errors inside and outside, what is read of the background; raw records need no rebuilding."""
    name = result["point"]
    found = [score_row(f"{name}: accuracy", accuracy(result))]
    if result is not raw:
        for attack in (MIRROR, WORST) if result["mechanism"] in ("dnn", "ran") else (WORST,):
            who = "a fresh mirror decoder" if attack == MIRROR else "the best fresh decoder"
            for part in _PARTS:
                values, _ = each_of(result, _error(attack, part))
                told = f"{name}: error {part} the digit, {who}"
                found.append(_row(told, "mse", float(values.mean()), mean_interval(values), len(values)))
    read = _strongest_reader(result)
    found.append(score_row(f"{name}: background's class, strongest reader", read))
    if result is not raw:
        told = f"{name}: hidden failure (§6), background read from what leaves over that from raw data"
        value, interval = hidden_failure((result, read), (raw, _strongest_reader(raw)))
        found.append(_row(told, "advantage ratio", value, interval, read["n"], better="lower"))
    return found


def _row(
    name: str,
    metric: str,
    value: float,
    interval: Interval,
    n: int,
    asked: Asked | None = None,
    better: Better = "higher",
) -> Row:
    return Row(name, metric, better, None, value, interval, asked, n)


def _error(attack: str, part: str) -> Mapping[str, Any]:
    """The key of an error inside or outside the digit."""
    return {"attack": attack, "target": part, "metric": "mse"}


def _strongest_reader(result: Result) -> Mapping[str, Any]:
    """The accuracy of the reader that gets most."""
    return highest(s for s in result["attacks"] if s["attack"] in _READERS and s["metric"] == "accuracy")


def hidden_failure(
    ours: tuple[Mapping[str, Any], Mapping[str, Any]], raw: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[float, Interval]:
    """What a reader gets above the majority guess, over what it gets from raw data (§6); each a result and a score."""
    (right, plain), _ = aligned(ours, raw)
    majority = float(ours[1]["baseline"])

    def statistic(weights: Values) -> float:
        total = weights.sum()
        return float((weights @ right / total - majority) / max(float(weights @ plain / total - majority), 1e-6))

    return statistic(np.ones(len(right))), bootstrap(statistic, len(right))


def _claims(results: list[Result]) -> list[Row]:
    """dnn beside ran at the λ that hides most within a point of dnn, chosen on the other half of the victims."""
    chosen = choose(results)
    dnn, ran = chosen.dnn, chosen.hiding
    n = len(each_of(dnn, accuracy(dnn))[0])
    best = "ran at the λ that hides most within a point of dnn"
    found = [
        _row(
            "dnn over the mean record: error outside the digit, a fresh mirror decoder",
            "mse ratio",
            *ratio((dnn, _error(MIRROR, "outside")), (dnn, _error("mean", "outside"))),
            n,
            Asked("ran-dnn-recovers-background", "below", 1.0),
        )
    ]
    settings: tuple[tuple[str, Setting, str], ...] = (
        (MIRROR, "paper", "a fresh mirror decoder"),
        (WORST, "adaptive", "the best fresh decoder"),
    )
    for attack, setting, who in settings:
        for part in _PARTS:
            asked = Asked("ran-drops-background", "above", 1.0, setting) if part == "outside" else None
            value = ratio((ran, _error(attack, part)), (dnn, _error(attack, part)))
            found.append(_row(f"{best}, over dnn: error {part} the digit, {who}", "mse ratio", *value, n, asked))
        told = f"{best}, over dnn: factor outside over factor inside, {who}"
        twofold = selective(ran["each"], dnn["each"], attack)
        found.append(_row(told, "ratio of ratios", *twofold, n, Asked("ran-keeps-object", "above", 1.0, setting)))
    gap = difference((ran, _strongest_reader(dict(ran))), (dnn, _strongest_reader(dict(dnn))))
    asked = Asked("ran-drops-background", "below", 0.0, "adaptive")
    told = f"{best}: background's class, strongest reader, less dnn's"
    return [*found, _row(told, "accuracy difference", *gap, n, asked, better="lower")]


def selective(ran: Mapping[str, Values], dnn: Mapping[str, Values], attack: str) -> tuple[float, Interval]:
    """(error outside on ran / on dnn) / (error inside on ran / on dnn), over the same victims: above 1 where ran hides
    the background more than the object."""
    four = {
        (side, part): each[f"{attack}|{part}|mse"] for side, each in (("ran", ran), ("dnn", dnn)) for part in _PARTS
    }

    def statistic(weights: Values) -> float:
        mean = {key: max(float(weights @ values), 1e-12) for key, values in four.items()}
        outside, inside = (mean["ran", part] / mean["dnn", part] for part in ("outside", "inside"))
        return outside / inside

    n = len(four["ran", "inside"])
    return statistic(np.ones(n)), bootstrap(statistic, n)


def _crossed_rows(fitted: Mapping[str, Mechanism], grid: FloatArray, results: list[Result]) -> list[Row]:
    """Eq. 5 on every digit on every background: whose variance the features have, and whom the answer follows."""
    count = len(grid)
    flat = grid.reshape(count * count, *grid.shape[2:])
    features: dict[str, Values] = {}
    answers: dict[str, Any] = {}
    for name, mechanism in fitted.items():
        payload = mechanism.transform(flat, seed=0)
        features[name] = payload.reshape(count, count, -1).astype(np.float64)
        assert isinstance(mechanism, Classifies)
        logits = mechanism.predict(payload)
        assert logits is not None
        answers[name] = logits.argmax(axis=1).reshape(count, count)
    ones = np.ones(count)
    found = []
    for name in fitted:
        share = background_share(features[name], ones)
        interval = bootstrap(lambda w, f=features[name]: background_share(f, w), count, limits=(0.0, 1.0))  # type: ignore[misc]
        told = f"{name}: backgrounds' share of the features' variance"
        found.append(_row(told, "share", share, interval, count * count, better="lower"))
        changed = answer_changes(answers[name])
        told = f"{name}: answers that change with the background"
        found.append(_row(told, "rate", float(changed.mean()), mean_interval(changed), count * count, better="lower"))
    hiding = str(choose(results).hiding["point"])

    def gap(weights: Values) -> float:
        return background_share(features[hiding], weights) - background_share(features["dnn"], weights)

    told = "ran at the λ that hides most within a point of dnn: backgrounds' share of variance, less dnn's"
    asked = Asked("ran-orthogonal", "below", 0.0)
    ends = bootstrap(gap, count)
    return [*found, _row(told, "share difference", gap(ones), ends, count * count, asked, better="lower")]


def background_share(features: Values, weights: Values) -> float:
    """Var of the backgrounds' means over the whole variance, of features (digits, backgrounds, D) of every digit on
    every background; ``weights`` are of the backgrounds."""
    weights = weights / weights.sum()
    means = features.mean(axis=0)  # (backgrounds, D)
    centre = weights @ means
    between = float(weights @ np.square(means).sum(axis=1)) - float(centre @ centre)
    total = float(weights @ np.square(features).sum(axis=2).mean(axis=0)) - float(centre @ centre)
    return max(between, 0.0) / max(total, 1e-12)


def answer_changes(answers: Any) -> Values:
    """For each digit, the share of backgrounds on which its answer, of (digits, backgrounds), is not the usual."""
    frequent = np.array([np.bincount(row).max() for row in answers])
    return np.asarray(1.0 - frequent / answers.shape[1], dtype=np.float64)


def _generalisation(tied: Splits, scale: str, seed: int, results: list[Result]) -> Row:
    """Accuracy on the victims, whose backgrounds say nothing, after training on backgrounds that follow the digit."""
    hiding = choose(results).hiding["params"]["lam"]
    mechanisms = {"dnn": _mechanisms(scale, seed)["dnn"], "ran": _mechanisms(scale, seed)[_called(hiding)]}
    right = {}
    for name, mechanism in mechanisms.items():
        fitted = mechanism.fit(tied.owner)
        assert isinstance(fitted, Classifies)
        logits = fitted.predict(fitted.transform(tied.victim.x, seed=0))
        assert logits is not None
        right[name] = (logits.argmax(axis=1) == tied.victim.utility["digit"]).astype(np.float64)
    gap = right["ran"] - right["dnn"]
    told = f"trained where {TIED:.0%} of the backgrounds follow the digit: ran's accuracy less dnn's"
    asked = Asked("ran-generalises", "above", 0.0)
    return _row(told, "accuracy difference", float(gap.mean()), mean_interval(gap), len(gap), asked)


STUDY = Measurement(
    name="ran-background",
    family="ran-background",
    title="RAN, object and background",
    about="Digits pasted on photographs, or on drawn textures where there are none. The service may read the digit; "
    "the background is private, its pixels and its class. Errors are in and around the digit's ink, which the "
    "scorer alone knows. One setting of filter, phase and ars stands beside several λ of ran.",
    data=("mnist", "digits"),
    run=rows,
    claims=(
        "ran-dnn-recovers-background",
        "ran-drops-background",
        "ran-keeps-object",
        "ran-orthogonal",
        "ran-generalises",
    ),
    seeds={"cpu": (0, 1, 2), "full": (0, 1, 2)},
    limits=_LIMITS,
    picture=draw,
)
