"""A classifier for any payload: a linear reader plus residual blocks that start out silent."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.nets.residual_decoder import Residual


class ResidualClassifier(nn.Module):
    """Class scores or numbers of a payload (B, …): W z + V h(z), z the standardised payload and h of ``blocks`` blocks.

    V is zero before training, and ``start_linear`` finds W: what a logistic regression gets is where learning begins.
    ``sample`` gives mean and deviation of each number.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, sample: Tensor, classes: int, width: int, *, blocks: int = 2, dropout: float = 0.3) -> None:
        super().__init__()
        flat = sample.flatten(1)  # (N, F)
        deviation = flat.std(0, unbiased=False)
        self.register_buffer("mean", flat.mean(0))
        self.register_buffer("scale", torch.where(deviation > 1e-6, deviation, 1.0))
        self.linear = nn.Linear(flat.shape[1], classes)
        self.body = nn.Sequential(
            nn.Linear(flat.shape[1], width),
            *(Residual(0, width) for _ in range(blocks)),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.head = nn.Linear(width, classes, bias=False)
        nn.init.zeros_(self.head.weight)

    def forward(self, payload: Tensor) -> Tensor:  # (B, …) → (B, classes)
        z = self._standardised(payload)
        return self.linear(z) + self.head(self.body(z))  # type: ignore[no-any-return]

    def start_linear(self, payload: Tensor, target: Tensor, *, penalty: float = 3.0, iterations: int = 60) -> None:
        """Logistic regression with ``penalty``/2 · |W|², by L-BFGS."""
        z = self._standardised(payload)
        optimiser = torch.optim.LBFGS(self.linear.parameters(), max_iter=iterations, line_search_fn="strong_wolfe")

        def objective() -> Tensor:
            optimiser.zero_grad()
            weights = self.linear.weight.square().sum()
            loss = F.cross_entropy(self.linear(z), target) + penalty / (2 * len(z)) * weights
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        optimiser.step(objective)  # type: ignore[no-untyped-call]

    def start_ridge(self, payload: Tensor, target: Tensor, *, penalty: float = 3.0) -> None:
        """Least squares with ``penalty`` · |W|² for numbers (B, outputs), in closed form."""
        z = self._standardised(payload).double()
        mean = target.double().mean(0)
        gram = z.T @ z + penalty * torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        weights = torch.linalg.solve(gram, z.T @ (target.double() - mean))
        with torch.no_grad():
            self.linear.weight.copy_(weights.T)
            self.linear.bias.copy_(mean)  # the payload is standardised

    def _standardised(self, payload: Tensor) -> Tensor:
        return (payload.flatten(1) - self.mean) / self.scale
