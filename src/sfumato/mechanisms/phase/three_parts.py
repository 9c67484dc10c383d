"""Cutting a network into the device's head, the cloud's middle and the device's tail (§3, Fig. 1)."""

from __future__ import annotations

import copy
import difflib
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node, Tracer

Shape = tuple[int, ...]


class SplitError(ValueError):
    """The network cannot be cut at these names."""


class Parts(NamedTuple):
    """tail(middle(head(x))) is the network; the three hold one copy of its layers, under their own names."""

    head: GraphModule
    middle: GraphModule
    tail: GraphModule


def split(module: nn.Module, encrypt_to: str, decrypt_from: str, shape: Shape) -> Parts:
    """Head: up to and with ``encrypt_to``; tail: from ``decrypt_from`` on; ``shape``: of one record.

    One tensor crosses each cut. Raises ``SplitError`` where that is impossible, saying why.
    """
    _check_names(module, encrypt_to, decrypt_from)
    root = copy.deepcopy(module)
    try:
        graph = Tracer().trace(root)
    except Exception as error:  # whatever the user's code or fx raises: all of it means "not traceable"
        raise SplitError(f"torch.fx cannot trace the network: {error}; keep data out of its control flow") from error
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise SplitError(f"the network takes {len(inputs)} inputs; it can be cut if it takes one")
    steps = _steps(graph, inputs[0])
    end = max(_positions(steps, encrypt_to)) + 1
    start = min(_positions(steps, decrypt_from))
    if start < end:
        raise SplitError(f"{decrypt_from!r} runs before {encrypt_to!r} is done: name the earlier one as encrypt_to")
    if start == end:
        raise SplitError(f"nothing is left for the cloud between {encrypt_to!r} and {decrypt_from!r}")
    sent = _crossing(inputs + steps[:end], steps[end:] + _output(graph), encrypt_to)
    returned = _crossing(inputs + steps[:start], steps[start:] + _output(graph), decrypt_from)
    if returned not in steps[end:start]:
        raise SplitError(f"{decrypt_from!r} takes its input from {_place(returned)}, past the cloud's part")
    answer = _output(graph)[0].args[0]
    if not isinstance(answer, Node):
        raise SplitError("the network returns more than one tensor; it can be cut if it returns one")
    made = {*inputs, *steps}
    parts = Parts(
        _part(root, graph, made, inputs[0], steps[:end], sent, "Head"),
        _part(root, graph, made, sent, steps[end:start], returned, "Middle"),
        _part(root, graph, made, returned, steps[start:], answer, "Tail"),
    )
    _try(parts, shape)
    return parts


def _check_names(module: nn.Module, encrypt_to: str, decrypt_from: str) -> None:
    names = [name for name, _ in module.named_modules() if name]
    top = ", ".join(name for name, _ in module.named_children())
    for role, name in (("encrypt_to", encrypt_to), ("decrypt_from", decrypt_from)):
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            raise SplitError(f"{role}: the network has no module {name!r}; {hint}its stages are: {top}")
    if encrypt_to == decrypt_from:
        raise SplitError(f"nothing is left for the cloud: encrypt_to and decrypt_from are both {encrypt_to!r}")
    for outer, inner in ((encrypt_to, decrypt_from), (decrypt_from, encrypt_to)):
        if inner.startswith(outer + "."):
            raise SplitError(f"{inner!r} lies inside {outer!r}: name two modules that follow each other")


def _steps(graph: Graph, x: Node) -> list[Node]:
    """The operations that depend on the input, in order; weights belong to whoever uses them."""
    depends = {x}
    for node in graph.nodes:
        if depends.intersection(node.all_input_nodes):
            depends.add(node)
    return [node for node in graph.nodes if node in depends and node.op not in ("placeholder", "output")]


def _output(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "output"]


def _positions(steps: list[Node], name: str) -> list[int]:
    """Where in the order the operations of a named module stand."""
    found, calls = [], set()
    for position, node in enumerate(steps):
        stack = node.meta.get("nn_module_stack", {})  # call, with "@1" from the second one → (name, class)
        mine = [call for call, (owner, _) in stack.items() if owner == name]
        if mine:
            found.append(position)
            calls.update(mine)
    if not found:
        raise SplitError(f"{name!r} does nothing in the network's forward pass: name a module that it calls")
    if len(calls) > 1:
        raise SplitError(f"{name!r} is called {len(calls)} times: name a module that is called once")
    return found


def _crossing(before: list[Node], after: list[Node], name: str) -> Node:
    """The one value made before a cut and used after it."""
    later = set(after)
    crossing = [node for node in before if later.intersection(node.users)]
    if not crossing:
        raise SplitError(f"nothing that the network returns passes the cut at {name!r}")
    *others, cut = crossing
    if others:
        users = [user for user in others[0].users if user in later]
        raise SplitError(
            f"a skip connection crosses the cut at {name!r}: what {_place(others[0])} makes is used again by "
            f"{_place(users[0])}; cut before or after both"
        )
    return cut


def _place(node: Node) -> str:
    """An operation in the user's words."""
    if node.op == "placeholder":
        return "the network's input"
    if node.op == "output":
        return "the network's output"
    if node.op == "call_module":
        return repr(str(node.target))
    stack = list(node.meta.get("nn_module_stack", {}).values())
    call = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.name)
    return f"a call of {call} in " + (repr(stack[-1][0]) if stack else "the network's forward")


def _part(
    root: nn.Module, graph: Graph, made: set[Node], first: Node, steps: list[Node], last: Node, name: str
) -> GraphModule:
    """x ↦ ``last``, where x stands for ``first``; what is not ``made`` of the network's input, weights, comes along."""
    wanted = set(steps)
    for node in reversed(graph.nodes):  # a weight may be computed from others
        if node not in made and wanted.intersection(node.users):
            wanted.add(node)
    new = Graph()
    copies = {first: new.placeholder("x")}
    for node in graph.nodes:
        if node in wanted:
            copies[node] = new.node_copy(node, lambda old: copies[old])
    new.output(copies[last])
    part = GraphModule(root, new, name)
    return part.train(root.training)


def _try(parts: Parts, shape: Shape) -> None:
    """One record through all three."""
    x = torch.zeros(2, *shape)
    modes = [{module: module.training for module in part.modules()} for part in parts]
    try:
        with torch.no_grad():
            for part in parts:
                x = part.eval()(x)
                if not isinstance(x, Tensor):
                    raise SplitError(f"a {type(x).__name__} crosses a cut, not a tensor: cut at another module")
    except (RuntimeError, TypeError, IndexError) as error:
        raise SplitError(f"the network does not take records of shape {shape}: {error}") from error
    finally:
        for mode in modes:
            for module, training in mode.items():
                module.training = training
