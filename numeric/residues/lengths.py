"""The sizes of an exact check, its sampled rows, and an estimate of the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.evaluate import Source, sources
from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, free, postorder

from ..row_selection import Where, few_rows
from ..scale import Scale, scale_named, sizes_of, tokens
from .residue import NoResidue
from .roots import has_root
from .towers import Tower

# The work for some rows of a term: computed entries, and matrix products

BUDGET = 1 << 22
"""The most entries computed for one side, at about 10 ns each on one core."""
MULTIPLICATIONS_PER_ENTRY = 256
"""The multiplications in a matrix product that take as long as one entry."""

ROTATION_COST, FUNCTION_COST, REFLECTION_COST = 32, 16, 64
"""The costs, in entries, of an angle multiple, an unknown function and a reflected matrix."""
ASSUMED_DEPTH = 12
"""The number of steps that a natural number or an index counts as when it is a depth."""

Wanted = tuple[int | None, ...]
"""The number of places wanted on each axis; None means all."""


def work(term: Term, sizes: Mapping[str, int], wanted: Wanted) -> int:
    """The number of entries that the walk computes for these places, each counted once."""
    return _Work(dict(sizes)).of(term, wanted)


def unselected(term: Term, sizes: Mapping[str, int], wanted: Wanted) -> int:
    """The size of the largest array over tokens of which these places need every entry."""
    reached = _Work(dict(sizes))
    reached.of(term, wanted)
    return reached.unselected


class _Work:
    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.seen: set[tuple[Term, Wanted]] = set()
        self.unselected = 0

    def length(self, n: Term) -> int:
        if any(part.op == "entry" for part in postorder(n)):  # a depth read from an array
            return ASSUMED_DEPTH
        if n.loose:
            return 1
        try:
            return length_value(n, self.sizes)
        except (KeyError, TypeError):  # a depth computed from integers
            return ASSUMED_DEPTH

    def count(self, term: Term, wanted: Wanted) -> int:
        return prod(
            self.length(n) if k is None else min(k, self.length(n))
            for n, k in zip(term.shape, wanted, strict=True)
        )

    def of(self, t: Term, wanted: Wanted) -> int:
        if (t, wanted) in self.seen:
            return 0
        self.seen.add((t, wanted))
        if t.op in ("var", "index", "num", "size"):
            drawn = t.op == "var" and t.data[1] == "orthogonal"
            return prod(self.length(n) for n in t.shape) * (REFLECTION_COST if drawn else 1)
        moved = t.op in ("named", "broadcast", "permute", "new axis")
        own = 0 if moved else self.count(t, wanted)
        if wanted == (None,) * t.ndim and any(map(tokens, t.shape)):
            self.unselected = max(self.unselected, own)
        if t.op in ("cos", "sin"):
            own *= ROTATION_COST
        if t.op == "matmul":
            own += own * self.length(t.args[0].shape[-1]) // MULTIPLICATIONS_PER_ENTRY
        if t.op in ("tabulate", "iterate"):
            return own + self._repeated(t, wanted)
        if t.op == "call":
            read = sum(self._core(arg, t.data[1]) for arg in t.args)
            made = prod(self.length(n) for n in t.shape[t.data[1] :])
            own = own * FUNCTION_COST + read * made + own * read // MULTIPLICATIONS_PER_ENTRY
        return own + sum(self.of(arg, at) for arg, at in self._inner(t, wanted))

    def _core(self, arg: Term, batch: int) -> int:
        return prod(self.length(n) for n in arg.shape[batch:])

    def _repeated(self, t: Term, wanted: Wanted) -> int:
        """The work computed row by row or layer by layer."""
        body = t.args[-1]
        if t.op == "iterate":
            start = self.of(t.args[1], (None,) * t.ndim)
            return start + self.length(t.args[0]) * self.of(body, (None,) * body.ndim)
        rows = self.length(t.shape[0]) if wanted[0] is None else wanted[0]
        return rows * self.of(body, wanted[1:])

    def _inner(self, t: Term, wanted: Wanted) -> list[tuple[Term, Wanted]]:
        """The arguments, with the number of places needed of each."""

        def asked(arg: Term, source: Source) -> int | None:
            if source == "one":
                return None if arg.op == "var" else 1  # variables are stored whole
            axis = source[0] if isinstance(source, tuple) else source
            return wanted[axis] if isinstance(axis, int) else None

        return [
            (arg, tuple(asked(arg, source) for source in places))
            for arg, places in zip(t.args, sources(t), strict=True)
            if places is not None
        ]


# The sizes of an exact check, and its sampled rows

ROWS = 64
STEPS = 64  # at most, of a stack
MOST_STEPS = 1 << 15  # positions are below a quarter of it, and none aliases


def lengths_at(statement: Statement, claim: Claim, scale: Scale, rows: int) -> dict[str, int]:
    """The sizes at a scale, with fewer tokens, or small, if the work would be too much.

    A request for more rows than the default keeps the sizes.
    """
    scale, asked = replace(scale, steps=min(scale.steps, STEPS)), dict[str, int]()

    def too_much(sizes: dict[str, int]) -> bool:
        if rows > ROWS or sizes == asked:
            return False
        asked.update(sizes)
        return _is_too_much_work(statement, claim, sizes, rows)

    found = sizes_of(statement, scale, too_much)
    if rows <= ROWS and scale.name != "small" and _is_too_much_work(statement, claim, found, rows):
        return lengths_at(statement, claim, scale_named("small"), rows)
    return found


def _is_too_much_work(statement: Statement, claim: Claim, sizes: dict[str, int], rows: int) -> bool:
    """Whether one side, of the claim or of a hypothesis, is too much work."""
    wanted = tuple(
        None if at is None else len(at.places) for at in rows_at(claim.left, sizes, rows, 0)
    )
    asked: list[tuple[Term, Wanted]] = [(side, wanted) for side in claim.sides]
    asked += [(side, (None,) * side.ndim) for pair in statement.assume for side in pair]
    return any(work(side, sizes, places) > BUDGET for side, places in asked)


def steps_apart(sizes: dict[str, int], levels: Tower) -> int:
    """A number of steps within which no index, size or position may alias."""
    needed, least = 2 * max(sizes.values(), default=1), levels.primes[0]
    if least <= needed:
        raise NoResidue(f"indices modulo {least}, where some would coincide")
    return max(needed, min(MOST_STEPS, least // 8))


def with_roots(sides: tuple[Term, ...], lengths: dict[str, int], levels: Tower) -> dict[str, int]:
    """Reduce sizes as little as possible such that every root of a size exists in all fields."""
    roots = {part.args[0] for side in sides for part in postorder(side) if part.op == "sqrt"}
    roots = {x for x in roots if all(v.op == "size" for v in free(x)) and not x.shape}
    sizes = dict(lengths)
    for root in sorted(roots, key=lambda x: x.key):
        names = sorted(str(v.data[0]) for v in free(root))
        while names and not _root_exists(root, names[0], sizes, levels):
            sizes[names[0]] -= 1
            if sizes[names[0]] < 1:
                raise NoResidue("no size has a root in these fields")
    return sizes


def _root_exists(root: Term, name: str, sizes: dict[str, int], levels: Tower) -> bool:
    """Whether the root exists at every level, and no other size is equal."""
    others = [n for other, n in sizes.items() if other != name]
    exists = all(has_root(length_value(root, sizes), p) for p in levels.primes)
    return exists and sizes[name] not in others


def rows_at(side: Term, sizes: dict[str, int], count: int, seed: int) -> Where:
    """Both ends and random places between, on the first axis that is longer than ``count``."""
    return few_rows([length_value(n, sizes) for n in side.shape], count, seed)
