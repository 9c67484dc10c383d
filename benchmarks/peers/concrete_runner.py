"""A small network on encrypted pictures with Concrete ML: TFHE, quantised. It imports nothing of sfumato."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from concrete.ml.torch.compile import compile_torch_model
from torch import nn


class Network(nn.Module):
    """x → W₂·(W₁x + b₁)² + b₂."""

    def __init__(self, kept: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.first = nn.Linear(kept["w1"].shape[1], kept["w1"].shape[0])
        self.second = nn.Linear(kept["w2"].shape[1], kept["w2"].shape[0])
        for layer, number in ((self.first, 1), (self.second, 2)):
            layer.weight.data = torch.from_numpy(kept[f"w{number}"]).float()
            layer.bias.data = torch.from_numpy(kept[f"b{number}"]).float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        return self.second(hidden * hidden)


def main(path: Path) -> None:
    """Compiled for 6 bits; a few records on ciphertexts, accuracy of the same circuit on all by simulation."""
    job = json.loads(path.read_text())
    with np.load(job["arrays"]) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    x, y = kept["x"].astype(np.float32), kept["y"]
    module = compile_torch_model(
        Network(kept), kept["calibration"].astype(np.float32), n_bits=6, rounding_threshold_bits=6
    )
    started = time.perf_counter()
    module.fhe_circuit.keygen()
    keys = time.perf_counter() - started
    seconds, up, down = [], 0, 0
    for record in x[: job["records"]]:
        started = time.perf_counter()
        sent = module.fhe_circuit.encrypt(*(module.quantize_input(record[None]),))
        answer = module.fhe_circuit.run(sent)
        module.fhe_circuit.decrypt(answer)
        seconds.append(time.perf_counter() - started)
        up, down = up + len(sent.serialize()), down + len(answer.serialize())
    guess = module.forward(x, fhe="simulate").argmax(1)
    count = len(seconds)
    report = {
        "seconds": seconds, "up": up / count, "down": down / count, "right": int((guess == y).sum()),
        "records": count, "tested": len(x), "key seconds": keys,
    }  # fmt: skip
    Path(job["report"]).write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
