"""How likely a false equation passes: a bound, where an argument for one is known, in words.

Schwartz–Zippel: a polynomial of degree D that is not 0 modulo p is 0 at random residues with
probability at most D/p.  It speaks of differences that are not 0 as functions modulo p, at the
whole numbers that were drawn (until they obeyed the hypotheses about them).

Under hypotheses the bound is kept where every value that obeys them is reached from uniform
numbers by rational functions, whose degrees are counted: a given replaced by what an equation says
of it, a row likewise (a value that obeys is its own image), an inverse, orthonormal columns as a
product of reflections.  A difference that is not 0 at some value that obeys is then not 0 as a
function of those numbers.  Solutions of equations are not uniform, and no bound is claimed.  One
draw that fails to obey a "!=" is no draw: it is not repeated, so that the bound on "obeys, differs
and agrees" stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from attnproof.symbolic.terms import Term, free, postorder

from .circle import choices
from .reading import ResidueReading
from .residue import CONSTANT, Residue
from .whole import WHOLE_KINDS, depth_of

__all__ = ["Chance", "chance_of"]

DRAWN_ONCE = (*WHOLE_KINDS, "index", "boolean")


@dataclass(frozen=True)
class Chance:
    """A bound on the probability that a false equation passes, or None; and why."""

    error: Fraction | None
    argument: str


def chance_of(sides: tuple[Term, Term], values: tuple[Residue, Residue], read: ResidueReading
              ) -> Chance:  # fmt: skip
    """The bound for one entry (or one row of a softmax) at which the sides differ."""
    known = read.draws.hypotheses
    if known is not None and known.solved:
        return Chance(None, "no bound is known: some values solve the equations of a hypothesis")
    if known is not None and known.partly:
        return Chance(None, "no bound is known: a hypothesis may be obeyed in some fields only")
    if any(part.op == "call" for side in sides for part in postorder(side)):
        return Chance(None, "no bound is known: an unknown function is drawn from one family")
    if read.draws.few_reflections:
        few = ", ".join(sorted(read.draws.few_reflections))
        return Chance(None, f"no bound is known: {few} is drawn from some orthogonal matrices only")
    found = None
    if not read.level:
        found = _rational(values, read)
    elif read.level == 1:
        found = _one_softmax(sides, values, read)
    if found is not None:
        return _at_whole(_of_determinants(found, read.draws.determinants), sides)
    return Chance(None, "no bound is known: exponentials are no polynomials of low degree")


def _of_determinants(chance: Chance, signs: dict[str, int]) -> Chance:
    """What was drawn has one determinant, and in the next tower the other."""
    if chance.error is None or not signs:
        return chance
    told = ", ".join(f"det {name} = {sign:+d}" for name, sign in sorted(signs.items()))
    other = "the other sign is seen in the other tower"
    if len(signs) > 1:
        other = "all the other signs are seen in the other tower, and no other combination of them"
    return Chance(chance.error, f"{chance.argument}; for {told} ({other})")


def _at_whole(chance: Chance, sides: tuple[Term, Term]) -> Chance:
    """What is whole, a map or a mask was drawn once; nothing bounds what others would show."""
    read = frozenset[Term]().union(*map(free, sides))
    drawn = {v.data for v in read if v.op == "var"}
    drawn |= {(v.data, "index") for v in read if v.op == "index"}
    names = sorted(str(name) for name, kind, *_ in drawn if kind in DRAWN_ONCE)
    if chance.error is None or not names:
        return chance
    return Chance(chance.error, f"{chance.argument}; with {', '.join(names)} as drawn")


def _rational(values: tuple[Residue, Residue], read: ResidueReading) -> Chance:
    degree = values[0].degree.plus(values[1].degree)
    if degree == CONSTANT:
        return Chance(None, "no bound is known: nothing is drawn but whole numbers")
    reached, pool = sum(degree), _pool(read)
    if reached >= pool:
        return Chance(None, f"no bound: the degree is {reached} and there are {pool} choices")
    return Chance(
        Fraction(reached, pool),
        f"both sides are rational functions: an entry in which they differ agrees or is undefined "
        f"for at most {reached} of {pool} choices (Schwartz–Zippel)",
    )


def _one_softmax(
    sides: tuple[Term, Term], values: tuple[Residue, Residue], read: ResidueReading
) -> Chance | None:
    left, right = map(_weighted, sides)
    if left is None or left != right:
        return None
    score, below = CONSTANT, read.below
    for exponent in read.exponents:
        score = score.either(exponent)
    differences = score.plus(score).plus(score).plus(score)
    reached, pool = sum(differences), _pool(below)
    if reached >= pool:
        return Chance(None, f"no bound: scores have degree {reached}, of {pool} choices")
    V, factors = left
    known = read.draws.hypotheses
    if known is not None and V.data[0] in known.names:
        return Chance(None, f"no bound is known: a hypothesis speaks of {V.data[0]}")
    prime, name = read.arithmetic.prime, V.data[0]
    columns = 1 if factors else values[0].shape[-1]
    share = Fraction(1 + _over(factors, read), prime) if factors else Fraction(1, prime**columns)
    said = f"{prime}^−{columns}" if not factors else f"{share.numerator}/{prime}"
    return Chance(
        Fraction(reached, pool) + share,
        f"x ↦ w^x is injective: different weights stay different but for {reached} of {pool} "
        f"choices of the scores, and then a row that is compared agrees with probability at most "
        f"{said}, as {name} is random and independent of the scores",
    )


def _over(factors: tuple[Term, ...], read: ResidueReading) -> int:
    """The degree of a product of matrices, with its denominators."""
    return sum(sum(read.arithmetic.of(read(factor)).degree) for factor in factors)


def _pool(read: ResidueReading) -> int:
    """The number of choices of the numbers of which there are fewest."""
    prime, draws = read.arithmetic.prime, read.draws
    return min(prime, choices(prime, draws.above)) if draws.turns else prime


def _weighted(t: Term) -> tuple[Term, tuple[Term, ...]] | None:
    """V and what it is multiplied by from the right, in softmax(..) V A B .. and rows of it."""
    if t.op == "named":
        return _weighted(t.args[0])
    if t.op in ("gather", "pick", "slice") and _place(t) < t.args[0].ndim - 1:
        return _weighted(t.args[0])
    if t.op != "matmul" or t.ndim < 1:
        return None
    x, y = t.args
    if _softmax(x):
        found = _values(y)
        return None if found is None or found[0] in free(x) else found
    inner = _weighted(x)
    if inner is None or depth_of(y) or inner[0] in free(y):
        return None
    return inner[0], (*inner[1], y)


def _place(t: Term) -> int:
    """The axis of a gather, pick or slice."""
    return int(t.data[0] if isinstance(t.data, tuple) else t.data)


def _softmax(t: Term) -> bool:
    """A softmax, or rows of one."""
    while t.op in ("gather", "pick", "slice") and _place(t) < t.args[0].ndim - 1:
        t = t.args[0]
    return t.op == "named" and t.data[0] == "softmax" and depth_of(t) == 1


def _values(t: Term) -> tuple[Term, tuple[Term, ...]] | None:
    """V with its rows in any order, and what it is multiplied by."""
    if t.op == "var":
        return (t, ()) if t.data[1] == "real" and t.ndim == 2 else None
    if t.op == "gather" and _place(t) == t.ndim - 2:
        map_ = t.args[1].args[0] if t.args[1].op == "inverse" else t.args[1]
        return _values(t.args[0]) if map_.op == "var" and map_.data[1] == "permutation" else None
    if t.op == "matmul" and t.ndim == 2:
        inner = _values(t.args[0])
        if inner is not None and not depth_of(t.args[1]) and inner[0] not in free(t.args[1]):
            return inner[0], (*inner[1], t.args[1])
    return None
