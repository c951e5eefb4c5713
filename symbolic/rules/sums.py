"""Finite sums: linearity, exchange, splitting an axis, contraction.

A sum over a probability space is an expectation.  It has linearity, exchange, the expectation of
a constant and the moments of standard random numbers; every other rule requires a natural number
as length and refuses a space.
"""

from __future__ import annotations

from typing import Any

from ..scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    below,
    indicator,
    integer,
    mul,
    num,
    number_of,
    subtract,
)
from ..terms import Term, bind, free, instantiate, make, opened, substitute
from .base import NOTHING, Refused, Result, compared, need


def open_sum(t: Term, *, expectation: bool = False) -> tuple[Term, Term, Term]:
    """Return the length of a sum, a fresh index, and the body at that index."""
    need(t.op == "sum", "not a sum", t)
    counted = always_less(num(-1), t.args[0]) or (expectation and t.args[0].op == "space")
    need(counted, "the length is not a natural number", t.args[0])
    variable = opened(t.args[0], t)
    return t.args[0], variable, instantiate(t.args[1], variable)


def closed(length: Term, variable: Term, body: Term) -> Term:
    """Return the sum of the body over the variable."""
    return make("sum", (length, bind(body, variable)))


def distribute(t: Term) -> Result:
    """Σ (a + b) = Σ a + Σ b, for finite bodies."""
    length, j, body = open_sum(t, expectation=True)
    need(body.op == "add" and body.finite, "the body is not a finite sum", t)
    return add(*(closed(length, j, part) for part in body.args)), NOTHING


def factor(t: Term, count: Any) -> Result:
    """Σ_j c·f(j) = c·Σ_j f(j), where c is the first ``count`` factors, constant in j."""
    length, j, body = open_sum(t, expectation=True)
    need(type(count) is int and count > 0, "not a number of factors", t)
    factors = body.args if body.op == "mul" else (body,)
    outside, inside = factors[:count], factors[count:]
    need(body.finite, "nothing finite to take out", t)
    need(all(j not in free(c) for c in outside), "not the same for all j", *outside)
    return mul(*outside, closed(length, j, mul(*inside))), NOTHING


def constant(t: Term) -> Result:
    """Σ_{j<n} 1 = n, and a sum of zeros is 0; the expectation of 1 is 1."""
    length, _, body = open_sum(t, expectation=True)
    need(body in (ONE, ZERO), "the body is neither 1 nor 0", t)
    return (body if body is ZERO or length.op == "space" else length), NOTHING


def exchange(t: Term) -> Result:
    """Σ_j Σ_k f = Σ_k Σ_j f."""
    length, j, body = open_sum(t, expectation=True)
    need(body.op == "sum", "not a double sum", t)
    need(j not in free(body.args[0]), "the inner length depends on the outer index", t)
    k = opened(body.args[0], body)
    inner = instantiate(body.args[1], k)
    return closed(body.args[0], k, closed(length, j, inner)), NOTHING


def delta(t: Term) -> Result:
    """Σ_j [j = a]·f(j) = f(a) if a lies in the range of j and does not depend on j."""
    length, j, body = open_sum(t)
    gate, *rest = body.args if body.op == "mul" else (body,)
    need(body.finite, "the body may be infinite", t)
    _, x, y = compared(gate, "equal")
    a = y if x is j else x
    need(j in (x, y) and j not in free(a), "not of the form [j = a]", t)
    need(below(a, length), "a may lie outside the range of j", a, length)
    return substitute(mul(*rest), j, a), NOTHING


def cut(t: Term, first: Term) -> Result:
    """Σ_{j < m+k} f(j) = Σ_{j < m} f(j) + Σ_{j < k} f(m + j)."""
    length, j, body = open_sum(t)
    second = integer(subtract(length, first))
    natural = always_less(num(-1), first) and always_less(num(-1), second)
    need(body.finite and natural, "not two parts of the axis", t, first)
    a, b = opened(first, t), opened(second, t)
    before = closed(first, a, substitute(body, j, a))
    return add(before, closed(second, b, substitute(body, j, integer(add(first, b))))), NOTHING


def unroll(t: Term) -> Result:
    """A sum over an axis of literal length equals the sum of its terms, written out."""
    length, j, body = open_sum(t)
    count = number_of(length)
    need(count is not None and body.finite, "the length is not a literal", t)
    assert count is not None
    return add(*(substitute(body, j, num(k)) for k in range(int(count)))), NOTHING


def standard(t: Term) -> Result:
    """E z[ω, i]·z[ω, j] = [i = j] and E z[ω, i] = 0 for z given as standard."""
    length, w, body = open_sum(t, expectation=True)
    pair = body.args if body.op == "mul" else (body,)
    entries = len(pair) <= 2 and all(x.op == "entry" and len(x.args) == 3 for x in pair)
    need(entries, "not one or two entries of random numbers", t)
    z = pair[0].args[0]
    need(length.op == "space", "not over the outcomes of an experiment", length)
    random = z.op == "var" and z.data[1] == "standard" and z.shape[0] is length
    need(random, "not over the outcomes of random numbers", t)
    at_one = all(x.args[0] is z and x.args[1] is w and w not in free(x.args[2]) for x in pair)
    need(at_one, "not entries at the one outcome", t)
    places = [x.args[2] for x in pair]
    need(all(below(i, z.shape[1]) for i in places), "out of range", t)
    after = ZERO if len(places) == 1 else indicator("equal", *places)
    return after, frozenset({("standard", z)})


def count(t: Term) -> Result:
    """Σ_{k<n} [k <= m] = m + 1 for 0 <= m < n;  Σ_{k<n} [k < m] = m for 0 <= m <= n."""
    length, k, body = open_sum(t)
    op, first, m = compared(body, "less", "less_equal")
    need(first is k and k not in free(m), "not a sum of [k <= m] or [k < m]", t)
    total = m if op == "less" else integer(add(m, ONE))
    need(below(total, integer(add(length, ONE))), "m may leave the axis", t)
    return total, NOTHING


def orthogonal(t: Term) -> Result:
    """Σ_k g[k, b]·g[k, c] = [b = c] = Σ_k g[b, k]·g[c, k] for a square orthogonal g."""
    length, k, body = open_sum(t)
    need(body.op == "mul" and len(body.args) == 2, "not a product of two", t)
    x, y = body.args
    alike = x.op == y.op == "entry" and x.args[0] is y.args[0] and len(x.args) == 3
    need(alike, "not two entries of one matrix", t)
    g = x.args[0]
    need(g.op == "var" and g.shape[0] is g.shape[1], "not a square matrix", g)
    need(length is g.shape[0], "the sum leaves out rows of g", length, g.shape[0])
    for axis in (1, 2):
        if x.args[axis] is y.args[axis] is k:
            b, c = x.args[3 - axis], y.args[3 - axis]
            need(k not in free(b) | free(c), "the index occurs twice", t)
            need(below(b, length) and below(c, length), "out of range", b, c)
            return indicator("equal", b, c), frozenset({("orthogonal", g)})
    raise Refused("the sum is not over one axis of both", t)
