"""``ran``: reconstructive adversarial network, Algorithm 1 of Liu, Shrivastava, Du and Zhong.

An encoder E is trained for the classifier C and against a decoder D. What leaves is E(x).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import UsageError, unknown
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.encoder_mechanism import EncoderMechanism
from sfumato.mechanisms.parameters import anything, learning_rate, number, whole
from sfumato.mechanisms.search_space import KnobRange, SearchSpace
from sfumato.nets.encoders import output_shape
from sfumato.nets.mirror_decoder import NotAChain, mirror
from sfumato.nets.residual_decoder import residual_decoder
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches, take_step

Shape = tuple[int, ...]
Adversary = str | nn.Module | Callable[[Shape, Shape], nn.Module]
"""A provided name, the user's own module, or a function of the features' and the record's shape that makes one."""
_ADVERSARIES = ("auto", "mirror", "residual")


class RAN(EncoderMechanism):
    """Features trained by Algorithm 1. The paper gives k; docs/defaults.md has the reason for every other default.

    ``lam`` weighs means over a record's numbers, the paper's λ weighs sums: ``papers_lambda`` converts.
    """

    name = "ran"
    knob = "lam"
    searched = (
        SearchSpace(
            "features",
            against=("reconstruction",),
            knobs={"lam": KnobRange(0.005, 0.5, log=True)},
            starts=({"lam": 0.1}, {"lam": 0.02}),
        ),
    )

    lam: float = number(
        default=0.1,
        low=0.0,
        high=1.0,
        help="λ of Eq. 4 with the mean error of a record: 0 fights the decoder, 1 serves the classifier",
    )
    k: int = whole(default=3, low=1, high=100, help="discriminative and generative steps for each adversarial one")
    l1: float = learning_rate(default=1e-3, help="learning rate of the discriminative stage (Eq. 2)")
    l2: float = learning_rate(default=1e-3, help="learning rate of the generative stage (Eq. 3)")
    l3: float = learning_rate(default=1e-3, help="learning rate of the adversarial stage (Eq. 4)")

    decoder: Adversary = anything(
        default="auto",
        help="adversary: auto (mirror, or residual where the encoder has none), mirror, residual, or an nn.Module of "
        "your own (Python only)",
    )

    traits = Traits(compared_with="dnn")

    def _check_params(self) -> None:
        super()._check_params()
        if isinstance(self.decoder, str):
            if self.decoder not in _ADVERSARIES:
                raise unknown("decoder of ran", self.decoder, _ADVERSARIES)
        elif not callable(self.decoder):
            raise UsageError(f"{self.name}: decoder must be a text or a network, got {self.decoder!r}.")

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        features = output_shape(self.encoder_, schema.shape)
        self.decoder_ = channels_last(self._make_decoder(features, schema.shape))
        try:
            found = output_shape(self.decoder_, features)
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"ran: the decoder cannot take features of shape {features} ({error}).") from None
        if found != schema.shape:
            raise UsageError(f"ran: the decoder makes records of shape {found}, the data have {schema.shape}.")

    def _make_decoder(self, features: Shape, record: Shape) -> nn.Module:
        """The mirror of the encoder, a residual decoder for any payload, or the user's own."""
        if isinstance(self.decoder, nn.Module):
            return copy.deepcopy(self.decoder)
        if not isinstance(self.decoder, str):
            return self.decoder(features, record)
        if self.decoder == "custom":
            raise UsageError("this run's decoder is your own: RAN.load(folder, decoder=…).")
        if self.decoder != "residual":
            try:
                return mirror(self.encoder_, record)
            except NotAChain as error:
                if self.decoder == "mirror":
                    raise UsageError(
                        f"ran: the encoder cannot be mirrored: {error} Give decoder='residual' or one of your own."
                    ) from None
        return residual_decoder(features, record)

    def _game(self) -> _Algorithm1:
        return _Algorithm1(self)

    def guarantee(self) -> Guarantee:
        return empirical(
            "Features were trained against one decoder. Nothing is proven: what they reveal is what the attacks of "
            "the audit measured, and a stronger attacker may read more."
        )

    def decode(self, payload: FloatArray) -> FloatArray:
        """What D makes of it: whoever trained the network, in the paper the service, has D as well."""
        return forward_in_batches(self.decoder_, as_tensor(payload)).clamp(0.0, 1.0).numpy()

    def _modules(self) -> dict[str, nn.Module]:
        return {**super()._modules(), "decoder": self.decoder_}

    def stored_params(self) -> dict[str, Any]:
        own = not isinstance(self.decoder, str)
        return {**super().stored_params(), **({"decoder": "custom"} if own else {})}


class _Algorithm1:
    """The three stages, each with its own Adam."""

    def __init__(self, ran: RAN) -> None:
        self.E, self.C, self.D = ran.encoder_, ran.classifier_, ran.decoder_
        self.lam, self.k = ran.lam, ran.k
        self.task = ran._task(ran.schema_)
        encoder_and_classifier = [*self.E.parameters(), *self.C.parameters()]
        self.optimisers = {
            "d": torch.optim.Adam(encoder_and_classifier, ran.l1),
            "g": torch.optim.Adam(self.D.parameters(), ran.l2),
            "a": torch.optim.Adam(encoder_and_classifier, ran.l3),
        }

    def play(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Lines 3 to 8 of Algorithm 1 for the mini-batch I = ``x``."""
        for _ in range(self.k):
            O_d = self.task.loss(self.C(self.E(x)), y)  # Eq. 2
            take_step(self.optimisers["d"], O_d)
            with torch.no_grad():
                features = self.E(x)
            O_g = F.mse_loss(self.D(features), x)  # Eq. 3, as a mean over the record
            take_step(self.optimisers["g"], O_g)
        features = self.E(x)
        entropy = self.task.loss(self.C(features), y)
        error = F.mse_loss(self.D(features), x)
        O_a = self.lam * entropy - (1 - self.lam) * error  # Eq. 4, with the mean error of a record
        take_step(self.optimisers["a"], O_a)
        return {"O_d": O_d.item(), "O_g": O_g.item(), "O_a": O_a.item()}
