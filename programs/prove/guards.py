"""The conditions on lengths under which a graph is what the code computes.

Code that tests ``if x.shape[1] % 2 == 0`` is traced on one branch; torch.export keeps the condition
beside the graph, not in it.  A law uses a program at several lengths (n, r + n), each of which must
satisfy the conditions.
"""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice, product
from typing import Any

import sympy
import torch
from sympy.core.relational import LessThan
from torch.export import ExportedProgram
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.terms import Term, free

MINIMA = (sympy.Min, Min)
EXTREMA = (*MINIMA, sympy.Max, Max)
Binding = tuple[tuple[str, Term], ...]
TRIES, LARGEST, LONGEST = 400, 40, 4096
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
