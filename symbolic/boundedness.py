"""Boundedness, by the form of a term: what is made of bounded numbers in few ways is bounded.

``bounded(term, variables, contents)`` says whether, for each value of everything else, some number
bounds every entry of the term from above and from below for all values of the variables at once,
lengths among them, and all contents whose entries stay between two fixed numbers.  What it
certifies is less than a proof: that there is a bound, and not which.

Why that is so, by induction on the term, each side by itself.

* A part in which no variable occurs is one number, and bounds itself on both sides.  An entry of
  the contents lies between their two numbers, however many there are.
* Sines, cosines, hyperbolic tangents and indicators lie in [−1, 1].  exp, |x| and even
  powers are at least 0; exp is bounded above where its number is, |x|, powers and products where
  their numbers are bounded on both sides.
* A sum is bounded on a side where all its parts are, a literal factor below 0 exchanging the
  sides; a maximum from below where one of its numbers is, and from above where all are.
* An array operation takes each of its entries from an argument, or sums products of entries.
  Where a variable is the number of what is summed, such as the number of tokens, a bound of each
  says nothing of all: such a sum is bounded from below where each number is at least 0 by its
  form, and not from above.
* An index into an axis whose length is a variable is at least 0, and has no bound above.
* A number that takes integer values only and is bounded takes finitely many, and then so does any
  function of such numbers: it is bounded, though nothing is known of the function.
* A remainder x mod n lies between −|n| and |n|; it is x where n = 0, which is not passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from .budget import spend
from .continuity import SELECTS, whole_valued
from .scalars import number_of
from .signs import nonzero, sign
from .terms import Term, free, instantiate, make

Sides = tuple[bool, bool]  # from below, from above
BOTH, NEITHER = (True, True), (False, False)
IN_ONE = frozenset(["sin", "cos", "tanh", "indicator"])


def bounded(
    term: Term, variables: frozenset[Term], contents: frozenset[Term] = frozenset()
) -> bool:
    """Whether every entry stays between two numbers, whatever the variables are.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.namespace import arange, sin
    >>> x, (n,) = real().named("x"), sizes("n", "tokens")
    >>> bounded((3 * sin(x) + 1).term, frozenset([x.term])), bounded(x.term, frozenset([x.term]))
    (True, False)
    >>> bounded(arange(n).term, frozenset([n.term])), bounded(arange(n).term, frozenset())
    (False, True)
    """
    if term.loose:
        raise ValueError("boundedness is asked of a closed term")
    return all(_Walk(variables, contents)(term))


@dataclass(frozen=True)
class _Walk:
    """One walk: what varies, lengths among it, and the arrays whose entries are bounded."""

    variables: frozenset[Term]
    contents: frozenset[Term]
    known: dict[Term, Sides] = field(default_factory=dict)

    def varies(self, *parts: Term) -> bool:
        """Whether a variable occurs in one of these, or a content."""
        return any(free(part) & (self.variables | self.contents) for part in parts)

    def __call__(self, t: Term) -> Sides:
        found = self.known.get(t)
        if found is None:
            spend()
            found = self.known[t] = self._sides(t)
        return found

    def _sides(self, t: Term) -> Sides:
        if not t.finite:
            return NEITHER
        if t in self.contents or not self.varies(t) or t.op in IN_ONE:
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
        if t.op in SELECTS:
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


def _every(_: Term, parts: list[Sides]) -> Sides:
    return all(low for low, _ in parts), all(high for _, high in parts)


def _meant(_: Term, parts: list[Sides]) -> Sides:
    return parts[0]  # what the name stands for; its arguments come after


def _chosen(t: Term, parts: list[Sides]) -> Sides:
    return _every(t, parts[1:])


def _largest(_: Term, parts: list[Sides]) -> Sides:
    return any(low for low, _ in parts), all(high for _, high in parts)


def _exp(_: Term, parts: list[Sides]) -> Sides:
    return True, parts[0][1]


def _absolute(_: Term, parts: list[Sides]) -> Sides:
    return True, all(parts[0])


def _power(t: Term, parts: list[Sides]) -> Sides:
    both = all(parts[0]) and t.data > 0
    return both or (t.data > 0 and not t.data % 2), both


def _products(_: Term, parts: list[Sides]) -> Sides:
    return BOTH if all(map(all, parts)) else NEITHER


def _product(t: Term, parts: list[Sides]) -> Sides:
    if all(map(all, parts)):
        return BOTH
    literal = [number_of(x.args[0] if x.op == "broadcast" else x) for x in t.args]
    rest = [part for part, value in zip(parts, literal, strict=True) if value is None]
    if len(rest) != 1:
        return NEITHER
    low, high = rest[0]
    return (low, high) if prod(value for value in literal if value is not None) > 0 else (high, low)


def _call(t: Term, parts: list[Sides]) -> Sides:
    return BOTH if all(map(all, parts)) and all(map(whole_valued, t.args)) else NEITHER


_RULES: dict[str, Callable[[Term, list[Sides]], Sides]] = dict.fromkeys(
    ("add", "concat", "stack", "broadcast", "permute", "new axis", "reshape", "reduce"),
    _every,
) | {
    "named": _meant,
    "where": _chosen,
    "maximum": _largest,
    "exp": _exp,
    "abs": _absolute,
    "power": _power,
    "matmul": _products,
    "mul": _product,
    "call": _call,
}
