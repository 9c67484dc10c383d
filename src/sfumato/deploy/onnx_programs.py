"""A network as an ONNX program: traced, stripped of everything that tells where it was made, and checked."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sfumato.core.errors import UsageError
from sfumato.core.ports import Port
from sfumato.core.run_folder import atomic
from sfumato.mechanisms.halves import Half

OPSET = 18
_LENGTHS = {"batch": 3, "records": 5}
"""Of the axes while a network is traced: neither 0 nor 1, which a trace would take for constants, nor alike."""

Arrays = list[npt.NDArray[Any]]


def write_program(half: Half, name: str, path: Path) -> None:
    """Trace ``half`` and write it to ``path``; it runs with any number of records."""
    network = _portable(half.network)
    example = tuple(torch.as_tensor(array) for array in example_inputs(half.inputs, 0, _LENGTHS))
    axes = {axis: torch.export.Dim(axis, min=1) for axis in {port.axis for port in half.inputs}}
    try:
        with _quiet():
            traced = torch.onnx.export(
                network,
                example,
                dynamo=True,
                dynamic_shapes=tuple({0: axes[port.axis]} for port in half.inputs),
                input_names=[port.name for port in half.inputs],
                output_names=[half.output.name],
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # whatever the user's network or the tracer raises: it cannot be exported
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"the {name} half cannot be written as ONNX ({type(error).__name__}: {reason}): use a provided network, "
            "or layers that torch.onnx.export takes."
        ) from error
    assert traced is not None
    with atomic(path) as part:
        part.write_bytes(stripped(traced.model_proto).SerializeToString())
    check_program(path)


def stripped(model: Any) -> Any:
    """Without doc strings and metadata, in which the exporter leaves paths, source lines and names of the machine."""
    model.doc_string, model.producer_name, model.producer_version = "", "sfumato", ""
    del model.metadata_props[:]
    for graph in (model.graph, *model.functions):
        _strip(graph)
    model.graph.name = "half"
    return model


def _strip(graph: Any) -> None:
    graph.doc_string = ""
    del graph.metadata_props[:]
    for part in (*graph.node, *getattr(graph, "initializer", ()), *graph.value_info):
        part.doc_string = ""
        del part.metadata_props[:]
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    _strip(inner)
    for value in (*getattr(graph, "input", ()), *getattr(graph, "output", ())):
        if not isinstance(value, str):  # those of a function are names
            value.doc_string = ""
            del value.metadata_props[:]


def check_program(path: Path) -> None:
    """Raise what ``onnx.checker`` finds, and if a node is not of the default domain."""
    import onnx

    onnx.checker.check_model(str(path), full_check=True)
    domains = {node.domain for node in onnx.load(path, load_external_data=False).graph.node} - {"", "ai.onnx"}
    if domains:
        raise UsageError(f"{path.name} needs operators of {', '.join(sorted(domains))}: use other layers.")


def example_inputs(ports: Sequence[Port], seed: int, lengths: dict[str, int]) -> Arrays:
    """Made-up values of every input, repeatable: for tracing and for comparing two computers, never for a release."""
    chance = np.random.default_rng(seed)
    return [_example(port, chance, lengths) for port in ports]


def _example(port: Port, chance: np.random.Generator, lengths: dict[str, int]) -> npt.NDArray[Any]:
    shape = (lengths[port.axis], *port.row)
    if port.source == "company":
        return chance.integers(0, lengths["records"], shape, dtype=np.int64)
    if port.law in ("orthogonal", "rotation") or (port.source == "kept" and len(shape) == 3):
        return np.linalg.qr(chance.normal(size=shape))[0].astype(np.float32)
    if port.law == "bits":
        return chance.integers(0, 2, shape).astype(np.float32)
    if port.law == "ones":
        return np.ones(shape, dtype=np.float32)
    if port.law == "uniform" or port.range == (0.0, 1.0):
        return chance.random(shape, dtype=np.float32)
    if port.source in ("private", "class"):
        return np.eye(shape[1], dtype=np.float32)[chance.integers(0, shape[1], shape[0])]
    if port.law == "laplace":
        return chance.laplace(size=shape).astype(np.float32)
    return chance.standard_normal(shape, dtype=np.float32)


def _portable(network: nn.Module) -> nn.Module:
    """A copy on the CPU, channels first, in evaluation mode, for a trace to read."""
    found = copy.deepcopy(network).cpu().eval()
    for parameter in found.parameters():
        parameter.requires_grad_(False)
        parameter.data = parameter.data.contiguous()
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter talks on stdout, in warnings and in three logs; errors come as errors."""
    names = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir", "torch._dynamo")
    levels = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
