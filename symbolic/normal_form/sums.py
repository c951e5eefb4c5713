"""Finite sums in the normal form.

A sum of products becomes: what does not depend on the index, taken out, times one *component*:
nested sums over one product of atoms in which every index is tied to the others.  In a component
equal indices are contracted, orthogonal pairs summed, permutations of an index renamed away,
and at last the order of the nested sums is chosen without looking at any accidental name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..derivation import Derivation
from ..scalars import ONE, ZERO, integer, mul, number_of, split_integer
from ..terms import Term, free, instantiate, postorder
from ..unrolling import longest_written_out
from .components import component
from .equations import chain, inside, rewrite, under
from .nests import opened_index

if TYPE_CHECKING:
    from .normaliser import Normaliser

__all__ = ["summation"]


def summation(norm: Normaliser, t: Term) -> Derivation:
    """The normal form of a sum."""
    length = t.args[0]
    count = number_of(length)
    if count is not None and count <= longest_written_out():
        return norm.at("unroll", t)
    if integer(length) is not length:
        return norm.then(inside(t, [(0, rewrite("integer", length))]))
    j = opened_index(t, length)
    body = norm(instantiate(t.args[1], j))
    split = _needed_split(body.right, j, length) or norm.splits.get(length)
    if split is not None:
        kind, size = split
        if kind == "digits":
            return norm.at("radix", t, split_integer(length, size)[0], size)
        return norm.at("cut", t, size)
    first = under(t, (j,), body)
    return chain(first, _summed(norm, first.right, j))


def _needed_split(body: Term, j: Term, length: Term) -> tuple[str, Term] | None:
    """How the body asks for the axis to be taken apart: a division, or a seam of a concat."""
    for part in postorder(body):
        if part.op in ("floor_divide", "remainder") and j in free(part.args[0]):
            width = part.args[1]
            if width is not ONE and number_of(split_integer(length, width)[1]) == 0:
                return ("digits", width)
        if part.op == "entry" and part.args[0].op == "concat":
            axis: Any = part.args[0].data
            if j in free(part.args[1 + axis]):
                return ("cut", part.args[0].args[0].shape[axis])
    return None


def _summed(norm: Normaliser, t: Term, j: Term) -> Derivation:
    """A sum whose body is in normal form."""
    body = instantiate(t.args[1], j)
    if body.op == "add":
        step = rewrite("distribute", t)
        parts = [(k, norm(part)) for k, part in enumerate(step.right.args)]
        whole = chain(step, inside(step.right, parts))
        return chain(whole, norm.settle(whole.right))
    if body is ZERO or body is ONE:
        return rewrite("constant", t)
    factors = body.args if body.op == "mul" else (body,)
    outside = [f for f in factors if j not in free(f)]
    inner = [f for f in factors if j in free(f)]
    if outside:
        target = mul(*outside, *inner) if inner else mul(*outside, ONE)
        sorted_ = rewrite("ring", body, target)
        first = under(t, (j,), sorted_)
        taken = rewrite("factor", first.right, len(outside))
        last = len(taken.right.args) - 1
        rest = inside(taken.right, [(last, norm(taken.right.args[last]))])
        whole = chain(first, taken, rest)
        return chain(whole, norm.settle(whole.right))
    return component(norm, t)
