"""Check a statement exactly: both sides in finite fields, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter

import torch

from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, free, postorder

from ..parts import parts_of
from ..scale import scale_named
from ..walk import TooLarge
from .chance import chance_of
from .draws import Draws
from .hypotheses import Hypotheses
from .hypothesis import replaced
from .lengths import ROWS, lengths_at, rows_at, steps_apart, with_roots
from .reading import ResidueReading
from .residue import NoResidue, Residue
from .towers import NoTower, Tower, tower
from .whole import depth_of

__all__ = ["ExactCheck", "checked", "exact"]

PLACES = (0, 1)  # two towers: what is true modulo one prime by chance is not so modulo another


@dataclass(frozen=True)
class ExactCheck:
    """One conclusion in one tower of fields.

    ``status`` is held, violated or skipped; ``compared`` counts entries, ``undefined`` those left
    out because a denominator was 0.  ``error`` bounds the probability that a false equation
    passes, where an argument for such a bound is known, and ``argument`` is it, or says that
    there is none.  ``worst`` is the first entry that differs.
    """

    says: str
    status: str
    primes: tuple[int, ...]
    sizes: dict[str, int]
    seed: int
    compared: int
    undefined: int
    error: Fraction | None
    argument: str
    worst: tuple[int, ...]
    seconds: float
    reason: str = ""


def exact(
    statement: Statement, *, scale: str = "default", seed: int = 0, rows: int = ROWS,
    device: str = "cpu",
) -> list[ExactCheck]:  # fmt: skip
    """Every equation among the conclusions, in two towers of fields.

    What has no reading there (an order, a maximum, a root of what is not whole) is skipped and
    says why, and so is what does not hold for values that are not known to obey a hypothesis.
    There are fewer tokens than the scale has where the work would be too much.  The field sees
    the algorithm, not the arithmetic: no rounding, no overflow.  Raises
    :class:`~attnproof.symbolic.gate.Misread` for a statement whose code is not what its term says.

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
    for says, claim, whole in parts_of(statement):
        start, asked_for = perf_counter(), claim.at_witness()
        why = _no_equation(asked_for)
        alone, told, unsure = replaced(whole, asked_for)
        lengths = lengths_at(alone, told, scale_named(scale), rows)
        if why:
            found.append(_skipped(says, lengths, seed, why, start))
            continue
        for place in PLACES:
            try:
                levels = tower(max(map(depth_of, _sides(told))), place)
                how = (levels, place, seed, rows, device, unsure)
                try:
                    one = checked(alone, says, told, lengths, *how)
                except TooLarge:
                    lengths = lengths_at(alone, told, scale_named("small"), rows)
                    one = checked(alone, says, told, lengths, *how)
            except (NoResidue, NoTower, TooLarge, TypeError) as reason:
                one = _skipped(says, lengths, seed, str(reason), start)
            found.append(one)
            if one.status == "skipped":
                break
    return found


def checked(
    statement: Statement, says: str, claim: Claim, lengths: dict[str, int], levels: Tower,
    place: int, seed: int, rows: int = ROWS, device: str = "cpu", unsure: Sequence[str] = (),
) -> ExactCheck:  # fmt: skip
    """One equation in one tower.  Raises :class:`NoResidue` for what has no meaning there.

    ``unsure`` are further hypotheses that are not known to be obeyed.
    """
    start, sides = perf_counter(), _sides(claim)
    sizes = with_roots(sides, lengths, levels)
    known = Hypotheses(statement, _turned(sides))
    known.unmet.update(dict.fromkeys(unsure, "a field has no order"))
    draws = Draws(
        statement.givens, sizes, seed + place, above=steps_apart(sizes, levels), place=place,
        hypotheses=known,
    )  # fmt: skip
    read = ResidueReading(levels, levels.depth, sizes, draws, torch.device(device))
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
        raise TooLarge("values that obey the hypotheses are looked for at small sizes")
    if violated and known.unmet:
        why = f"it does not hold without what is not known to be obeyed: {known.told()}"
        return _skipped(says, sizes, seed, why, start)
    chance = chance_of(sides, (left, right), read)
    return ExactCheck(
        says, "violated" if violated else "held", levels.primes, sizes, seed, compared, undefined,
        chance.error, chance.argument + known.without(),
        tuple(int(k) for k in wrong.nonzero()[0]) if violated else (), perf_counter() - start,
    )  # fmt: skip


def _differences(left: Residue, right: Residue) -> tuple[torch.Tensor, torch.Tensor]:
    """Where two values differ, and where one of them is undefined; −inf is −inf alone."""
    wrong, lost = left.value != right.value, torch.zeros_like(left.value, dtype=torch.bool)
    hidden = [torch.zeros_like(lost) if x.hidden is None else x.hidden for x in (left, right)]
    wrong = torch.where(hidden[0] | hidden[1], hidden[0] ^ hidden[1], wrong)
    for side in (left, right):
        lost = lost if side.undefined is None else lost | side.undefined
    return wrong & ~lost, lost


def _turned(sides: tuple[Term, ...]) -> frozenset[str]:
    """The givens that are read as angles."""
    turns = {
        part.args[0] for side in sides for part in postorder(side) if part.op in ("cos", "sin")
    }
    found = frozenset[Term]().union(*map(free, turns))
    return frozenset(str(v.data[0]) for v in found if v.op == "var")


def _sides(claim: Claim) -> tuple[Term, Term]:
    assert claim.right is not None
    return claim.left, claim.right


def _no_equation(claim: Claim) -> str:
    """Why a claim is nothing that a field can say, or nothing."""
    if claim.relation == "!=":
        return "the claim says that something differs for all values; random ones show no others"
    if claim.relation == "exists":
        return "the claim names nothing that exists, and nothing is looked for in a field"
    if claim.relation != "=":
        return f"a field has no order, and the claim says {claim.relation!r}"
    return ""


def _skipped(says: str, sizes: dict[str, int], seed: int, why: str, start: float) -> ExactCheck:
    return ExactCheck(
        says, "skipped", (), sizes, seed, 0, 0, None, "", (), perf_counter() - start, why
    )
