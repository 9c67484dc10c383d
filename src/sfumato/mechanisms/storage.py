"""A fitted mechanism as files: JSON for what it is, safetensors for its weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.core.errors import DataError
from sfumato.core.run_folder import read_json, read_tensors, write_json, write_tensors
from sfumato.core.schema import Schema

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sfumato.mechanisms.base import Mechanism

M = TypeVar("M", bound="Mechanism")
MECHANISM, SCHEMA, WEIGHTS = "mechanism.json", "schema.json", "checkpoint"


def save(mechanism: Mechanism, folder: Path) -> None:
    """Write parameters, traits, schema and one file of weights a network."""
    (folder / WEIGHTS).mkdir(parents=True, exist_ok=True)
    for module, network in mechanism._modules().items():
        if module not in mechanism.absent_:
            write_tensors(folder / WEIGHTS / f"{module}.safetensors", network.state_dict())
    write_json(folder / SCHEMA, mechanism.schema_.to_json())
    stored: dict[str, Any] = {"params": mechanism.stored_params(), "traits": mechanism.traits.to_json()}
    stored["labels"] = list(mechanism.labels_ or mechanism.schema_.utility)
    write_json(folder / MECHANISM, {"mechanism": mechanism.name, **stored})


def load(cls: type[M], folder: Path, overrides: Mapping[str, Any]) -> M:
    """Read what ``save`` wrote, with ``overrides`` in place of stored parameters."""
    stored = read_json(folder / MECHANISM)
    if stored["mechanism"] != cls.name:
        raise DataError(f"{folder} holds a '{stored['mechanism']}', not a '{cls.name}'.")
    mechanism = cls().set_params(**{**stored["params"], **overrides})
    mechanism.schema_ = Schema.from_json(read_json(folder / SCHEMA))
    labels = stored.get("labels", list(mechanism.schema_.utility)[:1])  # older runs were fitted for the first alone
    mechanism.labels_ = tuple(labels)
    mechanism._build(mechanism.schema_)
    absent = []
    for module, network in mechanism._modules().items():
        file = folder / WEIGHTS / f"{module}.safetensors"
        if module in cls.spare and not file.exists():
            absent.append(module)
            continue
        weights = {f"{module}.{name}": tensor for name, tensor in read_tensors(file).items()}
        load_state_of({module: network}, weights, mechanism)
    mechanism.__dict__["_absent"] = tuple(absent)
    mechanism._settle()
    return mechanism


def state_of(modules: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Every weight and buffer, by module and name."""
    return {
        f"{module}.{name}": tensor
        for module, network in modules.items()
        for name, tensor in network.state_dict().items()
    }


def load_state_of(modules: Mapping[str, nn.Module], tensors: Mapping[str, Tensor], owner: object) -> None:
    """Put stored weights into built networks; ``owner`` is named if they do not fit."""
    for module, network in modules.items():
        own = {k.removeprefix(f"{module}."): v for k, v in tensors.items() if k.startswith(f"{module}.")}
        try:
            network.load_state_dict(own)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"the stored weights do not fit {owner} ({reason}): restore them or fit again.") from None
