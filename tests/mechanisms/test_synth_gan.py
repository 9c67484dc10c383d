"""The GANs of `synth`: what their discriminators may learn of a record, and what they claim."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from synth_replay import assert_learns_from_answers_alone, learnt, ledger_for, records_of, task_of
from torch import nn
from torch.nn import functional as F

from sfumato.auditing.students import HIDDEN, PAPER_CNN
from sfumato.core.dataset import Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth import gan_networks as gan
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.mechanisms.synth.methods.dpsgd_gan import DPSGDGan
from sfumato.mechanisms.synth.methods.method import Method
from sfumato.mechanisms.synth.methods.noise_layer import FrozenFront, NoiseLayer
from sfumato.mechanisms.synth.per_record_gradients import record_gradients
from sfumato.nets.student_cnn import student
from sfumato.privacy.discrete_gaussian import RepeatableNoise
from sfumato.privacy.ledger import Ask, Ledger, calibrated, pld_epsilon, response_noise
from sfumato.privacy.query_counter import QueryCounter, Records, clipped, clipped_total

SHAPES = [(1, 28, 28), (3, 32, 32), (1, 8, 8), (2, 9, 40)]
SOUND: list[type[Method]] = [DPSGDGan, FrozenFront]
EVERY: list[type[Method]] = [*SOUND, NoiseLayer]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.fixture(scope="module")
def digits(small_digits: Splits) -> Splits:
    return small_digits


def few_records(shape: tuple[int, ...], n: int = 40, classes: int = 3) -> tuple[Schema, Records]:
    generator = torch.Generator().manual_seed(0)
    schema = Schema("image", shape, utility={"kind": tuple("abc"[:classes])})
    return schema, Records(torch.rand(n, *shape, generator=generator), torch.arange(n) % classes)


@every_shape
def test_networks_take_every_picture_of_eight_by_eight_or_more(shape: tuple[int, ...]) -> None:
    for classes in (1, 3):
        y = torch.arange(4) % classes
        x = gan.Generator(shape, classes)(torch.randn(4, gan.LATENT), y)
        assert x.shape == (4, *shape)
        assert 0.0 <= float(x.detach().min()) <= float(x.detach().max()) <= 1.0
        noise = gan.GaussianNoiseLayer(torch.randn)
        for network in (gan.NoisyDiscriminator(shape, classes, noise), gan.SmallDiscriminator(shape, classes)):
            assert network(x, y).shape == (4,)
    assert student(shape, 3)(x).shape == (4, 3)


def test_the_papers_networks_have_the_papers_layers() -> None:
    def count(network: nn.Module, kind: type[nn.Module]) -> int:
        return sum(isinstance(layer, kind) for layer in network.modules())

    generator = gan.Generator((1, 28, 28), 10)
    assert (count(generator, nn.Linear), count(generator, nn.ConvTranspose2d)) == (2, 5)
    for shape, convolutions in (((1, 28, 28), 4), ((3, 32, 32), 5)):
        network = gan.NoisyDiscriminator(shape, 10, gan.GaussianNoiseLayer(torch.randn))
        assert count(network, nn.Conv2d) == convolutions
        assert count(network.before, nn.Conv2d) == 3
        assert count(network.before, nn.BatchNorm2d) == 0
        assert count(network.after, nn.BatchNorm2d) == convolutions - 3
    theirs = student((1, 28, 28), 10, hidden=HIDDEN[PAPER_CNN])
    assert (count(theirs, nn.Conv2d), count(theirs, nn.MaxPool2d), count(theirs, nn.BatchNorm2d)) == (2, 2, 2)
    assert count(theirs, nn.Linear) == 3, "two hidden layers and the output layer (§5.2)"
    assert count(theirs, nn.ReLU) == 4


def test_noise_layer_clips_each_record_and_adds_its_noise() -> None:
    layer = gan.GaussianNoiseLayer(torch.ones, bound=2.0)
    h = torch.cat([torch.full((1, 4, 2, 2), 5.0), torch.full((1, 4, 2, 2), 0.1)])
    assert torch.allclose(layer(h).flatten(1).norm(dim=1), torch.tensor([2.0, 0.4]))  # 0.1·√16 is below the bound
    layer.sigma = 3.0
    assert torch.allclose(
        layer(h) - layer.bound * h / h.flatten(1).norm(dim=1).clamp(min=2.0).view(2, 1, 1, 1), torch.tensor(6.0)
    )


def test_per_record_gradients_are_those_of_each_record_alone() -> None:
    torch.manual_seed(0)
    network = gan.SmallDiscriminator((2, 9, 12), 3)
    x, y = torch.rand(5, 2, 9, 12), torch.tensor([0, 1, 2, 1, 0])
    together = record_gradients(network, lambda: F.softplus(-network(x, y)))
    for row in range(5):
        loss = F.softplus(-network(x[row : row + 1], y[row : row + 1])).sum()
        alone = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(network.parameters()))])
        assert torch.allclose(together[row], alone, atol=1e-6)


def test_a_layer_that_mixes_records_has_no_per_record_gradient() -> None:
    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    with pytest.raises(ValueError, match="BatchNorm1d"):
        record_gradients(network, lambda: network(torch.rand(4, 3)).sum(dim=1))
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="once"):
        record_gradients(layer, lambda: layer(layer(torch.rand(4, 2))).sum(dim=1))


def test_clipped_gradient_sum_is_that_of_opacus() -> None:
    opacus = pytest.importorskip("opacus", reason="opacus is the peer that we compare with: pip install sfumato[dp]")
    torch.manual_seed(0)
    network = gan.SmallDiscriminator((1, 28, 28), 10)
    x, y = torch.rand(32, 1, 28, 28), torch.arange(32) % 10
    ours = clipped(record_gradients(network, lambda: F.softplus(-network(x, y))), 0.5).sum(dim=0)
    wrapped = opacus.GradSampleModule(copy.deepcopy(network), loss_reduction="sum")
    optimiser = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=0.5,
        expected_batch_size=1,
        loss_reduction="sum",
    )
    F.softplus(-wrapped(x, y)).sum().backward()
    optimiser.clip_and_accumulate()
    theirs = torch.cat([parameter.summed_grad.flatten() for parameter in wrapped.parameters()])
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert float(ours.norm()) > 0.5


@pytest.mark.parametrize("cls", SOUND)
def test_no_record_moves_a_step_by_more_than_the_bound(cls: type[DPSGDGan], digits: Splits) -> None:
    records = records_of(digits.owner).take(slice(0, 30))
    method = cls(task_of(digits.owner.schema))
    everybody = clipped_total(records, method._real, method.bound, records)
    without = clipped_total(records.take(slice(0, 29)), method._real, method.bound, records)
    assert 0.0 < float((everybody - without).norm()) <= method.bound + 1e-4
    assert float(everybody.norm()) > method.bound


def test_the_features_clip_is_the_gradients_clip_in_the_frozen_front(digits: Splits) -> None:
    """‖s·(h, 1, h in row y)‖ ≤ √3: the counter's clip never has to act."""
    method = FrozenFront(task_of(digits.owner.schema))
    rows = method._real(records_of(digits.owner).take(slice(0, 50)))
    assert method.bound == pytest.approx(math.sqrt(3.0))
    assert float(rows.norm(dim=1).max()) <= method.bound
    assert [name for name, _ in method.discriminator.named_parameters()] == [
        "head.linear.weight",
        "head.linear.bias",
        "head.labels.weight",
    ]


@pytest.mark.parametrize("cls", SOUND)
def test_gans_learn_from_the_answers_alone(cls: type[Method], digits: Splits) -> None:
    records = records_of(digits.owner).take(slice(0, 300))
    assert_learns_from_answers_alone(lambda: cls(task_of(digits.owner.schema)), records)


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8)], ids=str)
def test_gans_learn_and_draw_other_shapes_and_no_labels(cls: type[Method], shape: tuple[int, ...]) -> None:
    schema, records = few_records(shape)
    for classes, labels in ((3, "data"), (1, "none")):
        part = Records(records.x, records.y % classes)
        method = cls(task_of(schema, classes=classes, labels=labels, steps=3))
        ledger = ledger_for(method, part)
        learnt(method, QueryCounter(part, ledger, noise=RepeatableNoise(0)))
        assert ledger.complete
        x, y = method.sample(7, torch.Generator().manual_seed(0))
        assert (x.shape, y.shape) == ((7, *shape), (7,))
        assert 0.0 <= float(x.min()) <= float(x.max()) <= 1.0
        again, _ = method.sample(7, torch.Generator().manual_seed(0))
        assert torch.equal(x, again)
        assert method.sample(5, torch.Generator(), only=classes - 1)[1].tolist() == [classes - 1] * 5


def test_certificate_of_a_dpsgd_run_agrees_with_opacus(digits: Splits) -> None:
    accountants = pytest.importorskip("opacus.accountants", reason="the PRV accountant is Opacus': install sfumato[dp]")
    synth = Synth(method="dpsgd-gan", epsilon=3.0, delta=1e-5, labels="none", steps=40).fit(digits.owner)
    (event,) = synth.spent_["events"]
    peer = accountants.PRVAccountant()
    peer.history = [(event["noise"], event["rate"], event["count"])]
    ours = synth.guarantee().epsilon
    assert ours is not None
    assert ours <= 3.0
    assert ours == pytest.approx(peer.get_epsilon(1e-5), rel=0.02)


@pytest.mark.parametrize("method", ["dpsgd-gan", "frozen-front", "noise-layer"])
def test_card_is_the_same_with_one_record_more(method: str, digits: Splits) -> None:
    cards = []
    for count in (700, 701):
        synth = Synth(method=method, epsilon=8.0, delta=1e-5, labels="none", steps=2).fit(
            digits.owner.take(slice(0, count))
        )
        cards.append((synth.guarantee().to_json(), synth.spent_))
    assert cards[0] == cards[1]
    assert cards[0][1]["events"][-1]["rate"] == synth.method_.batch / 1024


def test_noise_layer_is_as_published_and_says_why(digits: Splits) -> None:
    synth = Synth(method="noise-layer", epsilon=3.0, steps=4).fit(digits.owner)
    guarantee = synth.guarantee()
    assert guarantee.kind == "as-published"
    assert guarantee.epsilon is not None
    assert guarantee.epsilon <= 3.0
    assert "Theorem 2" in guarantee.statement
    assert "sfumato reproduce synth-flaw" in guarantee.statement
    assert synth.spent_["bypassed"] == NoiseLayer.doubt


def test_only_a_method_that_bypassed_may_claim(digits: Splits) -> None:
    records = records_of(digits.owner)
    plan = calibrated((Ask("a", "layer", 1.0),), 1.0, 1e-5)
    counter = QueryCounter(records, Ledger(plan, 1.0, 1e-5))
    with pytest.raises(RuleBroken, match="claimed"):
        counter.claim("layer")
    counter.bypass("a test")
    assert counter.claim("layer") == plan[0].noise
    assert counter.ledger.complete


@pytest.mark.parametrize("labels", ["data", "noisy", "public", "none"])
def test_noise_layer_asks_for_labels_as_it_says(labels: str, digits: Splits) -> None:
    records = records_of(digits.owner)
    classes = 1 if labels == "none" else 10
    records = Records(records.x, records.y % classes)
    method = NoiseLayer(task_of(digits.owner.schema, classes=classes, labels=labels, steps=3))
    ledger = ledger_for(method, records)
    first = {"data": ["class sizes"], "noisy": ["labels"]}.get(labels, [])
    assert [ask.name for ask in ledger.plan] == [*first, "noise layer"]
    method.learn(QueryCounter(records, ledger, noise=RepeatableNoise(0)), no_progress)
    assert ledger.complete
    assert ledger.bypassed == NoiseLayer.doubt
    assert pld_epsilon(ledger.plan, 1e-5) <= 3.0


@pytest.mark.parametrize("labels", ["data", "public"])
def test_number_of_records_is_not_covered_where_their_labels_are_public(labels: str, digits: Splits) -> None:
    promised = Synth(method="noise-layer", labels=labels, epsilon=20.0, steps=1).fit(digits.owner).guarantee()
    assert promised.covers.count == (labels == "data")


def response_plan(epsilon: float = 2.0) -> tuple[Ask, ...]:
    return calibrated((Ask("labels", "labels", 1.0, kind="response", size=10), Ask("sum", "sum", 1.0)), epsilon, 1e-5)


def test_randomised_response_keeps_its_share_of_epsilon() -> None:
    """p(stay)/p(any other) = e^ε₂, by the numbers: at ε₂ = log 4 and k = 2 a label stays with 0.8."""
    noise = response_noise(math.log(4.0), 2)
    assert 1.0 - noise + noise / 2 == pytest.approx(0.8)
    labels, total = response_plan()
    stay, other = 1.0 - labels.noise + labels.noise / 10, labels.noise / 10
    assert math.log(stay / other) == pytest.approx(1.0)
    assert pld_epsilon((labels,), 1e-9) <= 1.0
    assert 1.9 < pld_epsilon((labels, total), 1e-5) <= 2.0


def test_responses_are_the_labels_as_often_as_planned() -> None:
    plan = response_plan()
    records = Records(torch.zeros(40_000, 1, 8, 8), torch.arange(40_000) % 10)
    counter = QueryCounter(records, Ledger(plan, 2.0, 1e-5), noise=RepeatableNoise(0))
    answers = counter.responses("labels")
    assert float((answers == records.y).float().mean()) == pytest.approx(1.0 - 0.9 * plan[0].noise, abs=0.01)
    wrong = answers[answers != records.y]
    assert torch.bincount(wrong, minlength=10).float().std() / len(wrong) < 0.01
    with pytest.raises(RuleBroken, match="once more"):
        counter.responses("labels")


def test_a_question_is_asked_as_the_kind_that_was_planned() -> None:
    records = Records(torch.zeros(20, 1, 8, 8), torch.arange(20) % 10)
    counter = QueryCounter(records, Ledger(response_plan(), 2.0, 1e-5), noise=RepeatableNoise(0))
    with pytest.raises(RuleBroken, match="planned as a sum"):
        counter.responses("sum")
    with pytest.raises(RuleBroken, match="planned as a response"):
        counter.sums("labels", lambda records: records.x.flatten(1), 1.0)


def test_ledger_with_a_response_names_its_relation_and_comes_back() -> None:
    ledger = Ledger(response_plan(), 2.0, 1e-5)
    stored: dict[str, Any] = ledger.to_json()
    assert "blank" in stored["relation"]
    assert stored["spent"]["epsilon"] <= 2.0
    assert Ledger.from_json(stored).plan == ledger.plan


def test_a_response_is_planned_once_and_for_two_codes_or_more() -> None:
    for wrong in ({"size": 1}, {"size": 10, "count": 2}, {"size": 10, "rate": 0.5}):
        with pytest.raises(RuleBroken, match="response"):
            Ask("labels", "labels", 1.0, kind="response", **wrong)
