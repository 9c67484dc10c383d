"""The client of a bundle: records in, protected tensors out. It needs numpy and onnxruntime, and never torch.

>>> from sfumato.device import Device, RemoteModel
>>> device = Device("bundle")
>>> payload = device.encode("photo.png")
>>> answer = RemoteModel("https://example.org", device=device, token="…").predict("photo.png")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.device.edge_device import EdgeDevice as Device
    from sfumato.device.edge_device import EdgeKey as EdgeKey
    from sfumato.device.remote_model import RemoteModel as RemoteModel

_HOME = {
    "Device": ("edge_device", "EdgeDevice"),
    "EdgeKey": ("edge_device", "EdgeKey"),
    "RemoteModel": ("remote_model", "RemoteModel"),
}

__all__ = ["Device", "EdgeKey", "RemoteModel"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.device' has no attribute '{name}'")
    module, attribute = _HOME[name]
    value = getattr(import_module(f"sfumato.device.{module}"), attribute)
    globals()[name] = value
    return value
