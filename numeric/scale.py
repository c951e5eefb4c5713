"""Sizes: the lengths of the axes of a statement at each scale, by the role of each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import prod
from typing import Any

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.derive import contraction
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, free, postorder

from .distributions import NORMAL, Distribution

GIVEN_ENTRIES = 1 << 27
"""The largest array drawn for a given, in entries: 1 GiB in float64."""


class UnknownScale(ValueError):
    """There is no scale of this name."""


@dataclass(frozen=True)
class Scale:
    """Lengths for each role, largest first, the largest position, rows compared, and heads drawn.

    If a statement has more sizes of a role than there are lengths, the remaining sizes count down
    from the last.  ``spread`` is that of token features: scores of √ℓ-scaled dot products then
    spread 3, so that a few keys stand out in every row.  ``passes`` is the largest intermediate
    over tokens, in entries, that is computed in full because the compared rows need it (a mean over
    all tokens, columns of a softmax over rows): tokens are halved until it fits.  ``steps`` is the
    largest depth of a stack and the longest table computed row by row.
    """

    name: str
    lengths: dict[str, tuple[int, ...]]
    positions: int
    rows: int = 64
    heads: int = 1
    passes: int = 1 << 22
    spread: float = 1.75
    steps: int = 1_024
    distribution: Distribution = NORMAL


_LARGE = {
    "features": (64, 48, 40, 24),
    "heads": (8, 6),
    "blocks": (32, 20),
    "size": (56, 72, 28),
}
_SMALL = {"features": (8, 6, 5, 4), "heads": (3, 2), "blocks": (4, 3), "size": (7, 12, 14)}
SCALES = {
    scale.name: scale
    for scale in (
        Scale("small", {"tokens": (13, 11, 10, 9), "layers": (3, 2), **_SMALL}, positions=4_096),
        Scale(
            "default",
            {"tokens": (4_096, 2_560, 1_280, 768), "layers": (4, 3), **_LARGE},
            positions=4_096,
            heads=8,
        ),
        Scale(
            "large",
            {"tokens": (65_536, 40_960, 20_480, 8_192), "layers": (6, 5), **_LARGE},
            positions=1 << 20,
            passes=1 << 24,
            steps=2_048,
        ),
    )
}


def scale_named(name: str) -> Scale:
    """The scale with this name.  Raises :class:`UnknownScale`, naming all, for others."""
    if name not in SCALES:
        raise UnknownScale(f"scale {name!r} was asked for; there are {', '.join(SCALES)}")
    return SCALES[name]


def roles(length: Term) -> frozenset[str]:
    """The roles of the sizes in an axis length."""
    return frozenset(v.data[1] for v in free(length) if v.op == "size")


def tokens(length: Term) -> bool:
    """Whether an axis runs over tokens."""
    return "tokens" in roles(length)


def terms_of(statement: Statement) -> Iterator[Term]:
    """Yield the terms of the claims, then those of the hypotheses."""
    for claim in (*statement.claims.values(), *(law.claim for law in statement.laws)):
        parts = (claim.left, claim.right, claim.variable, claim.witness)
        yield from (part for part in parts if part is not None)
    yield from (side for pair in statement.assume for side in pair)


def depths(statement: Statement) -> frozenset[str]:
    """The sizes and natural numbers in depths of stacks and lengths of tables row by row."""
    found = frozenset[Term]().union(*map(_counted, terms_of(statement)))
    return frozenset(_name(v) for v in found if v.op in ("size", "var"))


@cache
def _counted(term: Term) -> frozenset[Term]:
    """The free variables of the depths of stacks and lengths of tables in a term."""
    stacks = (part for part in postorder(term) if part.op in ("iterate", "tabulate"))
    return frozenset[Term]().union(*(free(part.args[0]) for part in stacks))


def _uses(statement: Statement) -> Iterator[Term]:
    """Yield sizes, once for each axis of a given that they measure, then those of the claims."""
    for given in statement.givens.values():
        for length in (*given.shape, *(given.out or ()), *((given.below,) if given.below else ())):
            yield from sorted((v for v in free(length) if v.op == "size"), key=_name)
    for term in terms_of(statement):
        for part in postorder(term):
            found = set().union(*(free(length) for length in part.shape), free(part))
            yield from sorted((v for v in found if v.op == "size"), key=_name)


def _spaces(statement: Statement, sizes: dict[str, int]) -> dict[str, int]:
    """The number of outcomes of each probability space: a power of 2, so that means are exact.

    Random numbers z_1, .., z_n with given moments need more than n outcomes; at least twice as many
    are used.
    """
    lengths = [n for given in statement.givens.values() for n in given.shape]
    parts = [part for term in terms_of(statement) for part in postorder(term)]
    lengths += [n for part in parts for n in part.shape]
    found: dict[str, int] = {}
    for space in sorted({_name(n) for n in lengths if n.op == "space"}):
        widths = [
            length_value(given.shape[1], sizes)
            for given in statement.givens.values()
            if given.kind == "standard" and _name(given.shape[0]) == space
        ]
        count = 16
        while count < 2 * (max(widths, default=0) + 1) or count in found.values():
            count *= 2
        found[space] = count
    return found


def _name(size: Term) -> str:
    data: Any = size.data
    return str(data[0])


def sizes_of(
    statement: Statement, scale: Scale, too_large: Callable[[dict[str, int]], bool] | None = None
) -> dict[str, int]:
    """Choose a length for every size of a statement, all different, by role.

    Within a role, the size that measures most axes of the givens is the longest, so that keys
    outnumber queries.  A list of k different indices below n needs k < n.  Tokens are halved until
    every given fits (an array of n × n numbers is itself quadratic), and while they are
    ``too_large`` for the caller.  No size in a depth exceeds the steps of the scale.
    """
    found = list(_uses(statement))
    order: dict[str, list[str]] = {}
    for size in sorted(
        dict.fromkeys(found), key=lambda s: (-_weight(s, statement), found.index(s))
    ):
        role: str = size.data[1]
        order.setdefault(role, []).append(_name(size))
    sizes: dict[str, int] = {}
    stepped = depths(statement)
    for role, names in order.items():
        lengths = scale.lengths.get(role, scale.lengths["size"])
        for k, name in enumerate(names):
            wanted = lengths[k] if k < len(lengths) else lengths[-1]
            wanted = min(wanted, scale.steps) if name in stepped else wanted
            sizes[name] = _unlike(wanted, sizes, 1)
    _leave_room(statement, sizes)
    while _largest(statement, sizes) > GIVEN_ENTRIES or (
        too_large and too_large(sizes | _spaces(statement, sizes))
    ):
        fewer = {name: n for name, n in sizes.items() if name not in order.get("tokens", ())}
        for name in order.get("tokens", ()):
            fewer[name] = _unlike(max(2, sizes[name] // 2), fewer, 2)
        _leave_room(statement, fewer)
        if sum(fewer.values()) >= sum(sizes.values()):
            break
        sizes = fewer
    return sizes | _spaces(statement, sizes)


def _unlike(wanted: int, others: dict[str, int], least: int) -> int:
    """The number, or the next below it that no other size has, down to the least."""
    return next(n for n in count(wanted, -1) if n not in others.values() or n <= least)


def _weight(size: Term, statement: Statement) -> int:
    lengths = [n for given in statement.givens.values() for n in given.shape]
    return sum(size in free(length) for length in lengths)


def _leave_room(statement: Statement, sizes: dict[str, int]) -> None:
    """Adjust sizes so that injections fit their ranges and orthonormal columns exist."""
    pairs = [
        (given.shape[0], given.below)
        for given in statement.givens.values()
        if given.kind == "injection" and given.below is not None
    ]
    for equation in statement.assume:
        product = contraction(*equation)
        if product is not None and product.kind in ("columns", "rows"):
            rows, columns = product.first.shape
            pairs.append((columns, rows) if product.kind == "columns" else (rows, columns))
    for few, many in pairs:
        least = length_value(few, sizes)
        if many.op != "size" or least <= length_value(many, sizes):
            continue
        if few.op == "size":
            a, b = _name(few), _name(many)
            sizes[a], sizes[b] = sizes[b], sizes[a]
        else:
            others = set(sizes.values())
            sizes[_name(many)] = next(n for n in count(least + 1) if n not in others)


def _largest(statement: Statement, sizes: dict[str, int]) -> int:
    return max(
        (
            prod(length_value(n, sizes) for n in given.shape)
            for given in statement.givens.values()
            if given.kind != "function" and not any(n.op == "space" for n in given.shape)
        ),
        default=1,
    )
