"""Our probes beside ART's attribute inference: the same released features, attacker's records and victims."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from art.attacks.inference.attribute_inference import AttributeInferenceBaseline, AttributeInferenceBlackBox
from art.estimators.classification.scikitlearn import ScikitlearnLogisticRegression
from sklearn.linear_model import LogisticRegression

from benchmarks.against import Against
from benchmarks.interleaved import figure, interleaved, threads
from sfumato.attacks.attribute.probes import Kind, fit_probe
from sfumato.attacks.registry import features_suite
from sfumato.auditing.effort import CPU, SMOKE
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.threats import ATTRIBUTE
from sfumato.data import load_splits
from sfumato.mechanisms.ran.mechanism import RAN
from sfumato.testing import AuditStage

ROUNDS = 3
PAIRS: dict[str, tuple[str, Kind]] = {
    "network": ("nn", "mlp"),
    "boosted trees": ("gb", "trees"),
    "linear": ("lr", "linear"),
    "neighbours": ("knn", "knn"),
}
"""What ART calls a model, and what we call it."""
PRIVATE = "ge5"


def run(small: bool = False) -> dict[str, Any]:
    """Time of like models on the same matrices, in turns; then the strength and time of both whole suites."""
    splits = load_splits("digits", utility=["odd"], private=[PRIVATE], limit=800 if small else None, seed=0)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        ran = RAN(epochs=1 if small else 8).fit(splits.owner)
        known, seen = (_flat(ran.transform(part.x)) for part in (splits.attacker, splits.victim))
        y, truth = splits.attacker.label(PRIVATE), splits.victim.label(PRIVATE)
        u, shown = splits.attacker.label("odd"), splits.victim.label("odd")
        pairs = {name: PAIRS[name] for name in (["linear", "boosted trees"] if small else PAIRS)}
        both = (len(truth), len(truth))
        against: list[Against | dict[str, Any]] = []
        theirs: dict[str, float] = {}
        for name, (model, kind) in pairs.items():
            guesses: dict[str, IntArray] = {}
            ways: dict[str, Callable[[], object]] = {
                "ours": partial(_ours, kind, known, y, seen, guesses),
                "theirs": partial(_baseline, model, known, y, seen, guesses),
            }
            rounds = interleaved(ways, 2 if small else ROUNDS)
            mine, other = (float(np.mean(guesses[way] == truth)) for way in ("ours", "theirs"))
            theirs[f"baseline {model}"] = other
            task = f"reading a private label from features: {name}"
            times = (rounds.median("ours"), rounds.median("theirs"), rounds.ratio("ours", "theirs"))
            against += [
                Against("ART, AttributeInferenceBaseline", task, "seconds", *times).to_json(),
                Against.shares(
                    "ART, AttributeInferenceBaseline", task, "accuracy of the attacker", mine, other, counts=both
                ).to_json(),
            ]
        started = time.perf_counter()
        for model in ("lr",) if small else ("nn", "rf", "gb"):
            guess = _black_box(model, (known, y, u), (seen, shown))
            theirs[f"black box {model}"] = float(np.mean(guess == truth))
        black_box = time.perf_counter() - started
        stage = AuditStage(ran, splits, SMOKE if small else CPU)
        started = time.perf_counter()
        ours = {
            attack.name: float(attack(release, knowledge, opened).values()["accuracy"])
            for attack in features_suite(splits.schema)
            if attack.threat == ATTRIBUTE
            for knowledge, release, opened in [stage.stage(attack)]
            if attack.obstacle(knowledge) is None
        }
        suite = time.perf_counter() - started
    best, other = max(ours.values()), max(theirs.values())
    task = "reading a private label from features: the best of the suite"
    against += [
        Against.shares("ART, all attribute inference", task, "accuracy of the attacker", best, other, counts=both),
        Against.once("ART, AttributeInferenceBlackBox", "the whole suite of each", "seconds", suite, black_box),
    ]
    error = float(np.sqrt(0.25 / len(truth)))
    return {
        "claim": "the best of our probes reads a private label as well as the best of ART's attribute inference",
        "holds": best >= other - 2 * error,
        "against": [one if isinstance(one, dict) else one.to_json() for one in against],
        "figures": {
            "accuracy, ours": {name: figure(value) for name, value in ours.items()},
            "accuracy, ART": {name: figure(value) for name, value in theirs.items()},
            "victims": len(truth),
            "most frequent answer": figure(max(np.bincount(truth)) / len(truth)),
        },
    }


def _flat(x: FloatArray) -> FloatArray:
    return np.ascontiguousarray(x.reshape(len(x), -1))


def _ours(kind: Kind, known: FloatArray, y: IntArray, seen: FloatArray, guesses: dict[str, IntArray]) -> None:
    guesses["ours"] = fit_probe(kind, known, y, 0).predict(seen)


def _baseline(model: str, known: FloatArray, y: IntArray, seen: FloatArray, guesses: dict[str, IntArray]) -> None:
    """ART learns the last column of a table from the others."""
    attack = AttributeInferenceBaseline(attack_model_type=model, attack_feature=known.shape[1])
    attack.fit(np.column_stack([known, y]).astype(np.float32))
    guesses["theirs"] = attack.infer(seen, values=[0, 1]).astype(np.int64)


def _black_box(model: str, known: tuple[FloatArray, IntArray, IntArray], seen: tuple[FloatArray, IntArray]) -> IntArray:
    """The same with what a classifier of the utility label says of every row: features with the private column."""
    x, y, u = known
    table = np.column_stack([x, y]).astype(np.float32)
    target = ScikitlearnLogisticRegression(LogisticRegression(max_iter=300).fit(table, u))
    attack = AttributeInferenceBlackBox(target, attack_model_type=model, attack_feature=x.shape[1])
    attack.fit(table)
    victims, _ = seen
    blind = np.column_stack([victims, np.full(len(victims), np.bincount(y).argmax())]).astype(np.float32)
    said = target.predict(blind).argmax(axis=1).reshape(-1, 1)
    return np.asarray(attack.infer(victims, pred=said, values=[0, 1])).astype(np.int64)
