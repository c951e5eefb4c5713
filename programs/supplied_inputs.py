"""Inputs made by attnproof for code that does not make them, and what they leave open about it.

A function that rotates vectors by a table is given a table made here, and attention that takes its
mask as an argument is given one made here.  What the table or the mask does is not a property of
the code.
"""

from __future__ import annotations

from collections.abc import Callable

from .roles import PLACES, ROTATED, role
from .signature import Argument, Signature
from .subjects import Subject

EVERY = "{} shows every key"
# Contents of arrays that are given to code of lengths; its call does not specify them.
HOLDS = {
    "ids": "all of {} are equal",
    "index": "all of {} are 0",
    "lengths": "{} says that no row is padded",
    "bounds": "{} says that sequences are equally long",
    "keep": EVERY,
    "hide": EVERY,
    "ones": EVERY,
    "add": EVERY,
}
ZERO, ONE = "all of {} are 0", "all of {} are 1"


def of_lengths(one: Argument) -> str:
    """Describe any array but positions that code of lengths alone is given."""
    if role(one) in ROTATED:
        return "{} is one vector for all tokens, chosen here"
    return "" if role(one) in PLACES else ZERO


def chosen(
    signature: Signature, others: Callable[[Argument], str] = lambda _: ""
) -> dict[str, str]:
    """Describe, under "values", the arrays that are made only for their shapes.

    Every verdict is about these values only.  ``others`` returns words for an array that is not in
    :data:`HOLDS`, "" for one that a law draws.

    >>> from .grammar import parse
    >>> chosen(parse("segment_ids: B n ids -> B n n keep"))
    {'values': 'all of segment_ids are equal'}
    >>> chosen(parse("x: B n E tokens -> B n E"))
    {}
    >>> chosen(parse("scores: B H r n constant, query: B H r 8 -> B H r n"), of_lengths)
    {'values': 'all of scores are 0; query is one vector for all tokens, chosen here'}
    """
    told = [
        held for one in signature.arrays if (held := held_by(one) or others(one).format(one.name))
    ]
    return {"values": "; ".join(told)} if told else {}


def held_by(one: Argument) -> str:
    """Return what an array of :data:`HOLDS` holds, else ""; a mask of queries alone hides no key.

    >>> from .grammar import parse
    >>> [held_by(one) for one in parse("mask: B r n keep, q_mask: B r keep -> B r n keep").arrays]
    ['mask shows every key', 'q_mask counts every query']
    """
    held = HOLDS.get(role(one), "")
    along_queries = "r" in one.letters and "n" not in one.letters
    return ("{} counts every query" if held == EVERY and along_queries else held).format(one.name)


def of_image(signature: Signature) -> dict[str, str]:
    """Return, under "image", how tokens fill an image; empty if there is no image.

    >>> from .grammar import parse
    >>> of_image(parse("x: B C h w -> B C h w"))["image"]
    'tokens fill an image row by row, which is as nearly square as can be'
    """
    sides = dict(signature.sizes)
    if {"h", "w"} <= sides.keys():
        return {"image": f"tokens fill a grid of {sides['h']} by {sides['w']} row by row"}
    arrays = (*signature.arrays, *(one for one in signature.results if one.axes is not None))
    there = any("h" in one.letters for one in arrays)
    return (
        {"image": "tokens fill an image row by row, which is as nearly square as can be"}
        if there
        else {}
    )


OF_ANGLES = (
    "width-as-declared",
    "frequencies-as-declared",
    "length-as-declared",
    "follows-its-arguments",
    "neighbours-differ",
    "angles-are-exact",
    "survives-casting",
)
OF_LENGTHS = ("norm", "identity-at-zero", "length-as-declared")
OF_CONTEXT = ("causal", "past-is-used", "window-as-declared", "alignment", "step-by-step")
OF_PADDING = ("hidden-keys-do-nothing", "padding-does-nothing")
OF_MASKS = ("causal", "past-is-used", "window-as-declared")


def told(more: str, signature: Signature) -> str:
    """Return how code is called, in words, with what the arrays made for it hold."""
    return "; ".join(filter(None, (more, *chosen(signature).values())))


def not_its_own(subject: Subject, law: str) -> str:
    """Return why a law does not apply to code that is given what it is about, else "".

    >>> from attnproof.programs.subjects import Rotary
    >>> made = {"angles": "cos, sin of base 10000"}
    >>> rotating = Rotary(name="f", rotate=lambda x, p: x, width=4, given=made)
    >>> not_its_own(rotating, "angles-are-exact")
    'the code is given its angles (cos, sin of base 10000); ask what makes them'
    >>> not_its_own(rotating, "norm")
    ''
    """
    start = subject.given.get("start", "")
    if start and law == "last-rows":
        return (
            f"the position of the first query is given by {start}, which the call leaves out: "
            f"--call with {start} = (n - r) asks it"
        )
    if law in OF_CONTEXT and "context" in subject.given:
        return "keys and values are of a context, which is drawn here: no token reads another"
    keys = subject.given.get("keys", "")
    if keys and law in OF_LENGTHS:
        return f"keys are rotated with {keys}: what a query is multiplied by, a key undoes"
    made = subject.given.get("angles", "")
    if not made or law not in OF_ANGLES:
        return ""
    return f"the code is given its angles ({made}); ask what makes them"


def under(subject: Subject, law: str) -> str:
    """Return what precedes the findings of a law of masks if the mask is made here, else "".

    >>> from attnproof.programs.subjects import Attention
    >>> made = Attention(name="f", layer=lambda x: x, given={"mask": "a causal mask"})
    >>> under(made, "causal")
    'under the mask it is given (a causal mask): '
    """
    made = subject.given.get("mask", "")
    return f"under the mask it is given ({made}): " if made and law in OF_MASKS else ""


def unsaid(subject: Subject, law: str) -> str:
    """Return why a broken law may not be a fault of the code; "" if it is one.

    >>> from attnproof.programs.subjects import Attention
    >>> made = Attention(name="f", layer=lambda x: x, given={"constants": "adj"})
    >>> unsaid(made, "padding-does-nothing")
    'adj is made here, and says of padding what it says of every token'
    """
    made = subject.given.get("constants", "")
    told = f"{made} is made here, and says of padding what it says of every token"
    return told if made and law in OF_PADDING else ""
