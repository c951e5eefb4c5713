"""Where a graph can be cut: one array of all tokens that everything after it is computed from.

What a stack of layers hands from layer to layer is such an array.  There the program is a part and
what comes after it, and a law of both is one of the whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.fx import Node

from attnproof.symbolic.array import Array
from attnproof.symbolic.terms import Term, make

from .exporting import Exported
from .nodes import is_silent, leaves, name_of
from .operations import Unread

SHORTEST = 8  # operations of a part: cut finer, parts are no sooner proved than whole layers


def cut_nodes(exported: Exported) -> tuple[Node, ...]:
    """The nodes of a graph of one input at which it is cut into parts, in their order.

    Each has the first two axes of the input, rows of the batch and tokens.  It is the only one of
    those before it and itself that later ones read, but for what is made of lengths and of stored
    numbers: that is the same whatever is given.
    """
    inputs = [n for n in exported.nodes if exported.roles.get(n.name, ("",))[0] == "input"]
    if len(inputs) != 1 or len(exported.shapes[0]) < 2:
        return ()
    reading = _reading(exported.nodes, inputs[0])
    place = {node: k for k, node in enumerate(exported.nodes)}
    last = dict.fromkeys(reading, 0)
    for node in (*reading, *(n for n in exported.nodes if n.op == "output")):
        for given in _given(node):
            if given in last:
                last[given] = place[node]
    found: list[Node] = []
    size, until = 0, 0  # operations since the last cut; how far what came before is read
    rows = inputs[0].meta["val"].shape[:2]
    for node in reading:
        if until <= place[node] and size >= SHORTEST and _has(node, rows):
            found.append(node)
            size = 0
        size += node.op == "call_function" and node.target is not operator.getitem
        until = max(until, last[node])
    return tuple(found if size >= SHORTEST else found[:-1])


def _reading(nodes: Sequence[Node], given: Node) -> dict[Node, None]:
    """The nodes that are computed from the numbers of an input, in their order."""
    found = {given: None}
    for node in nodes:
        if node.op != "call_function" or is_silent(node) or _is_of_shape(node):
            continue
        if any(one in found for one in _given(node)):
            found[node] = None
    return found


def _is_of_shape(node: Node) -> bool:
    """Whether a node asks for the shape of what it is given, and not for its numbers."""
    name, value = name_of(node), node.meta.get("val")
    numbers = isinstance(value, Tensor | list | tuple)
    return not numbers or name.startswith("aten.new_") or name.endswith("_like.default")


def _given(node: Node) -> list[Node]:
    """The nodes that a node is given."""
    given = leaves([node.args, list(node.kwargs.values())])
    return [one for one in given if isinstance(one, Node)]


def _has(node: Node, rows: Sequence[object]) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "call_function"
        and isinstance(value, Tensor)
        and value.is_floating_point()
        and [str(n) for n in value.shape[:2]] == [str(n) for n in rows]
    )


class Cuts:
    """What is at the cuts of a program at each call: each array folded, under a name of its own.

    Folded it is one argument of what is made of it, and not its summands.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.taken: list[Term] = []
        self.calls: list[list[Term]] = []

    def begin(self, inputs: Sequence[Array]) -> dict[Node, Callable[[Any], Array]]:
        """What becomes of the values at the cuts, of a call that begins."""
        self.taken.append(inputs[0].term)
        self.calls.append([])
        return dict.fromkeys(self.nodes, self.fold)

    def fold(self, x: Any) -> Array:
        """The array under a name, the same for all parts, at the next cut of this call."""
        if not isinstance(x, Array):
            raise Unread(f"a cut at {type(x).__name__}, which is no array")
        found = make("named", (x.term,), ("part",), x.axes)
        self.calls[-1].append(found)
        return Array(found)

    @property
    def parts(self) -> tuple[tuple[Term, ...], ...]:
        """Of each part what each call gives there."""
        return tuple(zip(*self.calls, strict=True))
