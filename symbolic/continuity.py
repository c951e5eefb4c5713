"""Continuity and boundedness by the form of a term: certificates from rules about compositions.

``continuous(term, variables)`` traverses a term and counts the rules it used, or reports a part
that it cannot handle.  It certifies that, for all values of everything else that satisfy
``facts``, every entry of the term is a jointly continuous function of the entries of the
variables, which are arrays of real numbers.

Justification, by induction on the term, for all variables jointly.

* A part in which no variable occurs is constant.  A selector (an index, a condition, a depth) is
  accepted only if no variable occurs in it.  Then each entry of an array operation is one entry of
  an argument, or a finite sum or product of several.
* add, mul, exp, sin, cos, tanh, abs and maximum are continuous on all real numbers, and so are
  positive powers.  1/x is continuous where x is not 0, log where x is positive.  As 1/0 is 0 here
  and log is total, both are accepted only if the form of every entry of x settles its sign for all
  values of the variables.  √x is continuous where x is at least 0.
* where(0 < x, exp(r log where(0 < x, x, 1)), 0) is max(x, 0)^r, which is continuous in x for a
  fixed number r > 0.
* The body of a binder is opened at a fresh index.  Sums are finite; a sum over the outcomes of a
  probability space is not accepted.  A stack of layers is accepted if its start is, and a layer is
  jointly continuous in the variables and the state: then so is the stack, by induction on its
  depth.
* Comparisons, floors, remainders and uninterpreted functions are not accepted if a variable occurs
  in them, and neither is a term that may be minus infinity.

``whole_valued`` tells whether every entry is an integer, by its form.  A continuous function of
real numbers with integer values is constant (by the intermediate value theorem, not proved here),
so two different values of such a number refute its continuity.

``bounded(term, variables, contents)`` tells whether, for each value of everything else, every entry
of the term is bounded from above and below, uniformly in the variables (lengths may be among them)
and in all contents whose entries lie between two fixed numbers.  It certifies that a bound exists,
but computes none.

Justification, by induction on the term, for each side separately.

* A part in which no variable occurs is a fixed number, hence bounded.  An entry of the contents
  lies between their two bounds, however many entries there are.
* Sines, cosines, hyperbolic tangents and indicators lie in [−1, 1].  exp, |x| and even powers are
  at least 0; exp is bounded above if its argument is; |x|, powers and products are if their
  arguments are bounded on both sides.
* A sum is bounded on a side if all its terms are; a negative literal factor exchanges the sides.
  A maximum is bounded below if one of its arguments is, and above if all are.
* An array operation takes each entry from an argument, or sums products of entries.  If the number
  of summands is a variable, such as the number of tokens, bounds of the summands do not bound the
  sum: it is bounded below if each summand is at least 0 by its form, and not above.
* An index into an axis whose length is a variable is at least 0 and has no upper bound.
* A bounded integer takes finitely many values, and so does any function of such numbers: it is
  bounded, even if it is uninterpreted.
* A remainder x mod n lies between −|n| and |n|; for n = 0 it is x, which is not accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import prod

from .budget import check_time
from .divisors import settled
from .givens import NUMBERS
from .plain import plain
from .rules.base import Assumption
from .scalars import is_integer, number_of
from .signs import nonzero, sign
from .terms import BINDERS, Opened, Term, free, instantiate, make, opened

CONTINUOUS = frozenset(["add", "mul", "exp", "sin", "cos", "tanh", "abs", "maximum"])
REARRANGING = frozenset(
    (
        "named",
        "broadcast",
        "permute",
        "new axis",
        "reshape",
        "concat",
        "stack",
        "matmul",
        "reduce",
    )
)
SELECTING = frozenset(["entry", "row", "pick", "slice", "gather"])


class Discontinuous(Exception):
    """Raised for a part whose continuity no rule shows; it may still be continuous."""


@dataclass
class _Continuous:
    """One traversal: the facts, the counts of rules, and the pairs already checked."""

    facts: frozenset[Assumption]
    rules: Counter[str] = field(default_factory=Counter)
    done: set[tuple[Term, frozenset[Term]]] = field(default_factory=set)

    def __call__(self, t: Term, variables: frozenset[Term]) -> None:
        if (t, variables) in self.done:
            return
        check_time()
        self._check(t, variables)
        self.done.add((t, variables))

    def _check(self, t: Term, variables: frozenset[Term]) -> None:
        if not free(t) & variables:
            self.rules["a constant"] += 1
            return
        if any(free(length) & variables for length in t.shape):
            raise Discontinuous(f"a length of {plain(t)} depends on the position")
        if t in variables:
            self.rules["the position"] += 1
        elif not t.finite:
            raise Discontinuous(f"{plain(t)} may be minus infinity")
        elif any(n.op == "space" for part in (t, *t.args) for n in part.shape):
            raise Discontinuous(f"{plain(t)} is random")
        elif t.op in CONTINUOUS or t.op in REARRANGING:
            self._each(t.op, t.args, variables)
        elif t.op in SELECTING:
            self._require_fixed(t, t.args[1:], variables)
            self._each(t.op, t.args[:1], variables)
        elif t.op == "where":
            self._choice(t, variables)
        elif t.op in ("power", "log", "sqrt"):
            self._where_defined(t, variables)
        elif t.op in ("sum", "tabulate"):
            self._opened(t, variables)
        elif t.op == "iterate":
            self._stack(t, variables)
        else:
            raise Discontinuous(f"{plain(t)} may be discontinuous")

    def _each(self, rule: str, parts: tuple[Term, ...], variables: frozenset[Term]) -> None:
        for part in parts:
            self(part, variables)
        self.rules[rule] += 1

    def _require_fixed(self, t: Term, parts: tuple[Term, ...], variables: frozenset[Term]) -> None:
        """Refuse selectors that depend on the variables."""
        for part in parts:
            if free(part) & variables:
                raise Discontinuous(f"which part {plain(t)} selects depends on {plain(part)}")

    def _choice(self, t: Term, variables: frozenset[Term]) -> None:
        base = _base_of_power(t, variables, self.facts)
        if base is not None:
            self._each("max(x, 0)^r for r > 0", (base,), variables)
            return
        self._require_fixed(t, t.args[:1], variables)
        self._each(t.op, t.args[1:], variables)

    def _where_defined(self, t: Term, variables: frozenset[Term]) -> None:
        if t.op == "power" and t.data > 0:
            self._each("a power", t.args, variables)
            return
        wanted = {"power": "not 0", "log": "greater than 0", "sqrt": "at least 0"}[t.op]
        if not settled(t.args[0], wanted, self.facts):
            raise Discontinuous(f"the form of {plain(t.args[0])} does not show that it is {wanted}")
        self._each(f"{t.op} of a number that is {wanted}", t.args, variables)

    def _opened(self, t: Term, variables: frozenset[Term]) -> None:
        length, body = t.args
        self._require_fixed(t, (length,), variables)
        if length.op == "space":
            raise Discontinuous(f"{plain(t)} is an expectation")
        at = opened(length, t)
        self._each(t.op, (instantiate(body, at),), variables)

    def _stack(self, t: Term, variables: frozenset[Term]) -> None:
        depth, start, body = t.args
        self._require_fixed(t, (depth,), variables)
        layer, state = opened(depth, t), make("var", (), (Opened((t,)), "real"), t.shape)
        self(start, variables)
        self._each("a stack of layers", (instantiate(body, layer, state),), variables | {state})


def _base_of_power(
    t: Term, variables: frozenset[Term], facts: frozenset[Assumption]
) -> Term | None:
    """Return x if t is where(0 < x, exp(r log where(0 < x, x, 1)), 0) with a fixed r > 0."""
    holds, power, zero = t.args
    if holds.op != "less" or power.op != "exp" or power.args[0].op != "mul":
        return None
    x, factors = holds.args[1], power.args[0].args
    if _literal(holds.args[0]) != 0 or _literal(zero) != 0 or len(factors) != 2:
        return None
    for r, log in (factors, factors[::-1]):
        guarded = log.args[0] if log.op == "log" else t
        known = guarded.op == "where" and guarded.args[:2] == (holds, x)
        fixed = not free(r) & variables and settled(r, "greater than 0", facts)
        if known and fixed and _literal(guarded.args[2]) == 1:
            return x
    return None


def _literal(t: Term) -> Fraction | None:
    return number_of(t.args[0] if t.op == "broadcast" else t)


def continuous(
    term: Term, variables: frozenset[Term], facts: frozenset[Assumption] = frozenset()
) -> Counter[str]:
    """Return the rules that show joint continuity in the variables, with the number of their uses.

    Raises :class:`Discontinuous` with a part that no rule covers.

    >>> from attnproof.symbolic.givens import real
    >>> from attnproof.symbolic.namespace import exp
    >>> x = real().named("x")
    >>> sorted(continuous(exp(x).term, frozenset([x.term])))
    ['exp', 'the position']
    """
    if term.loose:
        raise ValueError("continuity needs a closed term, and this one has unbound indices")
    for variable in variables:
        if variable.op != "var" or variable.data[1] not in NUMBERS:
            raise ValueError(f"continuity is in real numbers, and {variable!r} is not one")
    walk = _Continuous(facts)
    walk(term, variables)
    return walk.rules


@cache
def whole_valued(t: Term) -> bool:
    """Whether every entry of a term is certainly an integer, by its form.

    >>> from attnproof.symbolic.givens import real
    >>> whole_valued((real().named("x") // 1 + 2).term)
    True
    """
    value = number_of(t)
    if value is not None:
        return value.denominator == 1
    if any(length.op == "space" for arg in t.args for length in arg.shape):
        return False  # a sum over outcomes is a mean
    if t.op in ("indicator", "floor_divide", "eye", "arange"):
        return True
    if t.op in ("add", "mul", "abs", "maximum", "remainder") or (
        t.op in REARRANGING or (t.op == "power" and t.data > 0)
    ):
        return all(map(whole_valued, t.args))
    if t.op in SELECTING:
        return whole_valued(t.args[0])
    if t.op == "where":
        return all(map(whole_valued, t.args[1:]))
    if t.op in ("sum", "tabulate") and t.args[0].op != "space":
        at = make("index", (t.args[0],), f"at#{t.key.hex()}")
        return whole_valued(instantiate(t.args[1], at))
    return t.op not in BINDERS and not t.shape and is_integer(t)


Sides = tuple[bool, bool]  # from below, from above
BOTH, NEITHER = (True, True), (False, False)
BOUNDED_BY_ONE = frozenset(["sin", "cos", "tanh", "indicator"])


def bounded(
    term: Term, variables: frozenset[Term], contents: frozenset[Term] = frozenset()
) -> bool:
    """Whether every entry is certainly bounded on both sides, uniformly in the variables.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.namespace import arange, sin
    >>> x, (n,) = real().named("x"), sizes("n", "tokens")
    >>> bounded((3 * sin(x) + 1).term, frozenset([x.term])), bounded(x.term, frozenset([x.term]))
    (True, False)
    >>> bounded(arange(n).term, frozenset([n.term])), bounded(arange(n).term, frozenset())
    (False, True)
    """
    if term.loose:
        raise ValueError("boundedness needs a closed term, and this one has unbound indices")
    return all(_Bounded(variables, contents)(term))


@dataclass(frozen=True)
class _Bounded:
    """One traversal: the variables, which may include lengths, and the bounded contents."""

    variables: frozenset[Term]
    contents: frozenset[Term]
    known: dict[Term, Sides] = field(default_factory=dict)

    def varies(self, *parts: Term) -> bool:
        """Whether a variable or a content occurs in one of these terms."""
        return any(free(part) & (self.variables | self.contents) for part in parts)

    def __call__(self, t: Term) -> Sides:
        found = self.known.get(t)
        if found is None:
            check_time()
            found = self.known[t] = self._sides(t)
        return found

    def _sides(self, t: Term) -> Sides:
        if not t.finite:
            return NEITHER
        if t in self.contents or not self.varies(t) or t.op in BOUNDED_BY_ONE:
            return BOTH
        if any(n.op == "space" for part in (t, *t.args) for n in part.shape):
            return NEITHER
        if t.op in ("index", "arange", "size"):
            return True, False
        if t.op in ("sum", "tabulate"):
            return self._binder(t)
        if t.op == "reduce" and self.varies(t.args[0].shape[t.data]):
            return sign(t.args[0])[0] >= 1, False
        if t.op == "matmul" and self.varies(t.args[1].shape[max(t.args[1].ndim - 2, 0)]):
            return NEITHER
        if t.op in SELECTING:
            return NEITHER if self.varies(*t.args[1:]) else self(t.args[0])
        if t.op == "remainder":
            n = t.args[1]
            return BOTH if not self.varies(n) and nonzero(n)[0] else NEITHER
        rule = _RULES.get(t.op)
        return NEITHER if rule is None else rule(t, [self(arg) for arg in t.args])

    def _binder(self, t: Term) -> Sides:
        length, body = t.args
        if length.op == "space":
            return NEITHER
        at = make("index", (length,), f"at#{t.key.hex()}")
        inner = instantiate(body, at)
        if t.op == "tabulate" or not self.varies(length):
            return self(inner)
        return sign(inner)[0] >= 1, False


def _all_bounded(_: Term, parts: list[Sides]) -> Sides:
    return all(low for low, _ in parts), all(high for _, high in parts)


def _power(t: Term, parts: list[Sides]) -> Sides:
    both = all(parts[0]) and t.data > 0
    return both or (t.data > 0 and not t.data % 2), both


def _product(t: Term, parts: list[Sides]) -> Sides:
    if all(map(all, parts)):
        return BOTH
    literal = [number_of(x.args[0] if x.op == "broadcast" else x) for x in t.args]
    rest = [part for part, value in zip(parts, literal, strict=True) if value is None]
    if len(rest) != 1:
        return NEITHER
    low, high = rest[0]
    return (low, high) if prod(value for value in literal if value is not None) > 0 else (high, low)


_RULES: dict[str, Callable[[Term, list[Sides]], Sides]] = (
    dict.fromkeys(
        ("add", "concat", "stack", "broadcast", "permute", "new axis", "reshape", "reduce"),
        _all_bounded,
    )
    | {
        "named": lambda _, parts: parts[0],  # the body of the definition; its arguments follow
        "where": lambda t, parts: _all_bounded(t, parts[1:]),
        "maximum": lambda _, parts: (any(low for low, _ in parts), all(high for _, high in parts)),
        "exp": lambda _, parts: (True, parts[0][1]),
        "abs": lambda _, parts: (True, all(parts[0])),
        "power": _power,
        "matmul": lambda _, parts: BOTH if all(map(all, parts)) else NEITHER,
        "mul": _product,
        "call": lambda t, parts: (
            BOTH if all(map(all, parts)) and all(map(whole_valued, t.args)) else NEITHER
        ),
    }
)
