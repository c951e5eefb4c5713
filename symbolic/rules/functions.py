"""Rules for exponentials, logarithms, angles, roots, absolute values and maxima."""

from __future__ import annotations

from fractions import Fraction

from ..scalars import MINUS_INFINITY, ONE, ZERO, add, mul, num, power, subtract, unary
from ..terms import Term, make
from .base import NOTHING, Refused, Result, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs


def exponential(t: Term, target: Term) -> Result:
    """exp(a) = Π exp(a_k)^{p_k} if a = Σ p_k a_k; exp(0) = 1; exp(-inf) = 0."""
    need(t.op == "exp", "not an exponential", t)
    if t.args[0] is MINUS_INFINITY:
        need(target is ZERO, "exp of minus infinity is 0", target)
        return target, NOTHING
    parts: list[Term] = []
    for factor in target.args if target.op == "mul" else (target,):
        base, exponent = (factor.args[0], factor.data) if factor.op == "power" else (factor, 1)
        if factor is ONE:
            continue
        need(base.op == "exp", "not a product", target)
        parts.append(mul(num(exponent), base.args[0]))
    need(same_polynomial(t.args[0], add(*parts)), "exponents differ", t, target)
    return target, NOTHING


def exponential_of_log(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """exp(log x) = x for x > 0."""
    need(t.op == "exp" and t.args[0].op == "log", "not exp(log x)", t)
    x = t.args[0].args[0]
    certain, used = signs.sign(x)
    need(certain == 2, "x is not known to be positive", x)
    return x, used


def log(t: Term) -> Result:
    """log(exp x) = x for finite x."""
    need(t.op == "log" and t.args[0].op == "exp", "not log(exp x)", t)
    x = t.args[0].args[0]
    need(x.finite, "x may be infinite", x)
    return x, NOTHING


def angle_sum(t: Term, a: Term, b: Term) -> Result:
    """cos(a+b) = cos a cos b − sin a sin b;  sin(a+b) = sin a cos b + cos a sin b."""
    need(t.op in ("cos", "sin"), "not a cosine or sine", t)
    need(same_polynomial(t.args[0], add(a, b)), "the angle is not a + b", t)
    ca, sa, cb, sb = unary("cos", a), unary("sin", a), unary("cos", b), unary("sin", b)
    if t.op == "cos":
        return subtract(mul(ca, cb), mul(sa, sb)), NOTHING
    return add(mul(sa, cb), mul(ca, sb)), NOTHING


def known_angle(t: Term) -> Result:
    """cos 0 = 1, sin 0 = 0;  cos π/2 = 0, sin π/2 = 1;  cos π = −1, sin π = 0."""
    need(t.op in ("cos", "sin"), "not a cosine or sine", t)
    for half_turns, cosine, sine in ((0, 1, 0), (Fraction(1, 2), 0, 1), (1, -1, 0)):
        if same_polynomial(t.args[0], mul(num(half_turns), make("pi"))):
            return num(cosine if t.op == "cos" else sine), NOTHING
    raise Refused("the angle is neither 0, π/2 nor π", t)


def hyperbolic(t: Term) -> Result:
    """tanh a = 1 − 2/(exp(2a) + 1) for finite a."""
    need(t.op == "tanh" and t.finite and not t.shape, "not tanh of a finite number", t)
    rising = unary("exp", mul(num(2), t.args[0]))
    return add(ONE, mul(num(-2), power(add(rising, ONE), -1))), NOTHING


def pythagoras(t: Term) -> Result:
    """sin² a = 1 − cos² a."""
    need(t.finite, "the angle may be infinite", t)
    need(t.op == "power" and t.data == 2 and t.args[0].op == "sin", "no sin²", t)
    return subtract(ONE, power(unary("cos", t.args[0].args[0]), 2)), NOTHING


def root(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """(√x)² = x for x >= 0."""
    need(t.op == "power" and t.data == 2 and t.args[0].op == "sqrt", "not (√x)²", t)
    x = t.args[0].args[0]
    certain, used = signs.sign(x)
    need(certain, "x is not known to be >= 0", x)
    return x, used


def root_of_square(t: Term, target: Term) -> Result:
    """√(x²) = |x|."""
    need(t.op == "sqrt" and target.op == "abs", "not a root and an absolute value", t, target)
    need(same_polynomial(t.args[0], power(target.args[0], 2)), "not x²", t, target)
    return target, NOTHING


def absolute(t: Term) -> Result:
    """|x| = x where 0 <= x, and −x elsewhere; for a finite number x."""
    need(t.op == "abs" and t.finite and not t.shape, "not |x| of a finite number", t)
    (x,) = t.args
    return make("where", (make("less_equal", (ZERO, x)), x, mul(num(-1), x))), NOTHING


def maximum(t: Term, target: Term) -> Result:
    """max is associative, commutative, idempotent, and max(x, −inf) = x."""

    def leaves(x: Term) -> frozenset[Term]:
        if x.op == "maximum":
            return frozenset().union(*(leaves(arg) for arg in x.args))
        return frozenset((x,)) - {MINUS_INFINITY}

    need(t.op == "maximum" and leaves(t), "not a maximum", t)
    need(leaves(t) == leaves(target), "not the same numbers", t, target)
    return target, NOTHING


def maximum_as_choice(t: Term) -> Result:
    """max(a, b) = a where b <= a, and b elsewhere; for finite a and b."""
    good = t.op == "maximum" and all(x.finite for x in t.args) and not t.shape
    need(good, "not the maximum of two finite numbers", t)
    a, b = t.args
    return make("where", (make("less_equal", (b, a)), a, b)), NOTHING
