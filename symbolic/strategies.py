"""Ways to a normal form: how axes are taken apart, and which equations are at hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import lcm

from .facts import Equation, turned
from .normal_form.normaliser import Normaliser, Split
from .normal_form.polynomial import Monomial, expand
from .scalars import integer, mul, num, number_of
from .terms import Term, postorder
from .unrolling import USUAL, longest_written_out

__all__ = ["NotProved", "angle_units", "normalisers", "split_options"]


class NotProved(Exception):
    """The two sides have different normal forms; the text shows them."""

    def __init__(self, text: str, forms: tuple[Term, ...] = ()) -> None:
        super().__init__(text)
        self.forms = forms


def normalisers(left: Term, right: Term, assume: tuple[Equation, ...]) -> Iterator[Normaliser]:
    """Ways to reach a normal form.

    Axes are split one way or another, maxima opened or not; first with nothing at hand, then
    with one equation, read in one direction or the other, and then with all.
    """
    options = split_options(left, right)
    opened = any(p.op == "maximum" for side in (left, right) for p in postorder(side))
    single = [(way,) for e in assume for way in (e, turned(e)) if way.left.op != "eye"]
    at_hand = [(), *single, *([assume] if len(assume) > 1 else [])]
    for choices in (False, True) if opened else (False,):
        for facts in at_hand:
            for splits in options:
                yield Normaliser(splits, facts, choices=choices)


def angle_units(forms: tuple[Term, ...]) -> dict[Monomial, int]:
    """In how many parts the angles of two forms must be counted to be compared."""
    parts: dict[Monomial, int] = {}
    for t in (p for form in forms for p in postorder(form)):
        if t.op in ("cos", "sin") and not t.loose:
            for monomial, c in expand(t.args[0]).items():
                parts[monomial] = lcm(parts.get(monomial, 1), c.denominator)
    return {monomial: count for monomial, count in parts.items() if count > 1}


def split_options(*terms: Term) -> list[dict[Term, Split]]:
    """Ways to take composite axes apart that the terms themselves use, at most six."""
    found: dict[Term, dict[Split, None]] = {}

    def note(length: Term, kind: str, size: Term) -> None:
        if _is_kept_whole(length) and size is not length:
            found.setdefault(length, {}).setdefault((kind, size))

    for part in {p: None for t in terms for p in postorder(t)}:
        if part.op == "reshape":
            for before, after in part.data:
                for axes, shape in ((before, part.args[0].shape), (after, part.shape)):
                    lengths = [shape[axis] for axis in axes]
                    while len(lengths) > 1:
                        note(integer(mul(*lengths)), "digits", lengths.pop())
        elif part.op == "slice":
            axis, step = part.data
            length = part.args[0].shape[axis]
            start = part.args[1]
            if step > 1:
                note(length, "digits", num(step))
            else:
                note(length, "cut", part.shape[axis] if number_of(start) == 0 else start)
        elif part.op == "concat":
            length = part.shape[part.data]
            note(length, "cut", part.args[0].shape[part.data])
    choices = [[(length, split) for split in splits] for length, splits in found.items()]
    return [dict(choice) for choice in list(product(*choices))[:6]]


def _is_kept_whole(length: Term) -> bool:
    """Whether an axis is no literal one; of a program, whether it is too long to be written out."""
    count, most = number_of(length), longest_written_out()
    return count is None or (most < USUAL and count > most)
