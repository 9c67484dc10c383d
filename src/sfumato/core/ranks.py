"""Several processes that train one fit together, each on its share of every batch (``torchrun``).

Every process holds the same weights: it computes gradients on its share, and all step by their mean. What a network
measures beside its weights, as batch norm does, is measured on each share and then averaged. The first process alone
writes, and speaks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.errors import UsageError
from sfumato.core.randomness import derive_seed

if TYPE_CHECKING:
    from torch import Tensor, nn

FEWEST = 8
"""Records of a batch in each share: batch norm needs several."""
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class ProcessRank:
    """This is process ``rank`` of ``count``."""

    rank: int
    count: int


_together: ContextVar[ProcessRank | None] = ContextVar("ranks", default=None)


def started() -> bool:
    """Whether ``torchrun`` started this process beside others."""
    return all(name in os.environ for name in _NEEDED) and os.environ["WORLD_SIZE"] != "1"


def first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return not started() or os.environ["RANK"] == "0"


def local() -> int:
    """How many of the processes run on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if started() else 1


def own_device(name: str) -> str:
    """The device of this process: of several graphics cards each process has its own."""
    if not started() or name not in ("auto", "cuda"):
        return name
    import torch

    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % cards}" if cards else name


def count() -> int:
    """How many processes train together."""
    ranks = _together.get()
    return 1 if ranks is None else ranks.count


@contextmanager
def joined() -> Iterator[None]:
    """Inside, this process trains together with the others that ``torchrun`` started; without it, alone."""
    if not started():
        yield
        return
    import torch.distributed as dist

    if not dist.is_available():
        raise UsageError("this build of torch cannot train in several processes: start the command without torchrun.")
    dist.init_process_group("gloo")
    token = _together.set(ProcessRank(dist.get_rank(), dist.get_world_size()))
    try:
        yield
        dist.barrier()  # nobody leaves while another one still wants an answer
    finally:
        _together.reset(token)
        dist.destroy_process_group()


def share(rows: Tensor) -> Tensor:
    """This process's part of a batch; all of it, if there is one process."""
    ranks = _together.get()
    return rows if ranks is None else rows.tensor_split(ranks.count)[ranks.rank]


def seed_of(seed: int) -> int:
    """The seed of this process's own noise: the first has that of a fit in one process."""
    ranks = _together.get()
    return seed if ranks is None or ranks.rank == 0 else derive_seed(seed, "rank", ranks.rank)


def averaged(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The mean of each tensor over all processes; the same numbers in each of them."""
    ranks = _together.get()
    if ranks is None or not tensors:
        return tensors
    import torch
    import torch.distributed as dist

    whole = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])  # one message instead of many
    dist.all_reduce(whole)
    parts = torch.split(whole / ranks.count, [tensor.numel() for tensor in tensors])
    return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def level(modules: Sequence[nn.Module]) -> None:
    """Give what networks measured beside their weights the mean over all processes."""
    if _together.get() is None:
        return
    measured = [each for module in modules for each in module.buffers() if each.is_floating_point()]
    for mine, mean in zip(measured, averaged(measured), strict=True):
        mine.copy_(mean)
