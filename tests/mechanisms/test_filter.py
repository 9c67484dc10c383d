"""``filter``: the budget is kept, a filter belongs to one autoencoder and one user, impossible wishes are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.attacks.attribute.residual_reader import ResidualReader
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.core.schema import Column, Schema
from sfumato.data import load_splits
from sfumato.mechanisms.baselines.gaussian_noise import Gaussian
from sfumato.mechanisms.filter.budget import enforce, spent
from sfumato.mechanisms.filter.filter_networks import filters
from sfumato.mechanisms.filter.many_users import User, fit_together
from sfumato.mechanisms.filter.mechanism import Filter, LinearFilter
from sfumato.mechanisms.filter.min_max_game import Choice, Labels, MinMaxGame
from sfumato.mechanisms.filter.vae import VAE
from sfumato.mechanisms.filter.vae_networks import posterior
from sfumato.privacy.divergence import DIVERGENCES, Divergence, divergence

QUICK = {"steps": 60, "batch": 128}


@pytest.fixture(scope="module")
def parity() -> Splits:
    return load_splits("digits", utility=["odd", "circle"], private=["ge5"], limit=1500, seed=0)


@pytest.fixture(scope="module")
def base(parity: Splits) -> VAE:
    return VAE(epochs=4).fit(parity.owner)


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("cls", [Filter, LinearFilter])
def test_the_budget_is_kept_on_records_that_training_never_saw(
    cls: type[Filter], kind: Divergence, base: VAE, parity: Splits
) -> None:
    budget = {"kl": 2.0, "reverse-kl": 2.0, "chi2": 0.5, "norm": 0.5, "mahalanobis": 2.0}[kind]
    fitted = cls(base=base, budget=budget, divergence=kind, **QUICK).fit(parity.owner)
    assert 0 < fitted.spent_.divergence <= budget
    assert fitted.spent_.records == 90
    value, (low, high) = fitted.measure_spent(parity.victim)
    assert low <= value <= high
    assert value <= 1.2 * budget  # other records; a chi2 of few records has a heavy tail


@given(shape=st.sampled_from(["linear", "nonlinear"]), budget=st.floats(0.01, 50.0), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_enforcement_brings_any_filter_under_any_budget(shape: str, budget: float, seed: int) -> None:
    torch.manual_seed(seed)
    bank = filters("linear" if shape == "linear" else "nonlinear", 2, 4, 3)
    with torch.no_grad():
        bank.noise.mul_(20.0)
    mean, variance = torch.randn(2, 60, 4), torch.rand(2, 60, 4) + 0.01
    y = torch.nn.functional.one_hot(torch.randint(0, 3, (2, 60)), 3).float()
    mine = torch.arange(60) < torch.tensor([[60], [25]])
    limits = torch.tensor([budget, 2 * budget])
    found = enforce(bank, mean, variance, y, mine, "kl", limits, seed)
    assert (found <= limits).all()
    assert (bank.scale <= 1.0).all()
    again = spent(bank, mean, variance, y, "kl", seed)
    assert torch.allclose(found[1], again[1, :25].mean())


def test_a_filter_within_its_budget_is_left_alone() -> None:
    bank = filters("linear", 1, 3, 2)
    y = torch.nn.functional.one_hot(torch.zeros(1, 40, dtype=torch.long), 2).float()
    mine = torch.ones(1, 40, dtype=torch.bool)
    enforce(bank, torch.zeros(1, 40, 3), torch.ones(1, 40, 3), y, mine, "kl", torch.tensor([1e6]), 0)
    assert bank.scale.item() == 1.0


def test_the_linear_filter_is_equation_23(base: VAE, parity: Splits) -> None:
    """z̃ = z + A[ε; y]: two classes of the same record differ by A_y's columns alone, and the noise is A_ε·ε."""
    fitted = LinearFilter(base=base, **QUICK).fit(parity.owner)
    x = parity.victim.x[:50]
    low = fitted.transform(x, private={"ge5": np.zeros(50, int)}, seed=3)
    high = fitted.transform(x, private={"ge5": np.ones(50, int)}, seed=3)
    towards = fitted.filter_.towards.detach()[0] * fitted.filter_.scale  # type: ignore[operator]
    assert np.allclose(high - low, (towards[1] - towards[0]).numpy(), atol=1e-4)
    many = np.repeat(parity.victim.x[:1], 4000, axis=0)
    cloud = fitted.transform(many, private={"ge5": np.zeros(4000, int)}, seed=4)
    mean, variance = (part[0].numpy() for part in base.posterior(parity.victim.x[:1]))
    noise = (fitted.filter_.noise[0] * fitted.filter_.scale).detach().numpy()
    assert np.allclose(cloud.mean(0), mean + towards[0].numpy(), atol=0.1)
    assert np.allclose(np.cov(cloud.T), np.diag(variance) + noise @ noise.T, atol=0.15)


def test_the_private_label_becomes_harder_to_read_and_the_utility_label_stays(parity: Splits) -> None:
    """A constructed latent: two blocks of numbers, one for each label; h and ν are not asked."""
    rng = np.random.default_rng(0)
    y, u = rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    private = y[:, None] * 0.5 + 0.25 * rng.random((3000, 4))
    useful = u[:, None] * 0.5 + 0.25 * rng.random((3000, 4))
    data = _table(np.concatenate([private, useful], axis=1), y, u)
    train, attack, victim = (data.take(slice(a, b)) for a, b in ((0, 1500), (1500, 2500), (2500, 3000)))
    vae = VAE(latent=4, epochs=30, batch=50).fit(train)
    fitted = Filter(base=vae, budget=200.0, steps=400, batch=256).fit(train)

    def read(mechanism: VAE | Filter, label: str) -> float:
        known, seen = mechanism.release(attack, seed=1).payload, mechanism.release(victim, seed=2).payload
        model = HistGradientBoostingClassifier(max_iter=60).fit(known, attack.label(label))
        return float((model.predict(seen) == victim.label(label)).mean())

    assert read(vae, "y") > 0.9
    assert read(fitted, "y") < 0.65
    assert read(fitted, "u") > 0.85


def _table(x: FloatArray, y: IntArray, u: IntArray) -> Dataset:
    columns = tuple(Column(f"c{i}", "numeric") for i in range(x.shape[1]))
    schema = Schema("table", x.shape[1:], utility={"u": ("a", "b")}, private={"y": ("a", "b")}, columns=columns)
    return Dataset(x.astype(np.float32), schema, utility={"u": u}, private={"y": y})


def test_a_patient_reader_with_renewed_noise_finds_little_in_a_filtered_latent() -> None:
    """Eight clusters; a filter whose noise began small left an AUROC of 0.61 here."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 8, 5000)
    centres = 0.7 * rng.random((8, 6))
    data = _table(centres[cluster] + 0.25 * rng.random((5000, 6)), cluster // 2 % 2, cluster % 2)
    owner, attacker, victim = (data.take(slice(a, b)) for a, b in ((0, 1500), (1500, 4000), (4000, 5000)))
    base = VAE(latent=4, epochs=25, batch=50, seed=2).fit(owner)
    fitted = Filter(base=base, budget=200.0, steps=250, batch=256, seed=2).fit(owner)
    draws = np.stack([fitted.release(attacker, seed=number).payload for number in range(12)])
    reader = ResidualReader(epochs=12, width=64, fewest_steps=300).fit(draws, attacker.private["y"])
    seen = fitted.release(victim, seed=99).payload
    assert roc_auc_score(victim.private["y"], reader.predict_proba(seen)[:, 1]) < 0.58
    assert (np.argmax(fitted.predict(seen), axis=1) == victim.utility["u"]).mean() > 0.95


def test_noise_begins_with_half_of_each_users_budget_but_never_wider_than_the_prior() -> None:
    mean, variance = torch.randn(400, 4), torch.full((400, 4), 0.02)
    labels = Labels(torch.arange(400)[None] % 2, (2,))
    choices = [Choice(labels, labels, torch.arange(400), torch.arange(0), budget) for budget in (4.0, 40.0, 4000.0)]
    game = MinMaxGame(mean, variance, choices, Filter().rules(4))
    used = divergence("kl", torch.zeros(3, 4), variance[0], game.f.noise.detach())
    wide = game.f.noise.detach().diagonal(dim1=1, dim2=2).mean(1)
    assert used[:2].tolist() == pytest.approx([2.0, 20.0], rel=0.15)
    assert wide[2] == pytest.approx(1.0, abs=0.1)


def test_what_was_spent_is_told_in_half_squared_norms_too(base: VAE, parity: Splits) -> None:
    norm = Filter(base=base, budget=1.5, divergence="norm", **QUICK).fit(parity.owner)
    assert norm.spent_.norm == norm.spent_.divergence
    nats = LinearFilter(base=base, budget=50.0, **QUICK).fit(parity.owner)
    t, towards, noise = nats.filter_.scale[0], nats.filter_.towards[0], nats.filter_.noise[0]  # type: ignore[index]
    shifts = t * towards[torch.from_numpy(parity.owner.private["ge5"])]  # (N, d)
    by_hand = (shifts.square().sum(1).mean() + (t * noise).square().sum()) / 2
    assert nats.spent_.norm == pytest.approx(by_hand.item(), rel=0.05)  # of 90 held-out records
    assert f"which is {nats.spent_.norm:.3g} by half the squared norm" in nats.guarantee().statement


def test_a_noises_own_norm_is_stored(base: VAE, parity: Splits, tmp_path: Path) -> None:
    noise = Gaussian(base=base, budget=3.0, divergence="norm").fit(parity.owner)
    noise.save(tmp_path)
    assert read_json(tmp_path / "base.json")["norm"] == pytest.approx(3.0)


def test_the_papers_classifiers_have_15_units_for_digits_and_60_for_faces() -> None:
    assert LinearFilter.hidden(10) == (15,)
    assert LinearFilter.hidden(50) == (60,)
    assert LinearFilter().rules(50).hidden == (60,)


def test_a_filter_is_a_small_file_of_its_own(base: VAE, parity: Splits, tmp_path: Path) -> None:
    base.save(tmp_path / "vae")
    fitted = Filter(base=str(tmp_path / "vae"), **QUICK).fit(parity.owner)
    fitted.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "checkpoint" / "filter.safetensors").stat().st_size < 64 * 1024
    assert not (tmp_path / "mine" / "base").exists()
    again = Filter.load(tmp_path / "mine")
    assert (again.release(parity.victim, seed=1).payload == fitted.release(parity.victim, seed=1).payload).all()
    assert again.spent_ == fitted.spent_
    assert again.guarantee() == fitted.guarantee()


def test_a_device_needs_the_encoder_but_not_the_decoder(base: VAE, parity: Splits, tmp_path: Path) -> None:
    base.save(tmp_path / "vae")
    fitted = LinearFilter(base=str(tmp_path / "vae"), **QUICK).fit(parity.owner)
    fitted.save(tmp_path / "mine")
    expected = fitted.release(parity.victim, seed=1).payload
    (tmp_path / "vae" / "checkpoint" / "decoder.safetensors").unlink()
    device = LinearFilter.load(tmp_path / "mine")
    assert (device.release(parity.victim, seed=1).payload == expected).all()
    with pytest.raises(DataError, match="decoder"):
        device.decode(expected)


def test_a_filter_of_another_autoencoder_is_refused(base: VAE, parity: Splits, tmp_path: Path) -> None:
    base.save(tmp_path / "vae")
    Filter(base=str(tmp_path / "vae"), **QUICK).fit(parity.owner).save(tmp_path / "mine")
    VAE(epochs=1, seed=9).fit(parity.owner).save(tmp_path / "other")
    with pytest.raises(DataError, match="another base"):
        Filter.load(tmp_path / "mine", base=str(tmp_path / "other"))


def test_an_autoencoder_of_other_records_is_refused(base: VAE, tiny: Dataset) -> None:
    with pytest.raises(DataError, match="shape"):
        Filter(base=base, **QUICK).fit(tiny)


@pytest.mark.parametrize("budget", [0.0, -1.0, 1e-9, float("nan"), float("inf")])
def test_budgets_that_make_no_sense_are_refused(budget: float, base: VAE, parity: Splits) -> None:
    with pytest.raises(UsageError, match="budget"):
        Filter(base=base, budget=budget, **QUICK).fit(parity.owner)


def test_a_private_label_that_follows_from_the_utility_label_is_refused(base: VAE, parity: Splits) -> None:
    owner = parity.owner
    for private in ("odd", "small"):
        codes = owner.utility["odd"] if private == "odd" else 1 - owner.utility["odd"]
        schema = replace(owner.schema, utility={"parity": ("a", "b")}, private={private: ("a", "b")})
        data = Dataset(owner.x, schema, utility={"parity": owner.utility["odd"]}, private={private: codes})
        with pytest.raises(DataError, match=f"'{private}' is a function of the utility column 'parity'"):
            Filter(base=base, **QUICK).fit(data)


def test_a_utility_label_that_follows_from_the_private_one_is_served(base: VAE) -> None:
    """Case 1 of the paper: circle is a function of the digit, which is hidden."""
    digits = load_splits("digits", utility=["circle"], private=["digit"], limit=1500, seed=0)
    fitted = LinearFilter(base=base, **QUICK).fit(digits.owner)
    assert fitted.release(digits.victim, seed=0).payload.shape == (len(digits.victim), 10)


def test_several_private_labels_are_hidden_at_once(base: VAE) -> None:
    digits = load_splits("digits", utility=["odd"], private=["ge5", "circle"], limit=1500, seed=0)
    fitted = Filter(base=base, **QUICK).fit(digits.owner)
    with pytest.raises(UsageError, match="circle"):
        fitted.transform(digits.victim.x, private={"ge5": digits.victim.private["ge5"]})


def test_decoded_records_are_records(base: VAE, parity: Splits) -> None:
    fitted = Filter(base=base, output="data", **QUICK).fit(parity.owner)
    payload = fitted.release(parity.victim, seed=0).payload
    assert payload.shape == parity.victim.x.shape
    assert payload.min() >= 0 and payload.max() <= 1
    assert fitted.predict(payload) is None
    assert (fitted.decode(payload) == payload).all()


def _users(data: Dataset) -> dict[str, User]:
    rows = np.random.default_rng(0).permutation(len(data))  # the embedded digits come in order
    return {
        "a": User("a", ("ge5",), ("odd",), rows[:300], 50.0),
        "b": User("b", ("odd",), ("ge5",), rows[300:500], 20.0),
        "c": User("c", ("circle",), ("ge5",), rows[500:650], 50.0),
    }


@pytest.fixture(scope="module")
def questions() -> Dataset:
    return load_splits("digits", utility=["odd", "circle", "ge5"], limit=1500, seed=0).owner


def test_a_user_gets_the_same_filter_whoever_else_is_there(questions: Dataset, base: VAE) -> None:
    users = _users(questions)
    together = fit_together(users, questions, base, LinearFilter(steps=50, batch=64))
    shifted = dict(users)
    other = replace(users["b"], private=("circle",), utility=("odd",), budget=7.0)
    among_others = fit_together({**shifted, "b": other}, questions, base, LinearFilter(steps=50, batch=64))
    mine, again = together["a"].state(), among_others["a"].state()
    assert all(torch.equal(mine[name], again[name]) for name in mine)
    assert not torch.equal(together["b"].state()["filter.noise"], among_others["b"].state()["filter.noise"])


def test_together_and_alone_are_the_same_filter(questions: Dataset, base: VAE) -> None:
    """Alone the others' records would be public; here they stay out of everybody's classifiers."""
    users = _users(questions)
    rows = np.concatenate([user.rows for user in users.values()])
    idle = questions.take(rows)
    bounds = {"a": (0, 300), "b": (300, 500), "c": (500, 650)}
    users = {name: replace(users[name], rows=np.arange(*ends)) for name, ends in bounds.items()}
    together = fit_together(users, idle, base, Filter(steps=50, batch=64))
    alone = fit_together({"a": users["a"]}, idle.take(np.arange(300)), base, Filter(steps=50, batch=64))
    for name, tensor in alone["a"].state().items():
        assert torch.allclose(together["a"].state()[name], tensor, atol=1e-4), name


def test_each_user_keeps_the_own_budget(questions: Dataset, base: VAE) -> None:
    users = _users(questions)
    fitted = fit_together(users, questions, base, Filter(steps=60, batch=64))
    assert list(fitted) == ["a", "b", "c"]
    for name, one in fitted.items():
        assert one.budget == users[name].budget
        assert one.spent_.divergence <= users[name].budget
        assert list(one.schema_.private) == list(users[name].private)


def test_a_user_whose_label_never_varies_is_named(questions: Dataset, base: VAE) -> None:
    same = np.flatnonzero(questions.utility["odd"] == 1)[:200]
    users = {"eve": User("eve", ("odd",), ("ge5",), same, 10.0)}
    with pytest.raises(DataError, match=r"user 'eve'.*'odd' has one value"):
        fit_together(users, questions, base, Filter(**QUICK))


def test_an_interrupted_fit_goes_on_to_the_same_filter(base: VAE, parity: Splits, tmp_path: Path) -> None:
    base.save(tmp_path / "vae")
    wanted = Filter(base=str(tmp_path / "vae"), **QUICK)
    whole = wanted.fit(parity.owner).state()
    run = RunFolder.create(tmp_path / "run", {"run": {}, "data": {}})

    def stop(done: int, _total: int, _losses: object) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Filter(base=str(tmp_path / "vae"), **QUICK).fit(parity.owner, run=run, progress=stop)
    resumed = Filter(base=str(tmp_path / "vae"), **QUICK).fit(parity.owner, run=run).state()
    assert all(torch.allclose(whole[name], resumed[name], atol=1e-6) for name in whole)


def test_gaussian_noise_spends_its_budget_and_states_its_epsilon(base: VAE, parity: Splits) -> None:
    small, large = (Gaussian(base=base, budget=b).fit(parity.owner) for b in (10.0, 1000.0))
    assert small.sigma_ < large.sigma_
    weak, strong = small.guarantee(), large.guarantee()
    assert weak.kind == strong.kind == "dp"
    assert weak.epsilon is not None and strong.epsilon is not None
    assert weak.epsilon > strong.epsilon > 0


def test_an_epsilon_that_the_budget_cannot_pay_for_is_refused(base: VAE, parity: Splits) -> None:
    with pytest.raises(UsageError, match=r"epsilon=0\.5.*out of reach within budget=10.*it takes"):
        Gaussian(base=base, budget=10.0, epsilon=0.5).fit(parity.owner)


def test_no_clipped_latent_is_longer_than_the_sensitivity_allows(base: VAE, parity: Splits) -> None:
    mechanism = Gaussian(base=base, budget=10.0).fit(parity.owner)
    mechanism.sigma_ = 1e-9
    lengths = np.linalg.norm(mechanism.release(parity.victim, seed=0).payload, axis=1)
    assert lengths.max() <= 2 * np.sqrt(10) + 1e-5


def test_an_autoencoder_can_be_held_to_the_sum_of_errors(parity: Splits) -> None:
    vae = VAE(likelihood="l1", epochs=1)
    vae.schema_ = parity.schema
    vae._build(parity.schema)
    x = torch.from_numpy(parity.owner.x[:8])
    torch.manual_seed(0)
    _, terms = vae._loss(x)
    torch.manual_seed(0)
    mean, variance = posterior(vae.encoder_(x))
    rebuilt = torch.sigmoid(vae.decoder_(mean + variance.sqrt() * torch.randn_like(mean)))
    assert float(terms["reconstruction"]) == pytest.approx(float((rebuilt - x).abs().sum() / 8), rel=1e-5)
