"""A device that is not the CPU, for machines that have only a CPU.

Its tensors hold real numbers, so whole fits and audits run on it and their figures can be compared with the CPU's. It
is as strict as a graphics card: an operation on tensors of both devices raises, and so does reading its memory as an
array. And stricter: nothing random may be drawn on it, as a seed would mean something else there. Torch sees the device
``meta``, the one other device that every build has and whose tensors are free of code of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

from sfumato.core import compute
from sfumato.core.accelerator import Placement

DEVICE = torch.device("meta")
_RANDOM = torch.Tag.nondeterministic_seeded
_DOUBLES = (torch.float64, torch.complex128)


class WrongDevice(RuntimeError):
    """What a graphics card would not do, or must not."""


class Far(Tensor):
    """A tensor on the second device; its numbers are in ``held``, on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Far:
        far: Far = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=DEVICE,
        )
        far.held = held
        return far

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Far({self.held!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, _types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}), doubles=True)


class _Device(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, *, doubles: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.doubles = doubles

    def __torch_dispatch__(
        self, func: Any, _types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}), doubles=self.doubles)


class _Dispatch(NamedTuple):
    """What is known of an operation before it is called."""

    moves: bool
    draws: bool
    shares: bool


@cache
def _known(func: Any) -> _Dispatch:
    moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    shares = any(each.alias_info is not None for each in (*func._schema.arguments, *func._schema.returns))
    return _Dispatch(moves, _RANDOM in func.tags, shares)


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, doubles: bool) -> Any:
    flat = list(_leaves((args, kwargs)))
    tensors = [each for each in flat if isinstance(each, Tensor)]
    far = any(isinstance(each, Far) for each in tensors)
    aims = [each for each in flat if isinstance(each, torch.device)]
    moves, draws, shares = _known(func)
    if far and not moves and any(not isinstance(each, Far) and each.dim() > 0 for each in tensors):
        raise WrongDevice(f"{func}: tensors of two devices: {[_shown(each) for each in tensors]}.")
    onto = aims[-1] == DEVICE if aims else far
    if onto and draws:
        raise WrongDevice(f"{func} draws on the device: a seed would mean something else there.")
    if any(not isinstance(each, Far) and each.device == DEVICE for each in tensors):
        raise WrongDevice(f"{func}: a tensor without numbers.")
    if not onto and not far:
        return func(*args, **kwargs)
    found = func(*_each(_near, args), **_each(_near, kwargs))
    if not onto:
        return found
    if not doubles and any(isinstance(x, Tensor) and x.dtype in _DOUBLES for x in _leaves(found)):
        raise WrongDevice(f"{func}: this device has no doubles.")
    if func is torch.ops.aten.copy_.default and not isinstance(args[0], Far):
        return args[0]
    inference = torch.is_inference_mode_enabled() and not (shares and not args[0].is_inference())
    with torch.inference_mode(inference):  # a view of an ordinary tensor is one
        out = _each(_far, found)
    if not far or not shares:
        return out  # it has just come here, or shares nothing
    with torch.inference_mode(False):  # which knows no aliases
        return return_and_correct_aliasing(func, args, kwargs, out)  # type: ignore[no-untyped-call]


def _leaves(value: Any) -> Iterator[Any]:
    """Everything in what an operation is given or gives, which holds lists and mappings of names at most."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """The same lists and mappings with every leaf changed."""
    if isinstance(value, (list, tuple)):
        return type(value)([_each(change, each) for each in value])
    if isinstance(value, dict):
        return {key: _each(change, each) for key, each in value.items()}
    return change(value)


def _far(value: Any) -> Any:
    return Far(value) if isinstance(value, Tensor) else value


def _near(value: Any) -> Any:
    if isinstance(value, Far):
        return value.held
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _shown(tensor: Tensor) -> str:
    return f"{'device' if isinstance(tensor, Far) else 'CPU'} {tuple(tensor.shape)}"


@contextmanager
def second_device(*, doubles: bool = True) -> Iterator[torch.device]:
    """Inside, everything of sfumato works on the device; without ``doubles`` it is like Apple's, which has none."""
    with warnings.catch_warnings(), _Device(doubles=doubles), compute.placed(Placement(DEVICE, doubles=doubles)):
        warnings.filterwarnings("ignore", message=".*copying from a non-meta parameter")  # torch cannot know
        yield DEVICE
