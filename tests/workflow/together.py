"""What each of two processes does for ``test_fit_together``: a step on shares, then the command itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn

from sfumato.cli.main import main
from sfumato.core import ranks
from sfumato.nets.training_loop import take_step


def stepped(rows: torch.Tensor) -> list[float]:
    """A linear layer after one step on these rows of sixteen records."""
    torch.manual_seed(0)
    layer, x, y = nn.Linear(3, 2), torch.randn(16, 3), torch.randn(16, 2)
    take_step(torch.optim.SGD(layer.parameters(), 0.1), (layer(x[rows]) - y[rows]).square().mean())
    return [float(value) for parameter in layer.parameters() for value in parameter.detach().flatten()]


def _measured() -> None:
    alone = stepped(torch.arange(16))
    norm = nn.BatchNorm1d(2)
    with ranks.joined():
        found = {"alone": alone, "together": stepped(ranks.share(torch.arange(16))), "processes": ranks.count()}
        norm.running_mean.fill_(float(ranks.share(torch.arange(2))[0]))
        ranks.level([norm])
    Path(sys.argv[1], f"{found['processes']}-{ranks.first()}.json").write_text(
        json.dumps({**found, "level": norm.running_mean.tolist()})
    )


if __name__ == "__main__":
    if len(sys.argv) == 2:  # a group of its own: two after one another would find each other's addresses
        _measured()
    else:
        sys.argv = ["sfumato", *sys.argv[2:]]
        main()
