"""The conditions on lengths under which a graph is what the code computes.

Code that tests ``if x.shape[1] % 2 == 0`` is traced on one branch; torch.export keeps the condition
beside the graph, not in it.  A law uses a program at several lengths (n, r + n), each of which must
satisfy the conditions.
"""

from __future__ import annotations

import math
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice, permutations, product
from math import lcm, prod
from typing import Any

import sympy
import torch
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan
from torch.export import ExportedProgram
from torch.utils._sympy.functions import FloorDiv, Max, Min
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.symbolic.array import Array
from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.terms import Term, free

STRICT = (StrictLessThan, StrictGreaterThan)
MINIMA = (sympy.Min, Min)
EXTREMA = (*MINIMA, sympy.Max, Max)
BOUNDS = (LessThan, GreaterThan, *STRICT)
Binding = tuple[tuple[str, Term], ...]
TRIES, LARGEST, LONGEST = 400, 40, 4096
MOST_REMAINDERS = 64  # of divided lengths, for which a condition is simplified
TRIED_LENGTHS = (1, 2, 3, 5)  # lengths at which a condition is tested


def conditions_of(program: ExportedProgram) -> tuple[Any, ...]:
    """Return the guards met in tracing, without duplicates, as SymPy conditions."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for length in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(length, torch.SymInt):
                known = length.node.shape_env
                found = [guard.expr.xreplace(known.replacements) for guard in known.guards]
                return tuple(dict.fromkeys(c for c in found if c != sympy.true))
    return ()


def from_one_or_two(
    conditions: Iterable[Any], ranges: Mapping[Any, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the conditions on lengths that were traced as 1 or more, and the ranges of these.

    A condition on one length that holds from 2 on, such as n ≠ 1, becomes the range n ≥ 2; the
    condition min(n, 12) = n becomes n ≤ 12.

    >>> n, m = sympy.symbols("n m", integer=True)
    >>> any_length = ValueRanges(0, 100)
    >>> from_one_or_two([sympy.Ne(n, 1), n < m], {n: any_length, m: any_length})
    ((n < m,), {'n': VR[2, 100], 'm': VR[1, 100]})
    >>> from_one_or_two([sympy.Eq(sympy.Min(n, 12), n)], {n: any_length})
    ((n <= 12,), {'n': VR[1, 100]})
    """
    conditions = tuple(map(_as_bound, conditions))
    from_two = {c: c.free_symbols for c in conditions if _holds_from_two(c)}
    held: set[Any] = set().union(*from_two.values())
    return tuple(c for c in conditions if c not in from_two), {
        str(s): ValueRanges(max(r.lower, 1 + (s in held)), r.upper) for s, r in ranges.items()
    }


def _as_bound(condition: Any) -> Any:
    """Rewrite a condition min(a, b) = a, in the forms torch.export gives it, as the bound a ≤ b.

    Both sides may be multiplied by further lengths, which are 1 or more.

    >>> n, m = sympy.symbols("n m", integer=True, positive=True)
    >>> _as_bound(sympy.Eq(16 * m * sympy.Min(n, 12), 16 * m * n))
    n <= 12
    """
    if isinstance(condition, sympy.Eq):
        sides = [Counter(sympy.Mul.make_args(side)) for side in condition.args]
        shared = Counter({one: k for one, k in (sides[0] & sides[1]).items() if one.is_positive})
        here, there = (sympy.Mul(*(side - shared).elements()) for side in sides)
        for least, one in ((here, there), (there, here)):
            if isinstance(least, MINIMA) and len(least.args) == 2 and one in least.args:
                (other,) = (n for n in least.args if n != one)
                return sympy.Le(one, other)
    return condition


def _holds_from_two(condition: Any) -> bool:
    """Whether a condition on one length holds at all lengths from 2 on.

    >>> n = sympy.Symbol("n", integer=True)
    >>> _holds_from_two(sympy.Ne(n, 1)), _holds_from_two(n > 1), _holds_from_two(n > 2)
    (True, True, False)
    """
    if len(condition.free_symbols) != 1:
        return False
    more = sympy.Symbol("more", integer=True, nonnegative=True)
    (length,) = condition.free_symbols
    return bool(condition.subs(length, more + 2) == sympy.true)


def is_cut_short(program: ExportedProgram) -> bool:
    """Whether a slice may end early, so that its length is the smaller of two.

    For lengths from 2 on, torch.export adds a guard that there is enough to slice.
    """
    bounds = [c for c in map(_as_bound, conditions_of(program)) if isinstance(c, LessThan)]
    known = {(c.lhs, c.rhs) for c in bounds} | {(c.rhs, c.lhs) for c in bounds}
    values = [node.meta.get("val") for node in program.graph.nodes]
    shapes: list[Any] = [n for x in values if isinstance(x, torch.Tensor) for n in x.shape]
    lengths = [n.node.expr for n in shapes if isinstance(n, torch.SymInt)]
    cut = {one for length in lengths for one in length.atoms(*EXTREMA)}
    return any(tuple(one.args) not in known for one in cut)


def fails_only_at_one(condition: Any) -> bool:
    """Whether a condition on several lengths fails only if one of them is 1, at the lengths tried.

    >>> n, m = sympy.symbols("n m", integer=True)
    >>> fails_only_at_one(sympy.Ne(n * m, 1)), fails_only_at_one(n < m), fails_only_at_one(n > 1)
    (True, False, False)
    """
    lengths = sorted(condition.free_symbols, key=str)
    if len(lengths) < 2:
        return False
    few = (
        dict(zip(lengths, at, strict=True)) for at in product(TRIED_LENGTHS, repeat=len(lengths))
    )
    failing = [at for at in few if condition.subs(at) == sympy.false]
    return bool(failing) and all(1 in at.values() for at in failing)


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
    """Whether a bound follows from another for lengths of 1 or more: n ≤ 64 from n + r ≤ 64.

    >>> n, r = sympy.symbols("n r", integer=True, positive=True)
    >>> _follows(n <= 63, n + r <= 64), _follows(n <= 62, n + r <= 64)
    (True, False)
    """
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

    With n = 2k + i the quotient n // 2 is k.  A length of which no least one is known is 1 or more.

    >>> n = sympy.Symbol("n", integer=True, positive=True)
    >>> half = FloorDiv(n, 2)
    >>> _always_holds(half <= n, {}), _always_holds(sympy.Ne(half, n), {})
    (True, True)
    >>> _always_holds(half >= 1, {}), _always_holds(half >= 1, {n: 2})
    (False, True)
    """
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
    """Simplify a condition on integers: n ≥ 3 for −4n ≤ −12, or for n > 2."""
    if not isinstance(condition, sympy.core.relational.Relational):
        return condition
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


SIGNS = {"Unequality": "≠", "Equality": "=", "LessThan": "≤", "GreaterThan": "≥"}
OPERATIONS = {  # of torch on lengths, as SymPy prints them
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "PythonMod": operator.mod,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "PowByNatural": pow,
    "FloatPow": pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "ToFloat": float,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "TruncToInt": math.trunc,
    "RoundToInt": round,
}
FLOATS = re.compile(r"\bToFloat\(([^()]+)\)")  # a length combined with a float
CALLS = re.compile(r"\b(?:Python)?Mod\(([^(),]+), ([^(),]+)\)")


def _plain(condition: Any) -> str:
    """Return a condition or a length in usual notation: ``n mod 7 ≠ 0``, ``n·(A + B) ≤ 400``.

    >>> from torch.utils._sympy.functions import Mod, ToFloat
    >>> n, r = sympy.symbols("n r", integer=True, positive=True)
    >>> _plain(1.5 * ToFloat(n + r) <= 9.5), _plain(sympy.Ne(Mod(n + r, 7, evaluate=False), 0))
    ('1.5·(n + r) ≤ 9.5', '(n + r) mod 7 ≠ 0')
    """
    if isinstance(condition, sympy.core.relational.Relational):
        sign = SIGNS.get(condition.func.__name__, condition.rel_op)
        return f"{_plain(condition.lhs)} {sign} {_plain(condition.rhs)}"
    text = FLOATS.sub(lambda one: _parenthesised(one[1]), sympy.sstr(condition, full_prec=False))
    return (
        CALLS.sub(lambda one: f"{_parenthesised(one[1])} mod {_parenthesised(one[2])}", text)
        .replace("**", "^")
        .replace("*", "·")
    )


def _parenthesised(text: str) -> str:
    return f"({text})" if " " in text else text


def satisfiable(
    graphs: Sequence[tuple[Sequence[Any], Mapping[str, Any], Iterable[Binding]]],
) -> bool:
    """Whether some lengths satisfy all conditions and ranges at once, decided by trials.

    Each graph has its conditions, its ranges by the name of a length, and the bindings of the law.
    """
    sizes = sorted(
        {s.data[0] for _, _, bindings in graphs for b in bindings for _, t in b for s in free(t)}
    )
    drawn = random.Random(0)
    named = {
        int(n) for conditions, _, _ in graphs for c in conditions for n in c.atoms() if n.is_Integer
    }
    most = max(LARGEST, *(2 * n + 8 for n in named if n <= LONGEST), 0)
    few = (dict(zip(sizes, at, strict=True)) for at in product((2, 3), repeat=len(sizes)))
    many = ({s: drawn.randint(2, most >> (k % 6) | 2) for s in sizes} for k in range(TRIES))
    return any(
        all(
            satisfied_in_calls(conditions, ranges, bindings, at)
            for conditions, ranges, bindings in graphs
        )
        for at in chain(islice(few, TRIES), many)
    )


def satisfied_in_calls(
    conditions: Sequence[Any],
    ranges: Mapping[str, Any],
    bindings: Iterable[Binding],
    at: Mapping[str, int],
) -> bool:
    """Whether sizes of a law satisfy the conditions and ranges of a graph in each of its calls."""
    for binding in bindings:
        known = {symbol: length_value(t, dict(at)) for symbol, t in binding}
        if any(not r.lower <= known[s] <= r.upper for s, r in ranges.items() if s in known):
            return False
        if not satisfied(conditions, known):
            return False
    return True


def satisfied(conditions: Sequence[Any], lengths: Mapping[str, int]) -> bool:
    """Whether lengths, by their names in the graph, satisfy its conditions."""
    try:
        return all(_holds(one, lengths) in (True, sympy.true) for one in conditions)
    except ZeroDivisionError:  # which the code raises too
        return False


def _holds(condition: Any, lengths: Mapping[str, int]) -> Any:
    names, test = compiled(condition)
    with suppress(KeyError, NameError, TypeError):  # an unknown length, or an unknown function
        return test(*(lengths[name] for name in names))
    known = {s: lengths[str(s)] for s in condition.free_symbols if str(s) in lengths}
    return condition.subs(known)


@lru_cache(maxsize=1024)
def compiled(expression: Any) -> tuple[tuple[str, ...], Callable[..., Any]]:
    """Return the names of the lengths in a SymPy expression, and the expression as a function.

    The function raises NameError for operations that Python does not have.

    >>> n = sympy.Symbol("n", integer=True)
    >>> names, test = compiled(sympy.Ne(sympy.Mod(n, 7), 0))
    >>> names, test(14), test(15)
    (('n',), False, True)
    """
    symbols = sorted(expression.free_symbols, key=str)
    made: Callable[..., Any] = sympy.lambdify(symbols, expression, [OPERATIONS, "math"])
    made.__globals__["__name__"] = __name__  # it is no code of the user
    return tuple(map(str, symbols)), made
