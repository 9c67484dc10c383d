"""Where tensors live while a device other than the CPU is used: one rule for all of the package's code.

Inside ``Placement(device)`` every new tensor is put on the device, and every tensor that leaves as an array comes back
to the CPU. Whatever is random is drawn by the CPU's generators and then moved: a seed means the same everywhere, and
no noise, key or mask depends on a device's own generator. A device without doubles (Apple's) leaves them on the CPU.

The rest of the package therefore never names a device. What was made before, outside, is brought in by ``bring``, and
goes home to the CPU at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from sfumato.core.errors import UsageError

_device_constructors: Callable[[], set[Callable[..., Any]]]
try:
    from torch.utils._device import _device_constructors
except ImportError:  # torch says nowhere in public which functions make tensors
    _device_constructors = set

Call = Callable[..., Any]

_MADE = {*_device_constructors(), torch.normal}
_DRAWN = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
_COPIED = {torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor}
_DRAWN_LIKE = {torch.rand_like, torch.randn_like, torch.randint_like}
_DRAWN_FROM = {
    *(torch.multinomial, torch.bernoulli, torch.poisson, Tensor.multinomial, Tensor.bernoulli),
    *(torch.svd_lowrank, torch.pca_lowrank),  # they draw inside
}
_DRAWN_INTO = {
    *(Tensor.uniform_, Tensor.normal_, Tensor.bernoulli_, Tensor.random_, Tensor.exponential_, Tensor.geometric_),
    *(nn.init.uniform_, nn.init.normal_, nn.init.trunc_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_),
    *(nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.orthogonal_),
}
_DROPOUTS = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d}
_ARRAYS = {Tensor.numpy, Tensor.__array__, Tensor.tolist}
_RETYPED = {Tensor.float, Tensor.double, Tensor.to, Tensor.type, Tensor.long, Tensor.int, Tensor.bool}
_DOUBLES = {torch.float64, torch.complex128}


class Placement(TorchFunctionMode):
    """The rule, for one device."""

    def __init__(self, device: torch.device, *, doubles: bool = True) -> None:
        if _device_constructors is None:
            raise UsageError(
                f"torch {torch.__version__} does not tell which of its functions make tensors, which every device but "
                "the CPU needs: give --device cpu, or install torch 2.13."
            )
        super().__init__()
        self.device, self.doubles = device, doubles
        self._guests: list[object] = []

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        for guest in self._guests:
            _move(guest, lambda tensor: tensor.to("cpu"))
        self._guests = []

    def bring(self, guest: object) -> None:
        """Every tensor and network in ``guest`` comes to the device, until the end."""
        _move(guest, self.place)
        if not any(guest is known for known in self._guests):
            self._guests.append(guest)

    def __torch_function__(
        self, func: Call, _types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func in _DRAWN_LIKE:
            return self.place(func(args[0], *args[1:], **{**named, "device": "cpu"}))
        if func in _DRAWN_FROM:
            drawn = func(args[0].cpu(), *args[1:], **named)
            return tuple(self.place(each) for each in drawn) if isinstance(drawn, tuple) else self.place(drawn)
        if func in _DRAWN_INTO:
            return _drawn_into(func, args, named)
        if func in _DROPOUTS:
            return _dropout(func, *args, **named)
        if func in _MADE and named.get("device") is None and named.get("out") is None:
            grad = named.pop("requires_grad", False)
            made = self._made(func, args, named)
            return made.requires_grad_() if grad else made
        if func in _ARRAYS:
            return func(args[0].cpu(), *args[1:], **named)
        if not self.doubles and func in _RETYPED:
            return self._retyped(func, args, named)
        return func(*args, **named)

    def _made(self, func: Call, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if func in _DRAWN or func in _COPIED or not self.doubles:
            return self.place(func(*args, **named))
        return func(*args, **{**named, "device": self.device})

    def place(self, tensor: Tensor) -> Tensor:
        """The tensor where it belongs."""
        home = "cpu" if not self.doubles and tensor.dtype in _DOUBLES else self.device
        return tensor.to(home)

    def _retyped(self, func: Call, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Doubles leave a device that has none before they come to be, and other numbers go back to it."""
        wide = func is Tensor.double or bool(_DOUBLES & {*args[1:], named.get("dtype")} if func is Tensor.to else ())
        if wide:
            return func(args[0].cpu(), *args[1:], **named)
        found = func(*args, **named)
        asked = func is Tensor.to and ("device" in named or any(isinstance(a, (str, torch.device)) for a in args[1:]))
        return self.place(found) if args[0].dtype in _DOUBLES and not asked else found


def _drawn_into(func: Call, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """As ``func(tensor, …)``, which fills the tensor; drawn on the CPU in the same order of its numbers."""
    tensor: Tensor = args[0] if args else named.pop("tensor")
    drawn = torch.empty_like(tensor, device="cpu", requires_grad=False)
    with torch.no_grad():
        func(drawn, *args[1:], **named)
        tensor.copy_(drawn)
    return tensor


def _dropout(func: Call, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """What the CPU would drop."""
    if not training or p == 0.0:
        return x
    kept = func(torch.ones_like(x, device="cpu", requires_grad=False), p, True).to(x.device)
    return x.mul_(kept) if inplace else x * kept


_LEAVES = (type, FunctionType, ModuleType, torch.Generator, str, bytes, int, float, complex, type(None))


def _move(value: object, place: Callable[[Tensor], Tensor], seen: dict[int, object] | None = None) -> Any:
    """``value`` with its tensors placed: what can be changed is changed, tuples are made anew."""
    seen = {} if seen is None else seen
    if isinstance(value, Tensor):
        return place(value)
    if isinstance(value, _LEAVES) or id(value) in seen:
        return value
    seen[id(value)] = value  # held, or another could get its address
    if isinstance(value, nn.Module):
        value._apply(place)  # type: ignore[no-untyped-call]
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_move(each, place, seen) for each in value)
    if isinstance(value, dict):
        value.update({key: _move(each, place, seen) for key, each in value.items()})
    elif isinstance(value, list):
        value[:] = [_move(each, place, seen) for each in value]
    elif type(value).__module__.partition(".")[0] not in _OTHERS or isinstance(value, nn.Module):
        own = getattr(value, "__dict__", {})
        for name in [name for name in own if name not in ("_parameters", "_buffers")]:
            own[name] = _move(own[name], place, seen)
    return value


_OTHERS = {"builtins", "torch", "numpy", "pyarrow", "pathlib", "datetime", "collections", "functools", "threading"}


def found(name: str) -> torch.device:
    """The device that ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps`` means on this machine."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    apple = torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda:0" if cards else "mps" if apple else "cpu")
    kind, _, number = name.partition(":")
    place = int(number or 0)
    if (kind == "cuda" and place >= cards) or (kind == "mps" and not apple):
        here = f"cuda:0 to cuda:{cards - 1}" if cards > 1 else "cuda" if cards else "mps" if apple else "only a CPU"
        raise UsageError(
            f"--device {name}: torch finds {here} on this machine; leave --device out, or give auto or cpu."
        )
    return torch.device(f"cuda:{place}" if kind == "cuda" else kind)
