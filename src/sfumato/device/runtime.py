"""ONNX Runtime, loaded when the first program is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError
from sfumato.core.extras import require
from sfumato.core.ports import Port
from sfumato.deploy.manifest import Bundle


class OnnxProgram:
    """A program of a bundle with its inputs in order."""

    def __init__(self, bundle: Bundle, name: str, threads: int = 1) -> None:
        self._program = bundle.manifest.program(name)
        self._path, self._threads = bundle.path(name), threads
        self.inputs: tuple[Port, ...] = self._program.inputs

    @cached_property
    def _session(self) -> Any:
        require("deploy", "a bundle's program", "onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # whatever ONNX Runtime raises: the file is no program that it can run
            reason = " ".join(str(error).split())[:120]
            raise DataError(f"{self._path} cannot be run ({reason}): export the bundle again.") from None
        theirs = [(one.name, one.type) for one in session.get_inputs()]
        kinds = {"float32": "tensor(float)", "int64": "tensor(int64)"}
        if theirs != [(port.name, kinds[port.dtype]) for port in self.inputs]:
            raise DataError(f"{self._path} takes other inputs than its manifest says: export the bundle again.")
        return session

    def run(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """The program's output for the values of its inputs, in their order."""
        given = {port.name: np.ascontiguousarray(array) for port, array in zip(self.inputs, arrays, strict=True)}
        out: npt.NDArray[np.float32] = self._session.run(None, given)[0]
        wanted = self._program.outputs[0].row
        if out.shape[1:] != wanted:
            raise DataError(f"{self._path} gives {out.shape[1:]}, its manifest says {wanted}: export the bundle again.")
        return out
