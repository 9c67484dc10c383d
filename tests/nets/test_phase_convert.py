"""A network becomes its equivariant twin, or the full list of what stands in the way; and it is cut in three."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from sfumato.mechanisms.phase import (
    NETWORKS,
    Each,
    NotEquivariant,
    PhaseActivation,
    PhaseDropout,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
    SplitError,
    layers,
    rotate,
    split,
    to_phase,
    validate,
)
from sfumato.mechanisms.phase.networks import resnet


def error(network: nn.Module, x: Tensor) -> float:
    """‖Φ(R x) − R Φ(x)‖ / ‖Φ(x)‖ for rotations and reflections, with the same chance in both passes."""
    R = torch.linalg.qr(torch.randn(len(x), x.shape[1], x.shape[1], dtype=x.dtype))[0]
    R[::2, 0] *= -1.0
    with torch.no_grad():
        torch.manual_seed(1)
        y = network(x)
        torch.manual_seed(1)
        turned = network(rotate(x, R))
    return float((turned - rotate(y, R)).norm() / y.norm())


class Functional(nn.Module):
    """Calls of everything that is not a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.other = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.relu = nn.ReLU(inplace=True)
        self.scale = nn.Parameter(torch.ones(1, 6, 1, 1))
        self.fc = nn.Linear(12, 5)
        self.fc2 = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(x))
        x = self.relu(self.other(x)) * self.scale + x
        x = F.max_pool2d(x, 2, stride=1) * 0.5
        x = F.avg_pool2d(F.relu(x), kernel_size=2)
        x = F.dropout(x, 0.2, training=self.training)
        y = F.interpolate(F.adaptive_avg_pool2d(x, 2), scale_factor=1)
        x = torch.cat([y, -F.conv2d(y, self.other.weight, self.other.bias, 1, 1, 1, 6)], dim=1)
        x = torch.add(x, F.pad(x, (1, 1, 1, 1))[:, :, 1:-1, 1:-1], alpha=0.3)
        x = x.permute(0, 2, 3, 1).transpose(1, 3).reshape(x.shape[0], 12, -1)
        x = x.view(x.size(0), 12, 2, 2)
        x += torch.mean(x, [2, 3], keepdim=True)
        x = self.fc(x.mean((2, 3)).view(x.size(0), -1)).relu()
        return self.fc2(torch.flatten(x, 1)).flatten(1)


class Bottleneck(nn.Module):
    def __init__(self, c_in: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)  # one layer, three calls
        self.down = nn.Sequential(nn.Conv2d(c_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += self.down(x)
        return self.relu(out)


class Wide(nn.Module):
    """A block of a wide residual network: norm and activation come first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        out = self.dropout(self.conv1(F.relu(self.bn1(x))))
        return torch.add(x, self.conv2(F.relu(self.bn2(out))))


SMALL = {
    "functional": Functional,
    "bottleneck": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), Bottleneck(4, 2, 2), Bottleneck(8, 2), nn.Flatten()),
    "wide": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), Wide(4), Wide(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "depthwise": lambda: nn.Sequential(
        nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 6, 3, groups=6), nn.Hardswish(), nn.Dropout2d(0.2), nn.MaxPool2d(2)
    ),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("c", [1.0, None, "auto"])
def test_small_networks_become_equivariant(name: str, c: float | None) -> None:
    torch.manual_seed(0)
    twin = to_phase(SMALL[name](), c=c)  # type: ignore[arg-type]
    for d in (2, 3, 4):
        x = torch.randn(4, d, 3, 8, 8)
        assert error(twin.train(), x) < 1e-5
        assert error(twin.eval(), x) < 1e-5
        assert twin(x).shape[:2] == (4, d)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**31), d=st.sampled_from([2, 3, 4]), train=st.booleans())
def test_random_chains_become_equivariant(data: st.DataObject, seed: int, d: int, train: bool) -> None:
    torch.manual_seed(seed)
    chain: list[nn.Module] = []
    width = 3
    for _ in range(data.draw(st.integers(1, 4))):
        out = data.draw(st.sampled_from([2, 4, 6]))
        chain.append(
            nn.Conv2d(width, out, data.draw(st.sampled_from([1, 3])), padding=1, bias=data.draw(st.booleans()))
        )
        width = out
        extra = [nn.BatchNorm2d(out), nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.MaxPool2d(2, 1), nn.AvgPool2d(2, 1)]
        chain += data.draw(st.lists(st.sampled_from([*extra, nn.Dropout(0.2)]), max_size=3, unique=True))
    twin = to_phase(nn.Sequential(*chain, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 5)))
    x = torch.randn(3, d, 3, 1, 1) + 0.5 * torch.randn(3, d, 3, 12, 12)  # averages of pure noise are rounding errors
    twin, x = twin.double(), x.double()  # of two rows that are nearly as long, rounding may pool the other one
    twin.train()(x)
    assert error(twin.train(train), x) < 1e-5


@pytest.mark.parametrize("name", NETWORKS)
def test_the_middle_of_every_provided_network_is_equivariant(name: str) -> None:
    torch.manual_seed(0)
    blueprint = NETWORKS[name]
    for shape in ((30,),) if name == "mlp" else ((3, 16, 16), (2, 32)) if "110" not in name else ((3, 8, 8),):
        network = blueprint.build(shape, 5)
        parts = split(network, blueprint.encrypt_to, blueprint.decrypt_from, shape)
        x = torch.randn(3, *shape)
        twin = to_phase(parts.middle)
        a = parts.head.eval()(x)
        assert torch.allclose(parts.tail.eval()(parts.middle.eval()(a)), network.eval()(x), atol=1e-5)
        z = torch.stack([a, torch.randn_like(a)], 1)
        assert error(twin.train(), z) < 1e-5
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layers, "MOMENTUM", 1.0)
            twin(z)  # running statistics that fit, as training leaves them
        assert error(twin.eval(), z) < 1e-5


def test_alpha_and_beta_cut_where_the_paper_does() -> None:
    for name, last in (("resnet20-alpha", "layer3.0"), ("resnet32-beta", "layer3.3")):
        blueprint = NETWORKS[name]
        parts = split(blueprint.build((3, 32, 32), 10), blueprint.encrypt_to, blueprint.decrypt_from, (3, 32, 32))
        features = parts.head(torch.rand(2, 3, 32, 32))
        assert features.shape == (2, 16, 32, 32)
        assert parts.middle(features).shape == (2, 64, 8, 8)
        owners = {key.rsplit(".", 2)[0] for key in parts.middle.state_dict() if "shortcut" not in key}
        assert max(owners) == last


def test_small_records_and_odd_depths_are_refused() -> None:
    for name, blueprint in NETWORKS.items():
        if name != "mlp":
            with pytest.raises(ValueError, match="sides of at least"):
                blueprint.build((3, 2, 2), 10)
            with pytest.raises(ValueError, match="mlp"):
                blueprint.build((10,), 10)
    with pytest.raises(ValueError, match="6n"):
        resnet((3, 32, 32), 10, depth=21)


def test_the_users_network_is_untouched_and_its_weights_are_copied() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    before = copy.deepcopy(network)
    twin = to_phase(network)
    assert str(network) == str(before)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), before.parameters(), strict=True))
    conv = twin.get_submodule("0.module")
    assert isinstance(conv, nn.Conv2d) and conv.bias is None and network[0].bias is not None
    assert torch.equal(conv.weight, network[0].weight) and conv.weight is not network[0].weight
    assert isinstance(twin.get_submodule("1"), PhaseNormActivation)


@pytest.mark.parametrize("name", [*SMALL, "lenet", "resnet20-alpha"])
def test_inference_in_place_changes_neither_input_nor_result(name: str) -> None:
    torch.manual_seed(0)
    twin = to_phase(SMALL[name]() if name in SMALL else NETWORKS[name].build((3, 8, 8), 3)).eval()
    x = torch.randn(4, 2, 3, 8, 8)
    before = x.clone()
    with torch.no_grad():
        y = twin(x)
    assert torch.equal(x, before)
    assert torch.allclose(y, twin(x), atol=1e-6)


def test_c_follows_the_papers_rule() -> None:
    def thresholds(twin: nn.Module) -> set[float | None]:
        return {m.c for m in twin.modules() if isinstance(m, (PhaseActivation, PhaseNormActivation))}

    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    normed = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    assert thresholds(to_phase(plain)) == {None}
    assert thresholds(to_phase(normed)) == {1.0}
    assert thresholds(to_phase(normed, c=None)) == {None}
    assert thresholds(to_phase(plain, c=2.0)) == {2.0}
    with pytest.raises(ValueError, match="channels="):
        to_phase(nn.Sequential(nn.ReLU(), nn.Conv2d(3, 4, 3)))
    first = to_phase(nn.Sequential(nn.ReLU(), nn.Conv2d(3, 4, 3)), channels=3).get_submodule("0")
    assert isinstance(first, PhaseActivation) and first.mean_norm is not None and len(first.mean_norm) == 3


def test_a_shared_activation_is_one_per_call_and_shared_weights_stay_shared() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.relu = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self.relu(self.conv(self.relu(self.conv(x))))

    twin = to_phase(Shared())
    activations = [m for m in twin.modules() if isinstance(m, PhaseActivation)]
    assert len(activations) == 2
    assert sum(isinstance(m, nn.Conv2d) for m in twin.modules()) == 1
    twin(torch.randn(2, 2, 3, 8, 8))
    assert not torch.equal(*(m.mean_norm for m in activations))  # type: ignore[arg-type]


def test_layers_become_what_the_paper_says() -> None:
    network = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.MaxPool1d(2), nn.Dropout1d(0.1), nn.LeakyReLU())
    kinds = [type(layer) for layer in to_phase(network).children()]
    assert kinds == [Each, PhaseNorm, PhaseMaxPool, PhaseDropout, PhaseActivation]


def test_every_problem_is_listed_with_a_remedy() -> None:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4, 1, 1))

        def forward(self, x: Tensor) -> Tensor:
            x = torch.sigmoid(x) * x + self.bias
            return F.gelu(x + 1.0) / x

    network = nn.Sequential()
    network.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.GroupNorm(2, 4), nn.SiLU(), nn.LayerNorm(6))
    network.wrong = Wrong()
    network.pad = nn.ConstantPad2d(1, 0.5)
    network.head = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(0), nn.Softmax(-1))
    problems = validate(network)
    found = [(problem.layer, problem.what) for problem in problems]
    assert {layer for layer, _ in found if "call" not in layer} == {
        *("features.1", "features.2", "features.3", "features.4", "pad", "head.0", "head.1", "head.2"),
    }
    calls = [(layer, what) for layer, what in found if "call" in layer]
    assert len(calls) == 6 and all(layer.endswith("in 'wrong'") for layer, _ in calls)
    assert sum("adding a constant" in what for _, what in calls) == 2
    remedies = {problem.what: problem.remedy for problem in problems}
    assert (
        "nn.ReLU" in remedies["GELU"] and "BatchNorm" in remedies["LayerNorm"] and "decryption" in remedies["Softmax"]
    )
    with pytest.raises(NotEquivariant, match=r"features.1 .*GELU") as raised:
        to_phase(network)
    assert raised.value.problems == problems


def test_attention_recurrence_and_embeddings_are_sent_to_the_device() -> None:
    for layer in (nn.TransformerEncoderLayer(4, 2), nn.Embedding(3, 4), nn.LSTM(4, 4), nn.MultiheadAttention(4, 2)):
        (problem,) = validate(nn.Sequential(layer))
        assert problem.layer == "0" and "decrypt_from" in problem.remedy


def test_mixing_records_is_refused() -> None:
    class Mixing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = x[0] + x.mean() + x.mean(0)
            return torch.cat([x, x]).flatten()

    assert len(validate(Mixing())) == 5


def test_an_untraceable_network_is_one_problem() -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    (problem,) = validate(Branching())
    assert "trace" in problem.what and "control flow" in problem.what
    with pytest.raises(SplitError, match="cannot trace"):
        split(nn.Sequential(nn.Conv2d(1, 1, 1), Branching(), nn.ReLU()), "0", "2", (1, 4, 4))


def test_a_converted_network_learns() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 2)
    )
    twin = to_phase(network)
    labels = torch.arange(64) % 2
    x = torch.randn(64, 2, 1, 8, 8)
    x[labels == 1, :, :, 2:6, 2:6] *= 3.0  # what tells the classes apart survives a rotation
    optimiser = torch.optim.Adam(twin.parameters(), 3e-3)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(twin(x).square().sum(1), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_a_split_network_keeps_its_names_and_shares_its_layers() -> None:
    network = resnet((3, 8, 8), 4)
    parts = split(network, "layer1", "layer3.1", (3, 8, 8))
    keys = [set(part.state_dict()) for part in parts]
    assert set.union(*keys) == set(network.state_dict()) and sum(map(len, keys)) == len(network.state_dict())
    assert parts.head.get_submodule("conv1") is not network.conv1
    assert all(part.training for part in parts)
    assert set(split(network, "conv1", "fc", (3, 8, 8)).tail.state_dict()) == {"fc.weight", "fc.bias"}


class Skipping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Conv2d(3, 3, 1) for _ in range(4))
        self.unused = nn.ReLU()
        self.twice = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        a = self.twice(self.a(x))
        b = self.b(a)
        return self.d(self.twice(self.c(b)) + a)


@pytest.mark.parametrize(
    ("encrypt_to", "decrypt_from", "reason"),
    [
        ("aa", "d", "no module 'aa'; did you mean 'a'.*stages are: a, b, c, d"),
        ("nothing", "d", "no module 'nothing'; .*stages are: a, b"),
        ("c", "a", "runs before"),
        ("a", "a", "nothing is left"),
        ("c", "twice", "called 2 times"),
        ("a", "unused", "does nothing"),
        ("b", "d", "skip connection crosses the cut at 'b': what 'twice' makes is used again by a call of add"),
    ],
)
def test_impossible_cuts_say_why(encrypt_to: str, decrypt_from: str, reason: str) -> None:
    with pytest.raises(SplitError, match=reason):
        split(Skipping(), encrypt_to, decrypt_from, (3, 4, 4))


def test_cuts_of_chains_say_why() -> None:
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()))
    for encrypt_to, decrypt_from, reason in (
        ("0", "1", "nothing is left"),
        ("2", "2.0", "inside"),
        ("2.0", "2", "inside"),
    ):
        with pytest.raises(SplitError, match=reason):
            split(network, encrypt_to, decrypt_from, (3, 4, 4))
    with pytest.raises(SplitError, match="records of shape"):
        split(network, "0", "2", (1, 4, 4))


def test_a_phase_network_exports_in_plain_operations() -> None:
    torch.manual_seed(0)
    twin = to_phase(SMALL["bottleneck"]()).eval()
    pooled = to_phase(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    ).eval()
    x = torch.randn(2, 2, 3, 8, 8)
    batch = torch.export.Dim("batch", min=1, max=64)
    for network in (twin, pooled):
        exported = torch.export.export(network, (x,), dynamic_shapes=({0: batch},))
        y = torch.randn(5, 2, 3, 8, 8)
        assert torch.allclose(exported.module()(y), network(y), atol=1e-5)


@pytest.mark.parametrize("name", ["lenet", "resnet20-alpha"])
def test_a_phase_network_exports_to_onnx_for_any_number_of_records(name: str) -> None:
    import onnxruntime

    torch.manual_seed(0)
    blueprint, shape = NETWORKS[name], (3, 16, 16)
    parts = split(blueprint.build(shape, 4), blueprint.encrypt_to, blueprint.decrypt_from, shape)
    twin = to_phase(parts.middle)
    rows = parts.head.eval()(torch.rand(12, *shape)).detach()
    twin(rows.view(6, 2, *rows.shape[1:]))  # so that statistics are those of features
    twin.eval()
    x = rows.view(6, 2, *rows.shape[1:])
    program = torch.onnx.export(twin, (x,), dynamo=True, external_data=False, dynamic_shapes=({0: "batch"},))
    assert program is not None
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for count in (6, 1):
        (y,) = session.run(None, {session.get_inputs()[0].name: x[:count].numpy()})
        assert torch.allclose(torch.from_numpy(y), twin(x[:count]), atol=1e-4)
