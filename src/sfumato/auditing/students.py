"""What a synthetic data set is good for: students learn from it alone and are tested on real victims.

Nothing is chosen by a test: a student trains for as long as its effort says, and its last state counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.auditing.controls import Values
from sfumato.auditing.utility import answer_scores, softmax
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import UsageError, unknown
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.nets.encoders import classifier
from sfumato.nets.student_cnn import student as student_network
from sfumato.nets.training_loop import as_tensor, channels_last, decay_rate, forward_in_batches, minibatches, take_step

CNN, PAPER_CNN, MLP, LOGISTIC, TREES = "cnn", "paper-cnn", "mlp", "logistic", "boosted-trees"
STUDENTS = (CNN, PAPER_CNN, MLP, LOGISTIC, TREES)
HIDDEN = {CNN: (128,), PAPER_CNN: (128, 128)}
"""Sizes of the hidden layers after the convolutions; the paper has two (§5.2)."""
_STEPS = 60
"""At least so many make an epoch: a student with few records passes over them more often."""
_BATCH = 128
_MOST_NUMBERS = 50_000_000
"""Numbers that a student of scikit-learn reads: 63,775 records of 784, 462,962 of 108."""
_SMALLEST_SIDE = 8

Predict = Callable[[FloatArray], FloatArray]
"""Records → a probability for each class, (N, classes)."""


def usual_students(shape: Sequence[int], kind: str) -> tuple[str, ...]:
    """The students of a kind of data; the first one ranks."""
    if kind == "table":
        return (TREES, LOGISTIC)
    return (CNN if _has_pictures(shape) else MLP, LOGISTIC)


def check_students(names: Sequence[str], shape: Sequence[int]) -> None:
    """Raise ``UsageError`` for a name that is neither ours nor a classifier of scikit-learn, or that cannot be used."""
    for name in names:
        if name not in STUDENTS:
            _estimator(name, 0)
        if name in HIDDEN and not _has_pictures(shape):
            raise UsageError(f"the student {name} needs pictures of 8 × 8 or more, records have shape {tuple(shape)}.")


def student_scores(
    name: str,
    release: Release,
    victim: Dataset,
    label: str,
    *,
    epochs: int,
    width: int,
    seed: int,
    control: Values,
    primary: bool,
) -> list[Score]:
    """Utility and fairness of one student of ``release`` on the real victims, for one label."""
    started = time.perf_counter()
    classes = len(victim.schema.classes(label))
    seed = derive_seed(seed, "student", name, label)
    predict = fit_student(name, release.payload, release.utility[label], classes, epochs, width, seed)
    probabilities = predict(victim.x)
    seconds = time.perf_counter() - started
    return answer_scores(name_of(name), label, probabilities, victim, seconds, control, primary=primary)


def name_of(student: str) -> str:
    """The student in tables: the last part of a dotted name."""
    return f"student {student.rpartition('.')[2]}"


def fit_student(name: str, x: FloatArray, y: IntArray, classes: int, epochs: int, width: int, seed: int) -> Predict:
    """A student of that name, trained on records (N, *shape) with one of ``classes`` codes each.

    ``width`` is the number of filters in the first convolution of a CNN.
    """
    if name not in (*HIDDEN, MLP):
        return _fit_estimator(_estimator(name, seed % 2**32), x, y, classes, seed)
    make = _perceptron if name == MLP else _pictured(width, HIDDEN[name])
    network = _trained(make, x, y, classes, epochs, seed)
    return lambda points: softmax(forward_in_batches(network, as_tensor(points)).numpy())


def usual_network(x: FloatArray, y: IntArray, classes: int, *, epochs: int, seed: int, width: int) -> nn.Sequential:
    """A trained network of the kind that suits the records; its last layer but one is ReLU."""
    make = _pictured(width, HIDDEN[CNN]) if _has_pictures(x.shape[1:]) else _perceptron
    return _trained(make, x, y, classes, epochs, seed)


Make = Callable[[tuple[int, ...], int], nn.Sequential]


def _trained(make: Make, x: FloatArray, y: IntArray, classes: int, epochs: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make(x.shape[1:], classes)
    records, codes = as_tensor(x), as_tensor(y)
    channels_last(network)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    in_epoch = math.ceil(len(records) / _BATCH)
    passes = math.ceil(epochs * max(1.0, _STEPS / in_epoch))
    network.train()
    for epoch in range(passes):
        for step, rows in enumerate(minibatches(len(records), _BATCH, derive_seed(seed, epoch))):
            decay_rate(optimiser, (epoch + step / in_epoch) / passes)
            take_step(optimiser, F.cross_entropy(network(records[rows]), codes[rows]))
    return network


def _pictured(width: int, hidden: Sequence[int]) -> Make:
    return lambda shape, classes: student_network(shape, classes, width=width, hidden=hidden)


def _perceptron(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    size = math.prod(shape)
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(size), *classifier((size,), classes))


def _fit_estimator(estimator: Any, x: FloatArray, y: IntArray, classes: int, seed: int) -> Predict:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    flat = x.reshape(len(x), -1)
    rows = np.random.default_rng(seed).permutation(len(flat))[: max(2, _MOST_NUMBERS // flat.shape[1])]
    known = np.unique(y[rows])
    if len(known) == 1:
        return lambda points: np.eye(classes, dtype=np.float32)[np.full(len(points), known[0])]
    # Columns of a table have units of their own. Pixels share one: a corner that is black in all drawn pictures would
    # outweigh everything as soon as a real one is lit there.
    scaled = [StandardScaler()] if x.ndim == 2 else []
    model = make_pipeline(*scaled, estimator).fit(flat[rows], y[rows])

    def predict(points: FloatArray) -> FloatArray:
        found = np.zeros((len(points), classes), dtype=np.float32)
        flat = points.reshape(len(points), -1)
        if hasattr(model, "predict_proba"):
            found[:, model.classes_] = model.predict_proba(flat)
        else:
            found[np.arange(len(points)), model.predict(flat)] = 1.0
        return found

    return predict


def _estimator(name: str, seed: int) -> Any:
    """An unfitted classifier: one of ours, or scikit-learn's by its dotted name."""
    if name == LOGISTIC:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=300)
    if name == TREES:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed, early_stopping=False)
    package, _, cls = name.rpartition(".")
    if package != "sklearn" and not package.startswith("sklearn."):
        raise unknown("student", name, (*STUDENTS, "sklearn.ensemble.RandomForestClassifier"))
    try:
        estimator = getattr(import_module(package), cls)()
    except (ImportError, AttributeError, TypeError) as error:
        raise UsageError(f"--student {name}: scikit-learn has no such classifier ({error}).") from None
    from sklearn.base import is_classifier

    if not is_classifier(estimator):
        raise UsageError(f"--student {name}: it is no classifier of scikit-learn.")
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


def _has_pictures(shape: Sequence[int]) -> bool:
    return len(shape) == 3 and min(shape[1:]) >= _SMALLEST_SIDE
