"""One party: encoder, substitute decoder, attribute networks, and the noise it makes with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from sfumato.core.dataset import FloatArray
from sfumato.core.origin import Hashes
from sfumato.core.randomness import DoubleArray
from sfumato.mechanisms.ars.fgsm import against_decoder, towards_class
from sfumato.mechanisms.ars.published_encoder import digest_of
from sfumato.mechanisms.device_secret import derived, keyed_normal, secret_bits
from sfumato.nets.training_loop import as_tensor, forward_in_batches


@dataclass(frozen=True)
class Defence:
    """How records are protected: ε, n of Eq. 9, λ₀ and λ_k of Eq. 15, whether Eq. 12's mask is used."""

    epsilon: float
    n: int
    weights: tuple[float, ...]
    masked: bool


@dataclass(frozen=True)
class SharingParty:
    """``encoder`` gives standardised latents (N, h). ``attributes`` are F_k by label, with the class r_k of each."""

    encoder: nn.Module
    substitute: nn.Module | None = None
    attributes: Mapping[str, tuple[nn.Module, int]] = field(default_factory=dict)

    def latents(self, x: FloatArray) -> FloatArray:
        """Enc(x), (N, h)."""
        return forward_in_batches(self.encoder, as_tensor(x)).numpy()

    def mask(self, secret: bytes, h: int, masked: bool) -> FloatArray:
        """m of Eq. 12, (h,): each dimension 0 or 1 with equal chance, the same for all records of the party."""
        return secret_bits(derived(secret, "mask"), h) if masked else np.ones(h, dtype=np.float32)

    def perturbed(self, x: FloatArray, masks: FloatArray, defence: Defence) -> FloatArray:
        """ẑ = z + λ₀δ_R + Σ λ_k δ_{A_k} (Eq. 15) with one mask a record, (N, h)."""
        assert self.substitute is not None
        latents = self.latents(x)
        z, records = torch.as_tensor(latents), as_tensor(x)
        lam_0, *rest = defence.weights
        delta = torch.zeros_like(z)
        if lam_0 > 0.0:
            moved = against_decoder(self.substitute, z, records, torch.as_tensor(masks), defence.epsilon, defence.n)
            delta = lam_0 * (moved - z)
        for lam_k, (network, wanted) in zip(rest, self.attributes.values(), strict=True):
            delta = delta + lam_k * towards_class(network, z, wanted, defence.epsilon)
        return np.asarray((z + delta).numpy(), dtype=np.float32)

    def published(self, x: FloatArray, secret: bytes, defence: Defence) -> FloatArray:
        """The paper's release: a function of the records and of the party's mask."""
        h = self.latents(x[:1]).shape[1]
        return self.perturbed(x, np.tile(self.mask(secret, h, defence.masked), (len(x), 1)), defence)

    def hardened(self, x: FloatArray, nonces: Hashes, secret: bytes, epsilon: float) -> FloatArray:
        """Latents that serve the tasks alone, with random noise of ε standard deviations that nothing can undo.

        The noise follows from secret, nonce, encoder and ε. Were it the same under another encoder or ε, two releases
        would be two equations for latent and noise; were it the same for all copies of a record, payloads could be
        counted.
        """
        z = self.latents(x)
        encoder = digest_of({name: tensor.numpy() for name, tensor in self.encoder.state_dict().items()})
        noise = keyed_normal(nonces, derived(secret, "noise", encoder, float(epsilon)), z.shape[1])
        return _rounded(z + epsilon * noise, epsilon) if epsilon > 0.0 else z


def rounding_step(epsilon: float) -> float:
    """About ε/1000, a power of two: the last bits of a sum tell what was added, which no noise of this size hides."""
    return 2.0 ** (math.floor(math.log2(epsilon)) - 10)


def _rounded(values: DoubleArray, epsilon: float) -> FloatArray:
    """To steps of about ε/1000."""
    step = rounding_step(epsilon)
    return (np.round(values / step) * step).astype(np.float32)
