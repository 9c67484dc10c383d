"""The initiator's own copy of the encoder that it published: it need not be sent back to it."""

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
    """The same encoder with weights that fit into 16 bits; everyone uses it, the initiator too."""
    with np.errstate(over="ignore"):
        tensors = {name: restored(halved(np.asarray(values))) for name, values in encoder.tensors.items()}
    if not all(np.isfinite(values).all() for values in tensors.values()):
        raise UsageError("the encoder's weights do not fit into 16 bits: use wire=float32.")
    return Published(encoder.params, encoder.schema, tensors)


def has_encoder(folder: Path) -> bool:
    """Whether this party published an encoder in this run."""
    return (folder / ABOUT).is_file()


def keep_encoder(folder: Path, encoder: Published) -> None:
    """Write the encoder down; ``published.json`` comes last."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / WEIGHTS, {name: torch.from_numpy(values) for name, values in encoder.tensors.items()})
    about = {"params": dict(encoder.params), "schema": dict(encoder.schema), "digest": encoder.digest}
    write_json(folder / ABOUT, about)


def kept_encoder(folder: Path) -> Published:
    """What ``keep_encoder`` wrote."""
    if not has_encoder(folder):
        raise MessageRefused("there is no encoder in the message, and this party published none")
    about = read_json(folder / ABOUT)
    tensors = {name: tensor.numpy() for name, tensor in read_tensors(folder / WEIGHTS).items()}
    return Published(about["params"], about["schema"], tensors)
