"""A device half with 8-bit weights and activations: how much smaller it is, and what it costs in use and leakage."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.auditing import Audit, Controls, Effort
from sfumato.auditing.auditor import audit
from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.core.ports import Port
from sfumato.core.run_folder import atomic
from sfumato.deploy.onnx_programs import check_program, stripped
from sfumato.deploy.program_checks import run, session
from sfumato.deploy.shipped_mechanism import ShippedMechanism
from sfumato.mechanisms.base import Mechanism

Array = npt.NDArray[Any]
_MEASURED = 128
"""Records of the owner by which the ranges of activations are set."""


@dataclass(frozen=True)
class QuantisedFigures:
    """What a quantised device half costs, beside the one in single precision.

    before, after   bytes
    off             root mean square difference of payloads, by the payload's deviation
    accuracy        metric of the first utility label and its two values; None where nobody measured one
    leakage         by threat: the worst attack's leakage on either, None where there is none
    """

    before: int
    after: int
    off: float
    accuracy: tuple[str, float, float] | None
    leakage: Mapping[str, tuple[float | None, float | None]]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "leakage": {threat: list(two) for threat, two in self.leakage.items()}}


class _Measured:
    """What onnxruntime calls a calibration reader: one dictionary after the other, then None."""

    def __init__(self, ports: Sequence[Port], arrays: Sequence[Array]) -> None:
        self._rows = (
            {port.name: array[at : at + 16] for port, array in zip(ports, arrays, strict=True)}
            for at in range(0, len(arrays[0]), 16)
        )

    def get_next(self) -> dict[str, Array] | None:
        return next(self._rows, None)


def quantise(path: Path, ports: Sequence[Port], arrays: Sequence[Array]) -> float:
    """Replace a program by its 8-bit form; the root mean square difference on ``arrays``, by the output's deviation.

    Weights have a scale for each channel. The range of every activation is that of ``arrays``, records of the owner:
    like the weights it is learnt from them, and published with the program.
    """
    import onnx
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    wanted = run(session(path), ports, arrays)
    with TemporaryDirectory() as folder, _quiet():
        made = Path(folder) / "made.onnx"
        quantize_static(
            str(path),
            str(made),
            _Measured(ports, [array[:_MEASURED] for array in arrays]),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "Gemm", "MatMul"],
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod.MinMax,
            extra_options={"DedicatedQDQPair": False},
        )
        model = stripped(onnx.load(made))
    with atomic(path) as part:
        part.write_bytes(model.SerializeToString())
    check_program(path)
    found = run(session(path), ports, arrays)
    return float(np.sqrt(np.mean((found - wanted) ** 2)) / (wanted.std() or 1.0))


def cost_of(
    original: Mechanism,
    programs: Mapping[str, Path],
    ports: tuple[Port, ...],
    splits: Splits,
    effort: Effort,
    off: float,
) -> QuantisedFigures:
    """Audit the device half in ``programs["device"]`` beside the one in ``programs["single"]``, by the same attacks."""
    controls = Controls()
    both = [
        _audited(original, programs[which], programs.get("cloud"), ports, splits, effort, controls)
        for which in ("single", "device")
    ]
    threats = sorted({*both[0].worst, *both[1].worst})
    leakage = {threat: (_leakage(both[0], threat), _leakage(both[1], threat)) for threat in threats}
    single, small = (next((one for one in found.utility if one.primary), None) for found in both)
    accuracy = None if single is None or small is None else (single.metric, single.value, small.value)
    sizes = [programs[which].stat().st_size for which in ("single", "device")]
    return QuantisedFigures(sizes[0], sizes[1], off, accuracy, leakage)


def _audited(
    original: Mechanism,
    device: Path,
    cloud: Path | None,
    ports: tuple[Port, ...],
    splits: Splits,
    effort: Effort,
    controls: Controls,
) -> Audit:
    shipped = ShippedMechanism.of(original, device, cloud, ports)
    return audit(shipped, splits, effort=effort, controls=controls)


def _leakage(found: Audit, threat: str) -> float | None:
    return found.worst[threat].leakage if threat in found.worst else None


def refuse_unmeasurable(ports: Sequence[Port]) -> None:
    """Raise for a device half whose leakage cannot be measured on the program alone."""
    if any(port.source == "company" for port in ports):
        raise UsageError(
            "--int8 is for device halves whose leakage can be measured on the program, and phase's hangs on who stands "
            "in a message: export it without."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """onnxruntime advises on the root log; what it advises is done or does not apply."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
