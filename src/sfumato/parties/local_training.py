"""Federated averaging at a party: a small classifier trained on raw records, which never leave the party."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import check_range
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.parties.message_checks import wire_of
from sfumato.parties.party_folder import PartyFolder
from sfumato.parties.results import write_right
from sfumato.parties.weight_precision import read_weights, weights_record

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


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
    """Train from the received weights; return the new weights (or what changed, see ``weight_precision``)."""
    import torch

    party.check_mode("fedavg")
    asked, wire = _settings(message), _wire(message)
    received, data = _received(message, party), party.records("train")
    model = _loaded(received, party)
    x, y = tensors_of(data)
    number = int(asked["server-round"])
    generator = torch.Generator().manual_seed(party.seed_for("fedavg", number))
    train_locally(model, x, y, int(asked["epochs"]), int(asked["batch"]), asked["rate"], generator)
    trained = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    if wire == "float32":
        arrays = weights_record(trained, wire)
    else:
        change = {name: values - received[name] for name, values in trained.items()}
        arrays = weights_record(change, wire, np.random.default_rng(party.seed_for("fedavg", "wire", number)))
    return RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": len(x), "one": 1})})


def train_locally(
    model: nn.Module, x: Tensor, y: Tensor, epochs: int, batch: int, rate: float, generator: torch.Generator
) -> None:
    """Train with SGD and momentum, as a party does in one round."""
    import torch
    from torch.nn import functional as F

    optimiser = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(x), generator=generator), batch):
            optimiser.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def evaluate(message: Message, party: PartyFolder) -> RecordDict:
    """Return the accuracy on the party's own held-out records; which of them are right stays in its folder."""
    import torch

    party.check_mode("fedavg")
    model, data = _loaded(_received(message, party), party), party.records("test")
    x, y = tensors_of(data)
    with torch.no_grad():
        right = (model(x).argmax(1) == y).numpy()
    write_right(party.out, right, int(message.content["config"]["server-round"]))  # type: ignore[arg-type]
    accuracy = float(np.mean(right))
    return RecordDict({"metrics": MetricRecord({"accuracy": accuracy, "num-examples": len(x), "one": 1})})


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


def _wire(message: Message) -> str:
    """Return the precision of the weights; a server that says nothing sends them as they are."""
    config: Any = message.content.get("config", {})
    return wire_of(config) if "wire" in config else "float32"


def _received(message: Message, party: PartyFolder) -> dict[str, FloatArray]:
    """Return the weights that the server sent, checked."""
    shapes = shapes_of(classifier(*shape_of(party.schema), seed=0))
    return read_weights(message.content["arrays"], _wire(message), shapes)


def _loaded(weights: Mapping[str, FloatArray], party: PartyFolder) -> nn.Sequential:
    import torch

    model = classifier(*shape_of(party.schema), seed=0)
    model.load_state_dict({name: torch.as_tensor(values.copy()) for name, values in weights.items()})
    return model


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a model."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def tensors_of(data: Dataset) -> tuple[Tensor, Tensor]:
    """Return the records and the codes of the first utility label."""
    import torch

    labels = next(iter(data.utility.values()))
    return torch.as_tensor(np.array(data.x)), torch.as_tensor(np.array(labels))
