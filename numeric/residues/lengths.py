"""The sizes of an exact check, and the rows that it looks at."""

from __future__ import annotations

from dataclasses import replace

import torch

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, free, postorder

from ..scale import Scale, scale_named, sizes_of
from ..walk import Rows, Where
from .residue import NoResidue
from .roots import has_root
from .towers import Tower
from .work import BUDGET, work

__all__ = ["ROWS", "lengths_at", "rows_at", "steps_apart", "with_roots"]

ROWS = 64
STEPS = 64  # of a stack
ABOVE = 1 << 15  # positions are below a quarter of it, and none aliases


def lengths_at(
    statement: Statement, claim: Claim, scale: Scale, rows: int
) -> dict[str, int]:
    """The sizes at a scale; with fewer tokens, or small, where the work would be too much.

    Who asks for more rows than usual means them at these sizes.
    """
    scale, asked = _few_steps(scale), dict[str, int]()

    def too_much(sizes: dict[str, int]) -> bool:
        if rows > ROWS or sizes == asked:
            return False
        asked.update(sizes)
        return _heavy(statement, claim, sizes, rows)

    found = sizes_of(statement, scale, too_much)
    if rows <= ROWS and scale.name != "small" and _heavy(statement, claim, found, rows):
        return lengths_at(statement, claim, scale_named("small"), rows)
    return found


def _heavy(statement: Statement, claim: Claim, sizes: dict[str, int], rows: int) -> bool:
    """Whether one side, or one of a hypothesis, is more work than there is time for."""
    wanted = tuple(
        None if at is None else len(at.places) for at in rows_at(claim.left, sizes, rows, 0)
    )
    sides = (side for side in (claim.left, claim.right) if side is not None)
    told = (side for pair in statement.assume for side in pair)
    asked = [(side, wanted) for side in sides] + [(side, (None,) * side.ndim) for side in told]
    return any(work(side, sizes, places) > BUDGET for side, places in asked)


def _few_steps(scale: Scale) -> Scale:
    return replace(scale, steps=min(scale.steps, STEPS))


def steps_apart(sizes: dict[str, int], levels: Tower) -> int:
    """A number of steps within which no index, size or position may alias."""
    needed, least = 2 * max(sizes.values(), default=1), levels.primes[0]
    if least <= needed:
        raise NoResidue(f"indices modulo {least}, where some would be the same")
    return max(needed, min(ABOVE, least // 8))


def with_roots(
    sides: tuple[Term, ...], lengths: dict[str, int], levels: Tower
) -> dict[str, int]:
    """Sizes as near as can be for which every root of a size exists in all fields."""
    roots = {part.args[0] for side in sides for part in postorder(side) if part.op == "sqrt"}
    roots = {x for x in roots if all(v.op == "size" for v in free(x)) and not x.shape}
    sizes = dict(lengths)
    for root in sorted(roots, key=lambda x: x.key):
        names = sorted(str(v.data[0]) for v in free(root))
        while names and not _settled(root, names[0], sizes, levels):
            sizes[names[0]] -= 1
            if sizes[names[0]] < 1:
                raise NoResidue("no size has a root in these fields")
    return sizes


def _settled(root: Term, name: str, sizes: dict[str, int], levels: Tower) -> bool:
    """Whether the root exists at every level, and no other size is the same."""
    others = [n for other, n in sizes.items() if other != name]
    exists = all(has_root(length_value(root, sizes), p) for p in levels.primes)
    return exists and sizes[name] not in others


def rows_at(side: Term, sizes: dict[str, int], count: int, seed: int) -> Where:
    """Both ends and random places between, on the first axis that is longer than ``count``."""
    where: list[Rows | None] = [None] * side.ndim
    for axis, n in enumerate(side.shape):
        length = length_value(n, sizes)
        if length > count:
            generator = torch.Generator().manual_seed(seed)
            inner = torch.randperm(length - 2, generator=generator)[: count - 2] + 1
            where[axis] = Rows(torch.cat((torch.tensor([0, length - 1]), inner)).sort().values)
            break
    return tuple(where)
