"""How conditions on lengths are written: each simplified, and without those that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations, product
from math import lcm, prod
from typing import Any

import sympy
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan
from torch.utils._sympy.functions import FloorDiv, Max, Mod, PythonMod

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.terms import Term

from .guards import Binding

STRICT = (StrictLessThan, StrictGreaterThan)
BOUNDS = (LessThan, GreaterThan, *STRICT)
MOST_REMAINDERS = 64  # of divided lengths, for which a condition is simplified
SIGNS = {"Unequality": "≠", "Equality": "=", "LessThan": "≤", "GreaterThan": "≥"}
FLOATS = re.compile(r"\bToFloat\(([^()]+)\)")  # a length combined with a float
CALLS = re.compile(r"\b(?:Python)?Mod\(([^(),]+), ([^(),]+)\)")


def printed_conditions(
    conditions: Iterable[Any], bindings: Iterable[Binding], ranges: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return the conditions at the lengths a law uses, without those that hold at every length.

    Conditions implied by the ``ranges`` of a graph's lengths, which are reported beside them, are
    left out too.
    """
    found: dict[str, Any] = {}
    within: dict[Any, None] = {}
    least: dict[Any, int] = {}
    for binding in bindings:
        names = {symbol: _symbol(term) for symbol, term in binding}
        for symbol, bounds in (ranges or {}).items():
            if symbol in names:
                within[sympy.Ge(names[symbol], int(bounds.lower))] = None
                least.setdefault(names[symbol], int(bounds.lower))
                if bounds.upper.is_Integer:
                    within[sympy.Le(names[symbol], int(bounds.upper))] = None
        for condition in conditions:
            here = condition.subs(
                {s: names[str(s)] for s in condition.free_symbols if str(s) in names},
                simultaneous=True,
            )
            if here == sympy.true:
                continue
            here = _shorter(here)
            # H ≠ G is the same as G ≠ H
            back = here.reversed if isinstance(here, sympy.core.relational.Relational) else here
            if _plain(back) not in found:
                found[_plain(here)] = here
    return _needed(
        {
            text: one
            for text, one in found.items()
            if not any(one == known or _follows(one, known) for known in within)
            and not _always_holds(one, least)
        }
    )


def _needed(found: dict[str, Any]) -> tuple[str, ...]:
    """Return the printed conditions that do not follow from others among them."""
    for text, one in list(found.items()):  # of two equivalent conditions the second is kept
        if any(_follows(one, other) for another, other in found.items() if another != text):
            del found[text]
    return tuple(found)


@lru_cache(maxsize=4096)  # every law of a graph asks it of the same conditions
def _follows(condition: Any, other: Any) -> bool:
    """Whether a condition follows from a bound for lengths of 1 or more: n ≤ 64 from n + r ≤ 64.

    >>> n, r = sympy.symbols("n r", integer=True, positive=True)
    >>> _follows(n <= 63, n + r <= 64), _follows(n <= 62, n + r <= 64)
    (True, False)
    >>> _follows(sympy.Ne(r, 1), r >= 2), _follows(sympy.Ne(r, 2), r >= 2)
    (True, False)
    """
    if isinstance(condition, sympy.Ne) and isinstance(other, BOUNDS):
        sides = (sympy.Gt(*condition.args), sympy.Lt(*condition.args))
        return any(side in (other, other.reversed) or _follows(side, other) for side in sides)
    if not isinstance(condition, BOUNDS) or not isinstance(other, BOUNDS) or condition == other:
        return False
    gap = (other.lts - other.gts) - (condition.lts - condition.gts)
    beyond = {length: length + 1 for length in gap.free_symbols}  # substitute n + 1, with n ≥ 0
    strict = isinstance(condition, STRICT) and not isinstance(other, STRICT)
    return _is_above(gap.subs(beyond, simultaneous=True), strict=strict)


def _is_above(gap: Any, *, strict: bool) -> bool:
    """Whether an expression is at least 0, or more if ``strict``, as no coefficient is negative."""
    gap = gap.expand()
    if not gap.is_polynomial(*gap.free_symbols):
        return False
    numbers = gap.as_coefficients_dict()
    above = all(n.is_number and n >= 0 for n in numbers.values())
    return above and (not strict or numbers.get(sympy.S.One, 0) > 0)


def _always_holds(condition: Any, least: Mapping[Any, int]) -> bool:
    """Whether a condition on quotients of lengths holds at all lengths from the least on.

    With n = 2k + i the quotient n // 2 is k, and the remainder of 1 by n ≥ 2 is 1.  A length of
    which no least one is known is 1 or more.

    >>> n = sympy.Symbol("n", integer=True, positive=True)
    >>> half = FloorDiv(n, 2)
    >>> _always_holds(half <= n, {}), _always_holds(sympy.Ne(half, n), {})
    (True, True)
    >>> _always_holds(half >= 1, {}), _always_holds(half >= 1, {n: 2})
    (False, True)
    >>> from torch.utils._sympy.functions import Mod
    >>> rest = sympy.Ne(Mod(1, n, evaluate=False), 0)
    >>> _always_holds(rest, {}), _always_holds(rest, {n: 2})
    (False, True)
    """
    for one in condition.atoms(sympy.Mod, Mod, PythonMod):
        here, by = one.args
        if here.is_Integer and 0 <= here < least.get(by, 1):
            condition = condition.xreplace({one: here})
    if condition == sympy.true:
        return True
    if not isinstance(condition, (*BOUNDS, sympy.Ne)) or not condition.atoms(FloorDiv):
        return False
    for most in condition.atoms(Max, sympy.Max):
        pairs = permutations(most.args) if len(most.args) == 2 else ()
        larger = (a for a, b in pairs if _always_holds(sympy.Ge(a, b), least))
        condition = condition.xreplace({most: next(larger, most)})
    unequal = isinstance(condition, sympy.Ne)
    gap = condition.lhs - condition.rhs if unequal else condition.gts - condition.lts
    signs = (1, -1) if unequal else (1,)
    strict = isinstance(condition, (*STRICT, sympy.Ne))
    return any(
        all(_is_above(sign * here, strict=strict) for here in _by_remainder(gap, least))
        for sign in signs
    )


def _by_remainder(gap: Any, least: Mapping[Any, int]) -> Iterator[Any]:
    """Yield an expression for each remainder of the divided lengths, in numbers from 0 on.

    A quotient that is no quotient of a length by a number stays, as do all if there are many cases.
    """
    periods: dict[Any, int] = {}
    for one in gap.atoms(FloorDiv):
        length, by = one.args
        if length.is_Symbol and by.is_Integer and by > 0:
            periods[length] = lcm(periods.get(length, 1), int(by))
    if prod(periods.values()) > MOST_REMAINDERS:
        yield gap
        return
    others = gap.free_symbols - set(periods)
    more = {length: sympy.Dummy(integer=True, nonnegative=True) for length in gap.free_symbols}
    plain = {length: more[length] + least.get(length, 1) for length in others}
    for remainders in product(*map(range, periods.values())):
        known = dict(plain)
        for (length, period), rest in zip(periods.items(), remainders, strict=True):
            first = max(0, -((rest - least.get(length, 1)) // period))
            many = more[length] + first
            known[length] = period * many + rest
            for one in gap.atoms(FloorDiv):
                if one.args[0] == length and one.args[1].is_Integer and one.args[1] > 0:
                    by = int(one.args[1])
                    known[one] = period // by * many + rest // by
        yield gap.xreplace(known)


def printed_ranges(
    ranges: Iterable[tuple[Mapping[str, Any], Iterable[Binding]]],
    longest: Mapping[Term, int] | None = None,
) -> tuple[str, ...]:
    """Return the ranges of a graph's lengths, for every length of a law bound to one of them.

    torch.export assumes that a length is at least 2.  A law that calls a graph with A, with B and
    with A + B rows holds for A ≥ 2 and B ≥ 2; implied bounds, such as A + B ≥ 2, are left out.
    ``longest`` maps further lengths to upper bounds.
    """
    least: dict[Any, int] = {}
    most = {_symbol(length): n for length, n in (longest or {}).items()}
    for bounds, bindings in ranges:
        for binding in bindings:
            for symbol, term in binding:
                length = _symbol(term)
                if symbol not in bounds or length.is_Integer:
                    continue
                lower, upper = bounds[symbol].lower, bounds[symbol].upper
                least[length] = max(least.get(length, 1), int(lower))
                if upper.is_Integer:
                    most[length] = min(most.get(length, int(upper)), int(upper))
    alone = {s: n for s, n in least.items() if s.is_Symbol}
    same: dict[int, list[str]] = {}
    for length, n in least.items():
        known = length.subs({s: alone.get(s, 1) for s in length.free_symbols})
        if n > 1 and (length.is_Symbol or known < n):
            same.setdefault(n, []).append(_plain(length))
    for names in same.values():  # B before A, which is another batch; n before r and m
        names.sort(key=lambda length: (length in "Arm", length))
    return (
        *(f"{', '.join(names)} ≥ {n}" for n, names in same.items()),
        *_needed({f"{_plain(length)} ≤ {n}": sympy.Le(length, n) for length, n in most.items()}),
    )


def letter_equations(letters: Mapping[str, Term]) -> tuple[str, ...]:
    """Return conditions that tell which letters stand for one symbolic length."""
    named = [(name, term) for name, term in letters.items() if number_of(term) is None]
    return tuple(
        "as many queries as keys" if {a, b} == {"n", "r"} else f"{a} = {b}"
        for k, (a, term) in enumerate(named)
        for b, other in named[k + 1 :]
        if other is term
    )


def _shorter(condition: Any) -> Any:
    """Simplify a condition on integers: n ≥ 3 for −4n ≤ −12, or for n > 2.

    >>> n = sympy.Symbol("n", integer=True, positive=True)
    >>> _shorter(-4 * n <= -12), _shorter(sympy.Ne(2 * n - 2, 6)), _shorter(sympy.Ne(2 * n, 5))
    (n >= 3, Ne(n, 4), True)
    """
    if not isinstance(condition, sympy.core.relational.Relational):
        return condition
    if isinstance(condition, sympy.Ne) and len(condition.free_symbols) == 1:
        (length,) = condition.free_symbols
        gap = condition.lhs - condition.rhs
        known = gap.is_polynomial(length)
        numbers: list[Any] = sympy.Poly(gap, length).all_coeffs() if known else []
        if len(numbers) == 2 and all(one.is_Rational for one in numbers):
            return sympy.Ne(length, -numbers[1] / numbers[0])
    sides = (condition.lhs, condition.rhs)
    if not all(side.is_polynomial(*side.free_symbols) for side in sides):
        return condition
    minus = all(side == 0 or side.could_extract_minus_sign() for side in sides)
    here = condition.reversedsign if minus else condition
    shared = sympy.gcd([abs(side.as_content_primitive()[0]) for side in sides if side != 0])
    here = here.func(here.lhs / shared, here.rhs / shared) if shared > 1 else here
    return _over_integers(here) if isinstance(here, BOUNDS) else here


def _over_integers(bound: Any) -> Any:
    """Write a bound on a sum of lengths with an integer and no strict sign: n ≤ 31 for 2·n < 64.

    >>> n, r = sympy.symbols("n r", integer=True, positive=True)
    >>> _over_integers(n > 1000), _over_integers(2 * n < 64), _over_integers(n <= r)
    (n >= 1001, n <= 31, n <= r)
    """
    if not (bound.lhs.is_integer and bound.rhs.is_number and bound.rhs.is_rational):
        return bound
    content, rest = bound.lhs.as_content_primitive()
    number = sympy.Rational(bound.rhs) / content
    if rest.could_extract_minus_sign() or not rest.is_integer or not content > 0:
        return bound
    if isinstance(bound, (LessThan, StrictLessThan)):
        most = sympy.floor(number)
        return sympy.Le(rest, most - (isinstance(bound, STRICT) and most == number))
    least = sympy.ceiling(number)
    return sympy.Ge(rest, least + (isinstance(bound, STRICT) and least == number))


def _symbol(term: Term) -> Any:
    """Return a length as a SymPy expression, sizes being positive integers."""
    number = number_of(term)
    if number is not None:
        return sympy.Integer(int(number))
    if term.op in ("add", "mul"):
        parts = [_symbol(part) for part in term.args]
        return sympy.Add(*parts) if term.op == "add" else sympy.Mul(*parts)
    return sympy.Symbol(repr(Array(term)), integer=True, positive=True)


def _plain(condition: Any) -> str:
    """Return a condition or a length in usual notation: ``n mod 7 ≠ 0``, ``n·(A + B) ≤ 400``.

    >>> from torch.utils._sympy.functions import Mod, ToFloat
    >>> n, r = sympy.symbols("n r", integer=True, positive=True)
    >>> _plain(1.5 * ToFloat(n + r) <= 9.5), _plain(sympy.Ne(Mod(n + r, 7, evaluate=False), 0))
    ('1.5·(n + r) ≤ 9.5', '(n + r) mod 7 ≠ 0')
    >>> _plain(2 * Mod(r, 7 * n) ** 2 <= 9), _plain(2 * sympy.Mod(n, 7) > r)
    ('2·(r mod (7·n))^2 ≤ 9', '2·(n mod 7) > r')
    """
    if isinstance(condition, sympy.core.relational.Relational):
        sign = SIGNS.get(condition.func.__name__, condition.rel_op)
        return f"{_plain(condition.lhs)} {sign} {_plain(condition.rhs)}"
    text = FLOATS.sub(lambda one: _parenthesised(one[1]), sympy.sstr(condition, full_prec=False))
    return CALLS.sub(_remainder, text).replace("**", "^").replace("*", "·")


def _remainder(found: re.Match[str]) -> str:
    divisor = found[2] if found[2].isalnum() else f"({found[2]})"
    told = f"{_parenthesised(found[1])} mod {divisor}"
    around = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return told if around in (("", ""), ("(", ")")) else f"({told})"


def _parenthesised(text: str) -> str:
    return f"({text})" if " " in text else text
