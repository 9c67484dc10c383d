"""The attacker who knows the encoder rebuilds more than a decoder alone, and never less by its own objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sfumato.attacks.reconstruction.encoder_inversion import EncoderInversion, View, descend, least, roughness
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.reconstruction.latent_search import LatentSearch
from sfumato.core.dataset import FloatArray, Splits
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AuditStage, primary, wins

decoder = InverseNetwork(decoder="residual", epochs=2, width=8, fewest_steps=60)


@pytest.fixture(scope="module")
def plain(fitted: dict[str, Mechanism], parity: Splits) -> AuditStage:
    return AuditStage(fitted["dnn"], parity)


def test_search_through_the_encoder_rebuilds_more_than_the_decoder_it_starts_from(plain: AuditStage) -> None:
    attack = EncoderInversion(inverse=decoder, steps=60, starts=1)
    knowledge, release, truth = plain.stage(attack)
    searched, decoded = (primary(one(release, knowledge, truth).scores) for one in (attack, decoder))
    assert searched.ci[1] < decoded.ci[0]


def test_search_in_a_latent_beats_its_baseline_on_plain_features(plain: AuditStage) -> None:
    assert wins(plain.score(LatentSearch(inverse=decoder, steps=60, starts=1, training=100)))


def test_attack_that_works_one_by_one_is_shown_some_victims_those_of_the_gallery_first(plain: AuditStage) -> None:
    _, release, truth = plain.stage(EncoderInversion(inverse=decoder))
    scene = plain.scene
    assert len(release) == scene.effort.inverted < len(scene.release)
    np.testing.assert_array_equal(truth.open().x[: len(scene.shown)], scene.splits.victim.x[scene.shown])
    assert all(len(codes) == len(release) for codes in release.utility.values())


def test_where_noise_drowns_the_features_the_decoders_guess_is_the_answer(plain: AuditStage) -> None:
    attack = EncoderInversion(inverse=decoder, steps=10, starts=1)
    knowledge, release, _ = plain.stage(attack)
    chance, clean = np.random.default_rng(0), knowledge.query
    assert clean is not None

    def noisy(payload: FloatArray) -> FloatArray:
        return (payload + 20.0 * payload.std() * chance.standard_normal(payload.shape)).astype(np.float32)

    known = replace(knowledge, randomised=True, query=lambda data: noisy(clean(data)))
    drowned = replace(release, payload=noisy(release.payload))
    guess = attack.guess(drowned, known)
    np.testing.assert_allclose(guess, decoder.decode(drowned.payload, known).clip(0, 1), atol=1e-6)


def test_more_starts_never_end_worse_by_the_attacks_own_objective(plain: AuditStage) -> None:
    attack = EncoderInversion(inverse=decoder, steps=10, starts=3)
    knowledge, release, _ = plain.stage(attack)
    view, payload = View(knowledge, decoder.own_records(knowledge)[1]), torch.from_numpy(release.payload.copy())

    def cost(x: Tensor) -> Tensor:
        return view.misfit(x, payload)

    starts = attack.first_guesses(view, payload, knowledge)
    found = [descend(cost, start, 10, 0.03, box=True) for start in starts]
    best = cost(least(cost, found))
    assert len(found) == 3
    assert all((best <= cost(x)).all() for x in found)
    assert all(float(x.min()) >= 0.0 and float(x.max()) <= 1.0 for x in found)


class Bright(nn.Module):
    """A generative model of a single number: how bright the picture is."""

    def forward(self, z: Tensor) -> Tensor:  # (B, 1) → (B, 1, 28, 28)
        return torch.sigmoid(z)[:, :, None, None].expand(len(z), 1, 28, 28)


def test_public_pretrained_prior_is_taken_as_it_is(plain: AuditStage) -> None:
    attack = LatentSearch(inverse=decoder, steps=5, starts=1, prior=Bright(), latent=1)
    knowledge, release, _ = plain.stage(attack)
    view = View(knowledge, decoder.own_records(knowledge)[1])
    (drawn,) = attack.first_guesses(view, torch.from_numpy(release.payload.copy()), knowledge)
    assert float(drawn.flatten(1).std(dim=1).max()) < 1e-6


def test_roughness_by_hand() -> None:
    picture = torch.tensor([[[[0.0, 1.0], [0.5, 0.5]]]])
    assert roughness(picture, "image", picture).tolist() == [2.0]
    rows = torch.tensor([[0.0, 1.0]])
    assert roughness(rows, "table", torch.tensor([[0.5, 0.5]])).tolist() == [0.5]
