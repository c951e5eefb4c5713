"""The gate: a statement is read rightly only if its code, run on numpy, gives what its term gives.

A proof is about a term, and a term is what symbolic arrays made of somebody's code.  Before any
verdict the code itself is run on plain arrays, and every side of every conclusion and hypothesis is
compared with its term at the same values: entry by entry, in shape, in where it is no number, and
in the relation that is claimed.  What disagrees is *misread*; it is neither proved nor refuted.

What it cannot see: a difference at sizes beyond those of :func:`~.assignments.crossing` and the
whole numbers that stand in the code, one that shows in a few values alone, and one that rounding
hides (less than 1e-9 of the largest number met on the way).  A side that is nowhere all numbers,
or nowhere larger than what rounding hides, was compared nowhere, and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .assignments import Draw, NoValue, crossing
from .bodies import Unlinked
from .claim import Claim
from .concrete import ConcreteClaim
from .evaluate import Evaluator
from .givens import Given
from .ranges import open_ranges
from .scalars import is_count, length_value
from .terms import Term, free, postorder

if TYPE_CHECKING:
    from .bodies import Ran
    from .statement import Statement

__all__ = ["Misread", "Misreading", "NotRun", "misreading", "require_read"]

NEAR = 1e-9
VISIBLE = 1e-3  # of the largest number of a side, what rounding may hide where it is compared
ROUNDING = 1e-12  # nothing to look into below this
FEW = 4  # sizes up to this are among those that cross
NEAR_NUMBERS = (11, 17, 23, 29)  # turns at which values are drawn near numbers of the code
AGAIN = 40  # times at sizes 1, where some side was no number yet
LONGEST = 1000  # values are drawn near numbers of the code up to this
SEARCHED = 1.0  # seconds of the thread for values that obey the hypotheses, where they are needed
GLANCED = 0.05  # and where other values were compared already
ROOM = 1 << 16  # entries of the largest array at such a size


class NotRun(TypeError):
    """The code of a statement does not run on numpy, so its term has nothing to agree with."""


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
        return (
            f"{self.part}{at}: the code gives {self.code} on numpy, its term {self.term}"
            + (f"; with {told}" if told else "")
        )


class Misread(TypeError):
    """Code that on numpy is not what its term says; ``found`` has where."""

    def __init__(self, told: str, found: Misreading) -> None:
        super().__init__(told)
        self.found = found


class _OutOfRange(LookupError):
    """A term reads what is not there."""


class _Parted(Exception):
    """What was looked for is found."""

    def __init__(self, part: str, code: str, term: str, place: tuple[int, ...] = ()) -> None:
        super().__init__(part)
        self.found = part, code, term, place


class _Values(Evaluator):
    """The value of a term as it stands: nothing out of range, and every shape the one it has.

    A quotient is divided, not multiplied by an inverse, as code does it.  Sums over the outcomes
    of an experiment are plain sums, here and in the code.
    """

    def __init__(self, xp: Any, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(xp, sizes, values)
        self._shapes: dict[tuple[Term, ...], tuple[int, ...]] = {}

    def lengths(self, term: Term) -> tuple[int, ...]:
        found = self._shapes.get(term.shape)
        if found is None:
            found = self._shapes[term.shape] = super().lengths(term)
        return found

    def compute(self, term: Term) -> Any:
        value = super().compute(term)
        if np.shape(value) != self.lengths(term):
            raise _OutOfRange(f"nothing of its shape {term.shape}")
        return value

    def constant(self, value: Any) -> Any:
        return np.asarray(float(value))

    def op_mul(self, t: Term) -> Any:
        total = None
        for arg in t.args:
            below = isinstance(arg.data, int) and arg.op == "power" and arg.data < 0
            if total is None:
                total = self(arg)
            elif below:
                exponent: Any = arg.data
                total = total / self(arg.args[0]) ** -exponent
            else:
                total = total * self(arg)
        return total

    def op_slice(self, t: Term) -> Any:
        axis, step = t.data
        start, count = self.length(t.args[1]), self.length(t.shape[axis])
        length = self.length(t.args[0].shape[axis])
        last = start + step * (count - 1)
        if count < 0 or (count and not 0 <= min(start, last) <= max(start, last) < length):
            raise _OutOfRange(f"nothing: entries {start} to {last} of an axis of length {length}")
        return super().op_slice(t)

    def op_pick(self, t: Term) -> Any:
        place: Any = t.data
        self.within(self.integer(t.args[1]), t.args[0].shape[place])
        return super().op_pick(t)

    def op_entry(self, t: Term) -> Any:
        for at, length in zip(t.args[1:], t.args[0].shape, strict=True):
            self.within(self.integer(at), length)
        return super().op_entry(t)

    def op_gather(self, t: Term) -> Any:
        axis: Any = t.data
        self.within(self(t.args[1]), t.args[0].shape[axis])
        return super().op_gather(t)

    def within(self, at: Any, length: Term) -> None:
        if np.any((np.asarray(at) < 0) | (np.asarray(at) >= self.length(length))):
            raise _OutOfRange(f"nothing: entry {at} of an axis of length {self.length(length)}")

    def op_space(self, t: Term) -> Any:
        return self.constant(self.length(t))

    def averaged(self, total: Any, axis: Term) -> Any:
        del axis
        return total

    @property
    def largest(self) -> float:
        """The largest number that was met."""
        numbers = (v for v in map(np.asarray, self.known.values()) if v.dtype.kind in "fiu")
        sizes = (np.max(np.abs(v[np.isfinite(v)]), initial=1.0) for v in numbers)
        return float(max(sizes, default=1.0))


def misreading(statement: Statement) -> Misreading | None:
    """Where the code of a statement and its term part, or None if nowhere that was looked at.

    A statement that was made from terms alone has no code, and nothing to compare.  Raises
    :class:`NotRun` with the code's own error if the code does not run on numpy.

    >>> import numpy as np
    >>> from attnproof.symbolic import real, sizes, theorem, equal
    >>> (n,) = sizes("n")
    >>> @theorem("Every sum is its first entry", given={"X": real(n)})
    ... def statement(X):
    ...     return equal(X[0] if isinstance(X, np.ndarray) else X[0] + 1, X[0])
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
            self.terms += [t for _, t in _sides(claim)]
            self.terms += [n for _, given in claim.variables for n in given.lengths]
        self.terms += [n for given in statement.givens.values() for n in given.lengths]
        # What keeps a slice inside of its axis is a hypothesis, or there is no verdict.
        asked = dict.fromkeys(one.number for t in self.terms for one in open_ranges(t))
        self.ranges = [t for t in asked if not any(v.op == "index" for v in free(t))]
        self.unmet = {
            (says, one, part)
            for says, one, claim in _claims(statement)
            for part, _ in _sides(claim)
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
        from .refute import obeying  # which loads ball arithmetic, and is rarely needed

        statement = self.statement
        found = obeying(statement.givens, statement.assume, statement.laws, seconds)
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
                "axis: the code was run nowhere; are the hypotheses on lengths true at any sizes?"
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
                shown = ", ".join(f"{name} = {value}" for name, value in at.items())
                untold = NotRun(f"the code does not run on numpy arrays ({shown}): {told}")
                raise untold.with_traceback(error.__traceback__) from error
            free_read = _Values(np, sizes, values)
            if any(free_read(t) < 0 for t in self.ranges if not is_count(t)):
                return None
            self.ran = True
            for says, one, claim, said in _pairs(self.statement, ran):
                bound = {_called(v): value for v, value in _bound(claim, said)}
                read = _Values(np, sizes, {**values, **bound}) if bound else free_read
                try:
                    self.unmet -= {(says, one, part) for part in _compare(claim, said, read)}
                except _Parted as parted:
                    part, in_code, in_term, place = parted.found
                    told = f"{one}, {part}" if one else part
                    inputs = _inputs({**values, **bound})
                    return Misreading(says, told, dict(sizes), inputs, in_code, in_term, place)
        return None


def _claims(statement: Statement) -> Iterator[tuple[str, str, Claim]]:
    """Each conclusion and hypothesis: the conclusion, what to call it, the claim."""
    yield from ((says, "", claim) for says, claim in statement.claims.items())
    equations = [Claim("=", left, right) for left, right in statement.assume]
    for k, claim in enumerate((*equations, *(law.claim for law in statement.laws))):
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


def _sides(claim: Claim) -> Iterator[tuple[str, Term]]:
    """Every term of a claim, under the name of its part."""
    parts = {
        "left side": claim.left, "right side": claim.right, "last number": claim.apart,
        "witness": claim.witness,
    }  # fmt: skip
    steps = {f"step {k + 1}": link.term for k, link in enumerate(claim.links)}
    steps |= {f"array {k + 1} it is free of": t for k, t in enumerate(claim.free_of)}
    yield from ((part, t) for part, t in {**parts, **steps}.items() if t is not None)


def _values_of(said: ConcreteClaim) -> dict[str, Any]:
    """Every value of a claim as run, under the same names."""
    parts = {
        "left side": said.left, "right side": said.right, "last number": said.apart,
        "witness": said.witness,
    }  # fmt: skip
    found = {part: value for part, value in parts.items() if value is not None}
    found |= {f"step {k + 1}": value for k, (_, value) in enumerate(said.links)}
    return found | {f"array {k + 1} it is free of": v for k, v in enumerate(said.free_of)}


def _bound(claim: Claim, said: ConcreteClaim) -> Iterator[tuple[Term, Any]]:
    """The variables that a claim binds, as terms and as values, the outermost first."""
    for (name, given), variable in zip(claim.variables, said.variables, strict=False):
        yield given.named(name).term, variable.value
    if claim.variable is not None and said.unknown is not None:
        yield claim.variable, said.unknown.value


def _called(variable: Term) -> str:
    return str(variable.data if variable.op == "index" else variable.data[0])


def _compare(claim: Claim, said: ConcreteClaim, read: _Values) -> Iterator[str]:
    """The parts that met a finite number; raises where a claim as run and its terms part."""
    binders = [given.kind for _, given in claim.variables]
    own = [variable.given.kind for variable in said.variables]
    if binders != own:
        raise _Parted("the variables", ", ".join(own) or "none", ", ".join(binders) or "none")
    if claim.relation != said.relation:
        raise _Parted("the relation", said.relation, claim.relation)
    if said.inner is not None and said.inner.relation != claim.inner:
        raise _Parted("the relation inside of exists", said.inner.relation, claim.inner)
    terms, values = dict(_sides(claim)), _values_of(said)
    equation, last = claim.relation == "=", f"step {len(claim.links)}"
    ends_right = terms.get(last) is claim.right and values.get(last) is said.right
    for part in dict.fromkeys((*terms, *values)):
        if part not in terms or part not in values:
            missing = "nothing"
            raise _Parted(
                part, _short(values.get(part, missing)), repr(terms.get(part, missing))
            )
        if part == last and ends_right:
            continue  # it is the right side, which was compared
        if _compare_side(part, terms[part], values[part], read, exact=equation):
            yield from (part, last) if part == "right side" and ends_right else (part,)


def _compare_side(part: str, term: Term, value: Any, read: _Values, *, exact: bool) -> bool:
    """Whether all of this side was numbers that rounding does not hide.

    Raises where its code and its term part.
    """
    here = np.asarray(value)
    if here.dtype.kind not in "bfiu":
        raise NotRun(
            f"the {part} has entries that are no real numbers on numpy arrays: "
            f"{type(value).__name__} of {here.dtype}"
        )
    try:
        there = np.asarray(read(term))
    except _OutOfRange as nothing:
        raise _Parted(part, _short(value), str(nothing)) from None
    if here.shape != there.shape:
        fits = not exact and np.broadcast_shapes(here.shape, there.shape) == there.shape
        if not fits:
            raise _Parted(part, f"an array of shape {here.shape}", f"one of shape {there.shape}")
        here = np.broadcast_to(here, there.shape)
    here, there = here.astype(float), there.astype(float)
    known = np.isfinite(there) | (~np.isnan(there) & (not term.finite))
    met = bool(np.isfinite(there).any() and known.all())
    same = (here == there) | (np.isnan(here) & np.isnan(there))
    if same.all():
        return met
    gap = np.abs(here - there)
    off = ~same & ~(gap <= ROUNDING * np.abs(there))
    if off.any():
        room = NEAR * read.largest
        off = ~same & ~(gap <= room)
        met = met and bool(room <= VISIBLE * np.max(np.abs(there[np.isfinite(there)])))
    if off.any():
        place = tuple(int(k) for k in np.argwhere(off)[0])
        raise _Parted(part, _number(here[place]), _number(there[place]), place)
    return met


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays for the code to keep: what it writes into them is no input of its term."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def _dtype(given: Given) -> Any:
    kinds = {"boolean": bool, "natural": int, "index": int}
    return kinds.get(given.kind, int if given.below is not None else float)


def _entries(shape: tuple[Term, ...], sizes: Mapping[str, int]) -> int:
    try:
        return int(prod(
            sizes[str(n.data[0])] if n.op == "space" else length_value(n, dict(sizes))
            for n in shape
        ))  # fmt: skip
    except KeyError:  # an axis as long as the range of a bound index: no longer than the longest
        return int(max(sizes.values(), default=1) ** len(shape))


def _inputs(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _short(value) for name, value in values.items()}


def _short(value: Any) -> str:
    """An input in a line."""
    if callable(value):
        return "a smooth function"
    array = np.asarray(value)
    if array.dtype.kind not in "bfiu":
        return repr(value)
    return np.array2string(array, separator=", ", precision=6, threshold=24).replace("\n", "")


def _number(value: Any) -> str:
    return f"{value:.9g}"
