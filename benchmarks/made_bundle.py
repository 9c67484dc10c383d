"""A bundle whose cloud half is a small network made by hand, and numpy's answer of the same network."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NAME, WIDTH, HIDDEN, CLASSES = "made", 8, 16, 4
_DRAW = np.random.default_rng(3)
FIRST = _DRAW.normal(size=(WIDTH, HIDDEN)).astype(np.float32)
SECOND = _DRAW.normal(size=(HIDDEN, CLASSES)).astype(np.float32)


def answer(x: np.ndarray) -> np.ndarray:
    """What the network says."""
    return np.maximum(x @ FIRST, 0) @ SECOND


def network(width: int = WIDTH, first: np.ndarray = FIRST, second: np.ndarray = SECOND) -> bytes:
    """(rows, width) → (rows, classes): two matrices with a rectifier between them."""
    nodes = [
        helper.make_node("MatMul", ["payload", "first"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("MatMul", ["positive", "second"], ["scores"]),
    ]
    weights = [numpy_helper.from_array(first, "first"), numpy_helper.from_array(second, "second")]
    return serialised(
        nodes, [("payload", TensorProto.FLOAT, ["N", width])], [("scores", ["N", second.shape[1]])], weights
    )


def serialised(
    nodes: list[Any], inputs: list[tuple[str, int, list[Any]]], outputs: list[tuple[str, list[Any]]], weights: Any = ()
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
        list(weights),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def write_bundle(
    folder: Path, cloud: bytes | None = None, *, shape: tuple[int, ...] = (WIDTH,), classes: int = CLASSES
) -> Path:
    """A folder that ``read_bundle`` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"cloud": cloud or network(), "device": b"a device half that nobody opens here"}
    for name, content in files.items():
        (folder / f"{name}.onnx").write_bytes(content)
    record = {"name": "record", "dtype": "float32", "shape": [-1, 3], "axis": "batch", "source": "record", "law": None}
    payload = {"name": "payload", "dtype": "float32", "shape": [-1, *shape], "axis": "batch"}
    scores = {"name": "scores", "dtype": "float32", "shape": [-1, classes], "axis": "batch"}
    ports = {"device": ([record], [payload]), "cloud": ([{**payload, "source": "payload"}], [scores])}
    manifest = {
        "format": "sfumato-bundle",
        "version": 1,
        "name": NAME,
        "mechanism": "ran",
        "programs": {
            name: {
                "file": f"{name}.onnx",
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
                "opset": 18,
                "quantised": False,
                "inputs": ports[name][0],
                "outputs": ports[name][1],
            }
            for name, content in files.items()
        },
        "preprocessing": {"kind": "vectors", "shape": [3], "column": "v", "low": [0, 0, 0], "high": [1, 1, 1]},
        "labels": [{"name": "what", "classes": [str(number) for number in range(classes)]}],
        "private": [],
        "company": None,
        "guarantee": {},
        "traits": {},
        "versions": {},
        "files": {},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
