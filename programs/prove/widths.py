"""Up to which positions and lengths whole numbers of a graph stay within their dtype.

A term has numbers without an end; int64 wraps round at 2⁶³.  Code that counts positions in units of
2⁻⁴⁰ wraps from position 2²³ on, and what is proved of it holds below.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from attnproof.verdict_line import Condition

from .exporting import Exported
from .nodes import leaves, nodes_of

MOST = 1 << 31  # positions and lengths that need no word
# By the end of an operation's name, how large what it gives may be, from what it is given.
RULES: dict[str, Callable[[list[int], int], int]] = {
    "add": lambda given, _: sum(given),
    "sub": lambda given, _: sum(given),
    "rsub": lambda given, _: sum(given),
    "mul": lambda given, _: given[0] * given[1],
    "pow": lambda given, _: given[0] ** min(given[1], 64),
    "matmul": lambda given, most: given[0] * given[1] * most,
    "__lshift__": lambda given, _: given[0] << min(given[1], 64),
    "bitwise_left_shift": lambda given, _: given[0] << min(given[1], 64),
    "sum": lambda given, most: given[0] * most,
    "cumsum": lambda given, most: given[0] * most,
    "prod": lambda given, _: given[0] ** 64,
    "cumprod": lambda given, _: given[0] ** 64,
    "square": lambda given, _: given[0] ** 2,
    "remainder": lambda given, _: given[-1],
    "sym_size": lambda _, most: most,
    "sym_numel": lambda _, most: most**4,
}
BELOW = ("sub", "rsub", "neg")  # what goes below 0
# What may be as large as a number that stands among its arguments; others move what they are given.
FILLS = ("arange", "where", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "masked_fill",
         "fill", "scalar_tensor", "full", "full_like", "new_full")  # fmt: skip
PICKS = ("index", "index_select", "embedding", "gather")


def widths_told(exported: Exported) -> tuple[Condition, ...]:
    """The condition under which no whole number wraps round; none where positions go far."""
    nodes = tuple(nodes_of(exported.nodes))
    wrong = _wraps(exported, nodes, MOST)
    if not wrong:
        return ()
    low = bisect_left(range(1, MOST), True, key=lambda n: bool(_wraps(exported, nodes, n)))
    if low < 2:
        return (Condition(f"no whole number wraps round in {wrong}", "if"),)
    return (Condition(f"positions and lengths stay below {low + 1}, from where {wrong} wraps"),)


def _wraps(exported: Exported, nodes: Iterable[Node], most: int) -> str:
    """The dtype in which a number may wrap round, with positions and lengths up to ``most``."""
    sizes: dict[Node, int] = {}
    for node in nodes:
        value = node.meta.get("val")
        whole = isinstance(value, Tensor) and not value.is_floating_point()
        if not (whole or isinstance(value, int | torch.SymInt)) or _is_complex(value):
            continue
        dtype = value.dtype if isinstance(value, Tensor) else None
        sizes[node] = _size(exported, node, sizes, most, dtype)
        if dtype not in (None, torch.bool):
            limits = torch.iinfo(dtype)
            negative = limits.min == 0 and _name(node) in BELOW
            if sizes[node] > limits.max or negative:
                return str(dtype).removeprefix("torch.")
    return ""


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _name(node: Node) -> str:
    told = str(getattr(node.target, "__name__", node.target))
    return str(node.target if "." in told else told).removeprefix("aten.").split(".")[0]


def _size(exported: Exported, node: Node, sizes: dict[Node, int], most: int, dtype: Any) -> int:
    if dtype == torch.bool:
        return 1
    if node.op == "placeholder":
        return _placed(exported, node, most)
    if node.op != "call_function":
        return most
    name, args = _name(node), list(node.args)
    if name in PICKS:
        args = args[:1]
    elif name in ("full", "full_like", "new_full"):
        args = args[-1:]
    numbers = name in RULES or name in FILLS
    given = [
        _of(one, sizes, dtype)
        for one in leaves([args, list(node.kwargs.values())])
        if _counts(one, numbers=numbers)
    ]
    if name in RULES:
        return RULES[name](given + [0] * (2 - len(given)), most)
    return max(given, default=0)


def _placed(exported: Exported, node: Node, most: int) -> int:
    """An input is a position; a stored tensor has the numbers that it has."""
    stored = exported.stored.get(node.name)
    if stored is None or not stored.numel():
        return most
    return int(stored.abs().max())


def _of(given: Any, sizes: dict[Node, int], dtype: Any) -> int:
    """How large an argument may be; what is cut from real numbers may be as large as its dtype."""
    if not isinstance(given, Node):
        return abs(int(given))
    if given in sizes:
        return sizes[given]
    return torch.iinfo(dtype).max if dtype is not None else MOST


def _counts(given: Any, *, numbers: bool) -> bool:
    """Whether an argument goes into the numbers that an operation gives."""
    if isinstance(given, Node):
        return numbers or isinstance(given.meta.get("val"), Tensor)
    return numbers and isinstance(given, int | float) and not isinstance(given, bool)
