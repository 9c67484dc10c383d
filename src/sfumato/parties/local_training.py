"""Federated averaging at a party: a small classifier trained on raw records, which never leave the party."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from sfumato.core.dataset import Dataset
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.parties.party_folder import PartyFolder

if TYPE_CHECKING:
    from torch import nn


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
    config: Any = message.content["config"]
    model, data = _model(message, party), party.records("train")
    x, y = _tensors(data)
    number = int(config["server-round"])
    optimiser = torch.optim.SGD(model.parameters(), float(config["rate"]), momentum=0.9)
    generator = torch.Generator().manual_seed(party.seed_for("fedavg", number))
    for _ in range(int(config["epochs"])):
        for rows in torch.split(torch.randperm(len(x), generator=generator), int(config["batch"])):
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


def _model(message: Message, party: PartyFolder) -> nn.Sequential:
    model = classifier(*shape_of(party.schema), seed=0)
    arrays: Any = message.content["arrays"]
    model.load_state_dict(arrays.to_torch_state_dict())
    return model


def _tensors(data: Dataset) -> tuple[Any, Any]:
    import torch

    labels = next(iter(data.utility.values()))
    return torch.from_numpy(np.array(data.x)), torch.from_numpy(np.array(labels))
