"""Studies of ``ran``: λ in two units, choices that other victims judge, and object against background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.dataset import Splits
from sfumato.mechanisms.baselines.raw_records import Noisy
from sfumato.mechanisms.ran.multiplier import papers_lambda
from sfumato.studies.pasted_digits import Layers, paste, pasted, textures
from sfumato.studies.ran_background import answer_changes, background_share, parts_error, selective
from sfumato.studies.ran_choice import choose
from sfumato.studies.ran_features import figure5, within_share
from sfumato.studies.ran_front import information_loss
from sfumato.studies.ran_points import DATA, NUMBERS, in_papers_range, scale, title


@pytest.mark.parametrize("data", DATA)
def test_points_are_trained_cold_with_equal_epochs_and_reach_the_papers_range(data: str) -> None:
    plan = scale(data, "cpu")
    ran = [point for point in plan.parts[0].points if point.mechanism == "ran"]
    assert not plan.warm_start and plan.seeds == (0, 1, 2)
    assert len({point.params["epochs"] for point in ran}) == 1
    papers = [papers_lambda(point.params["lam"], NUMBERS[data]) for point in ran]
    assert any(one == pytest.approx(0.9) for one in papers) and any(one <= 0.1 + 1e-9 for one in papers)
    assert any(point.params["lam"] == 1e-3 for point in ran)


def test_row_names_have_lambda_in_both_units() -> None:
    result = {"mechanism": "ran", "params": {"lam": 1e-3}}
    assert title("mnist", result) == "ran, λ = 0.44 (lam = 0.001)"
    assert in_papers_range("mnist", result)
    assert not in_papers_range("mnist", {"mechanism": "ran", "params": {"lam": 0.1}})


def test_information_loss_is_what_noise_does_to_a_record(digits: Splits) -> None:
    few = digits.owner.sample(200, 0)
    noisy = Noisy(noise=0.3, epochs=1).fit(few)
    loss = np.square(noisy.transform(few.x, seed=0) - few.x).mean()
    assert loss == pytest.approx(information_loss(0.3), rel=0.02)
    assert information_loss(0.5) == 0.5


def point(mechanism: str, right: list[float], error: list[float], lam: float = 0.0) -> dict[str, Any]:
    each = {"own||accuracy": np.array(right), "inverse-mirror||mse": np.array(error)}
    return {
        "point": f"{mechanism}-{lam:g}",
        "mechanism": mechanism,
        "params": {"lam": lam},
        "utility": [{"attack": "own", "target": None, "metric": "accuracy", "primary": True}],
        "attacks": [{"attack": "inverse-mirror", "target": None, "metric": "mse"}],
        "each": each,
    }


def test_setting_is_chosen_on_one_half_and_seen_through_the_other() -> None:
    dnn = point("dnn", [1, 0, 1, 0], [0.1] * 4)
    useless = point("ran", [0, 1, 0, 1], [0.9] * 4, 0.1)  # right on the second half alone, and hides most
    good = point("ran", [1, 0, 1, 0], [0.2, 0.3, 0.2, 0.3], 0.2)
    chosen = choose([dnn, useless, good])
    assert chosen.accurate["point"] == chosen.hiding["point"] == "ran-0.2"
    assert chosen.hiding["each"]["inverse-mirror||mse"].tolist() == [0.3, 0.3]
    assert chosen.resized is None and chosen.noisy is None
    (score,) = chosen.hiding["attacks"]
    assert (score["value"], score["n"]) == (pytest.approx(0.3), 2), "counts and means are of those who judge"
    assert chosen.judges.tolist() == [False, True, False, True]


def test_attack_that_sees_some_victims_is_judged_by_those_who_did_not_choose() -> None:
    rows = np.array([3, 0, 2])
    seen = point("ran", [1, 1, 1, 1], [0.5] * 4, 0.1)
    seen["each"] |= {"inverse-encoder||mse": np.array([0.3, 0.0, 0.2]), "inverse-encoder||mse|row": rows}
    seen["attacks"].append({"attack": "inverse-encoder", "target": None, "metric": "mse"})
    chosen = choose([point("dnn", [1, 1, 1, 1], [0.1] * 4), seen])
    score = next(s for s in chosen.hiding["attacks"] if s["attack"] == "inverse-encoder")
    assert (score["value"], score["n"]) == (pytest.approx(0.3), 1)
    assert chosen.hiding["each"]["inverse-encoder||mse|row"].tolist() == [3]


def test_pictures_of_two_classes_are_judged_by_the_half_that_did_not_choose(tmp_path: Path) -> None:
    """Victims of the first half are far apart, those of the second together: only these may count."""
    results = []
    for result in (point("dnn", [1] * 8, [0.1] * 8), point("ran", [1] * 8, [0.2] * 8, 0.1)):
        folder = tmp_path / result["point"]
        spread = 9.0 if result["mechanism"] == "ran" else 1.0
        places = [[0.0 if row % 2 else spread * (row % 4), float(row // 4), 0.0] for row in range(8)]
        folder.mkdir()
        labels = [0, 0, 0, 0, 1, 1, 1, 1]
        picture = {"points": places, "labels": labels, "classes": ["4", "9"], "rows": list(range(8))}
        (folder / "features.json").write_text(json.dumps(picture))
        results.append({**result, "folder": str(folder), "part": "release"})
    *_, last = figure5("digits", results)
    assert last.ours == pytest.approx(0.0) and last.n == 4
    (Path(results[0]["folder"]) / "features.json").write_text(json.dumps({**picture, "rows": list(range(7, -1, -1))}))
    assert figure5("digits", results)[-1].ours != pytest.approx(0.0)


def test_variance_within_a_class_is_a_share_of_the_whole() -> None:
    features = np.array([[-2.0], [0.0], [8.0], [10.0]])  # class means −1 and 9: within 4 · 1, whole 4 · 26
    assert within_share(features, np.array([0, 0, 1, 1]), np.ones(4)) == pytest.approx(4 / 104)


def test_error_is_told_apart_inside_and_outside_the_mask() -> None:
    x, guess = np.zeros((1, 1, 1, 4), dtype=np.float32), np.array([[[[0.5, 0.5, 0.0, 1.0]]]], dtype=np.float32)
    found = parts_error(x, guess, np.array([[[[True, True, False, False]]]]))
    assert found["inside"].tolist() == [0.25] and found["outside"].tolist() == [0.5]


def test_hiding_the_background_alone_is_selective() -> None:
    dnn = {"a|inside|mse": np.full(50, 0.1), "a|outside|mse": np.full(50, 0.1)}
    ran = {"a|inside|mse": np.full(50, 0.2), "a|outside|mse": np.full(50, 0.6)}
    assert selective(ran, dnn, "a")[0] == pytest.approx(3.0)  # six times outside, twice inside


def test_share_of_the_background_is_that_of_a_sum_of_two_parts() -> None:
    digit, background = np.array([0.0, 2.0]), np.array([0.0, 6.0])  # variances 1 and 9
    features = (digit[:, None] + background[None, :])[..., None]
    assert background_share(features, np.ones(2)) == pytest.approx(0.9)
    assert answer_changes(np.array([[1, 1, 1, 2], [3, 3, 3, 3]])).tolist() == [0.25, 0.0]


def layered(seed: int) -> Layers:
    rng = np.random.default_rng(seed)
    ink = np.zeros((200, 28, 28), dtype=np.float32)
    ink[:, 10:18, 10:18] = 1.0
    return Layers(ink, np.arange(200) % 10, *textures(200, rng))


def test_pasted_digits_have_known_masks_disjoint_backgrounds_and_ties_for_the_owner_alone() -> None:
    parts = {name: layered(seed) for seed, name in enumerate(("owner", "attacker", "victim"))}
    free, tied = pasted(parts, 0), pasted(parts, 0, tied=0.9)
    assert free.masks.sum(axis=(1, 2, 3)).tolist() == [64] * 200
    assert (pasted(parts, 0).splits.owner.x == free.splits.owner.x).all()
    backgrounds = {name: {one.tobytes() for one in own.backgrounds} for name, own in parts.items()}
    assert not backgrounds["owner"] & backgrounds["victim"] and not backgrounds["attacker"] & backgrounds["victim"]
    same = {
        name: float((part.utility["digit"] == part.private["background"]).mean())
        for name, part in tied.splits.parts.items()
    }
    assert same["owner"] > 0.8 and same["attacker"] < 0.3 and same["victim"] < 0.3
    picture, _ = paste(parts["victim"].digits[:1], parts["victim"].backgrounds[:1])
    assert picture[0, :, 15, 15].tolist() == [1.0, 1.0, 1.0]
    assert (picture[0, :, 0] == parts["victim"].backgrounds[0, :, 0]).all()
