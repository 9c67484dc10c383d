"""What the parties of one run train, as stages: autoencoders, and then what each protects its records with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.mechanisms.ars.autoencoder_stage import autoencoder_stage
from sfumato.mechanisms.ars.averaged_weights import average, hand_out, play_together
from sfumato.mechanisms.ars.hardened import HardeningGame, mean_variance
from sfumato.mechanisms.ars.party import Defence, SharingParty
from sfumato.mechanisms.ars.party_networks import PartyNetworks
from sfumato.mechanisms.ars.training_stages import Play, TrainingStage
from sfumato.mechanisms.label_targets import target
from sfumato.nets.autoencoders import standardise, unstandardised
from sfumato.nets.training_loop import adam, as_tensor, forward_in_batches, take_step


@dataclass(frozen=True)
class PartyStages:
    """``own`` gives the records of the party at a place, and what it has of them; ``strength`` is that of the
    adversaries, ``rate`` every network's learning rate."""

    networks: PartyNetworks
    parties: tuple[SharingParty, ...]
    defence: Defence
    own: Callable[[int], tuple[Dataset, FloatArray]]
    strength: float
    rate: float

    def autoencoders(self) -> list[TrainingStage]:
        """Eq. 5, for each block."""
        return [
            autoencoder_stage(f"autoencoder-{place}", front, decoder, as_tensor(self.own(place)[1]), self.rate)
            for place, (front, decoder) in enumerate(zip(self.networks.fronts, self.networks.decoders, strict=True))
        ]

    def noise(self) -> list[TrainingStage]:
        """Published: each party's substitute decoder and attribute networks."""
        stages = []
        for place, party in enumerate(self.parties):
            stages.append(self._substitute(place))
            if party.attributes and any(self.defence.weights[1:]):
                stages.append(self._attributes(place))
        return stages

    def hardening(self) -> list[TrainingStage]:
        """Hardened: the game for each block."""
        return [self._hardening(place) for place in range(len(self.networks.blocks))]

    def _substitute(self, place: int) -> TrainingStage:
        """Eq. 8: the party's own decoder of its own latents."""
        _, records = self.own(place)
        x = as_tensor(records)
        network = self.networks.substitutes[place]
        optimiser = adam(network.parameters(), self.rate)

        def begin() -> Play:
            z = torch.as_tensor(self.parties[place].latents(records))

            def play(rows: Tensor) -> dict[str, float]:
                error = F.mse_loss(network(z[rows]), x[rows])
                take_step(optimiser, error)
                return {"substitute": error.item()}

            return play

        return TrainingStage(f"substitute-{place}", len(x), {"adam": optimiser}, begin)

    def _attributes(self, place: int) -> TrainingStage:
        """Eq. 13: one network a private label."""
        own, records = self.own(place)
        networks = self.networks.attributes[place]
        codes = {label: as_tensor(values) for label, values in own.private.items()}
        optimiser = adam(networks.parameters(), self.rate)

        def begin() -> Play:
            z = torch.as_tensor(self.parties[place].latents(records))

            def play(rows: Tensor) -> dict[str, float]:
                losses = {k: F.cross_entropy(networks[k](z[rows]), codes[k][rows]) for k in codes}
                take_step(optimiser, sum(losses.values(), torch.zeros(())))
                return {f"attribute {label}": loss.item() for label, loss in losses.items()}

            return play

        return TrainingStage(f"attributes-{place}", len(own), {"adam": optimiser}, begin)

    def _hardening(self, place: int) -> TrainingStage:
        encoder = self.networks.encoders[place]
        game, play, x = self._game(place, encoder)

        def end() -> None:
            _standardise(encoder, x)

        return TrainingStage(f"hardening-{place}", len(x), game.optimisers, lambda: play, end)

    def hardening_together(self) -> TrainingStage:
        """Every party plays on its own records; after each epoch encoders and task networks become their mean."""
        networks = self.networks
        shared = nn.ModuleList([networks.encoders[0], networks.adversaries[0].tasks])
        copies, plays, sizes = [], [], []
        optimisers: dict[str, torch.optim.Adam] = {}
        for place in range(len(self.parties)):
            encoder = copy.deepcopy(networks.encoders[0])
            game, play, x = self._game(place, encoder)
            copies.append(nn.ModuleList([encoder, networks.adversaries[place].tasks]))
            plays.append(play)
            sizes.append(len(x))
            optimisers |= {f"{name}-{place}": each for name, each in game.optimisers.items()}

        def begin() -> Play:
            hand_out(shared, copies)
            return lambda rows: play_together(plays, sizes, rows)

        def after() -> None:
            average(shared, copies, sizes)
            hand_out(shared, copies)

        def end() -> None:
            _standardise(networks.encoders[0], as_tensor(self.own(0)[1]))

        return TrainingStage("hardening-together", max(sizes), optimisers, begin, end, after)

    def _game(self, place: int, encoder: nn.Sequential) -> tuple[HardeningGame, Play, Tensor]:
        """One party's game with an encoder, how it is played, and the party's records."""
        own, records = self.own(place)
        x = as_tensor(records)
        tasks, attributes = (
            [target(label, codes, own.schema) for label, codes in each.items()] for each in (own.utility, own.private)
        )
        game = HardeningGame(
            encoder,
            self.networks.adversaries[place],
            epsilon=self.defence.epsilon,
            weights=self.defence.weights,
            strength=self.strength,
            variance=max(mean_variance(records), 1e-6),
            rate=self.rate,
        )
        return game, lambda rows: game.play(x[rows], [y[rows] for y in tasks], [a[rows] for a in attributes]), x


def _standardise(encoder: nn.Sequential, x: Tensor) -> None:
    standardised = nn.Sequential(*list(encoder)[:-1])  # without the ball
    standardise(standardised, forward_in_batches(unstandardised(standardised), x))
