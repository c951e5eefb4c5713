"""The gate: check that the code of a statement, run on NumPy, agrees with the statement's term.

A proof is about a term, and the term is what symbolic arrays made of an author's code.  Before any
verdict, the code itself is run on plain arrays, and every side of every conclusion and hypothesis
is compared with its term at the same values: in shape, entry by entry, in the places of NaN, and in
the claimed relation.  A statement that disagrees is *misread*; it is neither proved nor refuted.

The gate cannot detect a difference that occurs only at sizes other than those of
:func:`~.comparison.crossing_sizes` and near the integers in the code, only at a few values, or
below rounding (1e-9 of the largest intermediate number).  Code that could make such a difference
asks for something that is not an array operation, and is refused earlier
(``refusals.arrays_only``).  A side that was never finite, or never larger than rounding, has not
been compared anywhere, and the statement is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .bodies import NotRelinked
from .claim import Claim, name_of
from .comparison import (
    CodeDiffers,
    Draw,
    NotRun,
    NoValue,
    TermValues,
    bound_variables,
    compared,
    crossing_sizes,
    input_text,
    sides,
)
from .concrete import ConcreteClaim, length_value
from .givens import Given
from .reading import open_ranges
from .scalars import is_count
from .terms import Term, free, postorder

if TYPE_CHECKING:
    from .bodies import CodeRun
    from .statement import Statement

CROSSED_SIZE = 4  # sizes up to this are covered by `crossing_sizes`
TURNS_NEAR_CONSTANTS = (11, 17, 23, 29)  # turns whose values are near constants of the code
FURTHER_TURNS = 40  # further attempts at sizes 1 while some side has not been finite
LARGEST_CONSTANT = 1000  # the largest constant of the code near which values are drawn
SEARCH_SECONDS = 1.0  # of thread time, to find values that satisfy the hypotheses, if needed
BRIEF_SEARCH_SECONDS = 0.05  # the same, if other values were compared already
MAX_ENTRIES = 1 << 16  # entries of the largest array at a size near a constant


@dataclass(frozen=True)
class Misreading:
    """A difference between the code of a statement and its term.

    ``says`` is the conclusion ("" for the only one, or for a hypothesis), ``part`` its side or
    step, ``place`` the entry; ``code`` and ``term`` are the two values as text, ``values`` the
    inputs as text.
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
        """The difference as one line for the user."""
        inputs = {**{name: str(n) for name, n in self.sizes.items()}, **self.values}
        told = ", ".join(f"{name} = {value}" for name, value in inputs.items())
        at = f" at {list(self.place)}" if self.place else ""
        return f"{self.part}{at}: the code gives {self.code} on numpy, its term {self.term}" + (
            f"; with {told}" if told else ""
        )


class Misread(TypeError):
    """Raised for code that disagrees with its term on NumPy; ``found`` is the difference."""

    def __init__(self, message: str, found: Misreading) -> None:
        super().__init__(message)
        self.found = found


def misreading(statement: Statement) -> Misreading | None:
    """Return the first difference found between a statement's code and its term, or None.

    A statement made from terms alone has no code, and nothing is compared.  Raises
    :class:`NotRun`, with the code's own error, if the code does not run on NumPy, and if some
    side could not be compared anywhere.

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
    comparison = _Comparison(statement)
    found = None
    for turn, sizes in comparison.assignments():
        within = comparison.enlarged(sizes)
        found = comparison.at(within, turn) if within is not None else None
        if found is not None:
            return found
    ones = comparison.enlarged(dict.fromkeys(next(comparison.assignments())[1], 1))
    for turn in range(6, 6 * FURTHER_TURNS, 6):  # numbers of both signs
        if not comparison.not_compared or found is not None or ones is None:
            break
        found = comparison.at(ones, turn)
    if found is None and (comparison.not_compared or statement.assume or statement.laws):
        found = comparison.at_example(
            SEARCH_SECONDS if comparison.not_compared else BRIEF_SEARCH_SECONDS
        )
    if comparison.not_compared and found is None:
        raise NotRun(comparison.refusal)
    return found


def require_read(statement: Statement) -> None:
    """Refuse to measure a misread statement, since the numbers would be those of its term.

    Raises :class:`Misread`, or :class:`NotRun` if its code does not run on NumPy.
    """
    found = statement.misreading
    if found is not None:
        raise Misread(f"the statement is misread: {found.text}", found)


@dataclass
class _Comparison:
    """The comparison of one statement's code and term, at one choice of sizes after another."""

    statement: Statement
    terms: list[Term] = field(init=False)
    ranges: list[Term] = field(init=False)
    not_compared: set[tuple[str, str, str]] = field(init=False)
    ran: bool = False

    def __post_init__(self) -> None:
        statement = self.statement
        self.terms = [t for pair in statement.assume for t in pair]
        for claim in (*statement.claims.values(), *(law.claim for law in statement.laws)):
            self.terms += [t for _, t in sides(claim)]
            self.terms += [n for _, given in claim.variables for n in given.lengths]
        self.terms += [n for given in statement.givens.values() for n in given.lengths]
        # A slice stays inside its axis by its form or by a hypothesis; else there is no verdict.
        asked = dict.fromkeys(one.number for t in self.terms for one in open_ranges(t))
        self.ranges = [t for t in asked if not any(v.op == "index" for v in free(t))]
        self.not_compared = {
            (says, one, part) for says, one, claim in _claims(statement) for part, _ in sides(claim)
        }

    def enlarged(self, sizes: Mapping[str, int]) -> dict[str, int] | None:
        """Return these sizes, enlarged until every slice stays inside its axis, or None."""
        found, counts = dict(sizes), [t for t in self.ranges if is_count(t)]
        for _ in range(LARGEST_CONSTANT):
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
        """Yield ``crossing_sizes``, then sizes for values near constants, then sizes near them.

        Each comes with its turn, which selects how values are drawn.
        """
        code = self.statement.code
        assert code is not None
        within = {v for term in self.terms for part in postorder(term) for v in (part, *part.shape)}
        axes = {v for axis in within for v in (axis, *free(axis)) if v.op in ("size", "space")}
        names = sorted({str(v.data[0]) for v in axes if v.op == "size"} | code.links.sizes)
        spaces = sorted({str(v.data[0]) for v in axes if v.op == "space"})
        for k, sizes in enumerate(crossing_sizes(names)):
            yield k, {**sizes, **dict.fromkeys(spaces, 1 + k % 3)}
        if any(abs(c) > CROSSED_SIZE for c in self.constants()):
            for turn in TURNS_NEAR_CONSTANTS:
                yield turn, dict.fromkeys([*names, *spaces], 3)
        shapes = {part.shape for part in within}
        for constant in (
            c for c in self.constants(MAX_ENTRIES) if c > CROSSED_SIZE and c == int(c)
        ):
            for name in names:
                for size in range(int(constant) - 1, int(constant) + 2):
                    sizes = {**dict.fromkeys([*names, *spaces], 1), name: size}
                    if all(_entries(shape, sizes) <= MAX_ENTRIES for shape in shapes):
                        yield 6 * size, sizes  # numbers of both signs

    def constants(self, most: int = LARGEST_CONSTANT) -> list[float]:
        """Return the sorted constants of the code whose absolute value is at most ``most``."""
        code = self.statement.code
        assert code is not None
        return sorted(c for c in code.links.constants if abs(c) <= most)

    def at_example(self, seconds: float) -> Misreading | None:
        """Return the first difference at values that satisfy the hypotheses, if any are found."""
        statement = self.statement
        found = statement.example(seconds)
        _, ones = next(self.assignments())
        sizes = {**ones, **found.sizes} if found is not None else {}
        if found is None or self.enlarged(sizes) != sizes:
            return None
        numbers = {k: v for k, v in found.values.items() if not callable(v)}
        plain = {k: np.asarray(v, dtype=_dtype(statement.givens[k])) for k, v in numbers.items()}
        return self.at(sizes, 0, plain)

    @property
    def refusal(self) -> str:
        """Why the statement is refused if some side could not be compared anywhere."""
        if not self.ran:
            return (
                "no sizes and values were found at which every slice and index stays inside its "
                "axis, so the code was not run; can the hypotheses on lengths hold?"
            )
        told = ", ".join(
            ", ".join(filter(None, (says and f"{says!r}", one, part)))
            for says, one, part in sorted(self.not_compared)
        )
        return (
            f"no finite value was found: compared nowhere ({told}); at all sizes and values tried, "
            "some entries were NaN or infinite both on numpy and in the term, or there were no "
            "entries, or intermediate numbers were so large that rounding hides any difference; is "
            "it a number at any input?"
        )

    def at(
        self, sizes: Mapping[str, int], turn: int, given: Mapping[str, Any] | None = None
    ) -> Misreading | None:
        """Return the first difference at these sizes; values that are not given are drawn."""
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
                ran = code.run(sizes, _copied(values), draw=draw)
            except NotRelinked:
                raise
            except NoValue:
                return None
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                where = _inputs(values) if len(values) < 4 else {}
                at = {**{k: str(n) for k, n in sizes.items()}, **where}
                inputs = ", ".join(f"{name} = {value}" for name, value in at.items())
                failed = NotRun(f"the code does not run on numpy arrays ({inputs}): {told}")
                raise failed.with_traceback(error.__traceback__) from error
            free_read = TermValues(np, sizes, values)
            if any(free_read(t) < 0 for t in self.ranges if not is_count(t)):
                return None
            self.ran = True
            for says, one, claim, said in _pairs(self.statement, ran):
                bound = {name_of(v): value for v, value in bound_variables(claim, said)}
                read = TermValues(np, sizes, {**values, **bound}) if bound else free_read
                try:
                    self.not_compared -= {(says, one, part) for part in compared(claim, said, read)}
                except CodeDiffers as parted:
                    part, in_code, in_term, place = parted.found
                    told = f"{one}, {part}" if one else part
                    at = _inputs({**values, **bound})
                    return Misreading(says, told, dict(sizes), at, in_code, in_term, place)
        return None


def _claims(statement: Statement) -> Iterator[tuple[str, str, Claim]]:
    """Yield (conclusion, name of a hypothesis, claim) for each conclusion and hypothesis."""
    yield from ((says, "", claim) for says, claim in statement.claims.items())
    for k, claim in enumerate(statement.hypotheses):
        yield "", f"hypothesis {k + 1}", claim


def _pairs(statement: Statement, ran: CodeRun) -> Iterator[tuple[str, str, Claim, ConcreteClaim]]:
    """Yield each conclusion and hypothesis as a term and as run, with the names of ``_claims``."""
    names, own = list(statement.claims), list(ran.conclusions)
    if names != own:
        raise NotRun(f"the code claims {own} on numpy and {names} on symbolic arrays")
    plain = [replace(h, links=()) for h in ran.hypotheses if _is_equation(h)]
    others = [h for h in ran.hypotheses if not _is_equation(h)]
    if (len(plain), len(others)) != (len(statement.assume), len(statement.laws)):
        raise NotRun(
            f"the code assumes {len(ran.hypotheses)} hypotheses on numpy, {len(plain)} of them "
            f"equations of the givens; on symbolic arrays it assumes {len(statement.assume)} "
            f"equations and {len(statement.laws)} others"
        )
    run = (*ran.conclusions.values(), *plain, *others)
    for (says, one, claim), said in zip(_claims(statement), run, strict=True):
        yield says, one, claim, said


def _is_equation(said: ConcreteClaim) -> bool:
    return said.relation == "=" and not said.variables


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies for the code, so that writing into them does not change the term's inputs."""
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
    return {name: input_text(value) for name, value in values.items()}
