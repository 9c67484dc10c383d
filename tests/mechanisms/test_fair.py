"""``vfae`` and ``lmifr``: the penalties by hand, the multipliers, what the knobs do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.core.dataset import Dataset
from sfumato.core.errors import UsageError
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.baselines.fair_autoencoders import LMIFR, VFAE, Constraints, FairAutoencoder
from sfumato.mechanisms.baselines.mmd import fourier_mmd, groups_mmd
from sfumato.mechanisms.capabilities import Classifies

SMALL: dict[str, Any] = {"latent": 4, "batch": 128}
both = pytest.mark.parametrize("cls", [VFAE, LMIFR])


def people(n: int = 1500, seed: int = 0) -> Dataset:
    """Sixteen answers: eight follow the useful label, eight a trait that goes with the private one; and a number."""
    rng = np.random.default_rng(seed)
    s, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    trait = np.where(rng.random(n) < 0.85, s, 1 - s)
    answers = np.concatenate([np.where(rng.random((n, 8)) < 0.85, f[:, None], 1 - f[:, None]) for f in (y, trait)], 1)
    x = np.column_stack([np.eye(2)[answers].reshape(n, 32), rng.random(n)]).astype(np.float32)
    questions = [Column(f"q{i}", "categorical", ("no", "yes")) for i in range(16)]
    private = {"s": ("f", "m"), "third": ("i", "j", "k")}
    columns = (*questions, Column("number", "numeric"))
    schema = Schema("table", (33,), utility={"y": ("no", "yes")}, private=private, columns=columns)
    labels: dict[str, Any] = {"utility": {"y": y}, "private": {"s": s, "third": rng.integers(0, 3, n)}}
    return Dataset(x, schema, name="people", **labels)


def probe(mechanism: FairAutoencoder, label: str) -> float:
    """AUROC of boosted trees that have seen other people's releases."""
    known, others = people(seed=1), people(seed=2)
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(
        mechanism.release(known, seed=1).payload, known.label(label)
    )
    scores = model.predict_proba(mechanism.release(others, seed=2).payload)[:, 1]
    return float(roc_auc_score(others.label(label), scores))


def exact_mmd(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], gamma: float) -> float:
    def kernel(u: npt.NDArray[np.float64], v: npt.NDArray[np.float64]) -> float:
        return float(np.exp(-((u[:, None] - v[None]) ** 2).sum(-1) / gamma).mean())

    return kernel(a, a) + kernel(b, b) - 2 * kernel(a, b)


def test_two_points_have_the_mmd_of_the_formula() -> None:
    assert exact_mmd(np.zeros((1, 1)), np.ones((1, 1)), 2.0) == pytest.approx(2 - 2 * np.exp(-0.5))


def test_random_features_come_near_the_exact_mmd() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(80, 3)), rng.normal(loc=[1.0, 0.0, 0.0], size=(120, 3))
    torch.manual_seed(0)
    first, second = torch.from_numpy(a).float(), torch.from_numpy(b).float()
    draws = [fourier_mmd(first, second, 6.0).item() for _ in range(40)]
    assert np.mean(draws) == pytest.approx(exact_mmd(a, b, 6.0), rel=0.03)


def test_equal_samples_have_no_mmd() -> None:
    a = torch.randn(50, 4)
    assert fourier_mmd(a, a.flip(0), 8.0).item() == pytest.approx(0.0, abs=1e-10)


def test_groups_cannot_come_together_by_shrinking_the_latent() -> None:
    z, s = torch.randn(400, 4), torch.arange(400)[:, None] % 2
    z = z + s
    values = []
    for scale in (1.0, 1e-2):
        torch.manual_seed(0)
        values.append(groups_mmd(scale * z, s).item())
    assert values[0] > 0.05
    assert values[1] == pytest.approx(values[0], rel=1e-3)


def test_more_than_two_groups_are_each_held_against_all_and_a_lone_group_costs_nothing() -> None:
    s = torch.arange(600)[:, None] % 3
    z = torch.randn(600, 4)
    assert groups_mmd(z, s).item() < 0.05 < groups_mmd(z + s, s).item()
    assert groups_mmd(z, torch.zeros_like(s)).item() == 0.0


def test_multipliers_grow_while_a_constraint_is_violated_and_are_never_negative() -> None:
    constraints = Constraints(2)
    seen = [constraints.multipliers.clone()]
    for _ in range(5):
        constraints.ascend(torch.tensor([0.5, -3.0]), 0.1)
        seen.append(constraints.multipliers.clone())
    first, second = torch.stack(seen).unbind(1)
    assert torch.allclose(first, torch.tensor([1.0, 1.05, 1.1, 1.15, 1.2, 1.25]))
    assert second.tolist()[-2:] == [0.0, 0.0]
    assert (torch.stack(seen) >= 0).all()


def test_lmifr_raises_the_multiplier_of_the_bound_that_is_broken_and_drops_the_other() -> None:
    fitted = LMIFR(information=1e3, capacity=1e-3, latent=3, epochs=2).fit(people(400))
    capacity, information = fitted.constraints_.multipliers.tolist()
    assert capacity > 1.0
    assert information == 0.0


def test_information_of_a_blind_predictor_is_zero_and_of_a_sure_one_the_entropy() -> None:
    data = people(600)
    mechanism = LMIFR(latent=2)
    mechanism.schema_ = data.schema
    mechanism._build(data.schema)
    s = mechanism._codes(data.private)
    mechanism._prepare(s)
    shares = [np.bincount(codes) / len(codes) for codes in data.private.values()]
    entropy = -sum(float((share * np.log(share)).sum()) for share in shares)
    blind = torch.cat([torch.from_numpy(np.log(share)).float() for share in shares]).repeat(len(s), 1)
    sure = 100.0 * mechanism._with(torch.empty(len(s), 0), s)
    z = torch.zeros(len(s), 2)
    for logits, nats in ((blind, 0.0), (sure, entropy)):
        mechanism.predictor_ = torch.nn.Module()
        mechanism.predictor_.forward = lambda _z, logits=logits: logits  # type: ignore[method-assign]
        assert mechanism._information(z, s).item() == pytest.approx(nats, abs=1e-5)


@pytest.mark.parametrize(
    ("open_door", "shut_door"),
    [
        (VFAE(mmd=0.0, **SMALL), VFAE(mmd=300.0, **SMALL)),
        (LMIFR(information=10.0, **SMALL), LMIFR(information=0.0, **SMALL)),
    ],
    ids=["vfae", "lmifr"],
)
def test_the_knob_hides_the_private_label_and_keeps_the_useful_one(
    open_door: FairAutoencoder, shut_door: FairAutoencoder
) -> None:
    data = people()
    for mechanism in (open_door, shut_door):
        mechanism.fit(data)
    assert probe(shut_door, "s") < probe(open_door, "s") - 0.15
    assert probe(shut_door, "y") > 0.9


@both
def test_stored_mechanism_releases_the_same(cls: type[FairAutoencoder], tmp_path: Path) -> None:
    data = people(300)
    fitted = cls(epochs=1).fit(data)
    fitted.save(tmp_path)
    again = load_mechanism(tmp_path)
    assert again.release(data, seed=3).digest == fitted.release(data, seed=3).digest
    assert all(torch.equal(again.state()[key], value) for key, value in fitted.state().items())


@both
def test_release_depends_on_the_private_label_that_it_is_told(cls: type[FairAutoencoder]) -> None:
    data = people(300)
    fitted = cls(epochs=1).fit(data)
    swapped = {**data.private, "s": 1 - data.private["s"]}
    honest = fitted.transform(data.x, private=data.private, seed=0)
    assert not np.allclose(honest, fitted.transform(data.x, private=swapped, seed=0))
    with pytest.raises(UsageError, match="private label 's'"):
        fitted.transform(data.x)


def test_vfae_reads_the_useful_label_and_lmifr_does_not() -> None:
    data = people(300)
    assert not isinstance(LMIFR(epochs=1).fit(data), Classifies)
    vfae = VFAE(mmd=0.0, **SMALL).fit(data)
    scores = vfae.predict(vfae.release(data, seed=0).payload)
    assert (scores.argmax(1) == data.utility["y"]).mean() > 0.65
