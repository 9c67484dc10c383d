"""The same twin with fewer passes over memory; every rule keeps the result."""

from __future__ import annotations

import operator

from torch import Tensor, nn
from torch.fx import GraphModule, Node

from sfumato.mechanisms.phase.layers import (
    Each,
    PhaseActivation,
    PhaseActivationPool,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
)


def add_to(a: Tensor, b: Tensor) -> Tensor:
    """a + b, in the memory of a where that has room."""
    return a.add_(b) if a.shape == b.shape else a + b


def fuse(twin: GraphModule) -> GraphModule:
    """No identities, norm with δ, δ with the pool after it, sums in place, and in inference δ and norm in place."""
    for node in list(twin.graph.nodes):
        layer = _layer(twin, node)
        if isinstance(layer, Each) and isinstance(layer.module, nn.Identity):
            node.replace_all_uses_with(node.all_input_nodes[0])
            twin.graph.erase_node(node)
            continue
        before = _only_source(twin, node) if isinstance(layer, (PhaseActivation, PhaseMaxPool)) else None
        previous = None if before is None else _layer(twin, before)
        if before is None or previous is None:
            continue
        if isinstance(layer, PhaseActivation) and type(previous) is PhaseNorm and layer.c is not None:
            _merge(twin, before, node, PhaseNormActivation(len(previous.mean_square), layer.c))
        elif isinstance(layer, PhaseMaxPool) and type(previous) is PhaseActivation:
            _merge(twin, before, node, PhaseActivationPool(previous, layer))
    for node in list(twin.graph.nodes):
        if node.op == "call_function" and node.target is operator.add and len(node.args) == 2:
            mine = [
                part for part in node.args if isinstance(part, Node) and _is_norm(twin, part) and len(part.users) == 1
            ]
            if mine:
                other = node.args[1] if node.args[0] is mine[0] else node.args[0]
                node.target, node.args = add_to, (mine[0], other)
        layer, before = _layer(twin, node), _only_source(twin, node)
        if isinstance(layer, (PhaseNorm, PhaseActivation)) and before is not None and len(_calls(twin, node)) == 1:
            layer.overwrite = _is_fresh(twin, before)
    twin.delete_all_unused_submodules()
    twin.graph.lint()
    twin.recompile()
    return twin


def _layer(twin: GraphModule, node: Node) -> nn.Module | None:
    return twin.get_submodule(str(node.target)) if node.op == "call_module" else None


def _calls(twin: GraphModule, node: Node) -> list[Node]:
    return [other for other in twin.graph.nodes if other.op == "call_module" and other.target == node.target]


def _only_source(twin: GraphModule, node: Node) -> Node | None:
    """The operation before this one, if nobody else uses its result or its layer."""
    source = node.args[0] if node.args else None
    if not isinstance(source, Node) or len(source.users) > 1:
        return None
    return source if source.op != "call_module" or len(_calls(twin, source)) == 1 else None


def _merge(twin: GraphModule, before: Node, node: Node, layer: nn.Module) -> None:
    """One call of ``layer``, under the name of the first, instead of two."""
    twin.set_submodule(str(before.target), layer)
    node.replace_all_uses_with(before)
    twin.graph.erase_node(node)


def _is_norm(twin: GraphModule, node: Node) -> bool:
    return type(_layer(twin, node)) is PhaseNorm


def _is_fresh(twin: GraphModule, node: Node) -> bool:
    """Is the result new memory, and not a view of something that others may use?"""
    layer = _layer(twin, node)
    if isinstance(layer, Each):
        return isinstance(layer.module, (nn.Conv1d, nn.Conv2d, nn.Linear))
    return isinstance(layer, (PhaseNorm, PhaseActivation)) or node.target in (operator.add, add_to)
