"""Properties of graph nodes: which are needed, which have subgraphs, which only mask scores.

``flex_attention`` has a subgraph for the score and one for the mask.  Both are written for a single
score, at one row of the batch, head, query and key; read on arrays of all of them they mean the
same, because everything in them is a single number.

−10⁹ added to a number before a relu is −10⁹.  In the scores of a softmax it is meant as −∞, and
acts as that as long as no score comes near it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node

from ..execution.response import leaves
from .operations import KINDS, READINGS, Unread

FLEX = "flex_attention"
BLOCKS = 4  # index of the block mask among its arguments; its last part is the mask
# Besides entrywise operations, these act on a single number as on each entry of an array.
ACT_ON_NUMBERS = (
    "aten.index.Tensor",
    "aten.full.default",
    "aten.scalar_tensor.default",
    "aten.clone.default",
    "aten._to_copy.default",
    "aten.lift_fresh_copy.default",
    "aten.to.dtype",
)

PYTHON = {
    operator.mul: "mul",
    operator.add: "add",
    operator.sub: "sub",
    operator.floordiv: "floordiv",
    operator.neg: "neg",
    operator.truediv: "truediv",
    operator.mod: "mod",
    operator.pow: "pow",
}
SILENT = ("aten._assert", "aten.sym_constrain_range", "aten._assert_async")
CHECKS = (operator.ge, operator.le, operator.eq, operator.gt, operator.lt, operator.ne)


def arguments(node: Node) -> Sequence[Any]:
    """Return the arguments that are read: of a block mask its mask, not the lists of its blocks."""
    if getattr(node.target, "__name__", "") != FLEX:
        return node.args
    blocks: Any = node.args[BLOCKS]
    return (*node.args[:BLOCKS], blocks[-1], *node.args[BLOCKS + 1 :])


def live(graph: Graph, results: Sequence[Node] = ()) -> tuple[Node, ...]:
    """Return the nodes of a graph that its output needs, and its inputs, in order.

    ``results``: the outputs that are needed, if not all.
    """
    outputs = [n for n in graph.nodes if n.op == "output"]
    wanted: set[Node] = set(outputs) if results else set()
    open_: list[Node] = [n for n in graph.nodes if n.op == "placeholder"]
    open_ += results or outputs
    while open_:
        node = open_.pop()
        if node not in wanted:
            wanted.add(node)
            given = leaves([arguments(node), node.kwargs])
            open_ += [one for one in given if isinstance(one, Node)]
    return tuple(node for node in graph.nodes if node in wanted)


def inner_graph(node: Node) -> Graph:
    """Return the subgraph that a node stands for.

    Raises :class:`Unread` for another kind of attribute, and for a graph in which some computed
    value is not a single number per score.
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
    alike = name in ACT_ON_NUMBERS or KINDS.get(name) == "entrywise"
    return alike and isinstance(value, Tensor) and value.ndim == 0


def nodes_of(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes of a graph and of its subgraphs."""
    for node in nodes:
        yield node
        inside = getattr(node.graph.owning_module, str(node.target), None)
        if node.op == "get_attr" and isinstance(inside, GraphModule):
            yield from inside.graph.nodes


def name_of(node: Node) -> str:
    """Return the name by which the operation of a node is looked up."""
    if node.target in PYTHON:
        return PYTHON[node.target]
    return (
        str(node.target)
        if not hasattr(node.target, "__name__") or isinstance(node.target, OpOverload)
        else node.target.__name__
    )


def is_silent(node: Node) -> bool:
    """Whether an operation only checks something."""
    return name_of(node).startswith(SILENT) or node.target in CHECKS


def unread_of(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the operations of a graph that have no reading, without duplicates, in order."""
    found = {
        name_of(node): None
        for node in nodes_of(nodes)
        if node.op == "call_function"
        and node.target is not operator.getitem
        and not is_silent(node)
        and name_of(node) not in READINGS
    }
    return tuple(found)


# Operations that consume scores of a softmax, with the arguments that are scores.
ENDS: dict[str, tuple[int | str, ...]] = {
    "aten.softmax.int": (0,),
    "aten._softmax.default": (0,),
    "aten._safe_softmax.default": (0,),
    "aten.exp.default": (0,),
    "aten.amax.default": (0,),
    "aten.max.dim": (0,),
    "aten.scaled_dot_product_attention.default": (3, "attn_mask"),
}
# Operations that pass a score on, with the arguments passed; moves, sums, choices keep −∞.
CARRIES: dict[str, tuple[int | str, ...]] = {
    "aten.add.Tensor": (0, 1, "other"),
    "aten.add.Scalar": (0, 1),
    "aten.sub.Tensor": (0,),
    "aten.where.self": (1, 2),
    "aten.where.ScalarOther": (1, 2),
    "aten.where.ScalarSelf": (1, 2),
    "aten.where.Scalar": (1, 2),
    "aten.masked_fill.Scalar": (0, 2),
    "aten.masked_fill.Tensor": (0, 2),
    "aten._to_copy.default": (0,),
    "aten.to.dtype": (0,),
}
GATED = "aten.mul.Tensor"  # with truth values: −∞ where they hold, 0 elsewhere


def masking_nodes(nodes: Sequence[Node], *, masks: bool = False) -> frozenset[Node]:
    """Return the nodes whose values only enter the scores of a softmax.

    ``masks``: the graph makes a mask, and its output is added to scores.
    """
    found: set[Node] = set()
    here = set(nodes)
    for node in reversed(nodes):
        users = [user for user in node.users if user in here]
        if users and all(_passes(node, user, found, masks=masks) for user in users):
            found.add(node)
    return frozenset(found)


def _passes(node: Node, user: Node, found: set[Node], *, masks: bool) -> bool:
    """Whether a user takes a value as a score, and passes it to nothing else."""
    if user.op == "output":
        return masks
    name = str(user.target)
    places = _places(node, user)
    if name in ENDS:
        return places <= set(ENDS[name])
    if user not in found:
        return False
    if user.target is operator.getitem:
        return True
    if name in CARRIES:
        return places <= set(CARRIES[name])
    if name == GATED:
        return any(_is_truth(one) for one in user.args if one is not node)
    return KINDS.get(name) == "moves"


def _places(node: Node, user: Node) -> set[int | str]:
    """Return the arguments of a user in which a value occurs."""
    given: list[tuple[int | str, Any]] = [*enumerate(user.args), *user.kwargs.items()]
    return {place for place, told in given if any(one is node for one in leaves(told))}


def _is_truth(given: Any) -> bool:
    value = given.meta.get("val") if isinstance(given, Node) else None
    return isinstance(value, Tensor) and value.dtype == torch.bool
