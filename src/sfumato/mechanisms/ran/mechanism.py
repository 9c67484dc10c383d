"""``ran``: reconstructive adversarial network, Algorithm 1 of Liu, Shrivastava, Du and Zhong.

An encoder E is trained for the classifier C and against a decoder D that mirrors it. What leaves is E(x).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.errors import UsageError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.encoder_mechanism import EncoderMechanism
from sfumato.mechanisms.parameters import learning_rate, number, whole
from sfumato.nets.mirror_decoder import NotAChain, mirror
from sfumato.nets.training_loop import channels_last, take_step


class RAN(EncoderMechanism):
    """Features trained by Algorithm 1. The paper gives k; docs/defaults.md has the reason for every other default."""

    name = "ran"
    knob = "lam"

    lam: float = number(
        default=0.1, low=0.0, high=1.0, help="λ of Eq. 4: 0 fights the decoder, 1 serves the classifier"
    )
    k: int = whole(default=3, low=1, high=100, help="discriminative and generative steps for each adversarial one")
    l1: float = learning_rate(default=1e-3, help="learning rate of the discriminative stage (Eq. 2)")
    l2: float = learning_rate(default=1e-3, help="learning rate of the generative stage (Eq. 3)")
    l3: float = learning_rate(default=1e-3, help="learning rate of the adversarial stage (Eq. 4)")

    traits = Traits(compared_with="dnn")

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        try:
            self.decoder_ = channels_last(mirror(self.encoder_, schema.shape))
        except NotAChain as error:
            raise UsageError(f"ran: the encoder cannot be mirrored: {error}") from None

    def _game(self) -> _Algorithm1:
        return _Algorithm1(self)

    def guarantee(self) -> Guarantee:
        return empirical(
            "Features were trained against one decoder. Nothing is proven: what they reveal is what the attacks of "
            "the audit measured, and a stronger attacker may read more."
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {**super()._modules(), "decoder": self.decoder_}


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
        O_a = self.lam * entropy - (1 - self.lam) * error  # Eq. 4
        take_step(self.optimisers["a"], O_a)
        return {"O_d": O_d.item(), "O_g": O_g.item(), "O_a": O_a.item()}
