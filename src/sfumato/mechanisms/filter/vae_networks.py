"""Encoders and decoders of variational autoencoders.

An encoder gives (B, 2d): the mean of q(z|x) and the logarithm of its variance, side by side. A decoder gives logits in
the record's shape. Shapes are channels first and without the batch axis.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Shape = tuple[int, ...]

_SMALLEST = -12.0
"""Floor of the log-variance: a constant latent would make every divergence infinite."""


_PENALISED = 8


def posterior(encoded: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of q(z|x) from the encoder's output, (…, 2d) → (…, d) and (…, d)."""
    mean, log_variance = encoded.chunk(2, dim=-1)
    return mean, log_variance.clamp(_SMALLEST, 4.0).exp()


def kl_to_prior(mean: Tensor, variance: Tensor) -> Tensor:
    """KL(q(z|x) ‖ N(0, I)) in nats, (…, d) → (…)."""
    return 0.5 * (mean.square() + variance - 1.0 - variance.log()).sum(-1)


def elu_chain(*widths: int) -> nn.Sequential:
    """FC → ELU → … → FC."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers[:-1])


def mlp(shape: Shape, latent: int) -> tuple[nn.Module, nn.Module]:
    """FC(300) → ELU → FC(300) → ELU → FC, both ways (§6.5.1)."""
    size = torch.Size(shape).numel()
    encoder = nn.Sequential(nn.Flatten(), elu_chain(size, 300, 300, 2 * latent))
    return encoder, nn.Sequential(elu_chain(latent, 300, 300, size), nn.Unflatten(1, shape))


def conv(shape: Shape, latent: int) -> tuple[nn.Module, nn.Module]:
    """Four strided convolutions and, at half the paper's width, the decoder of Table 6: for a CPU."""
    channels, height, width = _picture(shape)
    encoder = nn.Sequential(
        *_halve(channels, 24),
        *_halve(24, 48),
        *_halve(48, 96),
        *_halve(96, 128),
        nn.Flatten(),
        nn.Linear(128 * (height // 16) * (width // 16), 2 * latent),
    )
    return encoder, _transposed(shape, latent, (128, 64, 32, 24, 16))


def densenet(shape: Shape, latent: int) -> tuple[nn.Module, nn.Module]:
    """Table 5: DenseNet of growth rate m = 12 and depth k = 82, and the decoder of Table 6.

    The paper prints 12 replications a block, and channel counts that belong to (k − 4)/6 = 13; the counts are
    followed. The output layer reads all positions of the last transition.
    """
    growth, layers = 12, (82 - 4) // 6
    channels, height, width = _picture(shape)
    parts: list[nn.Module] = [nn.Conv2d(channels, 2 * growth, 3, padding=1, bias=False)]
    c = 2 * growth
    for _ in range(3):
        for _ in range(layers):
            parts.append(_Dense(c, growth))
            c += growth
        parts += [nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2)]
        c //= 2
    parts += [nn.BatchNorm2d(c), nn.Flatten(), nn.Linear(c * (height // 8) * (width // 8), 2 * latent)]
    return nn.Sequential(*parts), _transposed(shape, latent, (256, 128, 64, 32, 16))


class _Dense(nn.Module):
    """Batch norm, ReLU, 1×1, batch norm, ReLU, 3×3; the new maps join the old ones."""

    def __init__(self, c_in: int, growth: int) -> None:
        super().__init__()
        self.maps = nn.Sequential(
            nn.BatchNorm2d(c_in),
            nn.ReLU(),
            nn.Conv2d(c_in, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W) → (B, C + growth, H, W)
        return torch.cat([x, self.maps(x)], dim=1)


def _halve(c_in: int, c_out: int) -> list[nn.Module]:
    return [nn.Conv2d(c_in, c_out, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()]


def _transposed(shape: Shape, latent: int, widths: tuple[int, ...]) -> nn.Module:
    """Table 6: a fully connected layer, four doubling blocks, a 5×5 transposed convolution."""
    channels, height, width = _picture(shape)
    h, w = height // 16, width // 16
    layers: list[nn.Module] = [nn.Linear(latent, widths[0] * h * w), nn.Unflatten(1, (widths[0], h, w))]
    for a, b in pairwise(widths):
        layers += [nn.ConvTranspose2d(a, b, 3, stride=2, padding=1, output_padding=1), nn.ReLU(), nn.BatchNorm2d(b)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], channels, 5, padding=2))


def _picture(shape: Shape) -> tuple[int, int, int]:
    if len(shape) != 3 or shape[1] % 16 or shape[2] % 16:
        raise ValueError("convolutional autoencoders take pictures whose sides are multiples of 16")
    return shape[0], shape[1], shape[2]


AUTOENCODERS: dict[str, Callable[[Shape, int], tuple[nn.Module, nn.Module]]] = {
    "mlp": mlp,
    "conv": conv,
    "densenet": densenet,
}


def lipschitz_excess(decoder: nn.Module, mean: Tensor, variance: Tensor, constant: float) -> Tensor:
    """The last term of Eq. 6 without κ: E (‖∇_z g_d(z)‖ − C_L)₊² on points between prior and posterior.

    z = αz₁ + (1 − α)z₂ with z₁ ~ p(z), z₂ ~ q(z|x). The norm of the Jacobian is the Frobenius norm, which bounds the
    spectral one, estimated by ‖Jᵀu‖ with random signs u. (The paper takes u = 1, the gradient of the sum of all
    outputs: outputs that change in opposite directions would hide each other.) A few records of the batch are enough
    for the mean, and a second derivative is dear.
    """
    mean, variance = mean[:_PENALISED], variance[:_PENALISED]
    alpha = torch.rand(len(mean), 1)
    between = alpha * torch.randn_like(mean) + (1 - alpha) * (mean + variance.sqrt() * torch.randn_like(mean)).detach()
    between.requires_grad_(True)
    was_training = decoder.training
    decoder.eval()  # batch norm would tie the records together, and learn the statistics of points in between
    pictures = torch.sigmoid(decoder(between))
    decoder.train(was_training)
    signs = torch.randint(0, 2, pictures.shape, dtype=pictures.dtype) * 2 - 1
    (gradient,) = torch.autograd.grad((pictures * signs).sum(), between, create_graph=True)
    return F.relu(gradient.norm(dim=1) - constant).square().mean()
