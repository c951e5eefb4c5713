"""Inputs made by attnproof for code that does not make them, and what they leave open about it.

A function that rotates vectors by a table is given a table made here, and attention that takes its
mask as an argument is given one made here.  What the table or the mask does is not a property of
the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod

import torch
from torch import Tensor

from attnproof.theorems.definitions.positions import published_slopes

from ..signatures.signature import Argument, Signature
from ..subjects import Subject
from .masks import all_visible_mask
from .roles import MASKS, ORDINARY_ID, PLACES, ROTATED, bounds, role

ALL_KEYS = "{} shows every key"
# Contents of arrays that say nothing of the tokens, see :func:`plain_input`.
CONTENTS = {
    "ids": "all of {} are equal",
    "documents": "each row of {} is one document, except in documents-apart",
    "index": "all of {} are 0",
    "lengths": "{} says that no row is padded",
    "bounds": "{} says that sequences are equally long",
    **dict.fromkeys(MASKS, ALL_KEYS),
}
CONSTANT = "{} is the same for each row, token and pair"
SLOPES = re.compile(r"(alibi_)?slopes")
PUBLISHED = "{} are as published for ALiBi"
GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are distinct and fill the unit interval
ZERO, ONE = "all of {} are 0", "all of {} are 1"


def shape_only_contents(one: Argument) -> str:
    """Describe any array but positions that code of lengths alone is given."""
    if role(one) in ROTATED:
        return "{} is one vector for all tokens, chosen here"
    return "" if role(one) in PLACES else ZERO


def supplied_values(
    signature: Signature, others: Callable[[Argument], str] = lambda _: ""
) -> dict[str, str]:
    """Describe, under "values", the arrays that are made only for their shapes.

    Every verdict is about these values only.  ``others`` returns words for an array that is not in
    :data:`CONTENTS`, "" for one that a law draws.

    >>> from ..signatures.grammar import parse
    >>> supplied_values(parse("segment_ids: B n ids -> B n n keep"))
    {'values': 'all of segment_ids are equal'}
    >>> supplied_values(parse("x: B n E tokens -> B n E"))
    {}
    >>> line = parse("scores: B H r n constant, query: B H r 8 -> B H r n")
    >>> supplied_values(line, shape_only_contents)
    {'values': 'all of scores are 0; query is one vector for all tokens, chosen here'}
    """
    told = [
        held
        for one in signature.arrays
        if (held := contents_of(one) or others(one).format(one.name))
    ]
    return {"values": "; ".join(told)} if told else {}


def contents_of(one: Argument) -> str:
    """Return what an array of :data:`CONTENTS` holds, else "".  A query mask hides no key.

    >>> from ..signatures.grammar import parse
    >>> line = parse("mask: B r n keep, q_mask: B r keep -> B r n keep")
    >>> [contents_of(one) for one in line.arrays]
    ['mask shows every key', 'q_mask counts every query']
    """
    held = CONTENTS.get(role(one), "")
    along_queries = "r" in one.letters and "n" not in one.letters
    return ("{} counts every query" if held == ALL_KEYS and along_queries else held).format(
        one.name
    )


def plain_input(one: Argument, lengths: Mapping[str, int], like: Tensor) -> Tensor | None:
    """Return an array that holds what :data:`CONTENTS` says of its role; None for other roles."""
    shape, device = one.shape(lengths), like.device
    match role(one):
        case "bounds":
            return bounds(one, lengths, like)
        case "lengths":
            return torch.full(shape, lengths["n"], device=device)
        case "ids":
            return torch.full(shape, ORDINARY_ID, device=device)
        case "index" | "documents":
            return torch.zeros(shape, dtype=torch.long, device=device)
        case kind if kind in MASKS:
            return all_visible_mask(one, lengths, like)
    return None


def zeros_to(tokens: object) -> str:
    """State how fewer tokens than code takes are made as many."""
    return f"n tokens are padded with zeros to {tokens}"


def copies_to(tokens: object) -> str:
    """State how tokens are made as many as code takes multiples of."""
    return f"n tokens are repeated until they are {tokens}"


def constants(signature: Signature) -> list[Argument]:
    """Return the arrays that are the same for each row, token and pair."""
    return [one for one in signature.arrays if role(one) == "constant"]


def _is_slopes(one: Argument) -> bool:
    """Whether an array holds a slope for each head, by its name."""
    return bool(SLOPES.fullmatch(one.name)) and len(one.axes or ()) == 1


def words_of_constant(one: Argument) -> str:
    """State what an array holds that is made here and is the same for all tokens."""
    return (PUBLISHED if _is_slopes(one) else CONSTANT).format(one.name)


def constant(one: Argument, letters: str, lengths: Mapping[str, int], like: Tensor) -> Tensor:
    """Return an array that differs only along numbered axes and those of these letters."""
    shape = one.shape(lengths)
    if _is_slopes(one):
        return like.new_tensor(published_slopes(shape[0]))
    own = zip(shape, one.axes or (), strict=True)
    return spread([n if {*axis.letters} <= {*letters} else 1 for n, axis in own], like).expand(
        shape
    )


def spread(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return distinct numbers between −1 and 1, the same at every call."""
    steps = torch.arange(prod(shape), dtype=torch.float64, device=like.device) * GOLDEN
    return (2 * steps.frac() - 1).reshape(tuple(shape)).to(like)


def image_layout(signature: Signature) -> dict[str, str]:
    """Return, under "image", how tokens fill an image; empty if there is no image.

    >>> from ..signatures.grammar import parse
    >>> image_layout(parse("x: B C h w -> B C h w"))["image"]
    'tokens fill an image row by row, as nearly square as possible'
    """
    sides = dict(signature.sizes)
    if {"h", "w"} <= sides.keys():
        return {"image": f"tokens fill a grid of {sides['h']} by {sides['w']} row by row"}
    there = any("h" in one.letters for one in (*signature.arrays, *signature.array_results))
    return (
        {"image": "tokens fill an image row by row, as nearly square as possible"} if there else {}
    )


ANGLE_LAWS = (
    "width-as-declared",
    "frequencies-as-declared",
    "length-as-declared",
    "follows-its-arguments",
    "neighbours-differ",
    "angles-are-exact",
    "survives-casting",
)
NORM_LAWS = ("norm", "identity-at-zero", "length-as-declared")
CONTEXT_LAWS = ("causal", "past-is-used", "window-as-declared", "alignment", "step-by-step")
PADDING_LAWS = ("hidden-keys-do-nothing", "padding-does-nothing")
MASK_LAWS = ("causal", "past-is-used", "window-as-declared")


def call_and_contents(more: str, signature: Signature) -> str:
    """Return how code is called, in words, with what the arrays made for it hold."""
    return "; ".join(filter(None, (more, *supplied_values(signature).values())))


def why_not_applicable(subject: Subject, law: str) -> str:
    """Return why a law does not apply to code that is given what it is about, else "".

    >>> from attnproof.programs.subjects import Rotary
    >>> made = {"angles": "cos, sin of base 10000"}
    >>> rotating = Rotary(name="f", rotate=lambda x, p: x, width=4, given=made)
    >>> why_not_applicable(rotating, "angles-are-exact")
    'the code is given its angles (cos, sin of base 10000); ask what makes them'
    >>> why_not_applicable(rotating, "norm")
    ''
    """
    start = subject.given.get("start", "")
    if start and law == "last-rows":
        return (
            f"the position of the first query is given by {start}, which the call leaves out: "
            f"--call with {start} = (n - r) checks it"
        )
    rows = subject.given.get("rows", "")
    if rows and law == "rows-of-batch-apart":
        return f"the code takes exactly {rows} rows, which are given the same tokens"
    if law in CONTEXT_LAWS and "context" in subject.given:
        return "keys and values come from a context, which is drawn here: no token reads another"
    keys = subject.given.get("keys", "")
    if keys and law in NORM_LAWS:
        return f"keys are rotated with {keys}: a factor on queries is undone on keys"
    made = subject.given.get("angles", "")
    if not made or law not in ANGLE_LAWS:
        return ""
    return f"the code is given its angles ({made}); ask what makes them"


def mask_prefix(subject: Subject, law: str) -> str:
    """Return what precedes the findings of a law of masks if the mask is made here, else "".

    >>> from attnproof.programs.subjects import Attention
    >>> made = Attention(name="f", layer=lambda x: x, given={"mask": "a causal mask"})
    >>> mask_prefix(made, "causal")
    'under the mask it is given (a causal mask): '
    """
    made = subject.given.get("mask", "")
    return f"under the mask it is given ({made}): " if made and law in MASK_LAWS else ""


def why_inconclusive(subject: Subject, law: str) -> str:
    """Return why a broken law may not be a fault of the code; "" if it is one.

    >>> from attnproof.programs.subjects import Attention
    >>> made = Attention(name="f", layer=lambda x: x, given={"constants": "adj"})
    >>> why_inconclusive(made, "padding-does-nothing")
    'adj is made here, and treats padding like every other token'
    """
    made = subject.given.get("constants", "")
    told = f"{made} is made here, and treats padding like every other token"
    return told if made and law in PADDING_LAWS else ""
