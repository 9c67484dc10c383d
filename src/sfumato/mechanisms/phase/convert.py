"""An ordinary network's equivariant twin (§3.1): the same layers and weights, on phase tensors."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn
from torch.fx import GraphModule, Node, Tracer

from sfumato.mechanisms.phase import conversion_rules as rules
from sfumato.mechanisms.phase.conversion_rules import NoTwin, shifted
from sfumato.mechanisms.phase.fuse import fuse
from sfumato.mechanisms.phase.layers import (
    Each,
    PhaseActivation,
    PhaseDropout,
    PhaseMaxPool,
    PhaseNorm,
)


@dataclass(frozen=True)
class LayerProblem:
    """A layer or call without a twin, and what to put instead."""

    layer: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.layer} ({self.what}): {self.remedy}"


class NotEquivariant(ValueError):
    """The network has layers without a twin; ``problems`` lists them all."""

    def __init__(self, problems: list[LayerProblem]) -> None:
        super().__init__("the network has no equivariant twin:\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = problems


def to_phase(
    module: nn.Module, *, c: float | Literal["auto"] | None = "auto", channels: int | None = None
) -> GraphModule:
    """The twin of ``module``, from phase tensors (B, d, C, …) to phase tensors.

    Weights are copied, biases dropped. Batch norms become Eq. 7, which has no scale, and with new statistics: train the
    twin before it is used. ReLU-like activations become Eq. 6 with this ``c``;
    "auto" is the paper's rule: 1 in a network with batch norm, else c_k = E‖f_k‖ (None). ``channels`` of the input are
    needed only where c_k stands before the first convolution. A dropout called as a function follows the twin's
    training mode. Raises ``NotEquivariant``.
    """
    walk = _Walk(module, channels)
    if walk.problems:
        raise NotEquivariant(walk.problems)
    return walk.rewritten(c)


def validate(module: nn.Module) -> list[LayerProblem]:
    """Every layer or call of ``module`` that ``to_phase`` cannot convert."""
    return _Walk(module, None).problems


@dataclass(frozen=True)
class _Map:
    """A value that depends on the input: what is known of a phase tensor, or (``sizes``) numbers made of its shape."""

    channels: int | None = None
    dims: int | None = None  # number of spatial axes
    sizes: bool = False


class _Walk:
    """One pass over the graph of a deep copy: notes replacements and problems, then rewrites."""

    def __init__(self, module: nn.Module, channels: int | None) -> None:
        self.root = copy.deepcopy(module)
        self.problems: list[LayerProblem] = []
        self.maps: dict[Node, _Map] = {}
        self.layers: dict[Node, nn.Module] = {}  # calls that become the call of a new layer
        self.weights: dict[Node, Node] = {}  # of functional convolutions
        self.activations: list[Node] = []
        self.twins: dict[str, nn.Module] = {}  # by the name of the layer, so that shared weights stay shared
        try:
            self.graph = Tracer().trace(self.root)
        except Exception as error:  # whatever the user's code or fx raises: all of it means "not traceable"
            self.problems = [
                LayerProblem("the network", f"torch.fx cannot trace it: {error}", "keep data out of the control flow")
            ]
            return
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        for extra in inputs[1:]:
            self.problems.append(LayerProblem(f"input '{extra.name}'", "a second input", "take one phase tensor"))
        self.maps[inputs[0]] = _Map(channels)
        for node in list(self.graph.nodes):
            self._visit(node)

    # what each operation becomes

    def _visit(self, node: Node) -> None:
        sources = [self.maps[source] for source in node.all_input_nodes if source in self.maps]
        if node.op in ("placeholder", "get_attr") or not sources:
            return  # does not depend on the input: weights and what is computed from them
        phases = [source for source in sources if not source.sizes]
        if node.op == "output":
            if node.args[0] not in self.maps or self.maps[node.args[0]].sizes:  # type: ignore[index]
                self.problems.append(LayerProblem("the network's output", "not one tensor", "return one phase tensor"))
            return
        if not phases and node.target is not operator.getitem:
            self.maps[node] = _Map(sizes=True)  # arithmetic on sizes
            return
        try:
            self.maps[node] = self._layer(node) if node.op == "call_module" else self._call(node)
        except NoTwin as refused:
            self.problems.append(LayerProblem(self._place(node), refused.what, refused.remedy))
            self.maps[node] = phases[0] if phases else _Map(sizes=True)

    def _place(self, node: Node) -> str:
        """Where in the user's module an operation stands."""
        if node.op == "call_module":
            return str(node.target)
        stack = list(node.meta.get("nn_module_stack", {}).values())
        owner = f"'{stack[-1][0]}'" if stack else "the network's forward"
        return f"a call of {_name(node)} in {owner}"

    def _input(self, node: Node) -> _Map:
        """What is known of the tensor that a layer or call works on."""
        x = node.args[0] if node.args else node.kwargs.get("input")
        if not isinstance(x, Node) or x not in self.maps or self.maps[x].sizes:
            raise NoTwin(_name(node))
        return self.maps[x]

    def _layer(self, node: Node) -> _Map:
        name = str(node.target)
        module = self.root.get_submodule(name)
        what = type(module).__name__
        x = self._input(node)
        if isinstance(module, rules.LINEAR_LAYERS):
            self.twins.setdefault(name, Each(rules.without_bias(module)))
            return _after_linear(module, x)
        if isinstance(module, rules.NORMS):
            self.twins.setdefault(name, PhaseNorm(module.num_features))
            return _Map(module.num_features, 2 if isinstance(module, nn.BatchNorm2d) else x.dims)
        if isinstance(module, rules.ACTIVATIONS):
            self.activations.append(node)
            return x
        if isinstance(module, rules.POOLS):
            if module.return_indices:
                raise NoTwin(f"{what}(return_indices=True)", "ask for no indices")
            self.twins.setdefault(name, PhaseMaxPool(module))
            return x
        if isinstance(module, rules.DROPOUTS):
            self.twins.setdefault(name, PhaseDropout(module.p, isinstance(module, rules.CHANNEL_DROPOUTS)))
            return x
        raise NoTwin(what)

    def _call(self, node: Node) -> _Map:
        target = node.target
        if target is operator.getitem:
            return self._item(node)
        if (target is getattr and node.args[1] == "shape") or target in rules.SHAPES:
            if len(node.args) > 1 and isinstance(node.args[1], int):
                node.update_arg(1, shifted(node.args[1], "size") if node.args[1] else 0)
            return _Map(sizes=True)
        if target in rules.SUMS or target in rules.PRODUCTS:
            return self._arithmetic(node)
        if target in rules.CATS:
            return self._cat(node)
        x = self._input(node)
        if target in rules.ACTIVATION_CALLS:
            self.activations.append(node)
            return x
        if target in rules.POOL_CALLS:
            given = dict(
                zip(("stride", "padding", "dilation", "ceil_mode", "return_indices"), node.args[2:], strict=False)
            )
            size = node.args[1] if len(node.args) > 1 else node.kwargs["kernel_size"]
            settings = {**given, **{k: v for k, v in node.kwargs.items() if k not in ("input", "kernel_size")}}
            if settings.pop("return_indices", False):
                raise NoTwin(f"{_name(node)}(return_indices=True)", "ask for no indices")
            self.layers[node] = PhaseMaxPool(rules.POOL_CALLS[target](size, **settings))  # type: ignore[arg-type]
            return x
        if target in rules.DROPOUT_CALLS:
            p = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
            self.layers[node] = PhaseDropout(p, rules.DROPOUT_CALLS[target])  # type: ignore[arg-type]
            return x
        if target in rules.LINEAR_CALLS or target in rules.WEIGHT_CALLS:
            return self._linear_call(node, x)
        return self._reshape(node, x)

    def _linear_call(self, node: Node, x: _Map) -> _Map:
        args, kwargs = list(node.args[1:]), {k: v for k, v in node.kwargs.items() if k != "input"}
        if _name(node) == "pad" and (kwargs.get("value") or (args[2] if len(args) > 2 else None)):
            raise NoTwin("pad with a constant", "pad with zeros: a constant does not turn with the phase")
        if node.target in rules.WEIGHT_CALLS:
            weight = kwargs.pop("weight", None) or args.pop(0)
            if not isinstance(weight, Node) or weight in self.maps:
                raise NoTwin(f"{_name(node)} with weights made of the input", "use constant weights")
            self.weights[node] = weight
            kwargs.pop("bias", None)
            args = [None, *args[1:]] if args else []
            x = _Map(None, x.dims)
        if any(isinstance(value, Node) for value in [*args, *kwargs.values()]):
            raise NoTwin(f"{_name(node)} with sizes from the input", "write the sizes as numbers")
        self.layers[node] = Each(rules.Call(node.target, *args, **kwargs))  # type: ignore[arg-type]
        return x

    def _arithmetic(self, node: Node) -> _Map:
        node.target = _OUT_OF_PLACE.get(node.target, node.target)
        parts = [*node.args[:2], *(node.kwargs[key] for key in ("input", "other") if key in node.kwargs)]
        found = [self.maps[part] for part in parts if isinstance(part, Node) and part in self.maps]
        phases = [part for part in found if not part.sizes]
        if node.target in rules.SUMS:
            if len(phases) != 2:
                raise NoTwin(
                    "adding a constant or a parameter",
                    "remove it: a bias does not turn with the phase; add feature maps",
                )
        elif len(phases) == 2:
            raise NoTwin("a product of two feature maps", rules.remedy_for("mul"))
        elif "div" in _name(node) and (not isinstance(parts[0], Node) or parts[0] not in self.maps):
            raise NoTwin("dividing by a feature map", rules.remedy_for("mul"))
        known = [part for part in phases if part.channels is not None]
        return (known or phases)[0]

    def _cat(self, node: Node) -> _Map:
        parts = node.args[0] if node.args else node.kwargs["tensors"]
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        assert isinstance(parts, (list, tuple)) and isinstance(axis, int)
        maps = [self.maps[part] for part in parts if isinstance(part, Node) and part in self.maps]
        if len(maps) < len(parts):
            raise NoTwin("joining feature maps with a constant", "join feature maps only")
        node.args, node.kwargs = (parts, self._axis(axis, maps[0], "cat")), {}
        counts = [one.channels for one in maps if one.channels is not None]
        whole = axis == 1 or (maps[0].dims is not None and axis == -1 - maps[0].dims)
        if whole:
            return _Map(sum(counts) if len(counts) == len(maps) else None, maps[0].dims)
        return maps[0]

    def _item(self, node: Node) -> _Map:
        source, index = node.args[0], node.args[1]
        assert isinstance(source, Node)
        if self.maps[source].sizes:
            if isinstance(index, slice):
                raise NoTwin("a slice of a shape", "write x.flatten(1), or name the sizes one by one")
            if source.op == "call_method" or source.target is getattr:  # the shape itself
                node.args = (source, index + 1 if isinstance(index, int) and index > 0 else index)
            return _Map(sizes=True)
        first = index[0] if isinstance(index, tuple) else index
        if first != slice(None):
            raise NoTwin("indexing the batch axis", "slice axis 1 and later: records must stay apart")
        rest = index[1:] if isinstance(index, tuple) else ()
        if any(isinstance(part, Node) for part in rest) or Ellipsis in rest:
            raise NoTwin("indexing with tensors or …", "slice with numbers")
        node.args = (source, (slice(None), slice(None), *rest))
        cut = rest and rest[0] != slice(None)
        return _Map(None if cut else self.maps[source].channels, self.maps[source].dims)

    def _reshape(self, node: Node, x: _Map) -> _Map:
        """Operations that only need their axes moved, or nothing at all."""
        target, source = node.target, node.args[0] if node.args else node.kwargs["input"]
        if target in rules.UNCHANGED:
            return x
        if target in rules.FLATTENS:
            start, end = _settings(node, start_dim=0, end_dim=-1)
            node.args, node.kwargs = (source, self._axis(start, x, "flatten"), shifted(end, "flatten")), {}
            return (
                x if x.dims == 0 else _Map(x.channels if start > 1 else None, 0 if start == 1 and end == -1 else None)
            )
        if target in rules.MEANS:
            axes, keep = _settings(node, dim=None, keepdim=False)
            if axes is None:
                raise NoTwin(f"{_name(node)} over everything", "name the axes: records must stay apart")
            axes = [axes] if isinstance(axes, int) else list(axes)
            node.args, node.kwargs = (source, [self._axis(axis, x, _name(node)) for axis in axes], keep), {}
            kept = None if x.dims is None else x.dims - (0 if keep else len(axes))
            spatial = all(axis > 1 or (x.dims is not None and axis >= -x.dims) for axis in axes)
            return _Map(x.channels if spatial else None, kept)
        if target in rules.TRANSPOSES:
            a, b = _settings(node, dim0=0, dim1=0)
            node.args, node.kwargs = (source, self._axis(a, x, "transpose"), self._axis(b, x, "transpose")), {}
            return _Map()
        if target in rules.PERMUTES or target in rules.VIEWS:
            return self._view(node, source)
        raise NoTwin(_name(node))

    def _view(self, node: Node, source: Any) -> _Map:
        """x.view(B, …) → x.reshape(B, d, …), x.permute(0, …) → x.permute(0, 1, …)."""
        shape: list[Any] = list(node.args[1:]) or [node.kwargs.get("shape", node.kwargs.get("dims"))]
        shape = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        if node.target in rules.PERMUTES:
            if shape[0] != 0:
                raise NoTwin("permute of the batch axis", "keep axis 0 first: records must stay apart")
            node.args, node.kwargs = (source, (0, 1, *(shifted(axis, "permute") for axis in shape[1:]))), {}
            return _Map()
        first = shape[0]
        if not (first == -1 or (isinstance(first, Node) and first in self.maps)):
            raise NoTwin(f"{_name(node)} that does not keep the batch axis", "write x.flatten(1)")
        with self.graph.inserting_before(node):
            batch = self.graph.call_method("size", (source, 0)) if first == -1 else first
            components = self.graph.call_method("size", (source, 1))
        node.op, node.target = "call_method", "reshape"
        node.args, node.kwargs = (source, batch, components, *shape[1:]), {}
        return _Map(shape[1] if len(shape) > 1 and isinstance(shape[1], int) and shape[1] > 0 else None, len(shape) - 2)

    def _axis(self, axis: int, x: _Map, what: str) -> int:
        """``shifted``; a negative axis that is known to be the batch axis is refused too."""
        return shifted(0 if x.dims is not None and axis == -2 - x.dims else axis, what)

    # the twin

    def rewritten(self, c: float | Literal["auto"] | None) -> GraphModule:
        normed = any(isinstance(twin, PhaseNorm) for twin in self.twins.values())
        threshold = (1.0 if normed else None) if c == "auto" else c
        for node in self.activations:
            self._activation(node, threshold)
        for node, layer in self.layers.items():
            weight = self.weights.get(node)
            self._becomes(node, layer, (self._source(node), *([weight] if weight else [])))
        for node in self.graph.find_nodes(op="get_attr"):
            owner, _, attribute = str(node.target).rpartition(".")
            if not node.users:
                self.graph.erase_node(node)  # a bias
            elif isinstance(self.twins.get(owner), Each):
                node.target = f"{owner}.module.{attribute}"
        for name, twin in self.twins.items():
            self.root.set_submodule(name, twin)
        self.graph.lint()
        twin = fuse(GraphModule(self.root, self.graph, "Phase" + type(self.root).__name__))
        return twin.train(self.root.training)

    def _activation(self, node: Node, c: float | None) -> None:
        source = self._source(node)
        channels = self.maps[source].channels
        if c is None and channels is None:
            raise ValueError(
                f"c_k needs the number of channels, unknown before {self._place(node)}: "
                "give channels=… if that is the input's, or put the activation after a convolution or linear layer"
            )
        self._becomes(node, PhaseActivation(channels, c), (source,))

    def _source(self, node: Node) -> Node:
        source = node.args[0] if node.args else node.kwargs["input"]
        assert isinstance(source, Node)
        return source

    def _becomes(self, node: Node, layer: nn.Module, args: tuple[Node, ...]) -> None:
        """The node calls ``layer``: at its own name if it is a layer's first call, else at the node's."""
        taken = {other.target for other in self.graph.nodes if other is not node and other.op == "call_module"}
        name = str(node.target) if node.op == "call_module" and node.target not in taken else node.name
        while name in taken or (name != node.target and hasattr(self.root, name)):
            name += "_"
        self.root.add_module(name, layer) if "." not in name else self.root.set_submodule(name, layer)
        node.op, node.target, node.args, node.kwargs = "call_module", name, args, {}


_OUT_OF_PLACE: dict[Any, Callable[..., Any] | str] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    **{f"{name}_": name for name in ("add", "sub", "mul", "div")},
}


def _name(node: Node) -> str:
    """How the user wrote the call."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))


def _settings(node: Node, **defaults: Any) -> list[Any]:
    """The arguments after the input, by name or position."""
    given = dict(zip(defaults, node.args[1:], strict=False))
    return [given.get(name, node.kwargs.get(name, default)) for name, default in defaults.items()]


def _after_linear(module: nn.Module, x: _Map) -> _Map:
    """Channels and spatial axes after a linear layer."""
    if isinstance(module, nn.modules.conv._ConvNd):
        return _Map(module.out_channels, len(module.kernel_size))
    if isinstance(module, nn.Linear):
        return _Map(module.out_features, 0) if x.dims in (0, None) else x
    if isinstance(module, nn.Flatten):
        return x if x.dims == 0 else _Map(None, 0 if (module.start_dim, module.end_dim) == (1, -1) else None)
    if isinstance(module, (nn.Unflatten, nn.PixelShuffle, nn.PixelUnshuffle, nn.Fold, nn.Unfold)):
        return _Map()
    return x
