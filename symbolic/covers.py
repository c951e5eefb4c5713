"""Covers: index patterns that together reach every index of an axis.

The kernel's proof by cases relies on them, so this file is trusted.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from .rules.base import Refusing, need
from .scalars import ZERO, add, always_less, integer, is_count, mul, num, number_of, subtract
from .terms import Term, opened

Cover = tuple[tuple[object, ...], ...]


@Refusing("cover")
def cover_patterns(length: Term, cover: tuple[object, ...], name: str, *of: Term) -> list[Term]:
    """Return index patterns that together reach every index below ``length``.

    Their indices are opened of the given terms, so that they occur in none of them.

    A cover is ("whole",), ("each",) for a literal length, ("digits", blocks, width, high, low)
    or ("cut", first, before, after); high, low, before and after are covers again.
    """
    kind, *rest = cover
    if kind == "whole":
        return [opened(length, name, *of)]
    if kind == "each":
        count = number_of(length)
        need(count is not None and count.denominator == 1, "not a literal length", length)
        assert count is not None
        return [num(k) for k in range(int(count))]
    a: Any = rest
    if kind == "digits":
        need(is_count(a[0]) and is_count(a[1]), "not two lengths", a[0], a[1])
        need(integer(mul(a[0], a[1])) is integer(length), "lengths differ", length)
        natural = always_less(ZERO, a[0]) and always_less(ZERO, a[1])
        need(natural, "blocks and width must be at least 1", a[0], a[1])
        high = cover_patterns(a[0], a[2], name + "h", *of)
        low = cover_patterns(a[1], a[3], name + "l", *of)
        return [integer(add(mul(h, a[1]), x)) for h, x in product(high, low)]
    need(kind == "cut", f"unknown cover {kind!r}")
    need(is_count(a[0]), "not a length", a[0])
    second = integer(subtract(length, a[0]))
    natural = always_less(num(-1), a[0]) and always_less(num(-1), second)
    need(natural, "not two parts of the axis", length, a[0])
    before = cover_patterns(a[0], a[1], name + "a", *of)
    after = cover_patterns(second, a[2], name + "b", *of)
    return before + [integer(add(a[0], k)) for k in after]
