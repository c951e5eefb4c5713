"""Check a statement exactly: both sides in finite fields, entry by entry.

Schwartz–Zippel: a polynomial of degree D that is nonzero modulo p vanishes at random residues with
probability at most D/p.  This applies to differences that are nonzero as functions modulo p, at the
integers that were drawn (until they obeyed the hypotheses about them).

Under hypotheses the bound remains valid if every value that obeys them is reached from uniform
numbers by rational functions, whose degrees are counted: a given replaced by the other side of an
equation, likewise a row (a value that obeys is its own image), an inverse, orthonormal columns as a
product of reflections.  A difference that is nonzero at some value that obeys is then nonzero as a
function of those numbers.  Solutions of equations are not uniform, and no bound is claimed.  A draw
that violates a "!=" is not repeated, so that the bound on "obeys, differs and agrees" remains
valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter

import torch

from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, free, postorder

from ..results import ExactEvidence
from ..row_selection import TooLarge
from ..scale import scale_named
from ..task import parts_of
from .angles import WHOLE_KINDS, depth_of
from .draws import Draws
from .hypotheses import Hypotheses
from .hypothesis import replaced
from .lengths import ROWS, lengths_at, rows_at, steps_apart, with_roots
from .reading import ResidueReading
from .residue import CONSTANT, NoResidue, Residue
from .towers import NoTower, Tower, choices, tower

# The probability that a false equation passes: a bound, if an argument for one is known

DRAWN_ONCE = (*WHOLE_KINDS, "index", "boolean")


@dataclass(frozen=True)
class Chance:
    """A bound on the probability that a false equation passes, or None, and the argument."""

    error: Fraction | None
    argument: str

    @property
    def bound(self) -> str:
        """The bound as text; empty if none is known.

        >>> Chance(Fraction(2, 11), "V is random").bound, Chance(None, "two layers").bound
        ('≤ 1.8e-01', '')
        """
        return "" if self.error is None else f"≤ {float(self.error):.1e}"


def chance_of(
    sides: tuple[Term, Term], values: tuple[Residue, Residue], read: ResidueReading
) -> Chance:
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
    return Chance(None, "no bound is known: exponentials are not polynomials of low degree")


def _of_determinants(chance: Chance, signs: dict[str, int]) -> Chance:
    """Restrict a bound to the drawn determinants; the next tower has the opposite ones."""
    if chance.error is None or not signs:
        return chance
    told = ", ".join(f"det {name} = {sign:+d}" for name, sign in sorted(signs.items()))
    other = "the other sign is checked in the other tower"
    if len(signs) > 1:
        other = (
            "the opposite signs are checked in the other tower, but no other combination of signs"
        )
    return Chance(chance.error, f"{chance.argument}; for {told} ({other})")


def _at_whole(chance: Chance, sides: tuple[Term, Term]) -> Chance:
    """Restrict a bound to the integers, index maps and masks, which were drawn only once."""
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
        return Chance(None, "no bound is known: only integers are drawn")
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
        return Chance(None, f"no bound is known: a hypothesis involves {V.data[0]}")
    prime, name = read.arithmetic.prime, V.data[0]
    columns = 1 if factors else values[0].shape[-1]
    share = (
        Fraction(1 + sum(sum(read.arithmetic.of(read(factor)).degree) for factor in factors), prime)
        if factors
        else Fraction(1, prime**columns)
    )
    said = f"{prime}^−{columns}" if not factors else f"{share.numerator}/{prime}"
    return Chance(
        Fraction(reached, pool) + share,
        f"x ↦ w^x is injective: distinct weights stay distinct except for {reached} of {pool} "
        f"choices of the scores, and then a row that is compared agrees with probability at most "
        f"{said}, as {name} is random and independent of the scores",
    )


def _pool(read: ResidueReading) -> int:
    """The smallest number of choices of any drawn number."""
    prime, draws = read.arithmetic.prime, read.draws
    return min(prime, choices(prime, draws.above)) if draws.rotates else prime


def _weighted(t: Term) -> tuple[Term, tuple[Term, ...]] | None:
    """V and its right factors in softmax(..) V A B .., or in rows of it."""
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
    """Whether a term is a softmax, or rows of one."""
    while t.op in ("gather", "pick", "slice") and _place(t) < t.args[0].ndim - 1:
        t = t.args[0]
    return t.op == "named" and t.data[0] == "softmax" and depth_of(t) == 1


def _values(t: Term) -> tuple[Term, tuple[Term, ...]] | None:
    """V, with its rows in any order, and its right factors."""
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


# The check of one statement

TOWERS = (0, 1)  # two towers: an equation true by chance modulo one prime fails modulo another


def exact(
    statement: Statement,
    *,
    scale: str = "default",
    seed: int = 0,
    rows: int = ROWS,
    device: str = "cpu",
) -> list[ExactEvidence]:
    """Check every equation among the conclusions, in two towers of fields.

    Anything without a meaning in a field (an order, a maximum, a root of a number that is not an
    integer) is skipped with a reason, as is a claim that fails for values not known to obey a
    hypothesis.  There are fewer tokens than in the scale if the work would be too much.  A field
    checks the algorithm, not the floating-point arithmetic: there is no rounding and no overflow.
    Raises :class:`~attnproof.symbolic.gate.Misread` for a statement whose code disagrees with its
    term.

    >>> from attnproof.symbolic.givens import permutation, real, sizes
    >>> from attnproof.symbolic.claim import equal
    >>> n, d = sizes("n", "tokens") + sizes("d", "features")
    >>> givens = {"X": real(n, d), "s": permutation(n)}
    >>> X, s = (given.named(name) for name, given in givens.items())
    >>> claim = equal(X[s].mT @ X[s], X.mT @ X)
    >>> [check.status for check in exact(Statement(givens, {"": claim}), scale="small")]
    ['held', 'held']
    """
    found = []
    readings: DrawnReadings = {}
    for says, claim, whole in parts_of(statement):
        start, asked_for = perf_counter(), claim.at_witness()
        why = _no_equation(asked_for)
        alone, told, unsure = replaced(whole, asked_for)
        lengths = lengths_at(alone, told, scale_named(scale), rows)
        if why:
            found.append(_skipped(says, lengths, seed, why, start))
            continue
        for place in TOWERS:
            try:
                levels = tower(max(map(depth_of, _sides(told))), place)
                how = (levels, place, seed, rows, device, unsure, readings)
                try:
                    one = check_equation(alone, says, told, lengths, *how)
                except TooLarge:
                    lengths = lengths_at(alone, told, scale_named("small"), rows)
                    one = check_equation(alone, says, told, lengths, *how)
            except (NoResidue, NoTower, TooLarge, TypeError) as reason:
                one = _skipped(says, lengths, seed, str(reason), start)
            found.append(one)
            if one.status == "skipped":
                break
    return found


DrawnReadings = dict[tuple[object, ...], tuple[Statement, ResidueReading]]


def _drawn_reading(
    kept: DrawnReadings,
    statement: Statement,
    sizes: dict[str, int],
    levels: Tower,
    place: int,
    seed: int,
    device: str,
    rotated: frozenset[str],
    unsure: tuple[str, ...],
) -> ResidueReading:
    """A reading in which only hypotheses were evaluated, at values that obey them."""
    whose = (id(statement.givens), statement.assume, statement.laws)  # kept alive below
    key = (whose, tuple(sizes.items()), levels, place, seed, device, rotated, unsure)
    if key not in kept:
        known = Hypotheses(statement, rotated)
        known.unmet.update(dict.fromkeys(unsure, "a field has no order"))
        above = steps_apart(sizes, levels)
        draws = Draws(
            statement.givens, sizes, seed + place, above=above, place=place, hypotheses=known
        )
        read = ResidueReading(levels, levels.depth, sizes, draws, torch.device(device))
        kept[key] = statement, read
    return kept[key][1].again()


def check_equation(
    statement: Statement,
    says: str,
    claim: Claim,
    lengths: dict[str, int],
    levels: Tower,
    place: int,
    seed: int,
    rows: int = ROWS,
    device: str = "cpu",
    unsure: Sequence[str] = (),
    readings: DrawnReadings | None = None,
) -> ExactEvidence:
    """Check one equation in one tower.

    ``unsure`` lists further hypotheses that are not known to be obeyed.  ``readings`` caches, for
    other equations under the same hypotheses, readings whose values are drawn and obey them.
    Raises :class:`NoResidue` for anything without a meaning there.
    """
    start, sides = perf_counter(), _sides(claim)
    sizes, rotated = with_roots(sides, lengths, levels), _rotated(sides)
    read = _drawn_reading(
        {} if readings is None else readings,
        statement,
        sizes,
        levels,
        place,
        seed,
        device,
        rotated,
        tuple(unsure),
    )
    known = read.draws.hypotheses
    assert known is not None
    where = rows_at(claim.left, sizes, rows, seed + place)
    left, right = (read.arithmetic.of(read.array(side, where)) for side in sides)
    if left.shape != right.shape:
        raise NoResidue(f"sides of shapes {left.shape} and {right.shape}")
    wrong, lost = _differences(left, right)
    undefined = int(lost.sum())
    compared = wrong.numel() - undefined
    if not compared:
        return _skipped(says, sizes, seed, "every entry has a denominator that is 0", start)
    violated = bool(wrong.any())
    if violated and known.unmet and known.too_large:
        raise TooLarge("values that obey the hypotheses are searched for at small sizes only")
    if violated and known.unmet:
        why = (
            f"it fails at values that are not known to obey every hypothesis: {known.unmet_words()}"
        )
        return _skipped(says, sizes, seed, why, start)
    chance = chance_of(sides, (left, right), read)
    return ExactEvidence(
        says=says,
        primes=levels.primes,
        sizes=sizes,
        seed=seed,
        compared=compared,
        undefined=undefined,
        worst=tuple(int(k) for k in wrong.nonzero()[0]) if violated else (),
        status="violated" if violated else "held",
        error=chance.bound,
        argument=chance.argument + known.without_words(),
        reason="",
        seconds=perf_counter() - start,
    )


def _differences(left: Residue, right: Residue) -> tuple[torch.Tensor, torch.Tensor]:
    """Where two values differ, and where one of them is undefined; −inf equals only −inf."""
    wrong, lost = left.value != right.value, torch.zeros_like(left.value, dtype=torch.bool)
    hidden = [torch.zeros_like(lost) if x.hidden is None else x.hidden for x in (left, right)]
    wrong = torch.where(hidden[0] | hidden[1], hidden[0] ^ hidden[1], wrong)
    for side in (left, right):
        lost = lost if side.undefined is None else lost | side.undefined
    return wrong & ~lost, lost


def _rotated(sides: tuple[Term, ...]) -> frozenset[str]:
    """The givens that are read as angles."""
    rotates = {
        part.args[0] for side in sides for part in postorder(side) if part.op in ("cos", "sin")
    }
    found = frozenset[Term]().union(*map(free, rotates))
    return frozenset(str(v.data[0]) for v in found if v.op == "var")


def _sides(claim: Claim) -> tuple[Term, Term]:
    assert claim.right is not None
    return claim.left, claim.right


def _no_equation(claim: Claim) -> str:
    """Return why a claim cannot be checked in a field, or ""."""
    if claim.relation == "!=":
        return "the claim says that the sides differ for all values, which random ones cannot show"
    if claim.relation == "exists":
        return "the claim names no witness, and none is searched for in a field"
    if claim.relation != "=":
        return f"a field has no order, and the claim says {claim.relation!r}"
    return ""


def _skipped(says: str, sizes: dict[str, int], seed: int, why: str, start: float) -> ExactEvidence:
    seconds = perf_counter() - start
    return ExactEvidence.of_nothing(why, says=says, sizes=sizes, seed=seed, seconds=seconds)
