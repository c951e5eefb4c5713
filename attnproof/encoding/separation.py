"""How an encoding is shown to tell two positions apart: only advice to the prover.

The number that ``tell`` makes of two codes is 0 if they are equal; it must be written in a form
that is visibly not 0 if the positions differ.  The author names that form, or one of the usual
forms is chosen that agrees with the number at a few points.  The kernel decides whether they are
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from random import Random
from typing import Any

from array_api_compat import array_namespace

from ..symbolic.admissible import settle
from ..symbolic.array import as_array
from ..symbolic.candidates import draw
from ..symbolic.certified_numbers import Balls, Unclear, certified_gap
from ..symbolic.claim import Claim, differ, equal
from ..symbolic.givens import Given, positions
from ..symbolic.statement import Statement
from ..symbolic.terms import free
from .base import Encoding
from .law import Answer, stated
from .names import letters

REST = {
    "others": lambda enc: _coordinates(enc, "the first position"),
    "rest": lambda enc: _coordinates(enc, "the second position"),
}  # all coordinates but one
TRIED = ((5, 2), (3, 7), (1, 4), (6, 3), (2, 9), (8, 1))  # positions at which a form must agree


def _coordinates(enc: Encoding, whose: str) -> Given:
    return replace(positions(*(enc.axes,) * bool(enc.axes)), says=f"the coordinates of {whose}")


def placed(enc: Encoding, at: Any, k: int, others: Any) -> Any:
    """Return a position: a number, or a vector with ``at`` as coordinate k."""
    if not enc.axes:
        return at
    xp = array_namespace(at)
    return xp.stack([at if axis == k else others[axis] for axis in range(enc.axes)])


def codes_differ(enc: Encoding, here: Any, there: Any, i: Any, j: Any, k: int = 0) -> Claim:
    """State that the codes differ, by the number with which the encoding tells them apart.

    If positions are vectors, their coordinates k are i and j.
    """
    own, other = enc.code(here), enc.code(there)
    gap = advice(enc.tell, own, other, k)
    form = visible(enc, gap, i, j, k)
    if form is None:
        zero = as_array(0)
        return differ(own, other, zero, ("no number that tells them apart is known", zero), zero)
    return differ(
        own,
        other,
        gap,
        ("if the codes were equal", advice(enc.tell, other, other, k)),
        ("", 0),
        form,
    )


def advice(told: Callable[..., Any], one: Any, other: Any, k: int) -> Any:
    """Return what an encoding advises for two codes; it may take the coordinate that differs."""
    return told(one, other, k) if len(signature(told).parameters) > 2 else told(one, other)


def visible(enc: Encoding, gap: Any, i: Any, j: Any, k: int = 0) -> Any:
    """Return the number in a form that is visibly not 0 for i ≠ j, or None: only advice."""
    if enc.defines("apart"):
        return advice(enc.apart, i, j, k)
    origin = array_namespace(i).zeros((max(enc.axes, 1),))
    one, zero = (enc.code(placed(enc, as_array(v), k, origin)) for v in (1, 0))
    scale = advice(enc.tell, one, zero, k)
    found = [*forms(i, j), scale * (i - j)]

    def same(_: Encoding, i: Any, j: Any, others: Any, rest: Any) -> dict[str, Claim]:
        del i, j, others, rest  # the forms contain them
        return {str(k): equal(gap, form) for k, form in enumerate(found)}

    told = {"i", "j", *REST}
    under = [name for name in enc.hypotheses() if set(letters(enc, name)) <= told]
    asked = stated(same, enc, REST, under)
    assert not isinstance(asked, Answer)
    return next((form for k, form in enumerate(found) if agree(asked, str(k))), None)


def agree(asked: Statement, says: str) -> bool:
    """Whether the two sides are equal at a few points: a guess, not a proof."""
    claim = asked.claims[says]
    assert claim.right is not None
    names = {t.data[0] for t in free(claim.left) | free(claim.right) if t.op == "size"}
    random = Random(1)
    for i, j in TRIED:
        guess = draw(asked.givens, dict.fromkeys(names, 2), random, 10)
        if guess is None:
            return False
        guess = settle(guess.with_value("i", i).with_value("j", j), asked.assume)
        read = Balls(guess.sizes, guess.values)
        try:
            if certified_gap(read(claim.left), read(claim.right)) > 0:
                return False
        except Unclear:
            return False
    return True


def forms(i: Any, j: Any) -> Iterator[Any]:
    """Yield differences of i and j that are visibly not 0."""
    xp = array_namespace(i)
    for unit in (1, -1, 2, -2):
        yield unit * xp.sin(i - j)
        yield unit * (i - j)
        yield unit * 2 * xp.cos((i + j) / 2) * xp.sin((i - j) / 2)
