"""``phase``: a network whose cloud part works on rotated features (Xiang, Ma, Zhang, Zhang and Zhang).

The device hides its feature in a secret rotation of a d-tuple, the cloud computes on it without the key, the device
turns the answer back. d = 2 is the paper's complex-valued network.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import UsageError
from sfumato.core.guarantee import SECURE_NOISE, Condition, Covers, Guarantee, empirical
from sfumato.core.knowledge import Opened
from sfumato.core.origin import Origin
from sfumato.core.ports import CompanyRule, Port
from sfumato.core.randomness import Randomness, Secure, Seeded, derive_seed
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.device_secret import check_secret_file, device_secret, drawn_secret, secret_file, secret_path
from sfumato.mechanisms.halves import Half, Halves, payload_port, record_port, sent
from sfumato.mechanisms.halves.shipped_networks import Turned, TurnedBack
from sfumato.mechanisms.parameters import choice, flag, learning_rate, number, whole
from sfumato.mechanisms.phase import Each, NotEquivariant, to_phase
from sfumato.mechanisms.phase.arrangement import Arrangement
from sfumato.mechanisms.phase.companies import Companies, check_companies_file, companies_of, encoded_terms
from sfumato.mechanisms.phase.critic_game import CriticSchedule, Networks, PhaseGame, critic_network
from sfumato.mechanisms.phase.cut import CutNetwork, generator, widen
from sfumato.mechanisms.phase.device import Cloud, Device, encode
from sfumato.mechanisms.phase.keys import hide, turn
from sfumato.mechanisms.phase.layers import PhaseMaxPool
from sfumato.mechanisms.record_checks import check_records
from sfumato.mechanisms.search_space import KnobRange, SearchSpace
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches
from sfumato.nets.unet import map_decoder

_AT_ONCE = 4096

Variant = Literal["exchangeable", "published"]


class Phase(CutNetwork):
    """Rotated features.

    ``exchangeable``: keys from O(d), reflections included, and the records of a batch as each other's decoys: which
    of its d rows is the record stays at 1/d. ``published``: keys from SO(d) and a critic (Eqs. 8–9); nothing is
    proven for it, and the audit reads it.

    The network is cut at the named modules ``encrypt_to`` and ``decrypt_from``; the cloud runs what lies between.
    """

    name = "phase"
    serves_numbers = False  # only classes are read from what comes back encrypted
    knob = "d"
    searched = (
        SearchSpace(
            "messages",
            against=("attribute", "reconstruction", "result", "row"),
            knobs={"d": KnobRange(2, 4, whole=True)},
            starts=({"d": 2}, {"d": 4}),
            promise="anonymity",
        ),
    )
    spare = ("critic", "inverter")

    d: int = whole(default=2, low=2, high=16, help="rows of a message: the record and d − 1 decoys")
    variant: Variant = choice(
        default="exchangeable", options=get_args(Variant), help="proven 1/d, or the paper's scheme"
    )
    keyed: bool = flag(default=True, help="decoys follow from secret and record; false: drawn afresh")
    channels: int = whole(default=0, low=0, high=4096, help="K of the added generator; 0: as at the cut")
    k: int = whole(default=4, low=2, high=64, help="tuples that the critic compares: one real, k − 1 turned (Eq. 8)")
    critic: float = number(default=1.0, low=0.0, high=1000.0, help="weight of the critic's loss (published only)")
    critic_steps: int = whole(default=5, low=1, high=100, help="steps of the critic for each one of the network")
    critic_rate: float = learning_rate(default=5e-5, help="learning rate of the critic")
    lam: float = number(default=1.0, low=0.0, high=1.0, help="below 1, ran's objective joins the encryption module")

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, hides_result=True, rows_per_message=self.d, smallest_batch=self.d)

    def _check_params(self) -> None:
        super()._check_params()
        if self.batch < 2 * self.d:
            raise UsageError(f"phase: a batch of {self.batch} holds less than two groups of d = {self.d}: raise batch.")

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, "phase", "weights"))
        thirds = self._thirds(schema)
        channels = self.channels or thirds.features[0]
        try:
            middle = to_phase(thirds.middle, channels=thirds.features[0])
        except NotEquivariant as error:
            raise UsageError(f"phase: the cloud's part of the network cannot be converted. {error}") from None
        narrow = channels != thirds.features[0]
        self.encoder_ = channels_last(nn.Sequential(thirds.head, generator(thirds.features, channels)))
        self.cloud_ = channels_last(
            nn.Sequential(Each(widen(thirds.features, channels)), middle) if narrow else nn.Sequential(middle)
        )
        self.decoder_ = channels_last(thirds.tail)
        row = self.row_shape_ = (channels, *thirds.features[1:])  # one row of a message
        fights = self.variant == "published" and self.critic > 0.0
        self.critic_: nn.Module | None = critic_network(row) if fights else None
        inverts = self.lam < 1.0
        self.inverter_: nn.Module | None = channels_last(map_decoder(row, schema.shape, 32)) if inverts else None
        self._companies: Companies | None = None

    def _game(self) -> PhaseGame:
        networks = Networks(self.encoder_, self.cloud_, self.decoder_, self.critic_, self.inverter_)
        schedule = CriticSchedule(self.critic_steps, self.critic_rate, self.k)
        task = self._task(self.schema_)
        return PhaseGame(networks, task, schedule, d=self.d, critic=self.critic, lam=self.lam, rate=self.rate)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return self._release_from(x, private, randomness, Origin(x))

    def _release_from(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> FloatArray:
        return self._open(x, origin, randomness, self._arrangement(self._kept(randomness))).payload

    def _open(self, x: FloatArray, origin: Origin, randomness: Randomness, arrangement: Arrangement) -> Opened:
        """Who stands with whom, the features, the keys: everything that makes a release."""
        with arrangement.of(x, origin, randomness) as seats:
            features = encode(self.encoder_, seats.everyone, randomness)
            payload, keys = hide(features, seats.rows, randomness, reflections=self.variant == "exchangeable")
        return Opened(payload, keys, seats.positions)

    def _arrangement(self, companies: Companies | None, pool: Dataset | None = None) -> Arrangement:
        return Arrangement(self.d, self.schema_, companies, self.variant == "exchangeable", pool)

    def _kept(self, randomness: Randomness) -> Companies | None:
        """The device's companies for real releases; experiments and ``keyed`` = false have passing ones."""
        return self._own_companies() if self.keyed and isinstance(randomness, Secure) else None

    def _own_companies(self) -> Companies:
        """Of this device: never part of the run folder."""
        if self._companies is None:
            self._companies = companies_of(device_secret(), secret_path())
        return self._companies

    @contextmanager
    def whole(self, x: FloatArray, origin: Origin, folder: Path) -> Iterator[Iterator[FloatArray]]:
        """Payloads of a whole file, a few records at a time; features wait in a nameless file in ``folder``.

        Who stands with whom is kept when the block ends well.
        """
        randomness, reflections = Secure(), self.variant == "exchangeable"
        arrangement = self._arrangement(self._kept(randomness))
        with tempfile.TemporaryFile(dir=folder) as file, arrangement.of(x, origin, randomness) as seats:
            space = np.memmap(file, np.float32, "w+", shape=(len(x), *self.row_shape_))
            features = encode(self.encoder_, seats.everyone, randomness, space)
            yield (
                hide(features, seats.rows[start : start + _AT_ONCE], randomness, reflections=reflections)[0]
                for start in range(0, len(x), _AT_ONCE)
            )

    def secrets(self, data: Dataset, *, seed: int) -> dict[str, FloatArray]:
        return {"key": self.opened(data, seed=seed).key}

    def opened(self, data: Dataset, *, seed: int) -> Opened:
        return self.visits([data], seed=seed)[0]

    def visits(self, batches: Sequence[Dataset], *, pool: Dataset | None = None, seed: int) -> tuple[Opened, ...]:
        """What one device makes of these batches, one after the other; with ``pool``, of each record alone.

        Fresh keys each time; company stays, if it is ``keyed``.
        """
        self._check_fitted()
        for batch in (*batches, *(() if pool is None else (pool,))):
            check_records(batch.x, self.schema_, batch.name)
        draws = [Seeded(seed), *(Seeded(derive_seed(seed, place)) for place in range(1, len(batches)))]
        stays = self.keyed or pool is not None
        arrangement = self._arrangement(Companies(drawn_secret(draws[0]), strict=False) if stays else None, pool)
        opened = (
            self._open(batch.x, batch.origin, draw, arrangement) for batch, draw in zip(batches, draws, strict=True)
        )
        return tuple(opened)

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        """Fresh keys each time; the decoys of the same device stay, if they are ``keyed``."""
        return tuple(sent.payload for sent in self.visits([data] * (times + 1), seed=seed)[1:])

    def answer(self, data: Dataset, *, seed: int | None = None) -> FloatArray:
        """The round trip: encrypted, processed by the cloud's network, turned back with the key."""
        self._check_fitted()
        check_records(data.x, self.schema_, data.name)
        randomness = Secure() if seed is None else Seeded(seed)
        arrangement = self._arrangement(self._kept(randomness))
        return self.read(self._open(data.x, data.origin, randomness, arrangement))

    def read(self, sent: Opened, keys: FloatArray | None = None) -> FloatArray:
        answers = forward_in_batches(self.cloud_, as_tensor(sent.payload)).numpy()
        plain = turn(answers, sent.key if keys is None else keys, back=True)[:, 0]
        return forward_in_batches(self.decoder_, as_tensor(np.ascontiguousarray(plain))).numpy()

    def device(self, *, secret: str | Path | None = None, pool: npt.ArrayLike | Dataset | None = None) -> Device:
        """The device half. ``secret`` is the file of the device's secret, as ``sfumato device init`` makes it.

        ``pool`` holds records for decoys, needed to send single records. Who stood with whom is kept beside the
        secret: a decoy never serves two records, and is sent in the company in which it stood. Company from a pool
        always stays, whatever ``keyed`` says.
        """
        self._check_fitted()
        file = None if secret is None else Path(secret)
        companies = self._own_companies() if file is None else companies_of(secret_file(file), file)
        decoys = pool if isinstance(pool, Dataset) else None
        if pool is not None:
            decoys = decoys or Dataset(np.array(pool, dtype=np.float32), self.schema_, name="pool")
            check_records(decoys.x, self.schema_, "pool")
        with torch.inference_mode():
            answer = self.cloud_(torch.zeros(1, self.d, *self.row_shape_))
        return Device(
            self.encoder_,
            self.decoder_,
            self.schema_,
            self.d,
            answer=tuple(answer.shape[2:]),
            reflections=self.variant == "exchangeable",
            arrangement=self._arrangement(companies if self.keyed or decoys else None, decoys),
        )

    def halves(self) -> Halves:
        """Encoder and rotation on the device, the middle in the cloud, and what reads the answer on the device."""
        schema, d, row = self.schema_, self.d, self.row_shape_
        with torch.inference_mode():
            answered = tuple(self.cloud_(torch.zeros(1, d, *row)).shape[2:])
        reflections = self.variant == "exchangeable"
        rows = Port("rows", "int64", (-1, d), source="company")
        key = Port("key", "float32", (-1, d, d), source="drawn", law="orthogonal" if reflections else "rotation")
        payload, answer = payload_port((d, *row)), Port("answer", "float32", (-1, d, *answered))
        scores = Port("scores", "float32", (-1, self._task(schema).width))
        kept = (replace(answer, source="answer"), replace(key, source="kept", law=None))
        pools = any(isinstance(part, PhaseMaxPool) for part in self.cloud_.modules())  # two units of nearly one norm
        return Halves(
            device=Half(Turned(self.encoder_, row), (record_port(schema, "records"), rows, key), payload),
            cloud=Half(self.cloud_, (sent(payload),), answer, jump=math.inf if pools else 0.0),
            finish=Half(TurnedBack(self.decoder_, answered), kept, scores),
            labels=self._task(schema).labels,
            company=CompanyRule(d, reflections, reflections, self.keyed, encoded_terms(d, schema).records),
        )

    def cloud(self) -> Cloud:
        """The cloud half."""
        self._check_fitted()
        return Cloud(self.cloud_, self.d, self.row_shape_)

    def check_writing(self, *, again: bool = False) -> None:
        if self.keyed:
            check_secret_file(
                "a second release of these records would have other decoys, and the two together give every record "
                "away."
            )
        file = secret_path()
        if self.keyed and self.variant == "exchangeable" and again and file is not None:
            check_companies_file(file)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_companies": None}  # a copy in another process is another device

    def public_encoder(self) -> nn.Module:
        return self.encoder_

    def public_cloud(self) -> nn.Module:
        return self.cloud_

    def _modules(self) -> dict[str, nn.Module]:
        modules = {"encoder": self.encoder_, "cloud": self.cloud_, "decoder": self.decoder_}
        fighters = {"critic": self.critic_, "inverter": self.inverter_}
        return modules | {name: module for name, module in fighters.items() if module is not None}

    def guarantee(self) -> Guarantee:
        if self.variant == "published":
            return empirical(
                "The feature is turned by a secret rotation and was trained against one critic, as published. Nothing "
                "is proven: a rotation keeps orientation, which tells the record from its decoys."
            )
        return Guarantee(
            kind="anonymity",
            statement=(
                f"Which of the {self.d} rows of a message is the record cannot be told better than by guessing, by "
                "any attacker of any strength: keys are Haar on O(d), so the message shows the set of rows and no "
                f"order. It does not hide the set: whoever may name {self.d} candidates names the record."
            ),
            anonymity=1.0 / self.d,
            conditions=self._conditions(),
            covers=Covers(repeats=self.keyed, later=self.keyed),
        )

    def _conditions(self) -> tuple[Condition, ...]:
        return (
            SECURE_NOISE,
            *(_KEPT if self.keyed else (_ONCE,)),
            Condition(
                "different", "the d records of a message differ, and copies of a record stand in different groups", True
            ),
            Condition("alike", "before the release the attacker could not tell the records of a group apart"),
            Condition(
                "nothing-beside",
                "nothing that travels beside the message, such as a label or an answer, tells its rows apart",
            ),
            Condition("secrets-stay", "keys and the device's secret stay on the device"),
        )


_ONCE = Condition(
    "company", "no record is ever sent twice: decoys are drawn afresh, and two messages of one record meet in it"
)
_KEPT = (
    Condition(
        "company",
        "a record that is sent again under this secret stands in the company in which it stood, whatever the batch, "
        "the order or the fit, and a decoy too; with another d or other columns nothing is sent",
        True,
    ),
    Condition(
        "one-device",
        "a record keeps its values and is sent under one secret only, the file of companies beside it is kept, and "
        "where rows are equal their order or their subjects' ids stay",
    ),
)
