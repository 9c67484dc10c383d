"""What a network has learnt, carried over to one that reads more numbers."""

from __future__ import annotations

import torch
from torch import nn


def carry_over(known: nn.Module, network: nn.Module) -> bool:
    """Give ``network`` the weights of ``known``, which has the same layers and reads the first of its numbers.

    The other numbers have no effect yet. False, and nothing is changed, if the networks are of different kinds.
    """
    theirs, ours = known.state_dict(), network.state_dict()
    if theirs.keys() != ours.keys():
        return False
    found = {}
    for name, weight in theirs.items():
        wider = [axis for axis in range(weight.dim()) if weight.shape[axis] != ours[name].shape[axis]]
        if weight.dim() != ours[name].dim() or len(wider) > 1:
            return False
        if not wider:
            found[name] = weight
            continue
        (axis,) = wider
        if weight.shape[axis] > ours[name].shape[axis]:
            return False
        fresh = ours[name].narrow(axis, weight.shape[axis], ours[name].shape[axis] - weight.shape[axis])
        found[name] = torch.cat([weight, torch.zeros_like(fresh) if weight.dim() > 1 else fresh], axis)
    network.load_state_dict(found)
    return True
