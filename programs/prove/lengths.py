"""The lengths at which code is run beside its graph: small, named in its source, in pairs, and all.

``several``: the code takes more than one array of numbers, which may be the same object.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from ..loading.source_numbers import related_numbers

Lengths = Mapping[str, int]
SMALL, MIDDLE, LONG, LONGEST = 6, 130, 1100, 1 << 14
CUTS = (65, 257)  # where small and middle lengths end
PAIRED_NUMBERS = 12  # numbers of the source that are tried in pairs


def small(letters: list[str]) -> Iterator[Lengths]:
    """Yield all combinations of lengths up to 3, and all pairs of lengths up to ``SMALL``.

    There may be too many to run.  So equal lengths come first, then those of which few are not 2.
    """
    each = sorted(itertools.product((2, 1, 3), repeat=len(letters)), key=_unusual)
    pairs = dict.fromkeys(
        tuple({**dict.fromkeys(letters, 2), one: a, other: b}.values())
        for one, other in itertools.combinations(letters, 2)
        for a, b in itertools.product(range(1, SMALL + 1), repeat=2)
        if max(a, b) > 3
    )
    few = [sizes for sizes in each if _unusual(sizes) <= 2]
    turns = itertools.zip_longest(pairs, (sizes for sizes in each if _unusual(sizes) > 2))
    for sizes in itertools.chain(few, *turns):
        if sizes is not None:
            yield dict(zip(letters, sizes, strict=True))


def _unusual(sizes: Sequence[int]) -> int:
    """Return how many lengths are not 2; none if all are equal."""
    return 0 if len(set(sizes)) == 1 else sum(n != 2 for n in sizes)


OTHER_LENGTHS = (1, 2, 3, 5)
NEIGHBOURS = (1, 0, -1)
POWERS = tuple(1 << k for k in range(3, 11))  # of two, which often have code of their own
LARGE_POWER = 512  # code that treats powers of two alike is seen at smaller ones in every way
# Other lengths, and the way of calling; repeated, so that cached results are returned.
AT_NAMED = ((1, "plain"), (2, "trained"), (2, "trained"), (2, "one"))
AT_DERIVED = ((2, "trained"), (2, "trained"), (3, ""), (2, "one"))  # for derived lengths


def _beside_numbers(numbers: Sequence[int]) -> dict[int, None]:
    return dict.fromkeys(n + d for n in numbers for d in NEIGHBOURS if 1 < n + d <= LONGEST)


def named(
    letters: list[str], numbers: Sequence[int], *, several: bool
) -> Iterator[tuple[Lengths, str]]:
    """Yield lengths that the source names, or one more or less, with the other lengths small."""
    tokens = [letter for letter in letters if letter in "rn"]
    for n in _beside_numbers(numbers):
        for others, way in AT_NAMED if several else AT_NAMED[:3]:
            yield {**dict.fromkeys(letters, others), **dict.fromkeys(tokens, n)}, way
        if len(tokens) > 1:
            yield from (
                ({**dict.fromkeys(letters, others), letter: n}, "plain")
                for letter in tokens
                for others in (1, 2)
            )
        for letter in letters:
            if letter not in tokens:
                yield {**dict.fromkeys(letters, 2), letter: n}, ""


def derived(
    letters: list[str], numbers: Sequence[int], *, several: bool
) -> Iterator[tuple[Lengths, str]]:
    """Yield lengths that are related to numbers of the source, and powers of two."""
    tokens = [letter for letter in letters if letter in "rn"]
    told, related = _beside_numbers(numbers), [*related_numbers(numbers, LONGEST)]
    for n in dict.fromkeys((*related, *POWERS)):
        if n not in told:
            ways = AT_DERIVED if several else AT_DERIVED[:3]
            yield from (
                ({letter: n if letter in tokens else others for letter in letters}, way)
                for others, way in (ways if n < LARGE_POWER or n in related else ways[:1])
            )


def pairs(
    letters: list[str], numbers: Sequence[int], *, several: bool
) -> Iterator[tuple[Lengths, str]]:
    """Yield pairs of lengths that the source names, or one more; queries and keys also as one."""
    named = [n for n in numbers if 1 < n <= LONG][:PAIRED_NUMBERS]
    tokens = [letter for letter in letters if letter in "rn"]
    groups = [tokens, *([letter] for letter in letters if letter not in tokens)]
    both = [*itertools.combinations(groups, 2), *([[tokens[:1], tokens[1:]]] * (len(tokens) > 1))]
    ways = ("plain", "one" if several else "trained")
    places = sorted(itertools.product(range(len(named)), repeat=2), key=max)  # earlier ones first
    for more, (i, j) in itertools.product((0, 1), places):
        a, b = named[i], named[j]
        for one, other in both:
            at = {
                **dict.fromkeys(letters, 2),
                **dict.fromkeys(one, a + more),
                **dict.fromkeys(other, b + more),
            }
            yield from ((at, way) for way in ways)


def _tokens_first(letters: list[str]) -> list[str]:
    return sorted(letters, key=lambda letter: letter not in "nr")


def every(letters: list[str]) -> Iterator[Lengths]:
    """Yield all middle lengths with small others; all up to ``LONG`` in random order; a few longer.

    Of three successive lengths one is small, one middle and one large, while there are such.
    """
    drawn = random.Random(0)
    for n in range(SMALL + 1, MIDDLE):
        for letter in _tokens_first(letters):
            if letter in "nr" or n < CUTS[0]:
                yield _beside(letters, letter, n)
    orders = {letter: _mixed(drawn) for letter in letters}
    for k in range(LONG):
        for letter in _tokens_first(letters):
            if letter in "nr" or k % 4 == 0:
                yield _beside(letters, letter, orders[letter][k], k)
    for power in range(11, 15):
        for letter in _tokens_first(letters):
            yield {**dict.fromkeys(letters, 1), letter: (1 << power) + 1}


def _beside(letters: list[str], letter: str, n: int, k: int = 0) -> Lengths:
    """Return one length with different others, which are fewer if it is large."""
    few = OTHER_LENGTHS if n < CUTS[0] else OTHER_LENGTHS[:2]
    return {
        c: n if c == letter else few[(n + k + place) % len(few)] for place, c in enumerate(letters)
    }


def _mixed(drawn: random.Random) -> list[int]:
    """Return each number up to LONG once, in turn from three ranges, each in random order."""
    parts = [drawn.sample(part, len(part)) for part in map(range, (1, *CUTS), (*CUTS, LONG + 1))]
    turns = itertools.zip_longest(*parts)
    return [n for turn in turns for n in turn if n is not None]
