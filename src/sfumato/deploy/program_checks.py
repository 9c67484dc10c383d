"""What an exported program is compared by: the same numbers as torch, on random and on real records, and how fast."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sfumato.core import compute
from sfumato.core.errors import RuleBroken
from sfumato.core.ports import Port
from sfumato.deploy.onnx_programs import example_inputs
from sfumato.mechanisms.halves import Half

TOLERANCE = 1e-4
"""Largest difference between torch and ONNX Runtime that is arithmetic alone."""
_JUMPS = 0.01
"""Share of a payload's numbers at most that may round to the neighbouring step, or take the other sign."""
_COUNTS = ({"batch": 1, "records": 2}, {"batch": 7, "records": 9}, {"batch": 64, "records": 64})
_TIMES = 20

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ProgramFigures:
    """What was measured of one program.

    error       largest |onnx − torch|, on random and on real records; where a rounding hangs on the last bit, of the
                other numbers
    jumped      share of numbers whose rounding or sign came out otherwise
    real        whether real records were among them
    one, many   milliseconds for one record, and for ``batch`` records
    """

    name: str
    bytes: int
    error: float
    jumped: float
    real: bool
    one: float
    many: float
    batch: int = 64

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def session(path: Path, threads: int = 1) -> Any:
    """An ONNX Runtime session on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(program: Any, ports: Sequence[Port], arrays: Sequence[Array]) -> Array:
    """What a session makes of its inputs."""
    out: Array = program.run(None, {port.name: array for port, array in zip(ports, arrays, strict=True)})[0]
    return out


def by_torch(half: Half, arrays: Sequence[Array]) -> Array:
    """What the network itself makes of them."""
    modes = [(module, module.training) for module in half.network.modules()]  # a wrapper's is not that of its parts
    half.network.eval()
    with torch.inference_mode(), compute.exact():
        found = half.network(*(torch.as_tensor(array) for array in arrays)).numpy()
    for module, mode in modes:
        module.training = mode
    return np.asarray(found)


def compared(half: Half, name: str, path: Path, real: Sequence[Array] | None) -> ProgramFigures:
    """Figures of a program whose inputs are also ``real`` ones.

    Raises:
        RuleBroken: It does not compute what the network does.
    """
    program = session(path)
    batches = [example_inputs(half.inputs, seed, counts) for seed, counts in enumerate(_COUNTS)]
    error, leapt, numbers = 0.0, 0, 0
    for arrays in (*batches, *([] if real is None else [list(real)])):
        found, wanted = run(program, half.inputs, arrays), by_torch(half, arrays)
        if found.shape != wanted.shape or found.shape[1:] != half.output.row:
            raise RuleBroken(f"the {name} half gives {found.shape}, the network {wanted.shape}.")
        off = np.abs(found - wanted)
        leaps = (off > TOLERANCE) & (off <= 1.001 * half.jump)
        leapt, numbers = leapt + int(leaps.sum()), numbers + leaps.size
        error = max(error, float(np.where(leaps, 0.0, off).max(initial=0.0)))
    jumped = leapt / numbers
    if not (error <= TOLERANCE and jumped <= _JUMPS):
        raise RuleBroken(
            f"the {name} half is {error:.2g} away from the network ({jumped:.2%} of numbers jumped), more than "
            f"{TOLERANCE:g}: the bundle was not written."
        )
    one, many = (_milliseconds(program, half.inputs, batches[place]) for place in (0, -1))
    return ProgramFigures(name, path.stat().st_size, error, jumped, real is not None, one, many)


def _milliseconds(program: Any, ports: Sequence[Port], arrays: Sequence[Array]) -> float:
    """The median of several runs, after one to warm up."""
    times = []
    for _ in range(_TIMES + 1):
        started = time.perf_counter()
        run(program, ports, arrays)
        times.append(time.perf_counter() - started)
    return round(1000.0 * float(np.median(times[1:])), 4)
