"""``ars``: adversarial representation sharing (Chen, Qiang and Ruan).

K parties share encoded records once, for any number of later tasks. The initiator publishes an encoder; every party
encodes its own records and protects them before they leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.knowledge import Participant, Query
from sfumato.core.origin import Hashes, Origin
from sfumato.core.randomness import Randomness, Secure, Seeded, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.ars.column_blocks import Block, SideBySide, blocks_of
from sfumato.mechanisms.ars.loss_weights import check_weights, given_weights, weights_for
from sfumato.mechanisms.ars.party import Defence, SharingParty
from sfumato.mechanisms.ars.party_networks import PartyNetworks
from sfumato.mechanisms.ars.party_stages import PartyStages
from sfumato.mechanisms.ars.published_encoder import Published, check_settings, odd_setting, public_schema
from sfumato.mechanisms.ars.shipped_party import hardened_halves, published_halves
from sfumato.mechanisms.ars.training_stages import TrainingStage, train_stages
from sfumato.mechanisms.base import Mechanism, Progress, no_progress
from sfumato.mechanisms.device_secret import check_secret, check_secret_file, derived, device_secret, drawn_secret
from sfumato.mechanisms.halves import Halves
from sfumato.mechanisms.parameters import anything, choice, flag, learning_rate, number, whole
from sfumato.mechanisms.record_checks import check_records
from sfumato.mechanisms.search_space import KnobRange, SearchSpace

__all__ = ["ARS", "Published"]

Variant = Literal["hardened", "published"]
Split = Literal["rows", "columns"]
_SAME_NETWORKS = ("variant", "latent", "keep", "parties", "split", "together", "lam")
"""A training can start from another one only if these agree."""
_EACH_FOR_ITSELF = ("parties", "together", "seed", "lam", "keyed")
"""What an initiator does not publish: the other parties choose for themselves."""


class ARS(Mechanism):
    """Protected latents of a shared encoder.

    ``published``: noise of n steps against the party's own substitute decoder, under a secret mask (Eqs. 9–15).
    ``hardened``: an encoder that keeps what the utility labels need, and random noise of the same ε; see
    ``ars.hardened``. ``epsilon`` is the defence intensity in standard deviations of a latent: no privacy budget.

    By ``rows`` the first party is the initiator and publishes the encoder; by ``columns`` each party has one of its own
    (§4.4.2).
    """

    name = "ars"
    serves_numbers = True
    knob = "epsilon"
    searched = (
        SearchSpace(
            "features",
            against=("attribute", "reconstruction"),
            knobs={
                "epsilon": KnobRange(0.25, 6.0, log=True),
                "strength": KnobRange(0.03, 3.0, log=True),
                "keep": (0, 2, 8, 16),
            },
            starts=({"epsilon": 1.0}, {"epsilon": 2.0, "strength": 0.5}, {"epsilon": 2.0, "keep": 2}),
            fixed={"keyed": False},  # the owner releases a file, and no device comes back to it
        ),
    )

    epsilon: float = number(default=1.0, low=0.0, high=1e3, help="noise in deviations of a latent; no budget")
    variant: Variant = choice(default="hardened", options=get_args(Variant), help="our scheme, or the paper's")
    lam: str | Sequence[float] = anything(
        default="", help="λ₀, λ₁ … of Eq. 15 (0.5,0.25,0.25); empty: ½ for the record, the rest in equal parts"
    )
    latent: int = whole(default=64, low=1, high=4096, help="numbers in the autoencoder's latent")
    keep: int = whole(default=0, low=0, high=4096, help="numbers shared of a record (hardened only); 0: latent")
    n: int = whole(default=10, low=1, high=1000, help="steps of the noise (Eq. 9; published only)")
    masked: bool = flag(default=True, help="noise under the secret mask of Eq. 12 (published only)")
    keyed: bool = flag(
        default=True,
        help="mask and noise follow from secret and record (k-th copy of a person): a second release is the same",
    )
    strength: float = number(default=0.1, low=0.0, high=1e3, help="weight of the adversaries' loss (hardened only)")
    parties: int = whole(default=1, low=1, high=1000, help="parties that share the owner's records")
    split: Split = choice(default="rows", options=get_args(Split), help="what each party holds: records, or columns")
    together: bool = flag(
        default=False,
        help="all parties harden the encoder, their weights are averaged after each epoch (hardened, rows); false: the "
        "initiator alone",
    )
    rate: float = learning_rate(default=4e-3)
    epochs: int = whole(default=20, low=1, high=10_000, help="passes over the records in each stage of training")
    batch: int = whole(default=128, low=8, high=65_536, help="records in a mini-batch")

    @property
    def traits(self) -> Traits:
        return Traits(
            variant=self.variant, randomised=True, needs_labels=self.variant == "hardened", parties=self.parties
        )

    def _check_params(self) -> None:
        super()._check_params()
        if self.keep and self.variant != "hardened":
            raise UsageError(f"{self.name}: keep={self.keep} is for variant=hardened: the published one sends latents.")
        if self.together and (self.variant != "hardened" or self.split != "rows"):
            raise UsageError(
                f"{self.name}: together=true is for variant=hardened and split=rows: there is no hardening "
                "that parties could share otherwise."
            )
        check_weights(given_weights(self.lam))

    @property
    def fights_private(self) -> bool:
        return True

    @property
    def hides_numbers(self) -> bool:
        """The published variant moves latents towards a class (Eq. 14), and a number has none."""
        return self.variant == "hardened"

    @property
    def width(self) -> int:
        """Numbers in what one party shares of a record."""
        return self.keep or self.latent

    def _weights(self, schema: Schema) -> tuple[float, ...]:
        """λ₀, λ₁ … λ_M for the private labels of the schema."""
        return weights_for(given_weights(self.lam), schema)

    def _build(self, schema: Schema) -> None:
        hardened = self.variant == "hardened"
        self.defence_ = Defence(self.epsilon, self.n, self._weights(schema), self.masked)
        torch.manual_seed(derive_seed(self.seed, self.name, "weights"))
        self.blocks_: tuple[Block, ...] = blocks_of(schema, self.parties if self.split == "columns" else 1)
        self._networks = PartyNetworks(self.blocks_)
        self._networks.add_encoders(schema, self.latent, self.width, hardened=hardened)
        for place in range(self.parties):
            plays = place < len(self.blocks_) or self.together
            self._networks.add_party(place, schema, self.width, hardened=hardened, plays=plays)
        self.parties_: tuple[SharingParty, ...] = tuple(
            self._networks.party(place, schema, self.seed) for place in range(self.parties)
        )
        self._secret = b""

    def _copies(self) -> int:
        return 0 if self.split == "rows" else 1  # a party's columns are copied together

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        stages = [*self._stages(data).autoencoders(), *self._protecting_stages(data)]
        if start is not None and all(getattr(start, name) == getattr(self, name) for name in _SAME_NETWORKS):
            self.load_state(start.state())
            stages = [] if self.variant == "published" else stages[len(self.blocks_) :]  # noise is made later
        self._train(stages, run, progress)

    def _train(self, stages: list[TrainingStage], run: RunFolder | None, progress: Progress) -> None:
        train_stages(self, stages, epochs=self.epochs, batch=self.batch, seed=self.seed, run=run, progress=progress)

    def _stages(self, data: Dataset) -> PartyStages:
        def own(place: int) -> tuple[Dataset, FloatArray]:
            return self._own(data, place)

        return PartyStages(self._networks, self.parties_, self.defence_, own, self.strength, self.rate)

    def _protecting_stages(self, data: Dataset) -> list[TrainingStage]:
        """What follows the encoder: each party's substitute decoder and attribute networks, or the hardening."""
        stages = self._stages(data)
        if self.together:
            return [stages.hardening_together()]
        return stages.hardening() if self.variant == "hardened" else stages.noise()

    def _own(self, data: Dataset, place: int) -> tuple[Dataset, FloatArray]:
        """The records of one party, and what it has of them: every K-th one, or its columns of all."""
        held: tuple[IntArray, ...] = self.__dict__.get("_held", ())  # set by fit_parties alone
        dealt: slice | IntArray = held[place] if held else slice(place, None, self.parties)
        own = data if self.split == "columns" else data.take(dealt)
        if len(own) < self.batch // 16 + 2:
            raise DataError(f"{data.name}: party {place + 1} of {self.parties} has {len(own)} records; give it more.")
        return own, self._networks.block(place).take(own.x)

    def fit_parties(self, data: Dataset, rows: Sequence[IntArray], *, progress: Progress = no_progress) -> Self:
        """Fit where each party brings its own rows of ``data``, the initiator first, instead of every K-th one.

        Raises:
            UsageError: There are not as many lists of rows as parties.
        """
        if self.split != "rows" or len(rows) != self.parties:
            raise UsageError(f"{self.name}: give the rows of each of {self.parties} parties, got {len(rows)} lists.")
        self._held = tuple(rows)
        return self.fit(data, progress=progress)

    def publish(self) -> Published:
        """What the initiator sends to the others: the encoder, and how it is used (§3.3)."""
        self._check_fitted()
        if self.split == "columns":
            raise UsageError("parties that split the columns keep their encoders: there is nothing to publish.")
        shared = {name: tensor.numpy() for name, tensor in self._networks.encoders[0].state_dict().items()}
        params = {name: value for name, value in self.stored_params().items() if name not in _EACH_FOR_ITSELF}
        return Published(params, public_schema(self.schema_), shared)

    @classmethod
    def join(
        cls,
        published: Published,
        data: Dataset,
        *,
        lam: str | Sequence[float] = "",
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> Self:
        """A further party: the published encoder, and a substitute decoder and attribute networks of its own."""
        published.check(data.schema, data.name)
        party = cls(**cls.published_params(published.params), lam=lam, seed=seed)
        party._check_params()
        check_records(data.x, data.schema, data.name)
        party.schema_ = data.schema
        party._build(data.schema)
        encoder = party._networks.encoders[0]
        encoder.load_state_dict(published.weights(encoder.state_dict()))
        if party.variant == "published":
            party._train(party._protecting_stages(data), None, progress)
        party._settle()
        return party

    @classmethod
    def published_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that come with an encoder, if they are those that ``publish`` sends and of their kinds."""
        known = {name: value for name, value in cls.parameters().items() if name not in _EACH_FOR_ITSELF}
        check_settings(params, known)
        if params["split"] != "rows":
            raise odd_setting("split")
        return dict(params)

    def hold_secret(self, secret: bytes) -> Self:
        """Use this party's own secret instead of the one that ``SFUMATO_DEVICE_SECRET`` names."""
        check_secret(secret)
        self._secret = secret
        return self

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return self._release_from(x, private, randomness, Origin(x))

    def _release_from(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> FloatArray:
        secret, nonces = self._release_secret(randomness), origin.nonces
        if self.split == "columns":  # each has the nonces of whole records: few values of its own tell nobody apart
            shares = [self._share(place, x, nonces, secret) for place in range(self.parties)]
            return np.concatenate(shares, axis=1)  # w = concat(ẑ₁ … ẑ_K), §4.4.2
        payload = np.empty((len(x), self.width), dtype=np.float32)
        for place in range(min(self.parties, len(x))):
            own = slice(place, None, self.parties)
            payload[own] = self._share(place, x[own], nonces[own], secret)
        return payload

    def _share(self, place: int, x: FloatArray, nonces: Hashes, secret: bytes) -> FloatArray:
        # by rows the parties of one run have one encoder: a record's noise must not depend on where it stands
        once = self.variant == "hardened" and self.split == "rows"
        own = secret if once else derived(secret, "party", place)
        records = self._networks.block(place).take(x)
        party = self.parties_[place]
        if self.variant == "hardened":
            schema = self.schema_  # the encoder of records that were scaled otherwise is another one
            scaled = derived(own, "scaled", schema.kind, schema.shape, schema.ranges, schema.columns, schema.audio)
            return party.hardened(records, nonces, scaled, self.epsilon)
        return party.published(records, own, self.defence_)

    def _release_secret(self, randomness: Randomness) -> bytes:
        if not self.keyed or not isinstance(randomness, Secure):
            return drawn_secret(randomness)
        if not self._secret:
            self._secret = device_secret()
        return self._secret

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        """The same again if ``keyed``; else other masks and noise every time."""
        if self.keyed:
            return (self.transform(data.x, origin=data.origin, seed=seed, name=data.name),) * times
        seeds = (derive_seed(seed, number) for number in range(times))
        return tuple(self.transform(data.x, origin=data.origin, seed=each, name=data.name) for each in seeds)

    def same_device(self, *, seed: int) -> Query | None:
        if not self.keyed:
            return None
        return lambda data: self.transform(data.x, origin=data.origin, seed=seed, name=data.name)

    def secrets(self, data: Dataset, *, seed: int) -> dict[str, FloatArray]:
        """The mask of each record's party, (N, h), by columns those of all parties, (N, K·h); nothing without masks."""
        if self.variant == "hardened":
            return {}
        secret = drawn_secret(Seeded(seed))
        rows = [
            party.mask(derived(secret, "party", place), self.latent, self.masked)
            for place, party in enumerate(self.parties_)
        ]
        turns = [np.concatenate(rows)] if self.split == "columns" else rows
        return {"mask": np.stack(turns)[np.arange(len(data)) % self.turns]}

    @property
    def turns(self) -> int:
        return 1 if self.split == "columns" else self.parties

    def participant(self, data: Dataset, *, seed: int) -> Participant | None:
        """By columns the attacker stands in for every party, with substitutes of its own beside their encoders."""
        if self.variant == "hardened":
            return None
        other = self._stand_in(data, seed)
        parties = [
            replace(own, attributes=_towards_the_same(own, victims))
            for own, victims in zip(other.parties_, self.parties_, strict=False)  # by rows it is one party
        ]

        def share(own: Dataset, masks: FloatArray) -> FloatArray:
            held = zip(parties, other.blocks_, np.split(masks, len(parties), axis=1), strict=True)
            shares = [party.perturbed(block.take(own.x), mask, other.defence_) for party, block, mask in held]
            return np.concatenate(shares, axis=1)

        return share

    def _stand_in(self, data: Dataset, seed: int) -> Self:
        """The same encoders, with substitute decoders and attribute networks learnt from ``data``."""
        lam = self.lam if data.private else ""
        if self.split == "rows":
            return self.join(self.publish(), data, lam=lam, seed=seed)
        other = type(self)(**{**self.get_params(), "lam": lam, "seed": seed})
        other.schema_ = data.schema
        other._build(data.schema)
        for own, theirs in zip(other._networks.encoders, self._networks.encoders, strict=True):
            own.load_state_dict(theirs.state_dict())
        other._train(other._protecting_stages(data), None, no_progress)
        other._settle()
        return other

    def halves(self) -> Halves:
        """Of one party: what the initiator publishes, with this run's defence."""
        if len(self.blocks_) > 1:
            raise UsageError(
                f"{self.name}: with split=columns each party keeps an encoder of its own, and no device has a whole "
                "record: export a run with split=rows."
            )
        party, schema = self.parties_[0], self.schema_
        if self.variant == "published":
            return published_halves(party, schema, self.width, self.defence_, keyed=self.keyed)
        tasks = self._networks.adversaries[0].tasks
        return hardened_halves(party, schema, tasks, self.width, self.epsilon, keyed=self.keyed)

    def check_writing(self, *, again: bool = False) -> None:
        if self.keyed:
            check_secret_file(
                "a second release of these records would have another mask and other noise, and the two together say "
                "more than one."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_secret": b""}  # a copy in another process is another party

    def guarantee(self) -> Guarantee:
        if self.variant == "published":
            return empirical(
                "Adversarial noise against one substitute decoder, under a secret mask. Nothing is proven, and whoever "
                "learns the mask or trains over many masks undoes much of it: read the mask-agnostic and mask-known "
                "attacks of the audit. epsilon is a size of noise, no privacy budget."
            )
        return empirical(
            "Latents that were trained to serve the named utility labels alone, with random noise. Nothing is proven: "
            "what they reveal is what the attacks of the audit measured. epsilon is a size of noise, no privacy budget."
        )

    def public_encoder(self) -> nn.Module:
        """By columns the parties keep their encoders, but whoever may query can learn them: attackers have them."""
        encoders = self._networks.encoders
        return encoders[0] if len(self.blocks_) == 1 else SideBySide(self.blocks_, encoders).eval()

    def _modules(self) -> dict[str, nn.Module]:
        return self._networks.modules()

    def stored_params(self) -> dict[str, Any]:
        return {**super().stored_params(), "lam": ",".join(f"{each:g}" for each in given_weights(self.lam))}


def _towards_the_same(own: SharingParty, victims: SharingParty) -> dict[str, tuple[nn.Module, int]]:
    """Its own attribute networks, with the victims' r_k: one of a few classes is no secret."""
    return {
        label: (network, victims.attributes[label][1] if label in victims.attributes else wanted)
        for label, (network, wanted) in own.attributes.items()
    }
