"""Derive or refute the conclusions of one case with SymPy, from its hypotheses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.polys.rings import PolyElement

from ..budget import check_time
from ..concrete import ConcreteClaim
from .array import Expressions, as_expressions
from .fractions import Undefined
from .generators import Finer, Generators, Unreadable, parts_of, symbols_of
from .signs import ABOVE, AT_LEAST, certain_sign, certainly_not_zero, certified_value, defined_with

# Hypotheses: values of symbols if they are linear, else relations


class Impossible(ValueError):
    """Raised for contradictory equations, by which a number other than 0 would be 0."""


def assume_equations(generators: Generators, equations: Iterable[sp.Expr]) -> None:
    """Assume from now on that these expressions are 0.

    An equation that is linear in a symbol or a value of a function, with a constant coefficient,
    is solved for it; the others are relations by which polynomials are reduced.  Raises
    :class:`Impossible` if a number other than 0 would be 0.
    """
    generators.assume_nothing()
    waiting = list(equations)
    if not waiting:
        return
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
    """Return an unconstrained symbol for which p = 0 can be solved, and its value, or None."""
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
        if any(symbol in _dependencies(generators, other) for other in set(others)):
            continue
        value = (-rest).quo_ground(p[alone]).as_expr()
        candidates.append((called, place, symbol, value))
    if not candidates:
        return None
    *_, symbol, value = max(candidates, key=lambda c: c[:2])
    return symbol, value


def _dependencies(generators: Generators, symbol: sp.Symbol) -> set[Any]:
    """Return the symbols on which a generator depends."""
    seen: set[Any] = set()
    waiting = {symbol}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        meaning = generators.meaning.get(one)
        if meaning is not None:
            waiting |= {s for s in meaning.free_symbols if s not in seen}
    return seen


# The conclusions of one case

SEEDS = (0, 1, 2)
"""Seeds of the random numbers at which a conclusion is tried."""

FAILURES = (
    NotImplementedError,
    Undefined,
    Unreadable,
    ArithmeticError,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
)


class Vacuous(Exception):
    """Raised if the hypotheses do not hold for this case, so that nothing is claimed."""


class NotDerived(Exception):
    """Raised for a conclusion that was neither derived nor refuted."""


def admitted(hypotheses: Iterable[ConcreteClaim]) -> bool:
    """Whether the hypotheses may hold for a case, as far as their forms show."""
    try:
        refusal({}, hypotheses, Generators())
    except (Vacuous, NotDerived, *FAILURES) as error:
        return not isinstance(error, Vacuous)
    return True


def refusal(
    claims: Mapping[str, ConcreteClaim],
    hypotheses: Iterable[ConcreteClaim],
    generators: Generators,
) -> str:
    """Derive every conclusion of one case; return "" or, if one is refuted, by what.

    ``generators`` may be reused from earlier cases, which share most of their expressions.  Raises
    :class:`NotDerived` for a conclusion that is neither derived nor refuted.
    """
    while True:
        generators.assume_nothing()
        try:
            judge = _Judge(generators, tuple(hypotheses))
            for says, claim in claims.items():
                # A false conclusion mostly fails at the first numbers, and is slow to normalise.
                gap = "" if judge.assumed else judge.gap(claim, SEEDS[:1])
                why = "" if gap else judge.why_not(claim)
                if why and not judge.assumed:
                    gap = judge.gap(claim, SEEDS[1:])
                if gap:
                    return f"{says}: {gap}" if says else gap
                if not why:
                    continue
                raise NotDerived(f"{says}: {why}" if says else why)
            return ""
        except Finer:
            check_time()
            generators.begin_again()


@dataclass
class _Judge:
    """The hypotheses of one case, from which conclusions are derived."""

    generators: Generators
    hypotheses: tuple[ConcreteClaim, ...]
    assumed: bool = False
    equations: list[sp.Expr] = field(default_factory=list)
    signs: dict[sp.Expr, int] = field(default_factory=dict)
    subtracted: dict[int, tuple[ConcreteClaim, list[sp.Expr]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for h in self.hypotheses:
            if h.at_values is not None or h.variables:
                self.assumed = True
                continue
            if h.relation == "=":
                self.equations += _differences(h.left, h.right)
            elif h.relation in (">", ">="):
                strength = ABOVE if h.relation == ">" else AT_LEAST
                for e in _differences(h.left, 0 if h.right is None else h.right):
                    if e.is_number and abs(certain := certain_sign(e, self.generators)):
                        if certain < 0 or (strength == ABOVE and certain < ABOVE):
                            raise Vacuous
                        continue
                    self.assumed = True
                    self.signs[e] = strength
            elif h.relation == "!=":
                differences = _differences(h.left, h.right)
                if all(e.is_zero for e in differences):
                    raise Vacuous
                self.assumed |= not any(e.is_number for e in differences)
            else:
                self.assumed = True
        self.assumed |= any(not e.is_zero for e in self.equations)
        self._use(())

    def _use(self, more: Iterable[sp.Expr]) -> None:
        try:
            assume_equations(self.generators, [*self.equations, *more])
        except Impossible:
            if not more:
                raise Vacuous from None
            raise
        self._signs = {
            self.generators.canonical(self.generators.lower(e)): strength
            for e, strength in self.signs.items()
        }

    def _known(self, e: sp.Expr) -> int:
        if not self._signs:
            return 0
        try:
            form = self.generators.canonical(self.generators.lower(e))
        except (Undefined, Unreadable):
            return 0
        if form in self._signs:
            return self._signs[form]
        ratios = ((form / other, strength) for other, strength in self._signs.items())
        return next((s for r, s in ratios if r.is_Rational and r.is_positive), 0)

    def differences(self, claim: ConcreteClaim) -> list[sp.Expr]:
        """Return left − right of a claim, entry by entry; the result is cached."""
        if id(claim) not in self.subtracted:
            right = 0 if claim.right is None else claim.right
            self.subtracted[id(claim)] = claim, _differences(claim.left, right)
        return self.subtracted[id(claim)][1]

    def gap(self, claim: ConcreteClaim, seeds: Iterable[int]) -> str:
        """Return numbers at which a conclusion certainly fails, as text; "" if none are found."""
        if claim.relation not in ("=", ">", ">="):
            return ""
        return _gap(claim.relation, self.differences(claim), seeds)

    def why_not(self, claim: ConcreteClaim) -> str:
        """Return why a conclusion is not derived; "" if it is."""
        bound = [variable.name for variable in (*claim.variables, claim.unknown) if variable]
        if len(set(bound)) < len(bound):  # one symbol would stand for two numbers
            return "a name is bound twice"
        why = self._why_not_directly(claim)
        if why and claim.using:
            facts = self._facts(claim)
            if facts:
                try:
                    self._use(facts)
                    why = self._why_not_directly(claim)
                except Impossible:
                    why = ""
                finally:
                    self._use(())
        return why

    def _facts(self, claim: ConcreteClaim) -> list[sp.Expr]:
        """Return the equations that the author cites, if they are granted or derived."""
        facts: list[sp.Expr] = []
        for instance in claim.using:
            check_time()
            fact = instance.claim
            if fact.relation != "=":
                continue
            equations = _differences(fact.left, fact.right)
            if self._granted(instance.values, equations) or not self.why_not(fact):
                facts += equations
        return facts

    def _granted(self, values: Mapping[str, Any], equations: Sequence[sp.Expr]) -> bool:
        for h in self.hypotheses:
            if h.at_values is None or h.relation != "=":
                continue
            if set(values) - {variable.name for variable in h.variables}:
                continue
            at = h.at_values(**values)
            if _differences(at.left, at.right) == list(equations):
                return True
        return False

    def _why_not_directly(self, claim: ConcreteClaim) -> str:
        match claim.relation:
            case "=":
                return self._equal(claim)
            case ">" | ">=":
                return self._ordered(claim)
            case "!=":
                return self._differ(claim)
            case "exists":
                return self._exists(claim)
        return f"conclusions with {claim.relation} are not derived with SymPy"

    def _equal(self, claim: ConcreteClaim) -> str:
        differences = self.differences(claim)
        if claim.by == "squares":
            differences = [sp.Add(*(e**2 for e in differences))]
        defined = 0
        for e in differences:
            check_time()
            try:
                if not self.generators.is_zero(e):
                    return "the sides have different normal forms"
                defined += 1
            except Undefined:
                continue
        if not defined:
            raise Vacuous
        return ""

    def _ordered(self, claim: ConcreteClaim) -> str:
        differences = self.differences(claim)
        if not differences:
            raise Vacuous
        forms = differences
        if claim.links:
            forms = _entries(claim.links[-1][1], differences)
        wanted = ABOVE if claim.relation == ">" else AT_LEAST
        for e, form in zip(differences, forms, strict=True):
            check_time()
            options = [e] if e == form else [form, e]
            for option in options:
                if option is not e and not (
                    defined_with(option, [e], self.generators)
                    and self.generators.is_zero(option - e)
                ):
                    continue
                if certain_sign(option, self.generators, self._known) >= wanted:
                    break
            else:
                return "the form of the difference does not show its sign"
        return ""

    def _differ(self, claim: ConcreteClaim) -> str:
        differences = _differences(claim.left, claim.right)
        if any(certainly_not_zero(e, self.generators) for e in differences):
            return ""
        apart = as_expressions(claim.apart).item()
        first, last = (as_expressions(claim.links[k][1]).item() for k in (0, -1))
        if not all(defined_with(x, differences, self.generators) for x in (first, last, apart)):
            return "the contradiction divides by, or takes a root of, a number that may be 0"
        try:
            self._use(differences)
            if self.generators.is_zero(first - last - apart) or self.generators.is_zero(
                first - last
            ):
                reached = self.generators.is_zero(first - last)
            else:
                return "the steps of the contradiction have different normal forms"
        except Impossible:
            return ""
        finally:
            self._use(())
        if not self.generators.is_zero(first - last - apart):
            return "the last step of the contradiction is not the difference of its numbers"
        if reached and certainly_not_zero(apart, self.generators):
            return ""
        return "the form of the difference does not show that it is not 0"

    def _exists(self, claim: ConcreteClaim) -> str:
        if claim.witness is None or claim.unknown is None or claim.inner is None:
            return "exists has no witness"
        unknown = as_expressions(claim.unknown.value).entries
        witness = np.broadcast_to(as_expressions(claim.witness).entries, unknown.shape)
        for array in claim.free_of:
            entries = list(as_expressions(array).entries.flat)
            if not all(e.is_Symbol for e in entries):
                return "an array in free_of does not consist of symbols"
            if any(e.free_symbols & set(entries) for e in witness.flat):
                return "the witness depends on an array in free_of"
        at = dict(zip(unknown.flat, witness.flat, strict=True))
        for e, found in at.items():
            wanted = ABOVE if e.is_positive else AT_LEAST if e.is_nonnegative else None
            if not e.is_Symbol:
                return "the variable of exists is not an array of symbols"
            if wanted and certain_sign(found, self.generators, self._known) < wanted:
                return "the witness is not known to be of the kind that its variable has"

        def put(x: Any) -> Expressions:
            return Expressions(
                np.frompyfunc(lambda e: e.xreplace(at), 1, 1)(as_expressions(x).entries)
            )

        inner = claim.inner
        right = None if inner.right is None else put(inner.right)
        return self._why_not_directly(ConcreteClaim(inner.relation, put(inner.left), right))


def _differences(left: Any, right: Any) -> list[sp.Expr]:
    x, y = as_expressions(left), as_expressions(right)
    if any(isinstance(e, sp.Expr) is False for a in (x, y) for e in a.entries.flat):
        raise Unreadable("a conclusion compares truth values")
    entries = list((x - y).entries.flat)
    if _NO_VALUE.isdisjoint(parts_of(entries)):
        return entries
    return [e for e in entries if _NO_VALUE.isdisjoint(parts_of([e]))]


_NO_VALUE = frozenset((sp.nan, sp.zoo))


def _entries(form: Any, like: Sequence[sp.Expr]) -> list[sp.Expr]:
    entries = list(as_expressions(form).entries.flat)
    return entries * len(like) if len(entries) == 1 else entries


def _gap(relation: str, differences: Sequence[sp.Expr], seeds: Iterable[int]) -> str:
    """Return numbers at which a conclusion certainly fails, as text; "" if none are found."""
    from flint import fmpq

    symbols = sorted(symbols_of(differences), key=str)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        values = {}
        for s in symbols:
            number = sp.Rational(int(rng.integers(1, 8)), int(rng.integers(1, 4)))
            free = not s.is_nonnegative and rng.integers(2)
            values[s] = -number if free else number
        exact = {s: fmpq(int(v.p), int(v.q)) for s, v in values.items()}
        for e in differences:
            check_time()
            try:
                sign = _sign(e, exact)
            except FAILURES:
                continue
            if sign and (relation == "=" or sign < 0):
                where = ", ".join(f"{s} = {v}" for s, v in islice(values.items(), 6))
                more = ", .." if len(values) > 6 else ""
                return (
                    f"left - right contradicts the claim at {where}{more}" if where else "it fails"
                )
    return ""


def _sign(e: sp.Expr, values: dict[Any, Any]) -> int:
    """Return the certain sign of an expression at some numbers; 0 if it is not certain."""
    from ..certified_numbers import ball, finite

    x = ball(certified_value(e, values))
    if not finite(x):
        return 0
    return 1 if x > 0 else -1 if x < 0 else 0
