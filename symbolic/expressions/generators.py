"""SymPy expressions as rational expressions in generators.

Each non-rational part of an expression becomes a symbol with the relation that it satisfies:

=================  ==========================================================================
exp(Σ k_i u_i)     Π E_i^{k_i}, E_i = exp(u_i) > 0; no u_i is a sum of multiples of the others
cos, sin of Σ ..   polynomials in c_i = cos u_i and s_i = sin u_i, with s_i² = 1 − c_i²
√p                 g >= 0 with g² = p; one for each prime number, squares taken out
[p > 0], [p = 0]   h with h² = h; they express |p| = p (2h − 1), maxima and piecewise functions
log p, ⌊p⌋, f(p)   a symbol for each p in its normal form
=================  ==========================================================================

All these relations hold for the numbers in question, so an expression whose numerator becomes the
zero polynomial is 0 wherever its divisors are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean
from sympy.polys.rings import PolyElement

from ..budget import check_time
from .fractions import Fraction, Polynomials

_PLAIN_PARTS_OF_PI = (1, 2, 3, 4, 6)
Parts = dict[sp.Expr, sp.Rational]
"""Monomials with their coefficients."""


def parts_of(expressions: Iterable[Any]) -> set[Any]:
    """Return all subexpressions of some expressions."""
    seen: set[Any] = set()
    waiting = list(expressions)
    while waiting:
        e = waiting.pop()
        if e not in seen:
            seen.add(e)
            waiting += e.args
    return seen


def symbols_of(expressions: Iterable[Any]) -> set[sp.Symbol]:
    """Return the symbols in some expressions."""
    return {e for e in parts_of(expressions) if e.is_Symbol}


class Unreadable(ValueError):
    """Raised for an expression that is not a real number, or that no generator represents."""


class Finer(Exception):
    """Raised for a finer fraction of an exponent or an angle than its generator represents."""


class Generators:
    """The generators so far; ``units`` says into how many parts exponents and angles are divided.

    ``rules`` replaces symbols and values of functions that hypotheses express by others.  The
    representation of each expression is cached until a rule or a relation changes.  After
    :class:`Finer` everything starts again, but with the units and names found so far.
    """

    def __init__(self) -> None:
        self.units: dict[Any, int] = {}
        self.names: dict[Any, str] = {}
        self.begin_again()

    def begin_again(self) -> None:
        """Discard all generators, rules and relations."""
        self.rules: dict[sp.Symbol, sp.Expr] = {}
        self.squares: dict[sp.Symbol, Any] = {}
        self.meaning: dict[sp.Symbol, Any] = {}
        self.relations: list[sp.Expr] = []
        self._related: list[set[sp.Symbol]] = []
        self._made: dict[Any, sp.Symbol] = {}
        self._lowered: dict[Any, Any] = {}
        self._rings: dict[tuple[sp.Symbol, ...], Polynomials] = {}
        self._bases: dict[tuple[sp.Symbol, ...], list[PolyElement]] = {}
        self._known_bases: dict[tuple[Any, ...], list[PolyElement]] = {}
        self._number: dict[sp.Symbol, int] = {}
        self._exponents: list[tuple[sp.Expr, Parts, sp.Expr]] = []

    # polynomials

    def polynomials(self, *lowered: sp.Expr) -> Polynomials:
        """Return the polynomials in all symbols of these expressions and of their relations."""
        found: set[sp.Symbol] = set()
        waiting = symbols_of(lowered)
        while waiting:
            symbol = waiting.pop()
            found.add(symbol)
            if symbol in self.squares:
                waiting |= symbols_of([self.squares[symbol]]) - found
            for inside in self._related:
                if symbol in inside:
                    waiting |= inside - found
        symbols = tuple(sorted(found, key=self._order))
        if symbols not in self._rings:
            self._rings[symbols] = Polynomials(symbols, self.squares)
        return self._rings[symbols]

    def _order(self, symbol: sp.Symbol) -> tuple[int, str]:
        number = self._number.get(symbol)
        return (0, symbol.name) if number is None else (1 + number, "")

    def numerator(self, e: sp.Expr) -> PolyElement:
        """Return the numerator of e, reduced by all relations; it is 0 if e is shown to be 0."""
        low = self.lower(e)
        return self._rest(self.polynomials(low).fraction(low).numerator)

    def _rest(self, p: PolyElement) -> PolyElement:
        symbols = p.ring.symbols
        if not p or not self.relations:
            return p
        if symbols not in self._bases:
            self._bases[symbols] = self._basis(self._rings[symbols])
        basis = self._bases[symbols]
        return p.rem(basis) if basis else p

    def _basis(self, polynomials: Polynomials) -> list[PolyElement]:
        from sympy.polys.groebnertools import groebner

        inside = set(polynomials.symbols)
        given = [polynomials.ring.from_expr(r) for r in self.relations if r.free_symbols <= inside]
        for symbol, square in self.squares.items():
            if symbol in inside and given:
                given.append(polynomials.ring.from_expr(symbol**2 - square))
        # Relations are assumed and discarded for each conclusion, and few of them are new.
        key = (polynomials.symbols, *given)
        if key not in self._known_bases:
            self._known_bases[key] = list(groebner(given, polynomials.ring)) if given else []
        return self._known_bases[key]

    def assume_nothing(self) -> None:
        """Discard all rules and relations."""
        if self.rules or self.relations:
            self.rules.clear()
            self.assume_zero([])

    def assume_zero(self, relations: list[sp.Expr]) -> None:
        """Assume that polynomials are 0, and reduce everything by them."""
        self.relations, self._related = relations, [symbols_of([r]) for r in relations]
        self.forget()

    def forget(self) -> None:
        """Discard cached results, since a rule or a relation has changed."""
        self._lowered.clear()
        self._bases.clear()

    def is_zero(self, e: sp.Expr) -> bool:
        """Whether the expression is shown to be 0 wherever its divisors are not."""
        return not self.numerator(e)

    def quotient(self, lowered: sp.Expr) -> tuple[PolyElement, PolyElement]:
        """Return coprime numerator and denominator, with leading coefficient 1 in the latter."""
        fraction: Fraction = self.polynomials(lowered).fraction(lowered)
        p = self._rest(fraction.numerator)
        if not fraction.factors or not p:
            return p, p.ring.one
        p, q = p.cancel(fraction.denominator)
        return p.quo_ground(q.LC), q.quo_ground(q.LC)

    def canonical(self, lowered: sp.Expr) -> sp.Expr:
        """Return the normal form of a rational expression."""
        p, q = self.quotient(lowered)
        return p.as_expr() / q.as_expr()

    def _parts(self, lowered: sp.Expr) -> Parts:
        """Return the monomials of an exponent or angle with their rational coefficients."""
        p, q = self.quotient(lowered)
        below, ring = q.as_expr(), p.ring
        found = {}
        for monomial, coefficient in p.terms():
            key = ring.from_dict({monomial: ring.domain.one}).as_expr() / below
            found[key] = sp.Rational(int(coefficient.numerator), int(coefficient.denominator))
        return found

    # lowering

    def lower(self, e: Any) -> Any:
        """Return the rational expression in generators that equals the expression."""
        if e not in self._lowered:
            check_time()
            self._lowered[e] = self._lower(e)
        return self._lowered[e]

    def _lower(self, e: Any) -> Any:
        if e.is_Rational:
            return e
        if e.is_Symbol:
            return self.lower(self.rules[e]) if e in self.rules else e
        if e is sp.pi:
            return self._symbol("pi", sp.pi, "pi", positive=True)
        if e is sp.E:
            return self._exponential(sp.S.One)
        if e.is_Add or e.is_Mul:
            return e.func(*map(self.lower, e.args))
        if e.is_Pow:
            return self._power(e.base, e.exp)
        if e in (sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I):
            raise Unreadable(f"{e} is not a real number")
        if isinstance(e, AppliedUndef):
            return self._value(e)
        method = getattr(self, "_" + type(e).__name__.lower(), None)
        if method is None:
            raise Unreadable(f"{type(e).__name__}(..) is not supported")
        return method(*e.args)

    def _symbol(self, name: str, meaning: Any, *key: Any, **assumptions: bool) -> sp.Symbol:
        if key not in self._made:
            label = self.names.setdefault(key, f"{name}[{len(self.names)}]")
            symbol = sp.Symbol(label, real=True, **assumptions)
            self._made[key], self.meaning[symbol] = symbol, meaning
            self._number[symbol] = len(self._made)
        return self._made[key]

    def _units(self, kind: str, key: sp.Expr, coefficient: sp.Rational) -> int:
        """Return the coefficient as an integer multiple of the monomial's unit."""
        unit = self.units.get((kind, key), 1)
        if unit % coefficient.q:
            self.units[kind, key] = lcm(unit, int(coefficient.q))
            raise Finer
        return int(coefficient * unit)

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        if exponent.is_Integer:
            return self.lower(base) ** exponent
        if (2 * exponent).is_Integer:
            return self._root(self.lower(base)) ** (2 * exponent)
        p, q = self.quotient(self.lower(base))
        if not (positive(p) and positive(q)):  # numbers <= 0 have no logarithm
            raise Unreadable(f"{base}, with the exponent {exponent}, is not known to be positive")
        return self._exponential(self.lower(exponent) * self._log(base))

    def _exp(self, exponent: sp.Expr) -> sp.Expr:
        return self._exponential(self.lower(exponent))

    def _exponential(self, lowered: sp.Expr) -> sp.Expr:
        """Write an exponential by those before it, with at most one new generator.

        A generator for each monomial would be correct too, but give a ring of hundreds of symbols.
        """
        result, rest = sp.S.One, self._parts(lowered)
        for monomial, known, exponent in self._exponents:
            if monomial in rest:
                times = rest[monomial] / known[monomial]
                result *= self._exponential_of(exponent, times)
                rest = {m: c for m in {**rest, **known} if (c := _less(rest, known, times, m))}
        if rest:
            exponent = sp.Add(*(c * m for m, c in rest.items()))
            self._exponents.append((next(iter(rest)), rest, exponent))
            result *= self._exponential_of(exponent, sp.S.One)
        return result

    def _exponential_of(self, exponent: sp.Expr, times: sp.Rational) -> sp.Expr:
        power = self._units("exp", exponent, times)
        if (symbol := self._made.get(("exp", exponent))) is None:
            whole = exponent / self.units.get(("exp", exponent), 1)
            meaning = sp.exp(whole, evaluate=False)
            symbol = self._symbol("E", meaning, "exp", exponent, positive=True)
        return symbol**power

    # angles

    def _cos(self, angle: sp.Expr) -> sp.Expr:
        return self._on_circle(angle)[0]

    def _sin(self, angle: sp.Expr) -> sp.Expr:
        return self._on_circle(angle)[1]

    def _tan(self, angle: sp.Expr) -> sp.Expr:
        cos, sin = self._on_circle(angle)
        return sin / cos

    def _on_circle(self, angle: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        turned = (sp.S.One, sp.S.Zero)
        half_turn = self.lower(sp.pi)
        for key, coefficient in self._parts(self.lower(angle)).items():
            if key == half_turn and coefficient.q in _PLAIN_PARTS_OF_PI:
                known = (sp.cos(coefficient * sp.pi), sp.sin(coefficient * sp.pi))
                turned = _both(turned, (self.lower(known[0]), self.lower(known[1])))
                continue
            times = self._units("angle", key, coefficient)
            part = key / self.units.get(("angle", key), 1)
            c = self._symbol("c", sp.cos(part), "cos", key)
            s = self._symbol("s", sp.sin(part), "sin", key)
            self.squares[s] = 1 - c**2
            step = (c, s if times > 0 else -s)
            for _ in range(abs(times)):
                turned = _both(turned, step)
        return turned

    # hyperbolic functions and logarithms

    def _tanh(self, x: sp.Expr) -> sp.Expr:
        square = self._exponential(2 * self.lower(x))
        return (square - 1) / (square + 1)

    def _log(self, x: sp.Expr) -> sp.Expr:
        p, q = self.quotient(self.lower(x))
        if len(p) > 1 or q != 1 or not positive(p):
            whole = p.as_expr() / q.as_expr()
            return self._symbol("log", sp.log(whole), "log", whole)
        (monomial, coefficient), total = next(iter(p.terms())), sp.S.Zero
        number = sp.Rational(int(coefficient.numerator), int(coefficient.denominator))
        for prime, k in sp.factorrat(number).items():
            total += k * self._symbol("log", sp.log(prime), "log", prime)
        for symbol, k in zip(p.ring.symbols, monomial, strict=True):
            if k and isinstance(meaning := self.meaning.get(symbol), sp.exp):
                total += k * meaning.args[0]
            elif k:
                total += k * self._symbol("log", sp.log(symbol), "log", symbol)
        return total

    # roots

    def _root(self, lowered: sp.Expr) -> sp.Expr:
        p, q = self.quotient(lowered)
        if q != 1 and not positive(q):
            whole = p.as_expr() / q.as_expr()
            return self._symbol("root", sp.sqrt(whole), "root", whole, nonnegative=True)
        below = q.as_expr()
        p = self.polynomials(lowered).reduced(p * q)
        if not p:
            return sp.S.Zero
        content, p = p.primitive()
        if positive(-p):
            raise Unreadable("the root of a number below 0")
        number = sp.Rational(int(content.numerator), int(content.denominator))
        result = self._root_of_number(number) / below
        for factor, k in [] if p.is_ground else p.sqf_list()[1]:
            size = self._absolute(factor.as_expr()) ** (k // 2)
            p, result = p.quo(factor ** (k - k % 2)), result * size
        content, p = p.primitive()
        number = sp.Rational(int(content.numerator), int(content.denominator))
        result *= self._root_of_number(number)
        if p == 1:
            return result
        inside = p.as_expr()
        known = {"positive": True} if positive(p) else {"nonnegative": True}
        root = self._symbol("root", sp.sqrt(inside), "root", inside, **known)
        self.squares[root] = inside
        return result * root

    def _root_of_number(self, number: sp.Rational) -> sp.Expr:
        result = sp.Rational(1, number.q)
        for prime, k in sp.factorint(number.p * number.q).items():
            root = self._symbol("root", sp.sqrt(prime), "root", sp.Integer(prime), positive=True)
            self.squares[root] = sp.Integer(prime)
            result *= prime ** (k // 2) * root ** (k % 2)
        return result

    # signs and cases

    def _above(self, lowered: sp.Expr) -> sp.Expr:
        """Return [x > 0]."""
        return self._signs(lowered)[0]

    def _signs(self, lowered: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Return [x > 0] and [x = 0]."""
        p, q = self.quotient(lowered)
        p = self.polynomials(lowered).reduced(p * q)
        if not p:
            return sp.S.Zero, sp.S.One
        if positive(p):
            return sp.S.One, sp.S.Zero
        if positive(-p):
            return sp.S.Zero, sp.S.Zero
        p = p.primitive()[1]
        forward = p.LC > 0
        inside = (p if forward else -p).as_expr()
        above = self._symbol("h", sp.Gt(inside, 0), "above", inside, nonnegative=True)
        zero = self._symbol("z", sp.Eq(inside, 0), "zero", inside, nonnegative=True)
        self.squares[above], self.squares[zero] = above, zero
        return (above if forward else 1 - above - zero), zero

    def _absolute(self, lowered: sp.Expr) -> sp.Expr:
        p, q = self.quotient(lowered)
        p = self.polynomials(lowered).reduced(p * q)
        if nonnegative(p) or nonnegative(-p):
            return lowered if nonnegative(p) else -lowered
        above, zero = self._signs(lowered)
        if zero == 0:
            return lowered * (2 * above - 1)
        # For x = 0 either sign is right; this choice gives |x| and |−x| the same form.
        forward = above if above.is_Symbol else 1 - above - zero
        return lowered * (2 * forward - 1) * (1 if above.is_Symbol else -1)

    def _abs(self, x: sp.Expr) -> sp.Expr:
        return self._absolute(self.lower(x))

    def _max(self, *values: sp.Expr) -> sp.Expr:
        first, *others = sorted(values, key=sp.default_sort_key)
        result = self.lower(first)
        for other in others:
            more = self.lower(other) - result
            result += (more + self._absolute(more)) / 2
        return result

    def _min(self, *values: sp.Expr) -> sp.Expr:
        return -self._max(*(-value for value in values))

    def _piecewise(self, *branches: Any) -> sp.Expr:
        result, rest = sp.S.Zero, sp.S.One
        for value, condition in branches:
            here = self._truth(condition)
            result += rest * here * self.lower(value)
            rest *= 1 - here
        return result

    def _truth(self, condition: Boolean) -> sp.Expr:
        if condition in (sp.true, sp.false):
            return sp.S.One if condition == sp.true else sp.S.Zero
        if isinstance(condition, sp.And):
            return sp.Mul(*map(self._truth, condition.args))
        if isinstance(condition, sp.Or):
            return 1 - sp.Mul(*(1 - self._truth(part) for part in condition.args))
        if isinstance(condition, sp.Not):
            return 1 - self._truth(condition.args[0])
        x, y = (self.lower(side) for side in condition.args)
        above, zero = self._signs(x - y)
        match type(condition).__name__:
            case "StrictGreaterThan":
                return above
            case "GreaterThan":
                return above + zero
            case "StrictLessThan":
                return 1 - above - zero
            case "LessThan":
                return 1 - above
            case "Equality":
                return zero
            case "Unequality":
                return 1 - zero
        raise Unreadable(f"the condition {condition} is not supported")

    # atoms

    def _floor(self, x: sp.Expr) -> sp.Expr:
        form = self.canonical(self.lower(x))
        if form.is_Rational:
            return sp.floor(form)
        return self._symbol("floor", sp.floor(form), "floor", form)

    def _ceiling(self, x: sp.Expr) -> sp.Expr:
        return -self._floor(-x)

    def _value(self, call: AppliedUndef) -> sp.Expr:
        forms = tuple(self.canonical(self.lower(arg)) for arg in call.args)
        symbol = self._symbol(str(call.func), call.func(*forms), str(call.func), forms)
        return self.lower(symbol)


def _less(rest: Parts, known: Parts, times: sp.Rational, monomial: sp.Expr) -> sp.Rational:
    """Return the coefficient of a monomial in rest − times · known."""
    return rest.get(monomial, sp.S.Zero) - times * known.get(monomial, sp.S.Zero)


def _both(a: tuple[sp.Expr, sp.Expr], b: tuple[sp.Expr, sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """Return cosine and sine of a sum of two angles from those of the angles."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def positive(p: PolyElement) -> bool:
    """Whether a polynomial is positive by its form."""
    return nonnegative(p) and any(
        all(not k or s.is_positive for s, k in zip(p.ring.symbols, monomial, strict=True))
        for monomial in p
    )


def nonnegative(p: PolyElement) -> bool:
    """Whether a polynomial is >= 0 by its form."""
    return all(
        coefficient > 0
        and all(
            k % 2 == 0 or s.is_nonnegative for s, k in zip(p.ring.symbols, monomial, strict=True)
        )
        for monomial, coefficient in p.items()
    )
