"""Hyper-parameters as declarations: default, kind, allowed values and one line of help, each said once.

    class RAN(EncoderMechanism):
        lam: float = number(default=0.1, low=0.0, high=1.0, help="λ of Eq. 4")

gives the constructor ``RAN(lam=0.1, …)``, the check of ``lam``, and its row in ``sfumato fit ran --help-params``.
A subclass changes a default with a plain value: ``lam = 0.5``.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, dataclass_transform

from sfumato.core.errors import UsageError, check_range, unknown

_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_TYPES: dict[type, type] = {bool: bool, int: numbers.Integral, float: numbers.Real, str: str}


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter.

    ``kind`` is bool, int, float or str, or object for anything that a class checks itself. ``builds_on`` marks the run
    folder of another mechanism that this one starts from: its records must be the same.
    """

    default: Any
    help: str
    kind: type = object
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    options: tuple[str, ...] = ()
    kw_only: bool = True
    builds_on: bool = False

    def check(self, owner: str, name: str, value: Any) -> None:
        """Raise ``UsageError`` unless ``value`` is of this kind and within its range."""
        if self.kind is object:
            return
        right = isinstance(value, _TYPES[self.kind])
        if not right or (self.kind is not bool and isinstance(value, bool)):
            raise UsageError(f"{owner}: {name} must be {_NOUNS[self.kind]}, got {value!r}.")
        if self.options and value not in self.options:
            raise unknown(f"{name} of {owner}", value, self.options)
        if self.kind in (int, float):
            check_range(owner, name, value, self.low, self.high, open_low=self.open_low)

    @property
    def allowed(self) -> str:
        """The allowed values in words, for help and documentation."""
        if self.options:
            return " | ".join(self.options)
        if self.kind is bool:
            return "true | false"
        if self.kind in (int, float):
            low = f"above {self.low:g}" if self.open_low else f"{self.low:g}"
            return f"{low} to {self.high:g}" if self.high < 2**62 else f"{low} or more"
        return "text" if self.kind is str else "name or object"


def number(*, default: float, low: float, high: float, help: str, above_low: bool = False) -> Any:
    """A number from ``low`` to ``high``; ``above_low`` leaves ``low`` itself out."""
    return Parameter(default, help, float, low, high, above_low)


def whole(*, default: int, low: int, high: int, help: str) -> Any:
    """A whole number from ``low`` to ``high``."""
    return Parameter(default, help, int, low, high)


def choice(*, default: str, options: Sequence[str], help: str) -> Any:
    """One of a few names."""
    return Parameter(default, help, str, options=tuple(options))


def flag(*, default: bool, help: str) -> Any:
    """True or false."""
    return Parameter(default, help, bool)


def text(*, default: str, help: str) -> Any:
    """Any text; the mechanism checks what it means."""
    return Parameter(default, help, str)


def anything(*, default: Any, help: str, kw_only: bool = True, builds_on: bool = False) -> Any:
    """A name or an object of the user's (a network, a fitted mechanism); the mechanism checks it."""
    return Parameter(default, help, kw_only=kw_only, builds_on=builds_on)


RATE_HELP = "learning rate of Adam, falling in a straight line to a twentieth"


def learning_rate(*, default: float, help: str = RATE_HELP) -> Any:
    """A learning rate."""
    return number(default=default, low=0.0, high=1.0, above_low=True, help=help)


@dataclass_transform(
    eq_default=False,
    kw_only_default=True,
    field_specifiers=(number, whole, choice, flag, text, anything, learning_rate),
)
class Parametrised:
    """Constructor, ``get_params`` and ``set_params`` from the declared hyper-parameters, in scikit-learn's manners."""

    name: ClassVar[str]
    _declared: ClassVar[Mapping[str, Parameter]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        inherited: dict[str, Parameter] = {}
        for base in cls.__bases__:
            inherited |= {k: p for k, p in getattr(base, "_declared", {}).items() if k not in inherited}
        for name, parameter in inherited.items():
            if name in vars(cls) and name not in own:
                inherited[name] = replace(parameter, default=vars(cls)[name])
        cls._declared = {**own, **{name: p for name, p in inherited.items() if name not in own}}
        for name, parameter in own.items():
            setattr(cls, name, parameter.default)
        cls.__signature__ = inspect.Signature(_arguments(cls._declared))  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **params: Any) -> None:
        places = [name for name, parameter in self._declared.items() if not parameter.kw_only]
        if len(args) > len(places):
            raise TypeError(f"{type(self).__name__} takes {len(places)} positional arguments, got {len(args)}")
        given = dict(zip(places, args, strict=False))
        for name in params:
            if name in given:
                raise TypeError(f"{type(self).__name__} got two values for '{name}'")
        self.__dict__.update(self.parameters())
        self.set_params(**given, **params)

    @classmethod
    def declared(cls) -> Mapping[str, Parameter]:
        """The hyper-parameters by name, with their defaults, ranges and help."""
        return cls._declared

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Names and defaults of the hyper-parameters."""
        return {name: parameter.default for name, parameter in cls._declared.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyper-parameters as given; ``deep`` is there for scikit-learn and has no effect."""
        return {name: getattr(self, name) for name in self._declared}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters of an unfitted mechanism."""
        for name, value in params.items():
            if name not in self._declared:
                raise unknown(f"parameter of {self.name}", name, self._declared)
            setattr(self, name, value)
        return self

    def _check_params(self) -> None:
        """Raise ``UsageError`` for a value of another kind or out of range; subclasses check what goes together."""
        for name, parameter in self._declared.items():
            parameter.check(self.name, name, getattr(self, name))

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.get_params().items() if v != self._declared[k].default}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def _arguments(declared: Mapping[str, Parameter]) -> list[inspect.Parameter]:
    kinds = {True: inspect.Parameter.KEYWORD_ONLY, False: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    found = [inspect.Parameter(name, kinds[p.kw_only], default=p.default) for name, p in declared.items()]
    return sorted(found, key=lambda argument: argument.kind)
