"""Graphs inside a graph: what flex_attention does to each score, and which keys it shows.

``flex_attention`` has a graph for a score and one for the mask.  Both are written for one score, at
one row of the batch, head, query and key; read on arrays of all of them they are the same, for
everything in them is a number.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node

from .operations import READINGS, Unread

__all__ = ["arguments", "inner_graph", "is_silent", "live", "name_of", "nodes_of", "unread_of"]

FLEX = "flex_attention"
BLOCKS = 4  # the place of the block mask among its arguments; its last part is the mask
# What is done to one number is done to all of an array; of the rest these are read inside.
ELEMENTWISE = "operations.elementwise"
ALIKE = (
    "aten.index.Tensor", "aten.full.default", "aten.scalar_tensor.default", "aten.clone.default",
    "aten._to_copy.default", "aten.lift_fresh_copy.default", "aten.to.dtype",
)  # fmt: skip

PYTHON = {
    operator.mul: "mul", operator.add: "add", operator.sub: "sub", operator.floordiv: "floordiv",
    operator.neg: "neg", operator.truediv: "truediv", operator.mod: "mod", operator.pow: "pow",
}  # fmt: skip
SILENT = ("aten._assert", "aten.sym_constrain_range", "aten._assert_async")
CHECKS = (operator.ge, operator.le, operator.eq, operator.gt, operator.lt, operator.ne)


def arguments(node: Node) -> Sequence[Any]:
    """The arguments that are read: of a block mask its mask, and not the lists of its blocks."""
    if getattr(node.target, "__name__", "") != FLEX:
        return node.args
    blocks: Any = node.args[BLOCKS]
    return (*node.args[:BLOCKS], blocks[-1], *node.args[BLOCKS + 1 :])


def live(graph: Graph, results: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The nodes of a graph that its output needs, and what it takes, in their order.

    ``results``: of what it gives, that which is needed, where that is not all of it.
    """
    outputs = [n for n in graph.nodes if n.op == "output"]
    wanted: set[Node] = set(outputs) if results else set()
    open_: list[Node] = [n for n in graph.nodes if n.op == "placeholder"]
    open_ += results or outputs
    while open_:
        node = open_.pop()
        if node not in wanted:
            wanted.add(node)
            open_ += _nodes_in([arguments(node), list(node.kwargs.values())])
    return tuple(node for node in graph.nodes if node in wanted)


def _nodes_in(given: Any) -> Iterator[Node]:
    if isinstance(given, Node):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _nodes_in(one)


def inner_graph(node: Node) -> Graph:
    """The graph that a node stands for.

    Raises :class:`Unread` for another attribute, and for a graph in which not everything that is
    computed is a number for one score.
    """
    found = getattr(node.graph.owning_module, str(node.target), None)
    if not isinstance(found, GraphModule):
        raise Unread(f"the attribute {node.target}")
    for inside in found.graph.nodes:
        if inside.op == "call_function" and not _is_of_one_score(inside):
            raise Unread(f"{inside.target} in the function of a score")
    return found.graph


def _is_of_one_score(node: Node) -> bool:
    value, name = node.meta.get("val"), str(node.target)
    reading = READINGS.get(name)
    alike = name in ALIKE or (reading is not None and reading.__module__.endswith(ELEMENTWISE))
    return alike and isinstance(value, Tensor) and value.ndim == 0


def nodes_of(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes of a graph, and of the graphs inside it."""
    for node in nodes:
        yield node
        inside = getattr(node.graph.owning_module, str(node.target), None)
        if node.op == "get_attr" and isinstance(inside, GraphModule):
            yield from inside.graph.nodes


def name_of(node: Node) -> str:
    """The name by which the operation of a node is looked up."""
    if node.target in PYTHON:
        return PYTHON[node.target]
    return str(node.target) if not hasattr(node.target, "__name__") or isinstance(
        node.target, OpOverload
    ) else node.target.__name__  # fmt: skip


def is_silent(node: Node) -> bool:
    """Whether an operation checks something, and gives nothing."""
    return name_of(node).startswith(SILENT) or node.target in CHECKS


def unread_of(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The operations of a graph that have no reading, each once, in their order."""
    found = {
        name_of(node): None for node in nodes_of(nodes)
        if node.op == "call_function" and node.target is not operator.getitem
        and not is_silent(node) and name_of(node) not in READINGS
    }  # fmt: skip
    return tuple(found)
