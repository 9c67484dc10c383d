"""What becomes of a layer or a call in the equivariant twin, and what to put instead of those that have none."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LINEAR_LAYERS = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear),
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
    *(nn.Flatten, nn.Unflatten, nn.Upsample, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle, nn.Identity),
    *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d),
    *(nn.CircularPad1d, nn.CircularPad2d, nn.ConstantPad1d, nn.ConstantPad2d, nn.Fold, nn.Unfold),
)
ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.ELU, nn.Hardswish)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
POOLS = (nn.MaxPool1d, nn.MaxPool2d)
CHANNEL_DROPOUTS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
DROPOUTS = (nn.Dropout, *CHANNEL_DROPOUTS)

ACTIVATION_CALLS = {
    *(F.relu, F.relu_, torch.relu, torch.relu_, F.leaky_relu, F.leaky_relu_, F.relu6, F.elu, F.elu_, F.hardswish),
    *("relu", "relu_"),
}
POOL_CALLS: dict[object, type[nn.MaxPool1d] | type[nn.MaxPool2d]] = {
    F.max_pool1d: nn.MaxPool1d,
    F.max_pool2d: nn.MaxPool2d,
}
DROPOUT_CALLS = {F.dropout: False, F.dropout1d: True, F.dropout2d: True}
LINEAR_CALLS = {
    *(F.avg_pool1d, F.avg_pool2d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.interpolate, F.pixel_shuffle),
    *(F.pixel_unshuffle, F.pad),
}
WEIGHT_CALLS = {F.conv1d, F.conv2d, F.linear, F.conv_transpose1d, F.conv_transpose2d}
SUMS: set[object] = {
    operator.add,
    operator.iadd,
    operator.sub,
    operator.isub,
    torch.add,
    torch.sub,
    "add",
    "add_",
    "sub",
    "sub_",
}
PRODUCTS: set[object] = {
    operator.mul,
    operator.imul,
    operator.truediv,
    operator.itruediv,
    torch.mul,
    torch.div,
    torch.true_divide,
}
PRODUCTS |= {"mul", "mul_", "div", "div_"}
UNCHANGED = {operator.neg, torch.neg, "neg", "contiguous", "clone", "detach", "float", "double", "to", torch.clone}
FLATTENS = {torch.flatten, "flatten"}
MEANS = {torch.mean, "mean", torch.sum, "sum"}
CATS = {torch.cat, torch.concat, torch.concatenate}
VIEWS = {"view", "reshape", torch.reshape}
PERMUTES = {"permute", torch.permute}
TRANSPOSES = {"transpose", torch.transpose}
SHAPES = {"size"}

_RELU = "use nn.ReLU: it becomes δ of Eq. 6"
_NORM = "use nn.BatchNorm1d/2d: it becomes norm of Eq. 7"
_AFTER = "put it after the decryption, into the device's tail"
_NONE = "there is no equivariant twin: put it into the device's part (decrypt_from before it) or use a convolution"
_GATE = "a product of two feature maps turns the phase twice: remove the gate or put it into the device's part"
_REMEDIES = {
    **dict.fromkeys(
        ("gelu", "silu", "mish", "softplus", "selu", "celu", "prelu", "hardtanh", "rrelu", "softsign", "hardsigmoid"),
        _RELU,
    ),
    **dict.fromkeys(("tanhshrink", "hardshrink", "softshrink", "threshold", "logsigmoid", "clamp", "abs"), _RELU),
    **dict.fromkeys(("layernorm", "groupnorm", "rmsnorm", "localresponsenorm", "syncbatchnorm", "batchnorm"), _NORM),
    **{f"{kind}{n}d": _NORM for kind in ("instancenorm", "batchnorm") for n in (1, 2, 3)},
    **dict.fromkeys(("softmax", "logsoftmax", "softmax2d", "sigmoid", "tanh", "softmin", "normalize"), _AFTER),
    **dict.fromkeys(("multiheadattention", "scaleddotproductattention", "embedding", "embeddingbag"), _NONE),
    **dict.fromkeys(("rnn", "lstm", "gru", "rnncell", "lstmcell", "grucell"), _NONE),
    **dict.fromkeys(("alphadropout", "featurealphadropout"), "use nn.Dropout: it has a twin"),
    **dict.fromkeys(("bilinear", "mul", "imul", "prod"), _GATE),
    **dict.fromkeys(("max", "amax", "adaptivemaxpool1d", "adaptivemaxpool2d", "maxpool3d"), "use nn.MaxPool1d/2d"),
}


class NoTwin(Exception):
    """This layer or call has no twin; ``what`` it is and the ``remedy``."""

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy or remedy_for(what)


def remedy_for(what: str) -> str:
    """What to put instead of a layer or call of this name."""
    name = what.rpartition(".")[2].replace("_", "").lower()
    if name.startswith("transformer"):
        return _NONE
    return _REMEDIES.get(name, _NONE)


class Call(nn.Module):
    """A function with its settings, as a layer; further tensors (a weight) come right after the input."""

    def __init__(self, function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, x: Tensor, *tensors: Tensor) -> Tensor:
        return self.function(x, *tensors, *self.args, **self.kwargs)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", "")


def without_bias(module: nn.Module) -> nn.Module:
    """The same linear layer without its bias; refuses the few settings that are not linear or touch the batch axis."""
    if isinstance(module, (nn.ConstantPad1d, nn.ConstantPad2d)) and module.value != 0:
        raise NoTwin(type(module).__name__, "pad with zeros (nn.ZeroPad2d): a constant does not turn with the phase")
    if isinstance(module, nn.Flatten) and module.start_dim == 0:
        raise NoTwin("Flatten(start_dim=0)", "flatten from axis 1: the batch axis must stay")
    if isinstance(module, nn.Unflatten) and module.dim in (0, "N"):
        raise NoTwin("Unflatten(0, …)", "unflatten axis 1 or later: the batch axis must stay")
    if getattr(module, "bias", None) is not None:
        module.bias = None  # type: ignore[assignment]
    return module


def shifted(axis: int, what: str) -> int:
    """An axis of (B, C, …) in (B, d, C, …); negative ones count from the end and stay."""
    if axis == 0:
        raise NoTwin(f"{what} over the batch axis", "work on axis 1 and later: records must stay apart")
    return axis + 1 if axis > 0 else axis
