"""What hypotheses give: values of symbols where they are linear, relations elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.polys.rings import PolyElement

from .generators import Generators

__all__ = ["Impossible", "use"]


class Impossible(ValueError):
    """Equations that cannot hold together: they give a number other than 0 as 0."""


def use(generators: Generators, equations: Iterable[sp.Expr]) -> None:
    """Take expressions as 0 from now on.

    An equation that is linear in a symbol, or in a value of a function, with a number before it
    gives that symbol; the others become a basis by which polynomials are reduced.  Raises
    :class:`Impossible` where a number other than 0 would be 0.
    """
    waiting = list(equations)
    generators.assume_zero([])
    progress = True
    while progress:
        progress, left = False, []
        for equation in waiting:
            p = generators.numerator(equation)
            if not p:
                continue
            if p.is_ground:
                raise Impossible(f"{p} would be 0")
            found = _linear(generators, p)
            if found is None:
                left.append(equation)
                continue
            symbol, expression = found
            generators.rules[symbol] = expression
            generators.forget()
            progress = True
        waiting = left
    generators.assume_zero([generators.numerator(e).as_expr() for e in waiting])


def _linear(generators: Generators, p: PolyElement) -> tuple[sp.Symbol, sp.Expr] | None:
    """A symbol that is free to take any value, and what it then is."""
    candidates = []
    for place, symbol in enumerate(p.ring.symbols):
        alone = tuple(int(i == place) for i in range(len(p.ring.symbols)))
        if alone not in p or any(m[place] for m in p if m != alone):
            continue
        meaning = generators.meaning.get(symbol)
        called = isinstance(meaning, AppliedUndef)
        if not (called or (meaning is None and not symbol.is_nonnegative)):
            continue
        rest = p - p.ring.from_dict({alone: p[alone]})
        others = (s for m in rest for s, k in zip(p.ring.symbols, m, strict=True) if k)
        if any(symbol in _behind(generators, other) for other in set(others)):
            continue
        value = (-rest).quo_ground(p[alone]).as_expr()
        candidates.append((called, place, symbol, value))
    if not candidates:
        return None
    *_, symbol, value = max(candidates, key=lambda c: c[:2])
    return symbol, value


def _behind(generators: Generators, symbol: sp.Symbol) -> set[Any]:
    """The symbols that the meaning of a generator is made of."""
    seen: set[Any] = set()
    waiting = {symbol}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        meaning = generators.meaning.get(one)
        if meaning is not None:
            waiting |= {s for s in meaning.free_symbols if s not in seen}
    return seen
