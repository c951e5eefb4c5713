"""Where in a graph a low number hides a key: where it goes into a softmax, and nowhere else.

−10⁹ that is added to a number before a relu is −10⁹.  In the scores of a softmax it is meant for
−∞, and is that as long as no score comes near it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from .operations import READINGS

__all__ = ["masking_nodes"]

# Where what is in the scores of a softmax ends, by the place among the arguments.
ENDS: dict[str, tuple[int | str, ...]] = {
    "aten.softmax.int": (0,), "aten._softmax.default": (0,), "aten._safe_softmax.default": (0,),
    "aten.exp.default": (0,), "aten.amax.default": (0,), "aten.max.dim": (0,),
    "aten.scaled_dot_product_attention.default": (3, "attn_mask"),
}  # fmt: skip
# What carries a score on as it is; by moves, sums and choices −∞ stays −∞.
CARRIES: dict[str, tuple[int | str, ...]] = {
    "aten.add.Tensor": (0, 1, "other"), "aten.add.Scalar": (0, 1), "aten.sub.Tensor": (0,),
    "aten.where.self": (1, 2), "aten.where.ScalarOther": (1, 2), "aten.where.ScalarSelf": (1, 2),
    "aten.where.Scalar": (1, 2), "aten.masked_fill.Scalar": (0, 2),
    "aten.masked_fill.Tensor": (0, 2), "aten._to_copy.default": (0,), "aten.to.dtype": (0,),
}  # fmt: skip
MOVES = ("creation", "joins", "places", "shapes")
GATED = "aten.mul.Tensor"  # with truth values: −∞ where they hold, 0 elsewhere


def masking_nodes(nodes: Sequence[Node], *, masks: bool = False) -> frozenset[Node]:
    """The nodes whose values go into the scores of a softmax alone.

    ``masks``: the graph makes a mask, and what it gives is added to scores.
    """
    found: set[Node] = set()
    here = set(nodes)
    for node in reversed(nodes):
        users = [user for user in node.users if user in here]
        if users and all(_passes(node, user, found, masks=masks) for user in users):
            found.add(node)
    return frozenset(found)


def _passes(node: Node, user: Node, found: set[Node], *, masks: bool) -> bool:
    """Whether a user takes a value as a score, and gives none of it to anything else."""
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
    reading = READINGS.get(name)
    return reading is not None and reading.__module__.endswith(MOVES)


def _places(node: Node, user: Node) -> set[int | str]:
    """The arguments of a user in which a value stands."""
    found: set[int | str] = {k for k, one in enumerate(user.args) if _has(one, node)}
    return found | {name for name, one in user.kwargs.items() if _has(one, node)}


def _has(given: Any, node: Node) -> bool:
    if isinstance(given, list | tuple):
        return any(_has(one, node) for one in given)
    return given is node


def _is_truth(given: Any) -> bool:
    value = given.meta.get("val") if isinstance(given, Node) else None
    return isinstance(value, Tensor) and value.dtype == torch.bool
