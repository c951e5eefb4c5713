"""Where not a bit may differ: fused attention on a CPU answers every query by itself.

Its output for one query is the same whatever the other queries are, and in whatever order they
come (measured for all dtypes: ``torch.equal``).  So the sides of a claim that differ only by the
order of the queries are equal bit for bit, and so are rows computed alone and in the whole.
Permuted keys are added in another order and are not.  The last queries of a block that is cut
short may be taken another way (measured: 1, 2 or 3 over in float32, any number that is no
multiple of 4 in float64), so only whole blocks are held to it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.statement import Claim
from attnproof.symbolic.terms import Term

from ..compare import place_in
from ..implementations import Implementation
from ..implementations.scaled_dot_product import ROW_AXIS
from ..measurement import Judged, place_of
from ..profile import FULL_BLOCK
from ..walk import Where

__all__ = [
    "Compared", "answers_each_alone", "judged", "none_is_alone", "queries_moved",
    "reads_as_given",
]  # fmt: skip

Compared = tuple[str, Tensor, Tensor, Where]


def answers_each_alone(implementation: Implementation, device: torch.device) -> bool:
    """Whether it is a kernel whose rows do not know of each other: the fused one of a CPU."""
    name = implementation.name.startswith("scaled_dot_product_attention")
    return device.type == "cpu" and implementation.fused and name


def none_is_alone(queries: int, dtype: torch.dtype = torch.float32) -> bool:
    """Whether every block of queries is whole; a single one may be short, but in float64."""
    single = dtype != torch.float64 and queries < FULL_BLOCK
    return queries > 0 and (single or queries % FULL_BLOCK == 0)


def reads_as_given(side: Term) -> bool:
    """Whether a side is one call, whose queries are given and not computed.

    Products of matrices and functions may round a row otherwise among other rows.
    """
    found = _by_query(side)
    return found is not None and all(
        part[0].op == "var"
        for part, axis in zip(found[1:], ROW_AXIS[found[0]], strict=True)
        if axis is not None
    )


def queries_moved(claim: Claim) -> bool:
    """Whether call(Q[τ], K, V, ..) = call(Q, K, V, ..)[τ], or the other way round."""
    if claim.relation != "=" or claim.right is None:
        return False
    left, right = _by_query(claim.left), _by_query(claim.right)
    return left is not None and left == right and reads_as_given(claim.left)


def _by_query(side: Term) -> tuple[Any, ...] | None:
    """A call with the gathers of its rows told of each argument that has them."""
    t, outer = side, list[Term]()
    while t.op == "gather" and t.data == t.ndim - 2:
        outer.append(t.args[1])
        t = t.args[0]
    if t.op != "named" or t.data[0] not in ROW_AXIS:
        return None
    name = str(t.data[0])
    parts: list[Any] = [name]
    for arg, axis in zip(t.args[1:], ROW_AXIS[name], strict=True):
        x, maps = arg, list[Term]()
        while axis is not None and x.op == "gather" and x.data == x.ndim + axis:
            maps.append(x.args[1])
            x = x.args[0]
        parts.append((x, (*outer, *maps) if axis is not None else ()))
    return tuple(parts)


def judged(found: list[Compared], why: str) -> Judged:
    """Every pair of tensors, equal or not; without any, why not."""
    if not found:
        return Judged("bitwise", "skipped", 0.0, why)
    for what, one, other, where in found:
        if not torch.equal(one, other):
            far = (one.double() - other.double()).abs().nan_to_num()
            place = place_of(place_in(far, int(far.argmax())), where)
            told = f"{what}: {int((one != other).sum())} entries differ, most at {place}"
            return Judged("bitwise", "violated", float("inf"), told)
    told = " and ".join(dict.fromkeys(what for what, *_ in found))
    return Judged("bitwise", "held", 0.0, f"{told}: equal bit for bit")
