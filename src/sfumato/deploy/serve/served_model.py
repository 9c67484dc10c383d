"""A network in ONNX Runtime whose rows are independent of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime as ort

from sfumato.core.errors import DataError
from sfumato.deploy.serve.refusals import Refused
from sfumato.deploy.serve.tensors import DATATYPES, Array, TensorSpec

_TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float": "FP32", "double": "FP64",
}  # fmt: skip
_CLOSE = 1e-3
VERSION = "1"


class ServedModel:
    """``name`` is what clients call; ``network`` the bytes of its ONNX file."""

    def __init__(self, name: str, network: bytes, *, threads: int, max_batch: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # its messages can hold values; what fails is raised
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(network, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise DataError(f"model '{name}': ONNX Runtime cannot load the network ({type(error).__name__}).") from None
        self.name = name
        self.inputs = tuple(_spec(name, one) for one in self._session.get_inputs())
        self.outputs = tuple(_spec(name, one) for one in self._session.get_outputs())
        self._names = [spec.name for spec in self.outputs]
        self._check_rows(max_batch)

    def compute(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Raises ``Refused`` where the network cannot take the values, whatever they are."""
        try:
            found = self._session.run(self._names, dict(inputs))
        except Exception as error:
            if type(error).__name__ in ("InvalidArgument", "Fail"):
                raise Refused(422, "model-refused", "the network cannot compute these values.") from None
            raise
        return dict(zip(self._names, found, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Metadata, as the protocol has it."""
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": "onnxruntime_onnx",
            "inputs": [spec.to_json() for spec in self.inputs],
            "outputs": [spec.to_json() for spec in self.outputs],
        }

    def _check_rows(self, max_batch: int) -> None:
        """Batching is right only where a row's answer does not depend on its neighbours; the largest batch warms up."""
        draw = np.random.default_rng(0)
        rows = max(2, max_batch)
        inputs = {spec.name: _made_up(spec, rows, draw) for spec in self.inputs}
        together = self.compute(inputs)
        alone = [self.compute({name: value[row : row + 1] for name, value in inputs.items()}) for row in (0, rows - 1)]
        for spec in self.outputs:
            both = together[spec.name]
            if both.shape != (rows, *spec.shape):
                raise DataError(f"model '{self.name}': output '{spec.name}' has not one row for each row of the input.")
            apart = np.concatenate([one[spec.name] for one in alone])
            if not np.allclose(both[[0, -1]], apart, rtol=_CLOSE, atol=_CLOSE, equal_nan=True):
                raise DataError(
                    f"model '{self.name}': rows change each other's answers: it cannot serve several users."
                )


def _spec(model: str, one: Any) -> TensorSpec:
    kind = one.type.removeprefix("tensor(").removesuffix(")")
    if kind not in _TYPES or _TYPES[kind] not in DATATYPES:
        raise DataError(f"model '{model}': tensor '{one.name}' has the type {one.type}, which cannot be served.")
    rows, *shape = one.shape or [1]
    if isinstance(rows, int):
        raise DataError(f"model '{model}': tensor '{one.name}' has no free first axis; export it with a dynamic batch.")
    if not all(isinstance(size, int) and size > 0 for size in shape):
        raise DataError(f"model '{model}': tensor '{one.name}' has a free axis beside the first; only rows may vary.")
    return TensorSpec(one.name, _TYPES[kind], tuple(shape))


def _made_up(spec: TensorSpec, rows: int, draw: np.random.Generator) -> Array:
    if spec.dtype.kind == "f":
        return draw.random((rows, *spec.shape)).astype(spec.dtype)
    return np.zeros((rows, *spec.shape), spec.dtype)
