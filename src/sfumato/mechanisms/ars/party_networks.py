"""The networks of all parties of one run."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.mechanisms.ars.column_blocks import Block
from sfumato.mechanisms.ars.hardened import Adversaries, sieve
from sfumato.mechanisms.ars.party import SharingParty
from sfumato.mechanisms.label_targets import widths
from sfumato.nets.autoencoders import autoencoder, substitute_decoder
from sfumato.nets.encoders import classifier
from sfumato.nets.training_loop import channels_last


@dataclass(frozen=True)
class PartyNetworks:
    """One autoencoder a block, and what each party protects with.

    fronts, decoders         of the autoencoders, by block
    encoders                 what is shared, by block: the front, hardened with a sieve behind it
    adversaries              of the hardening, by block, or by party if they harden together
    substitutes, attributes  of the published variant, by party: SDec, and F_k by label
    """

    blocks: tuple[Block, ...]
    fronts: list[nn.Sequential] = field(default_factory=list)
    encoders: list[nn.Sequential] = field(default_factory=list)
    decoders: list[nn.Module] = field(default_factory=list)
    adversaries: list[Adversaries] = field(default_factory=list)
    substitutes: list[nn.Module] = field(default_factory=list)
    attributes: list[nn.ModuleDict] = field(default_factory=list)

    def block(self, place: int) -> Block:
        """What the party at this place holds of a record."""
        return self.blocks[place % len(self.blocks)]

    def add_encoders(self, schema: Schema, latent: int, width: int, *, hardened: bool) -> None:
        """A fresh autoencoder for each block; hardened, ``width`` numbers of it are shared."""
        for block in self.blocks:
            front, decoder = autoencoder(schema.kind, block.shape, latent)
            channels_last(front)
            self.fronts.append(front)
            self.encoders.append(nn.Sequential(*front, *(sieve(latent, width) if hardened else [])))
            self.decoders.append(channels_last(decoder))

    def add_party(self, place: int, schema: Schema, width: int, *, hardened: bool, plays: bool) -> None:
        """Fresh networks of the party at this place; hardened, only who ``plays`` has any."""
        shadow = channels_last(substitute_decoder(schema.kind, self.block(place).shape, width))
        if not hardened:
            self.substitutes.append(shadow)
            self.attributes.append(nn.ModuleDict({k: classifier((width,), len(c)) for k, c in schema.private.items()}))
        elif plays:
            counts = [widths(schema, tuple(labels)) for labels in (schema.utility, schema.private)]
            self.adversaries.append(Adversaries.built(shadow, width, *counts))

    def party(self, place: int, schema: Schema, seed: int) -> SharingParty:
        """How the party at this place protects its records."""
        encoder = self.encoders[place % len(self.encoders)]
        if not self.substitutes:
            return SharingParty(encoder)
        wanted = {
            label: derive_seed(seed, "r", label) % len(classes) for label, classes in schema.private.items()
        }  # r_k of Eq. 14: a fixed class, drawn at random
        networks = self.attributes[place]
        return SharingParty(encoder, self.substitutes[place], {k: (networks[k], wanted[k]) for k in schema.private})

    def modules(self) -> dict[str, nn.Module]:
        """By name, for storage."""
        modules: dict[str, nn.Module] = {}
        for place, (encoder, decoder) in enumerate(zip(self.encoders, self.decoders, strict=True)):
            modules |= {f"encoder-{place}": encoder, f"decoder-{place}": decoder}
        for place, others in enumerate(self.adversaries):
            modules |= {f"{name}-{place}": network for name, network in others.modules().items()}
        for place, (network, attributes) in enumerate(zip(self.substitutes, self.attributes, strict=True)):
            modules |= {f"substitute-{place}": network, f"attributes-{place}": attributes}
        return modules
