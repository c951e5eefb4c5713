"""Exponentials, angles, roots, absolute values and maxima."""

from __future__ import annotations

from fractions import Fraction

from ..scalars import MINUS_INFINITY, ONE, ZERO, add, mul, num, number_of, power, unary
from ..terms import Term, make, substitute
from .base import NOTHING, Refused, Result, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs


def exponential(t: Term, target: Term) -> Result:
    """exp(a) = Π exp(a_k)^{p_k} when a = Σ p_k a_k; exp(0) = 1; exp(-inf) = 0."""
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


def angle_sum(t: Term, a: Term, b: Term) -> Result:
    """cos(a+b) = cos a cos b − sin a sin b;  sin(a+b) = sin a cos b + cos a sin b."""
    need(t.op in ("cos", "sin"), "not a cosine or sine", t)
    need(same_polynomial(t.args[0], add(a, b)), "the angle is not a + b", t)
    ca, sa, cb, sb = unary("cos", a), unary("sin", a), unary("cos", b), unary("sin", b)
    if t.op == "cos":
        return add(mul(ca, cb), mul(num(-1), sa, sb)), NOTHING
    return add(mul(sa, cb), mul(ca, sb)), NOTHING


def parity(t: Term, a: Term) -> Result:
    """cos(−a) = cos a;  sin(−a) = −sin a."""
    need(t.op in ("cos", "sin"), "not a cosine or sine", t)
    need(same_polynomial(t.args[0], mul(num(-1), a)), "the angle is not −a", t, a)
    return (unary("cos", a) if t.op == "cos" else mul(num(-1), unary("sin", a))), NOTHING


def angle_zero(t: Term) -> Result:
    """cos 0 = 1;  sin 0 = 0."""
    need(t.op in ("cos", "sin") and same_polynomial(t.args[0], ZERO), "not zero", t)
    return (ONE if t.op == "cos" else ZERO), NOTHING


def half_turn(t: Term) -> Result:
    """cos π = −1, sin π = 0, cos π/2 = 0, sin π/2 = 1."""
    need(t.op in ("cos", "sin"), "not a cosine or sine", t)
    pi = make("pi")
    if same_polynomial(t.args[0], pi):
        return (num(-1) if t.op == "cos" else ZERO), NOTHING
    quarter = same_polynomial(t.args[0], mul(num(Fraction(1, 2)), pi))
    need(quarter, "the angle is neither π nor π/2", t)
    return (ZERO if t.op == "cos" else ONE), NOTHING


def hyperbolic(t: Term) -> Result:
    """tanh a = 1 − 2/(exp(2a) + 1) for finite a."""
    need(t.op == "tanh" and t.finite and not t.shape, "not tanh of a finite number", t)
    rising = unary("exp", mul(num(2), t.args[0]))
    return add(ONE, mul(num(-2), power(add(rising, ONE), -1))), NOTHING


def pythagoras(t: Term) -> Result:
    """sin² a = 1 − cos² a."""
    need(t.finite, "the angle may be infinite", t)
    need(t.op == "power" and t.data == 2 and t.args[0].op == "sin", "no sin²", t)
    cosine = unary("cos", t.args[0].args[0])
    return add(ONE, mul(num(-1), power(cosine, 2))), NOTHING


def exponential_of_log(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """exp(k·log x) = x^k for x > 0 and an integer k."""
    need(t.op == "exp", "not an exponential", t)
    inner = t.args[0]
    k, logarithm = inner.args if inner.op == "mul" and len(inner.args) == 2 else (ONE, inner)
    times = number_of(k)
    whole = times is not None and times.denominator == 1
    need(logarithm.op == "log" and whole, "not k·log x", t)
    x = logarithm.args[0]
    certain, used = signs.sign(x)
    need(certain == 2, "x is not known to be positive", x)
    assert times is not None
    return power(x, int(times)), used


def log(t: Term, target: Term, *, signs: Signs = BY_FORM) -> Result:
    """log(exp x) = x;  log(Π x_k^{p_k}) = Σ p_k·log x_k for x_k > 0;  log 1 = 0."""
    need(t.op == "log" and t.finite, "not the logarithm of a finite number", t)
    x = t.args[0]
    if x.op == "exp":
        need(x.args[0].finite and target is x.args[0], "not the exponent", t, target)
        return target, NOTHING
    if x is ONE:
        need(target is ZERO, "log 1 is 0", target)
        return target, NOTHING
    parts, used = list[Term](), NOTHING
    for factor in x.args if x.op == "mul" else (x,):
        base, exponent = (factor.args[0], factor.data) if factor.op == "power" else (factor, 1)
        certain, assumed = signs.sign(base)
        need(certain == 2, "a factor is not known to be positive", base)
        parts.append(mul(num(exponent), unary("log", base)))
        used |= assumed
    need(same_polynomial(target, add(*parts)), "not the sum of the logarithms", target)
    return target, used


def root(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """(√x)² = x and (1/√x)² = 1/x for x >= 0; 1/0 is 0 on both sides."""
    square = t.op == "power" and t.data in (2, -2) and t.args[0].op == "sqrt"
    need(square, "not (√x)²", t)
    x = t.args[0].args[0]
    certain, used = signs.sign(x)
    need(certain, "x is not known to be >= 0", x)
    return power(x, 1 if t.data == 2 else -1), used


def root_of_square(t: Term, target: Term) -> Result:
    """√(x²) = |x|."""
    good = t.op == "sqrt" and target.op == "abs"
    need(good, "not a root and an absolute value", t, target)
    square = power(target.args[0], 2)
    need(same_polynomial(t.args[0], square), "not x²", t, target)
    return target, NOTHING


def absolute(t: Term, target: Term, *, signs: Signs = BY_FORM) -> Result:
    """|x| = |−x|, |x| = x for x >= 0, and |x|² = x²."""
    if t.op == "power" and t.data == 2 and t.args[0].op == "abs" and t.finite:
        need(target is power(t.args[0].args[0], 2), "not x²", t, target)
        return target, NOTHING
    need(t.op == "abs", "not an absolute value", t)
    x = t.args[0]
    if target.op == "abs":
        y = target.args[0]
        equal = same_polynomial(x, y) or same_polynomial(x, mul(num(-1), y))
        need(equal, "neither x nor −x", t, target)
        return target, NOTHING
    certain, used = signs.sign(x)
    need(certain and same_polynomial(x, target), "not known x >= 0", t)
    return target, used


def ordered_absolute(t: Term, distance: Term) -> Result:
    """[a <= b]·f(|b − a|) = [a <= b]·f(b − a), wherever the distance occurs in the product."""
    need(
        t.op == "mul" and distance.op == "abs" and not distance.loose and t.finite,
        "not a finite product with a distance",
        t,
    )
    x = distance.args[0]
    for place, gate in enumerate(t.args):
        if gate.op != "indicator" or gate.args[0].op != "less_equal":
            continue
        low, high = gate.args[0].args
        gap = add(high, mul(num(-1), low))
        if same_polynomial(x, gap) or same_polynomial(x, mul(num(-1), gap)):
            rest = [substitute(f, distance, gap) for k, f in enumerate(t.args) if k != place]
            return mul(gate, *rest), NOTHING
    raise Refused("no [a <= b] for this distance", distance)


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
    need(
        t.op == "maximum" and all(x.finite for x in t.args) and not t.shape,
        "not the maximum of two finite numbers",
        t,
    )
    a, b = t.args
    return make("where", (make("less_equal", (b, a)), a, b)), NOTHING


def maximum_mirrored(t: Term) -> Result:
    """max(a, b) = a + b + max(−a, −b), for finite a and b."""
    need(
        t.op == "maximum" and all(x.finite for x in t.args) and not t.shape,
        "not the maximum of two finite numbers",
        t,
    )
    a, b = t.args
    return add(a, b, make("maximum", (mul(num(-1), a), mul(num(-1), b)))), NOTHING
