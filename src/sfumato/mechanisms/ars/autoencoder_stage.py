"""The autoencoder whose encoder the initiator publishes (Eq. 5), as a stage of training."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.ars.training_stages import TrainingStage
from sfumato.nets.autoencoders import standardise, unstandardised
from sfumato.nets.training_loop import adam, forward_in_batches, take_step


def autoencoder_stage(name: str, encoder: nn.Sequential, decoder: nn.Module, x: Tensor, rate: float) -> TrainingStage:
    """Eq. 5: encoder and decoder minimise the squared error; then latents are standardised."""
    raw = unstandardised(encoder)
    optimiser = adam([*raw.parameters(), *decoder.parameters()], rate)

    def play(rows: Tensor) -> dict[str, float]:
        error = F.mse_loss(decoder(raw(x[rows])), x[rows])
        take_step(optimiser, error)
        return {"reconstruction": error.item()}

    def end() -> None:
        standardise(encoder, forward_in_batches(raw, x))

    return TrainingStage(name, len(x), {"adam": optimiser}, lambda: play, end)
