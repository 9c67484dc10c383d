"""The cloud half of a bundle as a model repository that NVIDIA Triton loads as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

from sfumato.core.errors import DataError
from sfumato.core.ports import Port
from sfumato.core.run_folder import atomic
from sfumato.deploy.manifest import Bundle

_TYPES = {"float32": "TYPE_FP32", "int64": "TYPE_INT64"}
_MOST = 256
"""Records that Triton joins to one batch at most."""
_MICROSECONDS = 2000


def write_repository(bundle: Bundle, out: Path) -> Path:
    """``out/NAME/config.pbtxt`` and ``out/NAME/1/model.onnx``; the folder must not exist."""
    program = bundle.manifest.program("cloud")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} is already used for something: choose another --triton.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as part:
        model = part / bundle.manifest.name
        (model / "1").mkdir(parents=True)
        shutil.copyfile(bundle.path("cloud"), model / "1" / "model.onnx")
        (model / "config.pbtxt").write_text(configuration(bundle.manifest.name, program.inputs, program.outputs))
        if out.is_dir():
            out.rmdir()
    return out


def configuration(name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> str:
    """``config.pbtxt``: the batch axis is Triton's own and does not stand in ``dims``."""
    return "\n".join(
        [
            f'name: "{name}"',
            'backend: "onnxruntime"',
            f"max_batch_size: {_MOST}",
            f"input [\n{_ports(inputs)}\n]",
            f"output [\n{_ports(outputs)}\n]",
            f"dynamic_batching {{\n  max_queue_delay_microseconds: {_MICROSECONDS}\n}}",
            "instance_group [\n  {\n    kind: KIND_AUTO\n    count: 1\n  }\n]",
            "",
        ]
    )


def _ports(ports: tuple[Port, ...]) -> str:
    return ",\n".join(
        f'  {{\n    name: "{port.name}"\n    data_type: {_TYPES[port.dtype]}\n    dims: {list(port.row)}\n  }}'
        for port in ports
    )
