"""An audit in a notebook: every figure as a row, the worst ones as a table and a plot."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.auditing.audit_frame import leakage_plot
from sfumato.auditing.result import Audit
from sfumato.core.errors import UsageError
from sfumato.core.guarantee import empirical
from sfumato.core.score import Score
from sfumato.core.traits import Traits


def score(attack: str, threat: str, value: float, leakage: float | None = None, **more: Any) -> Score:
    shares = None if leakage is None else (leakage / 2, min(1.0, 2 * leakage))
    ci = (value - 0.1, value + 0.1)
    return Score(
        attack,
        threat,
        "advantage",
        "lower",
        value,
        ci,
        0.0,
        0.9,
        100,
        1.0,
        True,
        leakage=leakage,
        leakage_ci=shares,
        **more,
    )


@pytest.fixture(scope="module")
def found() -> Audit:
    attacks = (
        score("probe-linear", "attribute", 0.2, 0.2, target="sex"),
        score("probe-mlp", "attribute", 0.5, 0.55, target="sex"),
        score("inverse-residual", "reconstruction", 0.3, 0.33),
        score("member-hardness", "membership", 0.01),
    )
    served = (score("own", "utility", 0.8, target="ill"),)
    return Audit("ran", Traits(), "people", empirical("measured"), served, attacks, (), {}, {}, (), {}, {}, {})


def test_the_frame_has_every_figure_and_marks_the_worst(found: Audit) -> None:
    frame = found.to_frame()
    assert len(frame) == sum(map(len, (found.utility, found.attacks, found.repeated, found.fairness)))
    worst = frame[frame.worst]
    assert set(worst.attack) == {score.attack for score in found.worst.values()} and len(worst) == len(found.worst)
    assert ((frame.low <= frame.value + 1e-6) & (frame.value <= frame.high + 1e-6)).all()


def test_the_plot_has_a_bar_for_each_graded_threat(found: Audit) -> None:
    graded = [threat for threat, score in found.worst.items() if score.leakage is not None]
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == graded
    assert all(0 <= bar.get_width() <= 100 for bar in axes.patches)


def test_a_notebook_shows_the_worst_attack_of_each_threat(found: Audit) -> None:
    shown = found._repr_html_()
    assert all(threat in shown and score.attack in shown for threat, score in found.worst.items())


def test_nothing_to_plot_is_said() -> None:
    with pytest.raises(UsageError, match="no leakage to plot"):
        leakage_plot("nothing", {})
