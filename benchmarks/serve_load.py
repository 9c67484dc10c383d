"""``sfumato serve`` under load: what batching gains, what HTTP costs, and what happens below and above saturation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from benchmarks.interleaved import Ratio, figure
from benchmarks.made_bundle import serialised, write_bundle
from benchmarks.request_load import Load, Question, ask_for, question
from benchmarks.service_process import running

WIDTH, HIDDEN, CLASSES = 1024, 4096, 1000
BATCH, CLIENTS = 32, 64
GAIN, SHARE = 3.0, 0.7
_GROWTH = 0.05
"""Most that resident memory may grow by between the tenth second and the last."""


def run(small: bool = False) -> dict[str, Any]:
    """A head of three dense layers (25 million weights), one thread; bare runtime and both services in turns."""
    network = _network()
    questions, bare = _questions(network)
    rounds, each, steady = (2, 1.0, 5.0) if small else (7, 3.0, 60.0)
    with TemporaryDirectory() as folder:
        bundle = write_bundle(Path(folder) / "bundle", network, shape=(WIDTH,), classes=CLASSES)
        with (
            running(bundle=bundle, max_batch=BATCH, threads=1) as batching,
            running(bundle=bundle, max_batch=1, threads=1) as alone,
        ):
            found: dict[str, list[float]] = {
                "bare": [], "batching": [], "no batches": [], "one client": [], "bare again": [],
            }  # fmt: skip
            loads: list[Load] = []
            for _ in range(rounds):
                found["bare"].append(_rows_a_second(bare, each / 2))
                for name, service, clients in (
                    ("batching", batching, CLIENTS),
                    ("no batches", alone, CLIENTS),
                    ("one client", batching, 1),
                ):
                    loads.append(ask_for(service.address, questions, clients=clients, seconds=each))
                    found[name].append(loads[-1].rows_a_second)
                found["bare again"].append(_rows_a_second(bare, each / 2))
        with running(bundle=bundle, max_batch=BATCH, threads=1) as service:
            early = ask_for(service.address, questions, clients=BATCH, seconds=steady / 6)
            before = service.resident()
            below = ask_for(service.address, questions, clients=BATCH, seconds=steady * 5 / 6)
            growth = service.resident() / before - 1
        with running(bundle=bundle, max_batch=BATCH, queue_rows=BATCH, threads=1) as service:
            above = ask_for(service.address, questions, clients=4 * BATCH, seconds=5.0)
    plain = [(one + other) / 2 for one, other in zip(found["bare"], found["bare again"], strict=True)]
    gain, strict, share = (
        _over(found["batching"], under) for under in (found["one client"], found["no batches"], plain)
    )
    calm = [*loads, early, below]
    holds = {
        "batching gains enough": gain.median >= GAIN,
        "HTTP costs little enough": share.median >= SHARE,
        "no error below saturation": all(set(load.statuses) == {200} for load in calm),
        "503 with Retry-After above it": set(above.statuses) == {200, 503} and above.without_retry == 0,
        "no wrong answer": not any(load.wrong for load in (*calm, above)),
        "memory is flat": growth < _GROWTH,
    }
    return {
        "claim": f"batching serves ≥ {GAIN:g} × as many rows as one request at a time, ≥ {SHARE:g} × bare ONNX "
        "Runtime; no error below saturation, 503 and no wrong answer above it; memory is flat",
        "holds": all(holds.values()),
        "ratios": {
            f"{CLIENTS} clients in batches of up to {BATCH} over one request at a time": {
                **gain.to_json(), "at least": GAIN},
            f"the same over {CLIENTS} clients without batches": strict.to_json(),
            f"the service over bare ONNX Runtime, batches of {BATCH}": {**share.to_json(), "at least": SHARE},
        },
        "figures": {
            "holds": holds,
            "rows a second": {name: round(float(np.median(values))) for name, values in found.items()},
            "one client": _figures(loads[-1]),
            f"{BATCH} clients, {steady:g} s": {**_figures(early, below), "memory gained": figure(growth)},
            f"{4 * BATCH} clients, {BATCH} rows may wait": _figures(above),
        },
    }  # fmt: skip


def _over(many: Sequence[float], one: Sequence[float]) -> Ratio:
    return Ratio.of([above / below for above, below in zip(many, one, strict=True)])


def _figures(*loads: Load) -> dict[str, Any]:
    last = loads[-1]
    return {
        "rows a second": round(last.rows_a_second),
        "p50, ms": figure(last.quantile_ms(0.5)),
        "p99, ms": figure(last.quantile_ms(0.99)),
        "answers by status": {
            str(status): sum(load.statuses[status] for load in loads)
            for status in sorted({status for load in loads for status in load.statuses})
        },
        "wrong answers": sum(load.wrong for load in loads),
    }


def _rows_a_second(batch: Callable[[], object], seconds: float) -> float:
    started, rows = time.perf_counter(), 0
    while (took := time.perf_counter() - started) < seconds:
        batch()
        rows += BATCH
    return rows / took


def _questions(network: bytes) -> tuple[Sequence[Question], Callable[[], object]]:
    """Requests of one row with their answers, and the bare runtime on a batch of them."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).normal(size=(256, WIDTH)).astype(np.float32)
    right = np.concatenate([session.run(None, {"payload": x[at : at + BATCH]})[0] for at in range(0, len(x), BATCH)])
    many = [question(x[at : at + 1], right[at : at + 1]) for at in range(len(x))]
    return many, lambda: session.run(None, {"payload": x[:BATCH]})


def _network() -> bytes:
    """Dense layers as at the end of VGG: reading the weights dominates for one row, the sums for many."""
    draw = np.random.default_rng(0)
    sizes = (WIDTH, HIDDEN, HIDDEN, CLASSES)
    nodes, weights, at = [], [], "payload"
    for number, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        weight = (draw.normal(size=(fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{number}"))
        out = "scores" if number == len(sizes) - 2 else f"h{number}"
        nodes.append(helper.make_node("MatMul", [at, f"w{number}"], [out]))
        if out != "scores":
            nodes.append(helper.make_node("Relu", [out], [f"r{number}"]))
            at = f"r{number}"
    return serialised(nodes, [("payload", TensorProto.FLOAT, ["N", WIDTH])], [("scores", ["N", CLASSES])], weights)
