"""The studies of `phase`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from safetensors.numpy import save_file

from sfumato.auditing.turned_features import TurnedFeatures, compared, turned_features
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError
from sfumato.data.encoding.images import png
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.studies import SCALES, _limited, phase, phase_critic, phase_points, run_study
from sfumato.studies.base import Scale
from sfumato.studies.papers import paper
from sfumato.studies.phase_pictures import draw_pictures
from sfumato.studies.phase_points import PAPERS_CUT, PUBLISHED
from sfumato.studies.phase_tables import table3, utility_and_privacy
from sfumato.studies.rows import Row
from sfumato.studies.verdicts import FAILS, HOLDS, verdict
from sfumato.testing import TINY


def score(attack: str, metric: str, each: list[float], **more: Any) -> dict[str, Any]:
    value = float(np.mean(each))
    usual: dict[str, Any] = {
        "target": None,
        "threat": "reconstruction",
        "better_for_owner": "higher",
        "baseline": 0.4,
        "primary": True,
    }
    interval = [value - 0.01, value + 0.01]
    return {**usual, "attack": attack, "metric": metric, "value": value, "ci": interval, "each": each, **more}


def point(name: str, right: list[float], *attacks: dict[str, Any], part: str = "") -> dict[str, Any]:
    utility = [score("own", "accuracy", right)]
    keys = {f"{one['attack']}|{one['target'] or ''}|{one['metric']}": one["each"] for one in (*utility, *attacks)}
    each = {key: np.array(values) for key, values in keys.items()}
    mechanism = "phase" if name.startswith("phase") else "split"
    told = {"point": name, "part": part, "mechanism": mechanism, "params": {"d": 2}, "worst": {}}
    return {**told, "utility": utility, "attacks": list(attacks), "each": each}


def named(rows: list[Row], end: str) -> Row:
    return next(row for row in rows if row.name.endswith(f"phase-published-d-2: {end}"))


def test_table_3_has_the_angle_and_the_papers() -> None:
    published = point(
        "phase-published-d-2", [1.0, 1.0], score("key-angle", "angle", [0.7, 0.9], threat="key"), part="lenet"
    )
    row = named(table3("cifar10", [published]), "angle")
    assert row.ours == pytest.approx(0.8)
    assert row.paper == 0.7884
    assert row.asked is not None and row.asked.claim == "phase-angle"


@pytest.mark.parametrize(("right", "settles"), [(0.8, True), (0.6, False)])
def test_original_that_errs_far_more_than_the_papers_settles_nothing(right: float, settles: bool) -> None:
    split = point("split", [1.0] * round(10 * right) + [0.0] * round(10 - 10 * right), part="lenet")
    published = point("phase-published-d-2", [1.0] * 5 + [0.0] * 5, part="lenet")
    row = named(utility_and_privacy("cifar10", [split, published]), "accuracy less that of split")
    assert row.ours == pytest.approx(0.5 - right)
    assert row.asked is not None and row.asked.bound == -0.0178
    assert (row.asked.unless == "") == settles


def test_several_messages_are_not_put_to_the_claim_about_one() -> None:
    split = point("split", [1.0, 1.0], score("inverse-residual", "l1", [0.1, 0.1]))
    attacks = [score("inverse-residual", "l1", [0.2, 0.4]), score("inverse-intersect", "l1", [0.05])]
    rows = utility_and_privacy("mnist", [split, point("phase-published-d-2", [1.0, 1.0], *attacks)])
    row = named(rows, "best attack on one message, over the baseline that hides most")
    assert row.ours == pytest.approx(3.0)
    assert row.asked is not None and row.asked.setting == "adaptive"
    assert named(rows, "best attack on several messages of a record").asked is None


def test_our_own_questions_are_no_claims_of_the_paper() -> None:
    own = {"phase-anonymity", "phase-keys", "phase-front"}
    assert {study.name for study in phase.STUDIES if not study.claims} == own


def test_discriminator_that_knows_the_input_exceeds_the_maximum_over_those_that_do_not() -> None:
    """§3.2, Strategy 2, with g and dec the identity and a, b standard normal: a' is distributed as a, so that Eq. 8
    is 0 for every D of a' alone, and −|g(I) − g(dec(a'))| is above it."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200_000))
    turn = rng.uniform(0.0, 2.0 * np.pi, a.shape)
    fake = a * np.cos(turn) - b * np.sin(turn)
    for discriminator in (np.tanh, np.abs, np.cos):
        assert abs(discriminator(a).mean() - discriminator(fake).mean()) < 0.01
    assert 0.0 - (-np.abs(a - fake)).mean() > 0.5


# The paper's other data sets ----------------------------------------------------------------------------------------


def write_pictures(folder: Path, classes: int, sizes: tuple[int, int], **columns: Any) -> None:
    """Parquet in the form of the public source: a few small pictures of every class, whose colour tells it."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for part, each in (("train", 3), ("test", 1)):
        labels = np.tile(np.arange(classes), each)
        cells = []
        for label in labels:
            shade = np.array([label % 6, label // 6 % 6, label // 36])[:, None, None] / 6
            cells.append({"bytes": png((0.8 * shade + 0.2 * rng.random((3, *sizes))).astype(np.float32)), "path": ""})
        more = {name: pa.array(values(labels)) for name, values in columns.items()}
        pq.write_table(
            pa.table({"image": pa.array(cells), "label": pa.array(labels), **more}), folder / f"{part}.parquet"
        )


def only(name: str, *points: str) -> Callable[[str, str], Scale]:
    """Table 2's part of that name with these points alone, and next to no effort."""

    def scale(data: str, size: str) -> Scale:
        whole = phase_points.table2_scale(data, size)
        (part,) = (part for part in whole.parts if part.name == name)
        kept = tuple(point for point in part.points if point.id in points)
        return replace(whole, parts=(replace(part, points=kept, effort=replace(TINY, task_epochs=0, threats=())),))

    return scale


@pytest.mark.parametrize(
    ("data", "network", "sizes", "point_", "column"),
    [("cifar100", "lenet", (32, 32), PUBLISHED, "ours"), ("cub200", "vgg16", (70, 90), "split", "original")],
)
def test_sets_of_many_classes_run_as_soon_as_their_files_are_there(
    data: str,
    network: str,
    sizes: tuple[int, int],
    point_: str,
    column: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classes = {"cifar100": 100, "cub200": 200}[data]
    more = {"group": lambda labels: labels // 5} if data == "cifar100" else {}
    write_pictures(tmp_path / "data" / data, classes, sizes, **more)
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "data"))
    study = next(study for study in phase.STUDIES if study.name == "phase-table2")
    monkeypatch.setitem(study.__dict__, "scale", only(network, point_))
    found = run_study("phase-table2", data=data, scale="smoke", out=tmp_path / "out")
    (error,) = (row for row in found["rows"] if row["metric"] == "error")
    assert error["name"] == f"{network} {point_}: error rate"
    assert error["paper"] == paper("phase").figure("Table 2, error rates", f"{network}-{data}", column)
    assert error["n"] == classes


@pytest.mark.parametrize("data", ["cifar100", "cub200"])
def test_sets_that_are_absent_are_named_with_the_way_to_bring_them(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    monkeypatch.setenv("SFUMATO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=rf"'{data}' comes from https://.*/{data}") as found:
        run_study("phase-table2", data=data, scale="smoke", out=tmp_path / "out")
    assert found.value.exit_code == 3


def test_every_row_of_the_papers_tables_is_declared_at_full_scale() -> None:
    rows = {
        f"{part.name}-{data}"
        for study in phase.STUDIES
        if study.name in ("phase-table1", "phase-table2")
        for data in study.data
        for part in study.scale(data, "full").parts
    }
    printed = {row for table, figures in paper("phase").figures.items() for row in figures}
    assert printed <= rows
    angles = next(study for study in phase.STUDIES if study.name == "phase-table3")
    declared = {f"{part.name}-{data}" for data in angles.data for part in angles.scale(data, "full").parts}
    assert set(paper("phase").figures["Table 3"]) <= declared


def test_tables_share_the_points_of_a_network() -> None:
    for scale in SCALES:
        parts: dict[tuple[str, str], Any] = {}
        for study in phase.STUDIES:
            for data in study.data if study.family == "phase" else ():
                whole = study.scale(data, scale)
                for part in whole.parts:
                    same = replace(part, data={"limit": whole.limit, **part.data})
                    assert parts.setdefault((data, part.name), same) == same


def test_limit_replaces_those_of_all_networks() -> None:
    whole = phase_points.every_scale("cifar10", "cpu")
    assert whole.limit is None and {part.data["limit"] for part in whole.parts} == {24_000, 9_000}
    few = _limited(whole, 500)
    assert few.limit == 500 and {part.data["limit"] for part in few.parts} == {500}
    assert phase_points.network_scale("cifar10", "cpu").limit == 24_000


def test_long_training_moves_photographs_and_nothing_else() -> None:
    for data in phase_points.DATA:
        (part,) = phase_points.network_scale(data, "full").parts
        moves = data in ("cifar10", "cifar100", "cub200", "celeba")
        assert {point.params.get("augment", False) for point in part.points} == {moves}
    for part in phase_points.resnet_scale("cifar10", "full").parts:
        assert all(point.params["augment"] and point.params["epochs"] >= 100 for point in part.points)


# Faces: forty labels ------------------------------------------------------------------------------------------------


def test_error_of_several_labels_is_their_mean() -> None:
    right = point("phase-published-d-2", [1.0, 1.0], part="alexnet")
    right["utility"].append(score("own", "mean-accuracy", [0.5, 0.75]))
    (row,) = [row for row in utility_and_privacy("celeba", [right]) if row.metric == "error"]
    assert row.ours == pytest.approx(1.0 - 0.625)
    assert row.paper == paper("phase").figure("Table 2, error rates", "alexnet-celeba", "ours")


def test_labels_read_from_the_clouds_view_are_averaged_and_each_shown() -> None:
    each = {"a": [1.0, 0.0, 1.0, 1.0], "b": [1.0, 1.0, 1.0, 1.0]}
    attacks, worst = [], {}
    for label, right in each.items():
        read = score("label-cloud-mlp", "accuracy", right, threat="result", target=label)
        attacks.append(read)
        worst[f"result:{label}"] = {**read, "metric": "advantage", "value": read["value"] - 0.5}
    published = point("phase-published-d-2", [1.0], *attacks)
    published["worst"] = worst
    rows = utility_and_privacy("celeba", [published])
    mean = named(rows, "label read from what the cloud sees, mean over 2 labels")
    assert mean.ours == pytest.approx((0.25 + 0.5) / 2)
    assert mean.asked is not None and mean.asked.claim == "phase-result-hidden"
    assert named(rows, "a read from what the cloud sees").asked is None


def test_faces_have_the_forty_attributes() -> None:
    assert len(set(phase_points.ATTRIBUTES)) == 40
    folder = os.environ.get("SFUMATO_DATA")
    if folder is None or not (Path(folder) / "celeba").exists():
        pytest.skip("the faces are not here: set SFUMATO_DATA")
    columns = pq.read_schema(Path(folder) / "celeba" / "train.parquet").names
    assert set(phase_points.ATTRIBUTES) <= set(columns)


# The paper's own factor ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "verdict_"), [(0.31, HOLDS), (0.25, FAILS)])
def test_error_is_put_to_the_papers_own_factor(error: float, verdict_: str) -> None:
    split = point("split", [1.0] * 3, score("inverse-residual", "l1", [0.1] * 3), part="lenet")
    published = point("phase-published-d-2", [1.0] * 3, score("inverse-residual", "l1", [error] * 3), part="lenet")
    row = named(
        utility_and_privacy("cifar10", [split, published]), "strategy 2 (one message), over the original network"
    )
    factor = 0.2353 / 0.0769
    assert row.ours == pytest.approx(10 * error) and row.paper == pytest.approx(factor)
    assert row.asked is not None and row.asked.bound == pytest.approx(0.95 * factor)
    assert (row.asked.claim, row.asked.setting) == ("phase-by-a-factor", "paper")
    assert verdict(row.asked, row.ci, "cpu") == verdict_


def test_attack_that_sees_a_few_victims_is_compared_without_pairs() -> None:
    split = point("split", [1.0] * 3, score("inverse-residual", "l1", [0.1] * 3), part="lenet")
    few = score("inverse-encoder", "l1", [0.2])
    published = point("phase-published-d-2", [1.0] * 3, score("inverse-residual", "l1", [0.4] * 3), few, part="lenet")
    rows = utility_and_privacy("cifar10", [split, published])
    for end in ("over the baseline that hides most", "over the original network"):
        row = named(rows, f"best attack on one message, {end}")
        assert row.ours == pytest.approx(2.0)
        assert row.ci == pytest.approx((2.0 - 0.05**0.5, 2.0 + 0.05**0.5), abs=0.02)


def test_several_messages_have_a_row_and_an_adaptive_verdict_of_their_own() -> None:
    split = point("split", [1.0] * 3, score("inverse-residual", "l1", [0.1] * 3), part="lenet")
    attacks = [score("inverse-residual", "l1", [0.3] * 3), score("inverse-intersect", "l1", [0.05])]
    published = {**point("phase-published-d-2", [1.0] * 3, *attacks, part="lenet"), "effort": {"repeats": 7}}
    rows = utility_and_privacy("cifar10", [split, published])
    row = named(rows, "best attack on 8 messages of a record, over the original network")
    assert row.ours == pytest.approx(0.5)
    assert row.asked is not None and (row.asked.setting, row.asked.unless) == ("adaptive", "")
    assert named(rows, "best attack on one message, over the original network").ours == pytest.approx(3.0)
    unnamed = utility_and_privacy("mnist", [split, published])  # the paper has no factor for it
    assert named(unnamed, "best attack on 8 messages of a record, over the original network").asked is None


def test_papers_cut_of_lenet_is_a_row_of_table_2() -> None:
    for data in ("cifar10", "cifar100", "mnist"):
        (part,) = phase_points.network_scale(data, "cpu").parts
        (ours,) = [point for point in part.points if point.id == PAPERS_CUT]
        assert (ours.params["encrypt_to"], ours.params["decrypt_from"]) == ("pool1", "fc3")
    published = {**point(PAPERS_CUT, [1.0, 0.0], part="lenet"), "mechanism": "phase"}
    (row,) = [row for row in utility_and_privacy("cifar10", [published]) if row.metric == "error"]
    assert row.paper == paper("phase").figure("Table 2, error rates", "lenet-cifar10", "ours")


# Eq. 8 --------------------------------------------------------------------------------------------------------------


def told(real: list[float], turned: list[float], features: list[list[float]]) -> TurnedFeatures:
    return TurnedFeatures(np.array(real), np.array(turned), np.array(features, dtype=np.float32))


def test_area_and_spread_are_those_of_the_definition() -> None:
    clear = told([2.0, 3.0], [0.0, 1.0], [[0.0, 0.0], [2.0, 4.0]])
    blind = told([0.0, 1.0], [0.0, 1.0], [[0.0, 0.0], [1.0, 2.0]])
    every = np.ones(2)
    assert (clear.area(every), blind.area(every)) == (1.0, 0.5)
    assert clear.spread(every) == pytest.approx((1.0 + 2.0) / 2)
    assert compared(clear, blind, "area")[0] == pytest.approx(0.5)
    assert compared(clear, blind, "spread", ratio=True)[0] == pytest.approx(2.0)


def test_fresh_critic_tells_turned_features_that_nothing_hides(parity: Splits) -> None:
    """Features behind a ReLU are never negative, turned ones often are: an area near 1, and one of 0.5 unturned."""
    mechanism = Phase(variant="published", keyed=False, critic=0.0, epochs=1).fit(parity.owner)
    found = turned_features(mechanism, parity, replace(TINY, attack_steps=60), 0)
    assert found.area(np.ones(found.n)) > 0.6
    same = replace(found, turned=found.real)
    assert same.area(np.ones(same.n)) == pytest.approx(0.5)


def test_study_of_the_critic_compares_the_same_network_with_and_without() -> None:
    found = phase_critic.rows(data="digits", scale="smoke", limit=400)
    names = [row.name for row in found]
    assert len(set(names)) == len(names)
    asked = [row for row in found if row.asked is not None]
    assert [row.metric for row in asked] == ["auroc", "auroc difference"]
    assert {row.asked.claim for row in asked if row.asked} == {"phase-critic-fooled"}
    area = {row.name.split(":")[0]: row.ours for row in found if row.metric == "auroc"}
    assert asked[1].ours == pytest.approx(area["without Eq. 8"] - area["with Eq. 8"])
    assert any(row.metric == "loss" and "Eq. 8's own" in row.name for row in found)


# Pictures -----------------------------------------------------------------------------------------------------------


def test_figure_shows_every_network_and_both_strategies(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    results = []
    attacks = ("inverse-residual", "inverse-critic", "inverse-intersect")
    points = {"split": "split", "split-extra": "split-extra", "split-noisy-gamma-0.5": "split-noisy"}
    for name, mechanism in {**points, "phase-published-d-2": "phase"}.items():
        one = point(name, [1.0], *(score(attack, "ssim", [0.5]) for attack in attacks))
        one |= {"mechanism": mechanism, "params": {"d": 2, "gamma": 0.5}, "folder": str(tmp_path / name)}
        (tmp_path / name).mkdir()
        kept = {f"recon/{attack}": rng.random((8, 3, 32, 32), dtype=np.float32) for attack in attacks}
        save_file(
            {"originals": rng.random((8, 3, 32, 32), dtype=np.float32), **kept}, tmp_path / name / "gallery.safetensors"
        )
        results.append(one)
    draw_pictures("cifar10", results, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.height == 8 * (64 + 2), "input, three baselines, two strategies, one message, several"
        assert picture.width > 8 * 64
    assert (tmp_path / "figure.png").stat().st_size < 200_000
