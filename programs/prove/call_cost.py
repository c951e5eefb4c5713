"""Count the work of a call of a graph at lengths that were not run, independently of any clock.

What is tried of some code must not depend on the load of the machine.  So budgets are numbers of
entries that operations write, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import sympy
import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.fx import Node

from ..aten import ROWS
from .exporting import Exported
from .guards import compiled

CALL, OVERHEAD = 100_000, 15_000  # cost of starting a call, an operation, in entries
SUBGRAPH_COST = 8_000_000  # cost of starting an operation with subgraphs
MULTIPLY_ADDS_PER_ENTRY = 4  # multiply-adds in the time of writing one entry
UNKNOWN_LENGTH = 16  # value of a length that depends on data
aten = torch.ops.aten


def work_of(graph: Exported) -> Callable[[Mapping[str, int]], int]:
    """Return the work of a call as a function of the lengths, by their names in the graph.

    It is CALL + Σ (OVERHEAD + entries written) over all operations; in matrix products and
    attention, each summed product adds a quarter of an entry.

    >>> from attnproof.programs.prove.exporting import read, traced
    >>> twice = read(traced(lambda x: 2 * x, (torch.ones(2, 3),), ((False, True),)))
    >>> work_of(twice)({str(twice.shapes[0][1]): 1000}) - CALL - OVERHEAD
    2000
    """
    operations = [node for node in graph.nodes if node.op == "call_function"]
    total = sympy.Add(*(_written(node) for node in operations))
    names, entries = compiled(total)

    def work(at: Mapping[str, int]) -> int:
        known = (at.get(name, UNKNOWN_LENGTH) for name in names)
        return CALL + OVERHEAD * len(operations) + int(entries(*known))

    return work


def _written(node: Node) -> Any:
    """Return the entries that an operation writes, plus the cost of the sums for them."""
    value = node.meta.get("val")
    written = sum(_entries(x) for x in (value if isinstance(value, (tuple, list)) else (value,)))
    if isinstance(node.target, HigherOrderOperator):  # flex_attention runs them on each score
        scores = [_entries(x) * _of(y.shape[-2]) for x, y in _queries_and_keys(node)]
        return SUBGRAPH_COST + written + sum(scores)
    if node.target is aten.scaled_dot_product_attention.default:
        q, k = (node.args[n].meta["val"] for n in (0, 1))  # type: ignore[union-attr]
        return _entries(q) * _of(k.shape[-2]) / MULTIPLY_ADDS_PER_ENTRY
    row = ROWS.get(str(node.target))
    if row is None or row.summed is None:
        return written
    summed = _of(node.args[row.summed].meta["val"].shape[-1])  # type: ignore[union-attr]
    return written + written * summed / MULTIPLY_ADDS_PER_ENTRY


def _queries_and_keys(node: Node) -> list[tuple[Any, Any]]:
    given = [getattr(x, "meta", {}).get("val") for x in node.args[:2]]
    fine = len(given) == 2 and all(isinstance(x, Tensor) and x.ndim > 1 for x in given)
    return [(given[0], given[1])] if fine else []


def _entries(x: Any) -> Any:
    return prod(map(_of, x.shape)) if isinstance(x, Tensor) else 0


def _of(length: Any) -> Any:
    """Return a length as a SymPy expression."""
    return length.node.expr if isinstance(length, torch.SymInt) else length
