"""The mirrored decoder fits any chain and refuses the rest."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sfumato.nets.doubling_convolution import DoublingConvTranspose2d
from sfumato.nets.encoders import ENCODERS, output_shape
from sfumato.nets.mirror_decoder import NotAChain, mirror
from sfumato.nets.residual_decoder import residual_decoder

SHAPES = {
    "lenet": [(1, 28, 28), (9, 128), (1, 32, 32)],
    "alexnet": [(3, 32, 32)],
    "vgg16": [(3, 32, 32)],
    "mlp": [(30,)],
}
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_mirror_of_a_provided_encoder_gives_records_back(name: str, shape: tuple[int, ...]) -> None:
    encoder = ENCODERS[name](shape)
    out = mirror(encoder, shape)(encoder(torch.rand(4, *shape)))
    assert out.shape == (4, *shape)
    assert out.min() >= 0 and out.max() <= 1


def test_mirror_reverses_the_layers_one_by_one() -> None:
    encoder = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )
    kinds = [type(layer) for layer in mirror(encoder, (1, 8, 8))]  # doubled where it is convolved
    assert kinds == [nn.Linear, nn.Unflatten, nn.Identity, nn.ReLU, nn.BatchNorm2d, DoublingConvTranspose2d, nn.Sigmoid]


@settings(max_examples=25, deadline=None)
@given(
    side=st.integers(12, 33),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    pool=st.integers(1, 3),
    dims=st.sampled_from([1, 2]),
)
def test_mirror_fits_any_convolution_and_pooling(
    side: int, kernel: int, stride: int, padding: int, pool: int, dims: int
) -> None:
    conv, max_pool = (nn.Conv1d, nn.MaxPool1d) if dims == 1 else (nn.Conv2d, nn.MaxPool2d)
    shape = (2, *[side] * dims)
    encoder = nn.Sequential(
        conv(2, 3, kernel, stride=stride, padding=min(padding, kernel // 2)), nn.ReLU(), max_pool(pool)
    )
    features = encoder(torch.rand(2, *shape))
    assert mirror(encoder, shape)(features).shape == (2, *shape)


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(x + self.a(x))


def test_mirror_refuses_a_network_that_is_not_a_chain() -> None:
    with pytest.raises(NotAChain, match="input of 'b' is not the output"):
        mirror(Skip(), (1, 8, 8))


def test_mirror_names_every_layer_without_a_mirror_image() -> None:
    encoder = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 4), nn.Softmax(1))
    with pytest.raises(NotAChain, match=r"'0' \(LayerNorm\).*'2' \(Softmax\)"):
        mirror(encoder, (8,))


@pytest.mark.parametrize("record", [(1, 28, 28), (3, 32, 32), (9, 128), (1, 15, 17), (20,)])
@pytest.mark.parametrize("payload", [None, (64,), (8, 3, 3)])
def test_residual_decoder_takes_any_payload(record: tuple[int, ...], payload: tuple[int, ...] | None) -> None:
    payload = payload or record
    out = residual_decoder(payload, record, 16).eval()(torch.rand(3, *payload))
    assert out.shape == (3, *record)
    assert out.min() >= 0 and out.max() <= 1


def test_residual_decoder_takes_a_raw_record_as_it_is_before_training() -> None:
    x = torch.rand(3, 1, 28, 28)
    assert torch.allclose(residual_decoder((1, 28, 28), (1, 28, 28)).eval()(x), x, atol=1e-6)


def test_output_shape_leaves_the_mode_alone() -> None:
    encoder = ENCODERS["lenet"]((1, 28, 28)).train()
    assert output_shape(encoder, (1, 28, 28)) == (32, 4, 4)
    assert encoder.training


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("alexnet", (3, 32, 32)), ("lenet", (1, 31, 28))])
def test_a_mirror_that_doubles_where_it_convolves_gives_what_its_layers_give_one_by_one(
    name: str, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS[name](shape)
    features = encoder(torch.rand(4, *shape)).detach()
    ours = mirror(encoder, shape)
    pools = [before for before, layer in _inputs(encoder, shape) if isinstance(layer, nn.MaxPool2d)]
    plain: list[nn.Module] = []
    for layer in ours:
        if isinstance(layer, (nn.Identity, nn.Upsample)):
            plain.append(nn.Upsample(size=pools.pop(), mode="nearest"))
        elif isinstance(layer, nn.ConvTranspose2d):
            again = nn.ConvTranspose2d(
                layer.in_channels, layer.out_channels, layer.kernel_size, padding=layer.padding,
                output_padding=layer.output_padding,
            )  # fmt: skip
            again.load_state_dict(layer.state_dict())
            plain.append(again)
        else:
            plain.append(layer)
    assert torch.allclose(ours.train()(features), nn.Sequential(*plain).train()(features), atol=1e-5)


def _inputs(encoder: nn.Sequential, shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], nn.Module]]:
    """The sides of what each layer takes."""
    x, found = torch.zeros(1, *shape), []
    for layer in encoder.eval():
        found.append((tuple(x.shape[2:]), layer))
        x = layer(x)
    return found
