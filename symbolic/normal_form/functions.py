"""Functions of a number in the normal form: angles, exponentials, logarithms, roots, maxima.

An angle is split into its monomials or, if the normaliser keeps angles together, into one part for
each position: cos((p + s)·(a + b)) is expanded in p·(a + b) and s·(a + b), with four products of
cosines and sines instead of sixteen.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    index_range,
    is_integer,
    mul,
    num,
    number_of,
    power,
    split_integer,
    unary,
)
from ..signs import find_sign
from ..terms import Term, make
from . import conditions, derived
from .equations import chain, flat, inside, rewrite
from .polynomial import (
    Monomial,
    Polynomial,
    content,
    expand,
    monomial_term,
    positive,
    sign_facts,
    to_term,
)

if TYPE_CHECKING:
    from .normaliser import Normaliser


# Cosines and sines of sums in the normal form

PI: Monomial = ((make("pi"), 1),)
MAX_PARTS = 32  # equal parts into which an angle is divided; one of more parts stays whole


def angle(norm: Normaliser, t: Term) -> Derivation:
    """Expand the cosine or sine of a sum down to parts with a positive unit coefficient."""
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    whole = expand(u.args[0])
    if not whole:
        return chain(first, rewrite("known angle", u))
    one, c, rest = _first(whole, together=norm.together)
    lead = next(iter(one))
    if not rest and lead == PI and len(one) == 1 and c in (1, Fraction(1, 2)):
        return chain(first, rewrite("known angle", u))
    unit_of = norm.units.get(lead, c.denominator)
    parts = abs(c) * unit_of
    if not rest and c > 0 and (parts == 1 or parts > MAX_PARTS):
        if norm.together:
            norm.angles.add(frozenset(one))
        return first
    if not rest and c < 0:
        return chain(first, norm.then(derived.parity(u, to_term(_scaled(one, -c)))))
    unit = Fraction(1 if c > 0 else -1, unit_of)
    a = to_term(_scaled(one, c if rest else unit))
    b = to_term(rest or _scaled(one, c - unit))
    return chain(first, norm.at("angle addition", u, a, b))


def _first(whole: Polynomial, *, together: bool) -> tuple[Polynomial, Fraction, Polynomial]:
    """Return the first part of an angle without its coefficient, the coefficient, and the rest."""
    lead = next(iter(whole))
    group = _position(lead) if together else None
    one = {m: c for m, c in whole.items() if m == lead or (group and _position(m) == group)}
    rest = {m: c for m, c in whole.items() if m not in one}
    scale = abs(content(one)[0]) if len(one) > 1 else abs(whole[lead])
    scale = -scale if whole[lead] < 0 else scale
    return _scaled(one, 1 / scale), scale, rest


def _scaled(polynomial: Polynomial, factor: Fraction) -> Polynomial:
    return {m: factor * c for m, c in polynomial.items()}


def _position(monomial: Monomial) -> tuple[Term, ...] | None:
    """Return the position that a monomial contains: its array and its non-literal indices, or None.

    A natural number counts as a position if there is no other.  Coordinates of one position, at
    literal indices, are not distinguished.
    """
    for kind in ("position", "natural"):
        found = [
            (array, *(at for at in atom.args[1:] if atom.op == "entry" and number_of(at) is None))
            for atom, _ in monomial
            if (array := atom.args[0] if atom.op == "entry" else atom).op == "var"
            and array.data[1] == kind
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def disjoint(angles: Iterable[frozenset[Monomial]]) -> bool:
    """Whether no two parts share a monomial, so that splitting them further cannot help.

    Such parts are linearly independent, and trigonometric polynomials in linearly independent
    angles are equal only if their coefficients are.
    """
    seen: set[Monomial] = set()
    for part in angles:
        if seen & part:
            return False
        seen |= part
    return True


# Functions of a number in the normal form: exponentials, logarithms, roots, maxima


MAX_EXPONENT = 10_000  # exp(c·x) is exp(x)^c up to here; larger numbers such as −10⁹ stand for −∞


def exponential(norm: Normaliser, t: Term) -> Derivation:
    """Expand exp of a sum into a product of exponentials of its monomials."""
    if not t.args[0].finite:
        return conditions.exponential(norm, t)
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    exponent = expand(u.args[0])
    if not exponent:
        return chain(first, rewrite("exp", u, ONE))
    if u.args[0].op == "log" and positive(u.args[0].args[0]):
        return norm.then(chain(first, rewrite("exp of log", u)))
    factors = []
    for monomial, c in exponent.items():
        times = c.numerator if abs(c.numerator) <= MAX_EXPONENT else 1
        unit = unary("exp", monomial_term(monomial, c / times))
        factors.append(power(unit, times))
    target = mul(*factors)
    if any(len(m) == 1 and m[0][0].op == "log" for m in exponent) and target is not u:
        return chain(first, norm.at("exp", u, target))
    return chain(first, norm.settled("exp", u, target))


def logarithm(norm: Normaliser, t: Term) -> Derivation:
    """Expand log of an exponential, or of a product of positive numbers."""
    first = norm.arguments(t)
    u = first.right
    x = u.args[0]
    if x.op == "exp" and x.args[0].finite:
        return norm.then(chain(first, rewrite("log", u)))
    if x is ONE:
        return chain(first, derived.logarithm(u, ZERO))
    product, shared = _factored(norm, x)
    if product is not x:
        first = chain(first, inside(u, [(0, rewrite("ring", x, product, *shared))]))
        u = first.right
    if product.op not in ("mul", "power"):
        return first
    parts = []
    for factor in flat(product):
        base, k = (factor.args[0], factor.data) if factor.op == "power" else (factor, 1)
        parts.append(mul(num(k), unary("log", base)))
    try:
        return norm.then(chain(first, derived.logarithm(u, add(*parts))))
    except Refused:
        return first


def _factored(norm: Normaliser, x: Term) -> tuple[Term, tuple[Term, ...]]:
    """Factor a positive sum if possible; return the product and the numbers that must not be 0.

    The common factors of its terms are taken out, or it is written over a common denominator.  Any
    other number is returned unchanged.
    """
    if x.op != "add":
        return x, ()
    inverses = (a for m in expand(x) for a, _ in m if a.op == "power" and a.args[0].op == "add")
    below = next((a.args[0] for a in inverses if positive(a)), None)
    if below is not None:
        above = norm(mul(below, x)).right
        return (mul(above, power(below, -1)), (below,)) if positive(above) else (x, ())
    scale, shared = content(expand(x))
    if scale < 0 or (scale == 1 and not shared) or not all(positive(a) for a, _ in shared):
        return x, ()
    down = monomial_term(tuple((a, -k) for a, k in shared))
    rest = norm(mul(num(1 / scale), down, x)).right
    if not positive(rest):
        return x, ()
    return mul(monomial_term(shared, scale), rest), tuple(a for a, _ in shared)


def hyperbolic(norm: Normaliser, t: Term) -> Derivation:
    """Normalise tanh: tanh 0 = 0, and with ``norm.exponentials`` tanh a by exp(2a)."""
    first = norm.arguments(t)
    u = first.right
    opened = u.args[0] is ZERO or (norm.exponentials and u.finite)
    return norm.then(chain(first, rewrite("tanh", u))) if opened else first


def root(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a root: √(x²) = |x|, and of a product of numbers >= 0 the product of roots."""
    first = norm.arguments(t)
    u = first.right
    (x,) = u.args
    exact = _root_of_literal(x)
    if exact is not None:
        return norm.then(chain(first, rewrite("root of a square", u, unary("abs", exact))))
    literal, monomial, rest = _factors(norm, x) if u.finite else (Fraction(1), (), x)
    if literal <= 0 or rest is x or (rest is not None and not _at_least_zero(rest)):
        return first
    numbers = [(num(literal.numerator), 1), (num(literal.denominator), -1)]
    last = [(rest, 1)] if rest is not None else []
    factors, parts = list[Term](), list[Derivation]()
    for atom, k in (*(one for one in numbers if one[0] is not ONE), *monomial, *last):
        exact = _root_of_literal(atom)
        if exact is not None:
            factors.append(power(exact, k))
            parts.append(Reflexive(power(atom, k)))
            continue
        odd = 0 if k % 2 == 0 else 1 if k > 0 else -1
        half = (k - odd) // 2
        if odd and not _at_least_zero(atom):
            return first
        if half:
            factors.append(power(atom if _at_least_zero(atom) else unary("abs", atom), half))
            parts.append(_even_power(atom, 2 * half))
        if odd:
            factors.append(power(unary("sqrt", atom), odd))
            parts.append(_to_the(derived.as_root_squared(atom), odd))
    z = mul(*factors)
    if z is u:
        return first
    cancelled = [atom for atom, _ in monomial] if rest is not None else []
    return norm.then(chain(first, derived.square_root(u, z, parts, cancelled)))


def _root_of_literal(x: Term) -> Term | None:
    value = number_of(x)
    if value is None or value < 0:
        return None
    exact = Fraction(isqrt(value.numerator), isqrt(value.denominator))
    return num(exact) if exact * exact == value else None


def _at_least_zero(x: Term) -> bool:
    return find_sign(x, sign_facts())[0] > 0


def _to_the(step: Derivation, way: int) -> Derivation:
    """x = y, or 1/x = 1/y."""
    return step if way == 1 else inside(make("power", (step.left,), -1), [(0, step)])


def _even_power(x: Term, k: int) -> Derivation:
    """xᵏ as a power of a number >= 0, x itself or |x|, for even k."""
    t = power(x, k)
    if _at_least_zero(x):
        return Reflexive(t)
    square = power(x, 2)
    if k == 2:
        return derived.as_absolute_squared(x)
    whole = make("power", (square,), k // 2)
    return chain(rewrite("ring", t, whole), inside(whole, [(0, derived.as_absolute_squared(x))]))


def _factors(norm: Normaliser, x: Term) -> tuple[Fraction, Monomial, Term | None]:
    """A number in normal form as literal · monomial · rest, where rest is a sum or None."""
    whole = expand(x)
    if len(whole) == 1:
        ((monomial, literal),) = whole.items()
        return literal, monomial, None
    literal, monomial = content(whole)
    literal = abs(literal)
    if literal == 1 and not monomial:
        return literal, (), x
    down = monomial_term(tuple((atom, -k) for atom, k in monomial))
    if not all(positive(atom) for atom, _ in monomial):
        return Fraction(1), (), x
    return literal, monomial, norm(mul(num(1 / literal), down, x)).right


def absolute(norm: Normaliser, t: Term) -> Derivation:
    """Normalise |x|: of a product the product, x if x >= 0, |x| or |−x| by the smaller key.

    With ``norm.choices`` it is opened as a choice.
    """
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    x = u.args[0]
    if _at_least_zero(x):
        return chain(first, derived.absolute_value(u))
    if norm.choices and x.finite:
        return norm.then(chain(first, rewrite("absolute value as a choice", u)))
    if not x.finite:
        return first
    literal, monomial, rest = _factors(norm, x)
    atoms = (*monomial, (rest, 1)) if rest is not None else monomial
    if abs(literal) != 1 or len(atoms) != 1 or atoms[0][1] != 1 or literal < 0:
        factors = [power(a if _at_least_zero(a) else unary("abs", a), k) for a, k in atoms]
        own = [num(abs(literal))] if abs(literal) != 1 else []
        z = mul(*own, *factors)
        parts = [
            *(Reflexive(num(literal**2)) for _ in own),
            *(_even_power(a, 2 * k) for a, k in atoms),
        ]
        cancelled = [a for a, _ in monomial] if rest is not None else []
        return norm.then(chain(first, derived.absolute_product(u, z, parts, cancelled)))
    if rest is None:
        return first
    opposite = norm(mul(num(-1), x)).right
    if opposite.key < x.key:
        first = chain(first, derived.mirrored_absolute(x, opposite))
    return first


def maximum(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a maximum: its distinct arguments sorted, or opened as a choice."""
    first = norm.arguments(t)
    u = first.right

    def leaves(x: Term) -> list[Term]:
        return [y for arg in x.args for y in leaves(arg)] if x.op == "maximum" else [x]

    if norm.choices and all(x.finite for x in u.args) and not u.shape:
        return norm.then(chain(first, rewrite("maximum as a choice", u)))
    different = sorted(set(leaves(u)) - {MINUS_INFINITY}, key=lambda x: x.key)
    target = different[0]
    for x in different[1:]:
        target = make("maximum", (target, x))
    first = first if target is u else chain(first, rewrite("maximum", u, target))
    both = len(different) == 2 and all(x.finite for x in different) and not u.shape
    if not norm.mirrored or not both:
        return first
    mirrored = sorted((norm(mul(num(-1), x)).right for x in different), key=lambda x: x.key)
    if make("maximum", tuple(mirrored)).key < target.key:  # the normal form has the smaller key
        return norm.then(chain(first, derived.mirrored_maximum(target)))
    return first


def division(norm: Normaliser, t: Term) -> Derivation:
    """Normalise ⌊x/y⌋ or x mod y: divide integers exactly, or take integer parts out."""
    first = norm.arguments(t)
    u = first.right
    try:
        return chain(first, norm.at("divide", u))
    except Refused:
        pass
    x, y = u.args
    if u.op == "remainder" and norm.rests and u.finite and positive(y):
        return chain(first, norm.at("remainder", u))
    if not u.finite or not positive(y) or any(a.op == "index" for m in expand(x) for a, _ in m):
        return first
    if u.op == "remainder":
        if any(index_range(a) is not None for m in expand(x) for a, _ in m):
            return first  # x mod y of an index is kept, as a number certainly below y
        return chain(first, norm.at("remainder", u))
    if x.op == "floor_divide" and positive(x.args[1]) and is_integer(y):
        flat_ = make("floor_divide", (x.args[0], norm(mul(x.args[1], y)).right))
        return chain(first, norm.at("floor", u, ZERO, flat_))
    whole, rest = split_integer(x, y)
    if whole is not ZERO and is_integer(whole):
        return chain(first, norm.at("floor", u, whole, rest))
    return first
