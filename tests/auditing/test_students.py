"""Students learn from the release alone and are judged by real victims."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.auditing.students import check_students, fit_student, name_of, student_scores, usual_students
from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.core.guarantee import empirical
from sfumato.core.release import Release

FOREST = "sklearn.ensemble.RandomForestClassifier"


@pytest.mark.parametrize("name", ["cnn", "paper-cnn", "mlp", "logistic", FOREST, "sklearn.svm.LinearSVC"])
def test_a_student_of_real_records_beats_the_majority(name: str, parity: Splits) -> None:
    real = Release("none", parity.owner.x, empirical("A test."), parity.owner.utility)
    scores = student_scores(
        name, real, parity.victim, "odd", epochs=1, width=4, seed=0, control={"accuracy": 0.9}, primary=name == "cnn"
    )
    accuracy = next(score for score in scores if score.metric == "accuracy")
    assert accuracy.baseline is not None and accuracy.ci[0] > accuracy.baseline + 0.1
    assert (accuracy.attack, accuracy.control, accuracy.target) == (name_of(name), 0.9, "odd")
    assert accuracy.primary == (name == "cnn")
    useful = {score.metric for score in scores if score.threat == "utility"}
    assert useful == {"accuracy", "balanced-accuracy", "auroc"}


def test_boosted_trees_read_a_table() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((400, 5)).astype(np.float32)
    y = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).astype(np.int64)
    predict = fit_student("boosted-trees", x[:300], y[:300], 2, epochs=1, width=4, seed=0)
    assert (predict(x[300:]).argmax(axis=1) == y[300:]).mean() > 0.85


def test_a_pixel_that_is_dark_in_all_drawn_pictures_does_not_outweigh_the_others() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = np.zeros((400, 1, 8, 8), dtype=np.float32)
    x[:, 0, :4] = 0.5 * y[:, None, None] + 0.3 * rng.random((400, 4, 8))
    x[:, 0, 7] = 1e-4 * y[:, None] * rng.random((400, 8))  # next to nothing, and it follows the class
    lit = x.copy()
    lit[:, 0, 7] = 0.5 * (1 - y[:, None])  # a real corner may be lit
    predict = fit_student("logistic", x, y, 2, epochs=1, width=4, seed=0)
    assert (predict(lit).argmax(axis=1) == y).mean() > 0.99


def test_a_student_knows_of_classes_that_it_never_saw(parity: Splits) -> None:
    x, odd = parity.owner.x[:60], np.ones(60, dtype=np.int64)
    for name in ("logistic", "mlp"):
        found = fit_student(name, x, odd, 3, epochs=1, width=4, seed=0)(parity.victim.x[:5])
        assert found.shape == (5, 3) and (found.argmax(axis=1) == 1).all()


def test_a_student_is_repeatable(parity: Splits) -> None:
    few, odd = parity.owner.x[:200], parity.owner.utility["odd"][:200]
    first, second = (fit_student("cnn", few, odd, 2, 1, 4, seed=3)(parity.victim.x[:20]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_students_suit_the_kind_of_data() -> None:
    assert usual_students((1, 28, 28), "image")[0] == "cnn"
    assert usual_students((3, 128), "signal")[0] == "mlp"
    assert usual_students((105,), "table")[0] == "boosted-trees"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("logistik", "did you mean 'logistic'"),
        ("os.system", "unknown student"),
        ("sklearn.ensemble.NoSuchForest", "has no such classifier"),
        ("sklearn.linear_model.Ridge", "no classifier"),
        ("cnn", "needs pictures"),
        ("paper-cnn", "paper-cnn needs pictures"),
    ],
)
def test_a_student_that_cannot_be_used_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check_students(["logistic", FOREST, name], (105,))
