"""The initiator's own copy of the encoder it published, so that the server need not send it back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json, read_tensors, write_json, write_tensors
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.parties.message_checks import MessageRefused
from sfumato.parties.wire_precision import halved, restored

ABOUT = "published.json"
WEIGHTS = "encoder.safetensors"


def rounded(encoder: Published) -> Published:
    """Round the encoder's weights to 16 bits. Everyone uses the rounded encoder, including the initiator."""
    with np.errstate(over="ignore"):
        tensors = {name: restored(halved(np.asarray(values))) for name, values in encoder.tensors.items()}
    if not all(np.isfinite(values).all() for values in tensors.values()):
        raise UsageError("the encoder's weights do not fit into 16 bits: use wire=float32.")
    return Published(encoder.params, encoder.schema, tensors)


def has_encoder(folder: Path) -> bool:
    """Return whether this party published an encoder in this run."""
    return (folder / ABOUT).is_file()


def keep_encoder(folder: Path, encoder: Published) -> None:
    """Store the encoder; ``published.json`` is written last and marks it as complete."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / WEIGHTS, {name: torch.as_tensor(values) for name, values in encoder.tensors.items()})
    about = {"params": dict(encoder.params), "schema": dict(encoder.schema), "digest": encoder.digest}
    write_json(folder / ABOUT, about)


def kept_encoder(folder: Path) -> Published:
    """Read what ``keep_encoder`` stored."""
    if not has_encoder(folder):
        raise MessageRefused("the message has no encoder, and this party did not publish one")
    about = read_json(folder / ABOUT)
    tensors = {name: tensor.numpy() for name, tensor in read_tensors(folder / WEIGHTS).items()}
    return Published(about["params"], about["schema"], tensors)
