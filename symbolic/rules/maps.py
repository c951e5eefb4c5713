"""Rules for index maps, digits of an index, division with remainder, and equivariant functions."""

from __future__ import annotations

from ..scalars import ZERO, add, below, entry, indicator, is_integer, mul, split_integer, subtract
from ..terms import Term, instantiate, make, opened
from .base import NOTHING, Result, compared, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs
from .sums import closed


def permutation(t: Term) -> Result:
    """σ⁻¹(σ(j)) = j = σ(σ⁻¹(j))."""
    need(t.op == "entry" and t.args[1].op == "entry", "no word to cancel", t)
    outer, (inner, j) = t.args[0], t.args[1].args[:2]
    forth = outer.op == "inverse" and outer.args[0] is inner
    back = inner.op == "inverse" and inner.args[0] is outer
    base = inner if forth else outer
    need((forth or back) and base.shape == base.args, "these do not cancel", t)
    need(below(j, base.shape[0]), "index out of range", t)
    return j, frozenset({("permutation", base)})


def injective(t: Term) -> Result:
    """[e(a) = e(b)] = [a = b] for an injection e."""
    _, x, y = compared(t, "equal")
    alike = x.op == y.op == "entry" and x.args[0] is y.args[0] and len(x.args) == 2
    need(alike and x.args[0].op == "var", "not [e(a) = e(b)]", t)
    (e, a), b = x.args, y.args[1]
    need(below(a, e.shape[0]) and below(b, e.shape[0]), "index out of range", a, b)
    return indicator("equal", a, b), frozenset({("injective", e)})


def image(t: Term) -> Result:
    """[i in e] = Σ_j [e(j) = i] for an injective e."""
    need(t.op == "indicator" and t.args[0].op == "is in", "not [i in e]", t)
    i, e = t.args[0].args
    j = opened(e.shape[0], t)
    gate = indicator("equal", entry(e, j), i)
    return closed(e.shape[0], j, gate), frozenset({("injective", e)})


def digits(t: Term, width: Term) -> Result:
    """[a·k + b = c·k + d] = [a = c][b = d] for digits 0 <= b, d < k."""
    _, *sides = compared(t, "equal")
    (a, b), (c, d) = (split_integer(side, width) for side in sides)
    need(below(b, width) and below(d, width), "not a digit", b, d, width)
    need(is_integer(a) and is_integer(c), "not integers", a, c)
    return mul(indicator("equal", a, c), indicator("equal", b, d)), NOTHING


def divide(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """⌊(a·k + b)/k⌋ = a and (a·k + b) mod k = b for 0 <= b < k, or for b = 0 and real k > 0."""
    need(t.op in ("floor_divide", "remainder"), "not a division with rest", t)
    quotient, rest = split_integer(t.args[0], t.args[1])
    certain, used = signs.sign(t.args[1]) if rest is ZERO else (0, NOTHING)
    need(certain == 2 or below(rest, t.args[1]), "the rest may be too large", t)
    need(is_integer(quotient), "not an integer", quotient)
    return (quotient if t.op == "floor_divide" else rest), used


def remainder(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """x mod y = x − y·⌊x/y⌋ for y > 0."""
    need(t.op == "remainder" and not t.shape, "not a number mod another", t)
    x, y = t.args
    certain, used = signs.sign(y)
    need(certain == 2 and t.finite, "the divisor is not known to be positive", y)
    return subtract(x, mul(y, make("floor_divide", (x, y)))), used


def floor(t: Term, whole: Term, rest: Term, *, signs: Signs = BY_FORM) -> Result:
    """⌊x/y⌋ = a + ⌊b/y⌋ if x = a·y + b, a is an integer and y > 0;  ⌊⌊b/c⌋/y⌋ = ⌊b/(c·y)⌋.

    The second form is requested by ``whole`` = 0 and ``rest`` = ⌊b/(c·y)⌋; it requires c > 0 and
    a positive integer y.
    """
    need(t.op == "floor_divide" and t.finite and not t.shape, "not a floor", t)
    x, y = t.args
    certain, used = signs.sign(y)
    need(certain == 2, "the divisor is not known to be positive", y)
    if x.op == "floor_divide" and rest.op == "floor_divide" and whole is ZERO:
        b, c = x.args
        inner, more = signs.sign(c)
        need(inner == 2 and is_integer(y), "not positive, or y is no integer", c, y)
        joined = rest.args[0] is b and same_polynomial(rest.args[1], mul(c, y))
        need(joined, "not the floor of b/(c·y)", rest)
        return rest, used | more
    need(is_integer(whole), "not an integer", whole)
    need(same_polynomial(x, add(mul(whole, y), rest)), "x is not a·y + b", x)
    return add(whole, make("floor_divide", (rest, y))), used


def equivariance(t: Term, sigma: Term, table: Term) -> Result:
    """f(X[σ])[i, a] = f(X)[σ(i), a] for f assumed equivariant and a permutation σ or σ⁻¹."""
    need(t.op == "entry" and t.args[0].op == "call", "not an entry of a call", t)
    f, at, *rest = t.args
    plain, assumed = _unmoved(f, sigma, table, "equivariant")
    need(f.shape[:1] == table.args[:1], "not as many rows as the table has", f)
    need(below(at, table.args[0]), "the row is out of range", at)
    return entry(plain, entry(sigma, at), *rest), assumed


def invariance(t: Term, sigma: Term, table: Term) -> Result:
    """f(X[σ]) = f(X) for f assumed invariant and a permutation σ or σ⁻¹."""
    need(t.op == "call", "not a call", t)
    return _unmoved(t, sigma, table, "invariant")


def _unmoved(f: Term, sigma: Term, table: Term, trait: str) -> Result:
    """Return f of a table, whose rows f reads moved by σ; and that f has the trait."""
    moved, *others = f.args
    base = sigma.args[0] if sigma.op == "inverse" else sigma
    tables = moved.op == table.op == "tabulate" and moved.shape == table.shape
    fits = tables and base.op == "var" and base.shape == (moved.args[0],) == base.args
    need(fits, "not a table of rows and a permutation", moved)
    row = opened(moved.args[0], f, table)
    moves = instantiate(moved.args[1], row) is instantiate(table.args[1], entry(sigma, row))
    need(moves, "the rows are not those of the table, moved by σ", moved, table)
    assumed = {(trait, make("function", data=f.data)), ("permutation", base)}
    return make("call", (table, *others), f.data, f.shape), frozenset(assumed)
