"""Maps of indices, digits of an index, and what a statement assumes."""

from __future__ import annotations

from ..scalars import ZERO, below, entry, is_integer, mul, split_integer, unary
from ..terms import Term, instantiate, make, opened
from .base import NOTHING, Result, need
from .signs import BY_FORM, Signs
from .sums import closed


def permutation(t: Term) -> Result:
    """σ⁻¹(σ(j)) = j = σ(σ⁻¹(j))."""
    need(t.op == "entry" and t.args[1].op == "entry", "no word to cancel", t)
    outer, inner = t.args[0], t.args[1].args[0]
    cancels = (outer.op == "inverse" and outer.args[0] is inner) or (
        inner.op == "inverse" and inner.args[0] is outer
    )
    base = outer.args[0] if outer.op == "inverse" else outer
    need(cancels and base.shape == base.args, "these do not cancel", t)
    need(below(t.args[1].args[1], base.shape[0]), "index out of range", t)
    return t.args[1].args[1], frozenset({("permutation", base)})


def injective(t: Term) -> Result:
    """[σ(a) = b] = [a = σ⁻¹(b)] for a permutation;  [e(a) = e(b)] = [a = b] for an injection."""
    need(t.op == "indicator" and t.args[0].op == "equal", "not [a = b]", t)
    x, y = t.args[0].args
    need(x.op == "entry" and len(x.args) == 2, "not [σ(a) = b]", t)
    array, a = x.args
    if y.op == "entry" and y.args[0] is array and array.op == "var":
        result = unary("indicator", make("equal", (a, y.args[1])))
        need(
            below(a, array.shape[0]) and below(y.args[1], array.shape[0]),
            "index out of range",
            a,
            y,
        )
        return result, frozenset({("injective", array)})
    need(array.op == "var" and array.args == array.shape, "not a permutation", t)
    inverse = make("inverse", (array,), shape=array.shape)
    result = unary("indicator", make("equal", (a, entry(inverse, y))))
    need(
        below(a, array.shape[0]) and below(y, array.shape[0]), "b may lie outside the range of σ", y
    )
    return result, frozenset({("permutation", array)})


def image(t: Term) -> Result:
    """[i in e] = Σ_j [e(j) = i] for an injective e."""
    need(t.op == "indicator" and t.args[0].op == "is in", "not [i in e]", t)
    i, e = t.args[0].args
    j = opened(e.shape[0], t)
    gate = unary("indicator", make("equal", (entry(e, j), i)))
    return closed(e.shape[0], j, gate), frozenset({("injective", e)})


def digits(t: Term, width: Term) -> Result:
    """[a·k + b = c·k + d] = [a = c][b = d] for digits 0 <= b, d < k."""
    need(t.op == "indicator" and t.args[0].op == "equal", "not [a = b]", t)
    (a, b), (c, d) = (split_integer(side, width) for side in t.args[0].args)
    need(below(b, width) and below(d, width), "not a digit", b, d, width)
    need(is_integer(a) and is_integer(c), "not integers", a, c)
    high, low = make("equal", (a, c)), make("equal", (b, d))
    return mul(unary("indicator", high), unary("indicator", low)), NOTHING


def divide(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """⌊(a·k + b)/k⌋ = a and (a·k + b) mod k = b for 0 <= b < k, or for b = 0 and any k > 0."""
    need(t.op in ("floor_divide", "remainder"), "not a division with rest", t)
    quotient, rest = split_integer(t.args[0], t.args[1])
    certain, used = signs.sign(t.args[1]) if rest is ZERO else (0, NOTHING)
    need(certain == 2 or below(rest, t.args[1]), "the rest may be too large", t)
    need(is_integer(quotient), "not an integer", quotient)
    return (quotient if t.op == "floor_divide" else rest), used


def hypothesis(t: Term, left: Term, right: Term) -> Result:
    """An entry of one side of an assumed equation of arrays is that entry of the other."""
    need(t.op == "entry" and t.args[0] is left, "not an entry of it", t, left)
    need(left.shape == right.shape, "shapes differ", left, right)
    inside = all(below(i, length) for i, length in zip(t.args[1:], left.shape, strict=True))
    need(inside, "an index may leave its axis", t)
    pair = make("assumed equal", (left, right))
    return entry(right, *t.args[1:]), frozenset({("equal", pair)})


def equivariance(t: Term, sigma: Term, table: Term) -> Result:
    """f(X[σ])[i, a] = f(X)[σ(i), a] for f assumed equivariant and a permutation σ or σ⁻¹."""
    need(t.op == "entry" and t.args[0].op == "call", "not an entry of a call", t)
    f = t.args[0]
    moved, *others = f.args
    base = sigma.args[0] if sigma.op == "inverse" else sigma
    need(
        moved.op == table.op == "tabulate"
        and moved.shape == table.shape
        and base.op == "var"
        and base.shape == (moved.args[0],) == base.args == f.shape[:1],
        "not a table of rows and a permutation of them",
        moved,
    )
    row = opened(moved.args[0], t, table)
    moves = instantiate(moved.args[1], row) is instantiate(table.args[1], entry(sigma, row))
    need(moves, "the rows are not those of the table, moved by σ", moved, table)
    need(below(t.args[1], moved.args[0]), "the row is out of range", t.args[1])
    plain = make("call", (table, *others), f.data, f.shape)
    assumed = {("equivariant", make("function", data=f.data)), ("permutation", base)}
    return entry(plain, entry(sigma, t.args[1]), *t.args[2:]), frozenset(assumed)
