"""The gate: a statement is read rightly only if its code, run on numpy, gives what its term gives.

A proof is about a term, and a term is what symbolic arrays made of somebody's code.  Before any
verdict the code itself is run on plain arrays, and every side of every conclusion and hypothesis is
compared with its term at the same values: entry by entry, in shape, in where it is not a number,
and in the relation that is claimed.  What disagrees is *misread*; it is neither proved nor refuted.

What it cannot see: a difference at sizes beyond those of :func:`~.comparison.crossing` and the
whole numbers that stand in the code, one that shows in a few values alone, and one that rounding
hides (less than 1e-9 of the largest number met on the way).  Code that could make such a difference
asks for what is not an array, and is refused before (``asked``).  A side that is nowhere all
numbers, or nowhere larger than what rounding hides, was compared nowhere, and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .bodies import Unlinked
from .claim import Claim, name_of
from .comparison import (
    Draw,
    NotRun,
    NoValue,
    Parted,
    TermValues,
    bound_variables,
    compared,
    crossing,
    shown,
    sides,
)
from .concrete import ConcreteClaim
from .givens import Given
from .reading import open_ranges
from .scalars import is_count, length_value
from .terms import Term, free, postorder

if TYPE_CHECKING:
    from .bodies import Ran
    from .statement import Statement

FEW = 4  # sizes up to this are among those that cross
NEAR_NUMBERS = (11, 17, 23, 29)  # turns at which values are drawn near numbers of the code
AGAIN = 40  # times at sizes 1, where some side was no number yet
LONGEST = 1000  # values are drawn near numbers of the code up to this
SEARCHED = 1.0  # seconds of the thread for values that obey the hypotheses, where they are needed
GLANCED = 0.05  # and where other values were compared already
ROOM = 1 << 16  # entries of the largest array at such a size


@dataclass(frozen=True)
class Misreading:
    """Where the code of a statement and its term part.

    ``says`` is the conclusion ("" for the only one, or for a hypothesis), ``part`` which side or
    step of it, ``place`` the entry; ``code`` and ``term`` are the two values as text, ``values``
    the inputs as text.
    """

    says: str
    part: str
    sizes: Mapping[str, int]
    values: Mapping[str, str]
    code: str
    term: str
    place: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """One line a person reads."""
        inputs = {**{name: str(n) for name, n in self.sizes.items()}, **self.values}
        told = ", ".join(f"{name} = {value}" for name, value in inputs.items())
        at = f" at {list(self.place)}" if self.place else ""
        return f"{self.part}{at}: the code gives {self.code} on numpy, its term {self.term}" + (
            f"; with {told}" if told else ""
        )


class Misread(TypeError):
    """Code that on numpy is not what its term says; ``found`` has where."""

    def __init__(self, told: str, found: Misreading) -> None:
        super().__init__(told)
        self.found = found


def misreading(statement: Statement) -> Misreading | None:
    """Where the code of a statement and its term part, or None if nowhere that was looked at.

    A statement that was made from terms alone has no code, and nothing to compare.  Raises
    :class:`NotRun` with the code's own error if the code does not run on numpy.

    >>> from attnproof.symbolic import real, sizes, theorem, equal
    >>> from attnproof.symbolic.array import Array
    >>> (n,) = sizes("n")
    >>> @theorem("Every sum is its first entry", given={"X": real(n)})
    ... def statement(X):
    ...     return equal(X[0] + 1 if isinstance(X, Array) else X[0], X[0])
    >>> misreading(statement.statement).part
    'left side'
    """
    if statement.code is None:
        return None
    look = _Look(statement)
    found = None
    for turn, sizes in look.assignments():
        within = look.inside(sizes)
        found = look.at(within, turn) if within is not None else None
        if found is not None:
            return found
    ones = look.inside(dict.fromkeys(next(look.assignments())[1], 1))
    for turn in range(6, 6 * AGAIN, 6):  # numbers of both signs
        if not look.unmet or found is not None or ones is None:
            break
        found = look.at(ones, turn)
    if found is None and (look.unmet or statement.assume or statement.laws):
        found = look.obeying(SEARCHED if look.unmet else GLANCED)
    if look.unmet and found is None:
        raise NotRun(look.untold)
    return found


def require_read(statement: Statement) -> None:
    """Refuse a statement of which nothing is to be measured: its numbers would be its term's.

    Raises :class:`Misread`, and :class:`NotRun` where its code does not run on numpy.
    """
    found = statement.misreading
    if found is not None:
        raise Misread(f"the statement is misread: {found.text}", found)


@dataclass
class _Look:
    """One statement, looked at with one choice of sizes after another."""

    statement: Statement
    terms: list[Term] = field(init=False)
    ranges: list[Term] = field(init=False)
    unmet: set[tuple[str, str, str]] = field(init=False)
    ran: bool = False

    def __post_init__(self) -> None:
        statement = self.statement
        self.terms = [t for pair in statement.assume for t in pair]
        for claim in (*statement.claims.values(), *(law.claim for law in statement.laws)):
            self.terms += [t for _, t in sides(claim)]
            self.terms += [n for _, given in claim.variables for n in given.lengths]
        self.terms += [n for given in statement.givens.values() for n in given.lengths]
        # What keeps a slice inside of its axis is a hypothesis, or there is no verdict.
        asked = dict.fromkeys(one.number for t in self.terms for one in open_ranges(t))
        self.ranges = [t for t in asked if not any(v.op == "index" for v in free(t))]
        self.unmet = {
            (says, one, part) for says, one, claim in _claims(statement) for part, _ in sides(claim)
        }

    def inside(self, sizes: Mapping[str, int]) -> dict[str, int] | None:
        """These sizes, made larger until every slice stays inside of its axis; None if none do."""
        found, counts = dict(sizes), [t for t in self.ranges if is_count(t)]
        for _ in range(LONGEST):
            short = next((t for t in counts if length_value(t, found) < 0), None)
            if short is None:
                return found
            value = length_value(short, found)
            names = sorted(str(v.data[0]) for v in free(short))
            more = ({**found, name: found[name] + 1} for name in names)
            found = next((one for one in more if length_value(short, one) > value), {})
            if not found:
                return None
        return None

    def assignments(self) -> Iterator[tuple[int, dict[str, int]]]:
        """Sizes that cross; then values, and sizes, at the numbers that stand in the code.

        Each with its turn, which chooses the manner of the values.
        """
        code = self.statement.code
        assert code is not None
        within = {v for term in self.terms for part in postorder(term) for v in (part, *part.shape)}
        axes = {v for axis in within for v in (axis, *free(axis)) if v.op in ("size", "space")}
        names = sorted({str(v.data[0]) for v in axes if v.op == "size"} | code.links.sizes)
        spaces = sorted({str(v.data[0]) for v in axes if v.op == "space"})
        for k, sizes in enumerate(crossing(names)):
            yield k, {**sizes, **dict.fromkeys(spaces, 1 + k % 3)}
        if any(abs(c) > FEW for c in self.constants()):
            for turn in NEAR_NUMBERS:
                yield turn, dict.fromkeys([*names, *spaces], 3)
        shapes = {part.shape for part in within}
        for constant in (c for c in self.constants(ROOM) if c > FEW and c == int(c)):
            for name in names:
                for size in range(int(constant) - 1, int(constant) + 2):
                    sizes = {**dict.fromkeys([*names, *spaces], 1), name: size}
                    if all(_entries(shape, sizes) <= ROOM for shape in shapes):
                        yield 6 * size, sizes  # numbers of both signs

    def constants(self, most: int = LONGEST) -> list[float]:
        """The numbers that stand in the code, but for very large ones."""
        code = self.statement.code
        assert code is not None
        return sorted(c for c in code.links.constants if abs(c) <= most)

    def obeying(self, seconds: float) -> Misreading | None:
        """The first difference at values that obey the hypotheses, where some are found."""
        statement = self.statement
        found = statement.example(seconds)
        _, ones = next(self.assignments())
        sizes = {**ones, **found.sizes} if found is not None else {}
        if found is None or self.inside(sizes) != sizes:
            return None
        numbers = {k: v for k, v in found.values.items() if not callable(v)}
        plain = {k: np.asarray(v, dtype=_dtype(statement.givens[k])) for k, v in numbers.items()}
        return self.at(sizes, 0, plain)

    @property
    def untold(self) -> str:
        """Why a statement of which some side was compared nowhere is not taken."""
        if not self.ran:
            return (
                "no sizes and values were found at which every slice and index stays inside of its "
                "axis: the code was not run; are the hypotheses on lengths true at any sizes?"
            )
        told = ", ".join(
            ", ".join(filter(None, (says and f"{says!r}", one, part)))
            for says, one, part in sorted(self.unmet)
        )
        return (
            f"no finite value was met: compared nowhere ({told}); in everything that was tried "
            "some of its entries were NaN or infinite, on numpy and by its term, or there were "
            "none, or numbers met on the way were so large that rounding hides the rest; is there "
            "a value at which it is a number?"
        )

    def at(
        self, sizes: Mapping[str, int], turn: int, given: Mapping[str, Any] | None = None
    ) -> Misreading | None:
        """The first difference at these sizes, at values that are drawn where none are given."""
        code = self.statement.code
        assert code is not None
        draw = Draw(sizes, turn, self.constants())
        given = given or {}
        try:
            values = {
                name: given[name] if name in given else draw(name, kind)
                for name, kind in self.statement.givens.items()
            }
        except NoValue:
            return None
        with np.errstate(all="ignore"):
            try:
                ran = code.run(sizes, _own(values), draw=draw)
            except Unlinked:
                raise
            except NoValue:
                return None
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                where = _inputs(values) if len(values) < 4 else {}
                at = {**{k: str(n) for k, n in sizes.items()}, **where}
                inputs = ", ".join(f"{name} = {value}" for name, value in at.items())
                untold = NotRun(f"the code does not run on numpy arrays ({inputs}): {told}")
                raise untold.with_traceback(error.__traceback__) from error
            free_read = TermValues(np, sizes, values)
            if any(free_read(t) < 0 for t in self.ranges if not is_count(t)):
                return None
            self.ran = True
            for says, one, claim, said in _pairs(self.statement, ran):
                bound = {name_of(v): value for v, value in bound_variables(claim, said)}
                read = TermValues(np, sizes, {**values, **bound}) if bound else free_read
                try:
                    self.unmet -= {(says, one, part) for part in compared(claim, said, read)}
                except Parted as parted:
                    part, in_code, in_term, place = parted.found
                    told = f"{one}, {part}" if one else part
                    at = _inputs({**values, **bound})
                    return Misreading(says, told, dict(sizes), at, in_code, in_term, place)
        return None


def _claims(statement: Statement) -> Iterator[tuple[str, str, Claim]]:
    """Each conclusion and hypothesis: the conclusion, what to call it, the claim."""
    yield from ((says, "", claim) for says, claim in statement.claims.items())
    for k, claim in enumerate(statement.hypotheses):
        yield "", f"hypothesis {k + 1}", claim


def _pairs(statement: Statement, ran: Ran) -> Iterator[tuple[str, str, Claim, ConcreteClaim]]:
    """Each conclusion and hypothesis as term and as run: the conclusion, what to call it, both."""
    names, own = list(statement.claims), list(ran.conclusions)
    if names != own:
        raise NotRun(f"the code claims {own} on numpy and {names} on symbolic arrays")
    plain = [replace(h, links=()) for h in ran.hypotheses if _is_equation(h)]
    others = [h for h in ran.hypotheses if not _is_equation(h)]
    if (len(plain), len(others)) != (len(statement.assume), len(statement.laws)):
        raise NotRun(
            f"the code assumes {len(ran.hypotheses)} things on numpy, {len(plain)} of them "
            f"equations of the givens; on symbolic arrays {len(statement.assume)} and "
            f"{len(statement.laws)} others"
        )
    run = (*ran.conclusions.values(), *plain, *others)
    for (says, one, claim), said in zip(_claims(statement), run, strict=True):
        yield says, one, claim, said


def _is_equation(said: ConcreteClaim) -> bool:
    return said.relation == "=" and not said.variables


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays for the code to keep: what it writes into them is no input of its term."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def _dtype(given: Given) -> Any:
    kinds = {"boolean": bool, "natural": int, "index": int}
    return kinds.get(given.kind, int if given.below is not None else float)


def _entries(shape: tuple[Term, ...], sizes: Mapping[str, int]) -> int:
    try:
        return int(
            prod(
                sizes[str(n.data[0])] if n.op == "space" else length_value(n, dict(sizes))
                for n in shape
            )
        )
    except KeyError:  # an axis as long as the range of a bound index: no longer than the longest
        return int(max(sizes.values(), default=1) ** len(shape))


def _inputs(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: shown(value) for name, value in values.items()}
