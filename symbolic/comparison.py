"""Compare a claim as its code computed it on NumPy with its terms at the same values.

The values need not satisfy the hypotheses of a statement: they serve to distinguish two readings of
one line of code.  So they include zeros, ties and negative numbers, masks that hide everything or
nothing, permutations that move entries and that do not; they are integer multiples of 1/16, so
that equal sums of them are equal in floating point too.

Compared are the variables, the relation, and every side and step: in shape, entry by entry, and in
the places of NaN.  Differences below 1e-9 of the largest intermediate number count as rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, log2
from typing import Any

import numpy as np

from .bodies import given_at
from .claim import Claim
from .concrete import ConcreteClaim, lengths
from .evaluate import Evaluator
from .givens import SIGNED, Given
from .scalars import is_whole, number_of
from .terms import Term, postorder

# Sizes in every order, and values by kind, for comparing a term with its code

LARGEST_NATURAL = 64  # natural numbers near constants of the code are tried up to this
UNEQUAL_LENGTHS = ((1, 3), (2, 3), (1, 4))  # a smaller and a larger length, 1 among them


class NoValue(ValueError):
    """Raised if a given has no value at these sizes, such as an index below 0."""


def crossing_sizes(names: Iterable[str]) -> list[dict[str, int]]:
    """Return at least eight choices of sizes, in which any two are ordered in all three ways.

    All sizes are 1 in the first choice and 2 in the second.  In the others the names are divided
    into small and large by the binary digits of their numbers, in both ways, with 1 or 2 for
    small; as any two numbers differ in a digit, any two sizes differ in both directions.

    >>> crossing_sizes(["n", "m"])[:4]
    [{'n': 1, 'm': 1}, {'n': 2, 'm': 2}, {'n': 1, 'm': 3}, {'n': 3, 'm': 1}]
    """
    ordered = list(dict.fromkeys(names))
    found = [dict.fromkeys(ordered, 1), dict.fromkeys(ordered, 2)]
    digits = max(1, ceil(log2(max(len(ordered), 1))))
    for step in range(max(2 * digits, len(UNEQUAL_LENGTHS))):
        low, high = UNEQUAL_LENGTHS[step // digits % len(UNEQUAL_LENGTHS)]
        part = [k >> step % digits & 1 for k in range(len(ordered))]
        for here, there in ((low, high), (high, low)):
            found.append({n: there if p else here for n, p in zip(ordered, part, strict=True)})
    return found


class Draw:
    """Draws values of givens at one choice of sizes, in one of several manners.

    ``manner`` selects one: numbers of both signs, small ones with zeros and ties, positive
    ones, all equal, all 0, large ones; random masks, all False, all True, some rows all False.
    ``near`` are constants of the code, near which some of the large numbers are drawn.

    >>> from attnproof.symbolic.givens import boolean, sizes
    >>> (n,) = sizes("n")
    >>> Draw({"n": 2}, 1)("M", boolean(n, n)).any()
    np.False_
    """

    def __init__(self, sizes: Mapping[str, int], manner: int, near: Sequence[float] = ()) -> None:
        self.sizes, self.manner, self.near = dict(sizes), manner, near
        self.random = np.random.default_rng(manner)

    def __call__(self, name: str, given: Given) -> Any:
        """Return a NumPy value of this kind; for a function, a callable."""
        at = given_at(given, self.sizes)
        shape = lengths(at, self.sizes)
        below = int(number_of(at.below) or 0) if at.below is not None else 0
        if given.kind == "function":
            out = None if at.out is None else tuple(int(number_of(n) or 0) for n in at.out)
            return smooth(name, given.core, out, self.manner)
        if given.kind == "natural":
            near = [int(x) + k for x in self.near if 0 <= x <= LARGEST_NATURAL for k in (0, 1)]
            if near and self.manner % 6 == 5:
                return np.asarray(self.random.choice(near))
            return np.asarray(self.random.integers(4) if self.manner % 3 else self.manner)
        if given.below is not None and below < 1:
            raise NoValue(f"{name} is below {below}")
        if given.kind in ("index", "index map"):
            return np.asarray(self.random.integers(below, size=shape))
        if given.kind in ("permutation", "injection"):
            several = -(-shape[0] // below)  # more indices than ``below`` cannot be distinct
            return np.concatenate([self.random.permutation(below) for _ in range(several)])[
                : shape[0]
            ]
        if given.kind == "boolean":
            return self.mask(shape)
        return self.numbers(given.kind, shape)

    def mask(self, shape: tuple[int, ...]) -> Any:
        """Return truth values of this shape."""
        found = np.asarray(self.random.random(shape) < 0.5)
        if self.manner % 4 == 1:
            found[...] = False
        if self.manner % 4 == 2:
            found[...] = True
        if self.manner % 4 == 3 and shape:
            found[..., self.random.integers(shape[-1])] = True
            found[: shape[0] // 2] = False
        return found

    def numbers(self, kind: str, shape: tuple[int, ...]) -> Any:
        """Return real numbers of this shape, positive or at least 0 if the kind requires it."""
        manner, positive = self.manner % 6, kind == "positive"
        if manner == 1:
            found = self.random.integers(-1, 2, size=shape) / 1
        elif manner == 2:
            found = self.random.integers(1, 48, size=shape) / 16
        elif manner == 3:
            found = np.full(shape, self.random.integers(-24, 24) / 16)
        elif manner == 4:
            found = 0 * self.random.integers(-1, 2, size=shape) / 1
        elif manner == 5:
            pool = [x + step for x in (0, *self.near) for step in (-1, 0, 0.5, 1, 7)]
            found = self.random.choice(pool, size=shape)
        else:
            found = self.random.integers(-40, 40, size=shape) / 16
        if kind in SIGNED:
            found = np.abs(found) + positive * (found == 0)
        return np.asarray(found)


def smooth(
    name: str, core: tuple[int, ...], out: tuple[int, ...] | None, seed: int
) -> Callable[..., Any]:
    """Return a smooth function of arrays that reads the last ``core`` axes of each.

    Entry o of the result is Σ_k sin(a_ok x_k + b_ok) over all entries x_k that it reads, with
    separate a and b for every number of entries.  ``out`` is the shape of a result; None means the
    shape of what it reads of its first argument.
    """
    chosen: dict[tuple[int, int], Any] = {}

    def function(*arrays: Any) -> Any:
        parts = [np.asarray(a, dtype=float) for a in arrays]
        batch = np.broadcast_shapes(
            *(a.shape[: a.ndim - k] for a, k in zip(parts, core, strict=True))
        )
        shape = parts[0].shape[parts[0].ndim - core[0] :] if out is None else out
        flat = [
            np.broadcast_to(a, (*batch, *a.shape[a.ndim - k :])).reshape((*batch, -1))
            for a, k in zip(parts, core, strict=True)
        ]
        entries = np.concatenate(flat, axis=-1)
        count = (int(np.prod(shape, dtype=int)), entries.shape[-1])
        if count not in chosen:
            random = np.random.default_rng([seed, *count, *name.encode()])
            chosen[count] = random.uniform(0.5, 1.5, size=(2, *count))
        a, b = chosen[count]
        return np.sin(entries[..., None, :] * a + b).sum(-1).reshape((*batch, *shape))

    return function


# The comparison of a claim as computed by its code with its terms

TOLERANCE = 1e-9
MAX_TOLERANCE = 1e-3  # of a side's largest number: what rounding may hide for the side to count
ROUNDING = 1e-12  # relative differences below this need no further check
LARGEST_INTEGER = 2**62  # beyond it, sums of integers of 64 bits may wrap round


class NotRun(TypeError):
    """Raised if the code of a statement does not run on NumPy, or could not be compared."""


class OutOfRange(LookupError):
    """Raised if a term reads outside of an axis, or its value has not the shape it says."""


class CodeDiffers(Exception):
    """Raised with the first difference between code and term, in ``found``."""

    def __init__(self, part: str, code: str, term: str, place: tuple[int, ...] = ()) -> None:
        super().__init__(part)
        self.found = part, code, term, place


class TermValues(Evaluator):
    """Evaluates a term strictly: no reads out of range, and every value has its term's shape.

    Quotients are computed by division and not by multiplication with an inverse, as in code.  Sums
    over the outcomes of a probability space are plain sums, here and in the code.
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
            raise OutOfRange(f"no value of shape {term.shape}")
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

    def inside(self, t: Term, axis: int, places: Any) -> None:
        length, at = self.length(t.args[0].shape[axis]), np.asarray(places)
        if np.any((at < 0) | (at >= length)):
            ends = isinstance(places, list)
            what = f"entries {places[0]} to {places[1]}" if ends else f"entry {places}"
            raise OutOfRange(f"no value: it reads {what} of an axis of length {length}")

    def op_space(self, t: Term) -> Any:
        return self.constant(self.length(t))

    def averaged(self, total: Any, axis: Term) -> Any:
        del axis
        return total

    @property
    def largest(self) -> float:
        """The largest absolute value among all finite intermediate numbers, at least 1."""
        numbers = (v for v in map(np.asarray, self.known.values()) if v.dtype.kind in "fiu")
        sizes = (np.max(np.abs(v[np.isfinite(v)]), initial=1.0) for v in numbers)
        return float(max(sizes, default=1.0))


def sides(claim: Claim) -> Iterator[tuple[str, Term]]:
    """Yield every term of a claim with the name of its part."""
    parts = {
        "left side": claim.left,
        "right side": claim.right,
        "last number": claim.apart,
        "witness": claim.witness,
    }
    steps = {f"step {k + 1}": link.term for k, link in enumerate(claim.links)}
    steps |= {f"array {k + 1} of free_of": t for k, t in enumerate(claim.free_of)}
    yield from ((part, t) for part, t in {**parts, **steps}.items() if t is not None)


def _values_of(said: ConcreteClaim) -> dict[str, Any]:
    """Return every value of a claim as run, under the same names."""
    parts = {
        "left side": said.left,
        "right side": said.right,
        "last number": said.apart,
        "witness": said.witness,
    }
    found = {part: value for part, value in parts.items() if value is not None}
    found |= {f"step {k + 1}": value for k, (_, value) in enumerate(said.links)}
    return found | {f"array {k + 1} of free_of": v for k, v in enumerate(said.free_of)}


def bound_variables(claim: Claim, said: ConcreteClaim) -> Iterator[tuple[Term, Any]]:
    """Yield the variables that a claim binds, as terms and values, the outermost first."""
    for (name, given), variable in zip(claim.variables, said.variables, strict=False):
        yield given.named(name).term, variable.value
    if claim.variable is not None and said.unknown is not None:
        yield claim.variable, said.unknown.value


def compared(claim: Claim, said: ConcreteClaim, read: TermValues) -> Iterator[str]:
    """Yield the parts compared at finite numbers; raise :class:`CodeDiffers` if any differ."""
    binders = [given.kind for _, given in claim.variables]
    own = [variable.given.kind for variable in said.variables]
    if binders != own:
        raise CodeDiffers("the variables", ", ".join(own) or "none", ", ".join(binders) or "none")
    if claim.relation != said.relation:
        raise CodeDiffers("the relation", said.relation, claim.relation)
    if said.inner is not None and said.inner.relation != claim.inner:
        raise CodeDiffers("the relation inside of exists", said.inner.relation, claim.inner)
    terms, values = dict(sides(claim)), _values_of(said)
    equation, last = claim.relation == "=", f"step {len(claim.links)}"
    ends_right = terms.get(last) is claim.right and values.get(last) is said.right
    for part in dict.fromkeys((*terms, *values)):
        if part not in terms or part not in values:
            missing = "nothing"
            raise CodeDiffers(
                part, input_text(values.get(part, missing)), repr(terms.get(part, missing))
            )
        if part == last and ends_right:
            continue  # the right side, which was compared already
        if _compared_side(part, terms[part], values[part], read, exact=equation):
            yield from (part, last) if part == "right side" and ends_right else (part,)


def _compared_side(part: str, term: Term, value: Any, read: TermValues, *, exact: bool) -> bool:
    """Return whether this side was compared: all known, with numbers larger than rounding.

    Raises :class:`CodeDiffers` if code and term differ.
    """
    here = np.asarray(value)
    if here.dtype.kind not in "bfiu":
        raise NotRun(
            f"the {part} has entries that are not real numbers when run on numpy arrays: "
            f"{type(value).__name__} of {here.dtype}"
        )
    try:
        there = np.asarray(read(term))
    except OutOfRange as nothing:
        raise CodeDiffers(part, input_text(value), str(nothing)) from None
    if here.shape != there.shape:
        fits = not exact and np.broadcast_shapes(here.shape, there.shape) == there.shape
        if not fits:
            raise CodeDiffers(
                part, f"an array of shape {here.shape}", f"one of shape {there.shape}"
            )
        here = np.broadcast_to(here, there.shape)
    here, there = here.astype(float), there.astype(float)
    known = np.isfinite(there) | (~np.isnan(there) & (not term.finite))
    met = bool(np.isfinite(there).any() and known.all())
    same = (here == there) | (np.isnan(there) & (np.isnan(here) | _divides_integers(term)))
    if same.all():
        return met
    gap = np.abs(here - there)
    off = ~same & ~(gap <= ROUNDING * np.abs(there))
    if off.any():
        room = TOLERANCE * read.largest
        off = ~same & ~(gap <= room)
        met = met and bool(room <= MAX_TOLERANCE * np.max(np.abs(there[np.isfinite(there)])))
    if off.any() and read.largest >= LARGEST_INTEGER and _has_integers(term):
        return False  # NumPy's integers may have wrapped round
    if off.any():
        place = tuple(int(k) for k in np.argwhere(off)[0])
        raise CodeDiffers(part, _number(here[place]), _number(there[place]), place)
    return met


def _has_integers(term: Term) -> bool:
    """Whether NumPy may compute with integers: naturals, indices, maps and places of an axis."""
    parts = (t for t in postorder(term) if t.op in ("var", "index", "arange"))
    return any(t.op != "var" or t.args or t.data[1] == "natural" for t in parts)


def _divides_integers(term: Term) -> bool:
    """Whether integers are divided with a rest: NumPy gives 0 where an integer divisor is 0."""
    divided = (t for t in postorder(term) if t.op in ("floor_divide", "remainder"))
    return any(is_whole(t.args[1]) for t in divided)


def input_text(value: Any) -> str:
    """Return an input as one line of text."""
    if callable(value):
        return "a smooth function"
    array = np.asarray(value)
    if array.dtype.kind not in "bfiu":
        return repr(value)
    return np.array2string(array, separator=", ", precision=6, threshold=24).replace("\n", "")


def _number(value: Any) -> str:
    return f"{value:.9g}"
