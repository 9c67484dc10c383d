"""Federated averaging at a party: a small classifier trained on raw records, which never leave the party."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from sfumato.core.dataset import Dataset
from sfumato.core.errors import check_range
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.parties.message_checks import bounded, check_keys, plain_array
from sfumato.parties.party_folder import PartyFolder

if TYPE_CHECKING:
    from torch import nn


ASKED = {"server-round": (1, 10_000), "epochs": (1, 100), "batch": (1, 65_536), "rate": (1e-6, 1.0)}
"""What a server may ask for in a round."""


def classifier(size: int, classes: int, seed: int) -> nn.Sequential:
    """Return a network with one hidden layer of 128 units on the flattened record (784 – 128 – 10 for digits)."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, classes))


def shape_of(schema: Schema) -> tuple[int, int]:
    """Return the numbers per record and the classes of the first utility label."""
    return schema.size, len(next(iter(schema.utility.values())))


def train(message: Message, party: PartyFolder) -> RecordDict:
    """Train from the received weights with SGD; return the new weights and the number of records."""
    import torch
    from torch.nn import functional as F

    party.check_mode("fedavg")
    asked = _settings(message)
    model, data = _model(message, party), party.records("train")
    x, y = _tensors(data)
    optimiser = torch.optim.SGD(model.parameters(), asked["rate"], momentum=0.9)
    generator = torch.Generator().manual_seed(party.seed_for("fedavg", int(asked["server-round"])))
    for _ in range(int(asked["epochs"])):
        for rows in torch.split(torch.randperm(len(x), generator=generator), int(asked["batch"])):
            optimiser.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    arrays = ArrayRecord({name: tensor.detach() for name, tensor in model.state_dict().items()})
    return RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": len(x), "one": 1})})


def evaluate(message: Message, party: PartyFolder) -> RecordDict:
    """Return the accuracy on the party's own held-out records."""
    import torch

    party.check_mode("fedavg")
    model, data = _model(message, party), party.records("test")
    x, y = _tensors(data)
    with torch.no_grad():
        right = float((model(x).argmax(1) == y).float().mean())
    return RecordDict({"metrics": MetricRecord({"accuracy": right, "num-examples": len(x), "one": 1})})


def first_arrays(size: int, classes: int, seed: int) -> ArrayRecord:
    """Return the initial weights."""
    model = classifier(size, classes, derive_seed(seed, "fedavg", "weights"))
    return ArrayRecord(model.state_dict())


def _settings(message: Message) -> dict[str, float]:
    """Return what the server asks for, if it is in ``ASKED``."""
    config: Any = message.content["config"]
    for name, (low, high) in ASKED.items():
        check_range("fedavg", name, config[name], low, high)
    return {name: float(config[name]) for name in ASKED}


def _model(message: Message, party: PartyFolder) -> nn.Sequential:
    import torch

    model = classifier(*shape_of(party.schema), seed=0)
    arrays: Any = message.content["arrays"]
    check_keys(arrays, model.state_dict(), "model")
    weights = {
        name: bounded(plain_array(arrays[name], name, ("float32",), tensor.shape), name)
        for name, tensor in model.state_dict().items()
    }
    model.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in weights.items()})
    return model


def _tensors(data: Dataset) -> tuple[Any, Any]:
    import torch

    labels = next(iter(data.utility.values()))
    return torch.from_numpy(np.array(data.x)), torch.from_numpy(np.array(labels))
