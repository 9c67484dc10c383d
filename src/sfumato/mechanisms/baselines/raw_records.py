"""Baselines that release the record itself: as it is (``none``) or under Laplace noise (``noisy``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness
from sfumato.core.traits import Traits
from sfumato.mechanisms.encoder_mechanism import PlainNetwork
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.halves.shipped_networks import Added
from sfumato.mechanisms.parameters import flag, number
from sfumato.mechanisms.search_space import KnobRange, SearchSpace
from sfumato.nets.training_loop import as_tensor, forward_in_batches


class Undefended(PlainNetwork):
    """``none``: the raw record leaves, and the service runs the whole network. The control of every attack."""

    name = "none"

    traits = Traits(role="control", unprotected="record")

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return x.copy()

    def predict(self, payload: FloatArray) -> FloatArray:
        features = forward_in_batches(self.encoder_, as_tensor(payload))
        return forward_in_batches(self.classifier_, features).numpy()

    def public_encoder(self) -> None:
        return None

    def halves(self) -> Halves:
        """Nothing on the device, the whole network in the cloud."""
        return plain_halves(nn.Identity(), self._service(), self.schema_, self._task(self.schema_).labels)

    def _service(self) -> nn.Module:
        return nn.Sequential(self.encoder_, self.classifier_)

    def guarantee(self) -> Guarantee:
        return empirical("No defence: the raw records leave.")


class Noisy(Undefended):
    """``noisy``: Laplace noise of scale ``noise`` on records in [0, 1].

    The service's network is trained on noisy records (fresh noise every epoch), with ``clean`` on records without it,
    as the paper of ``ran`` does; that only makes the baseline weaker.
    """

    name = "noisy"
    knob = "noise"
    searched = (
        SearchSpace(
            "records",
            against=("attribute", "reconstruction"),
            knobs={"noise": KnobRange(0.1, 3.0, log=True)},
            starts=({"noise": 0.5}, {"noise": 1.5}),
            cost=0.5,
        ),
    )

    noise: float = number(default=0.5, low=0.0, high=100.0, above_low=True, help="scale of the Laplace noise")
    clean: bool = flag(default=False, help="train the service's network without the noise, as the paper of ran does")

    traits = Traits(role="baseline", randomised=True)

    def _protect(self, x: Tensor, randomness: Randomness) -> Tensor:
        return x if self.clean else x + torch.as_tensor(randomness.laplace(tuple(x.shape), self.noise)).float()

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return x + randomness.laplace(x.shape, self.noise).astype(np.float32)

    def halves(self) -> Halves:
        """The noise on the device, the whole network in the cloud."""
        shape, labels = self.schema_.shape, self._task(self.schema_).labels
        device = Added(nn.Identity(), self.noise)
        return plain_halves(device, self._service(), self.schema_, labels, noise="laplace", width=shape)

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Laplace noise of scale {self.noise:g} on every number of the record. Over a whole record this is far too "
            "little for a meaningful differential-privacy statement, and none is made."
        )
