"""Code that takes only multiples of some number of tokens.

It is traced on blocks of tokens: their axis is two axes, the symbolic number of blocks and the
literal length of one.  So every quotient by that length that the code computes is a length itself.
Laws are stated for arrays of tokens, as many as all blocks have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import mul, num, number_of, split_integer

from .calls import Call

WITHIN = "block"  # the letter of the axis of tokens within a block


def in_blocks(call: Call, length: int) -> Call:
    """Return a call on tokens as a call on blocks of so many tokens; itself if the length is 1."""
    if length == 1:
        return call
    code = call.code
    return replace(
        call,
        code=lambda *blocks: _split(code(*map(_joined, blocks)), length),
        inputs=tuple(_split(x, length) for x in call.inputs),
        letters=tuple(told.replace("n", f"n {WITHIN}") for told in call.letters),
        sources=(*call.sources, code),
    )


def on_tokens(call: Call, blocks: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the inputs of such a call as one of tokens, as laws make the call."""
    length = block_of(call)
    if length == 1:
        return blocks
    return lambda *tokens: _joined(blocks(*(_split(x, length) for x in tokens)))


def block_parts(left: Any, right: Any, length: int) -> list[tuple[Any, Any]]:
    """Return both sides of an equation for all whole blocks, and for the part of a block behind."""
    if length == 1 or left.ndim < 2 or left.axes[:2] != right.axes[:2]:
        return [(left, right)]
    blocks, part = split_integer(left.axes[1], num(length))
    cut = Array(mul(num(length), blocks))
    if number_of(part) == 0 or number_of(blocks) == 0:
        return [(left, right)]
    return [(left[:, :cut], right[:, :cut]), (left[:, cut:], right[:, cut:])]


def block_of(call: Call) -> int:
    """Return of how many tokens a call takes multiples; 1 if of any number."""
    letters, x = call.letters[:1], call.inputs[:1]
    found = dict(zip(letters[0].split(), x[0].shape, strict=True)) if letters else {}
    return found.get(WITHIN, 1)


def _split(x: Any, length: int) -> Any:
    """Return (B, tokens, ..) as (B, blocks, tokens of a block, ..)."""
    return array_namespace(x).reshape(x, (x.shape[0], -1, length, *x.shape[2:]))


def _joined(x: Any) -> Any:
    """Return (B, blocks, tokens of a block, ..) as (B, tokens, ..)."""
    return array_namespace(x).reshape(x, (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]))
