"""Identify a layer that takes only tokens: its mask, its use of positions, and randomness.

The use of positions is tested in float64: the change of the last output under a permutation of the
other tokens is compared with what rounding explains, first at the given weights, then at larger
ones, since the small weights of a fresh model hide the effect.  If no effect is found, that is all
that is reported.

A token that is not read may still change an output by rounding: the matrix product of an expert
rounds differently when another token joins its batch.  Such a change shrinks with the unit of the
format, and what a token really adds does not: a change as small as rounding is made in float64
again, and is no influence if the roundings of float64 alone explain it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..calls.masks import changes
from ..execution.calling import arranged, drawn_since, evaluating, random_states
from ..execution.draw import Draw
from ..execution.response import NotDeterministic, Watching, WithFloat64, allowance, unit_of
from ..finding import Identity, Part, format_number
from ..subjects import Attention, Layer
from .masks import Pattern, pattern

T = TypeVar("T")
TOKENS, MORE_TOKENS = 12, 40  # the second if a mask hides later or distant tokens
QUICK_SECONDS = 0.05  # that the small call may take for the large one to be made
PLAIN = ("none", "causal")  # patterns in which no weight is missing
SHIFT = 5  # places by which tokens are moved
WEIGHT_FACTORS = (1.0, 4.0, 20.0)  # factors on weights and tokens


def identify_layer(code: Layer, draw: Draw) -> Identity:
    """Identify the mask of a map of tokens, and whether it uses positions."""
    with torch.no_grad(), evaluating(code):
        whole = Attention(
            name=code.name,
            only_length=code.only_length,
            layer=code.call,
            embed=code.embed,
            module=code.module,
            given=code.given,
            positional=code.positional,
        )
        parts = tuple(one for one in layer_parts(whole, draw) if one.name != "scale")
    return Identity("layer", parts)


def layer_parts(code: Attention, draw: Draw, *, short: bool = False) -> Iterator[Part]:
    """Yield mask, positions and randomness of a layer.

    ``short``: omit what its inner call has already shown.
    """
    assert code.layer is not None  # checked by the caller
    tokens = _count(code)
    x = draw.normal(1, tokens, code.embed, salt=31)
    layer = code.layer
    repeated = repetition(lambda: layer(x))
    if repeated.value:
        yield repeated
        return
    start = time.thread_time()  # independent of the load of the machine
    rule, many = _mask_pattern(code, draw, tokens), tokens
    if time.thread_time() - start < QUICK_SECONDS and rule.name in ("causal", "window"):
        with suppress(Exception):  # code may not take so many tokens
            rule, many = _mask_pattern(code, draw, MORE_TOKENS), MORE_TOKENS
    told = f"a change of one token, for each of {many} tokens"
    if not short:
        yield Part(
            "scale",
            None,
            "scale not known",
            "only the layer as a whole can be called",
            certain=False,
        )
        yield _mask(code, rule, told)
    yield _positions(code, rule, draw, short=short)
    if code.whole_layer is not None or code.hide is not None:
        yield _absolute(code, draw)
    if code.hide is not None:
        yield from _front_padding(code, draw)


def _count(code: Attention) -> int:
    """How many tokens are given, of code that takes only few."""
    return min(TOKENS, code.only_length or TOKENS)


def repetition(call: Callable[[], Tensor]) -> Part:
    """Whether two equal calls differ: by random numbers, or by what the first one left."""
    before = random_states()
    first, second = (call().double() for _ in range(2))
    off = float((first - second).abs().nan_to_num().max())
    seen = f"two calls differ by {format_number(off)}"
    if off and not drawn_since(before):
        return Part("earlier calls", True, "a result that depends on earlier calls", seen)
    words = "random in evaluation (dropout stays on)" if off else ""
    return Part("dropout in evaluation", off != 0, words, seen)


def _mask_pattern(code: Attention, draw: Draw, tokens: int) -> Pattern:
    """The mask pattern of the layer, from what a change of one token changes.

    Weights may be too small to be seen for some tokens: if the pattern is no plain one, other
    tokens are tried as well, and smaller ones.
    """
    seen = _seen(code, draw, tokens, 31)
    for salt, size in ((431, 1.0), (433, 0.125)):
        if pattern(seen).name in PLAIN:
            break
        seen |= _seen(code, draw, tokens, salt, size)
    return pattern(seen)


def _seen(code: Attention, draw: Draw, tokens: int, salt: int, size: float = 1.0) -> Tensor:
    """Whether a change of each token changes each output (r, n) by more than rounding explains."""
    assert code.layer is not None  # checked by the caller
    x = draw.normal(1, tokens, code.embed, salt=salt) * size
    other = x + draw.normal(code.embed, salt=salt + 1) * 4 * size
    found = changes(code.layer, x, other, range(tokens))
    seen = found > 0
    small = seen & (found <= _of_roundings(code.layer, x, draw))
    if bool(small.any()):
        with suppress(Exception), arranged(code, torch.float64), WithFloat64():
            # code of one dtype may refuse; its influences then stay as they were seen
            x, other = x.double(), other.double()
            allowed = _of_roundings(code.layer, x, draw.cast(torch.float64))
            seen &= ~small | (changes(code.layer, x, other, range(tokens)) > allowed)
    return seen


def _of_roundings(call: Callable[[Tensor], Tensor], x: Tensor, draw: Draw) -> float:
    """How far the roundings of a call may move its result if each has the unit of the draw.

    Code that rounds some numbers more coarsely is allowed no more, and neither is code that
    enlarges what was rounded: a smaller bound leaves more influences as they were seen.
    """
    plain = allowance(call, x, draw=draw, moved=0)
    return plain.value * min(1.0, unit_of(draw.dtype) / plain.unit)


def _front_padding(code: Attention, draw: Draw) -> Iterator[Part]:
    """Yield a part if padding in front of the tokens, which sees no key, becomes NaN."""
    assert code.hide is not None  # checked by the caller
    x = draw.normal(1, TOKENS, code.embed, salt=35)
    keep = torch.ones(1, TOKENS, dtype=torch.bool, device=draw.device)
    keep[:, :SHIFT] = False
    try:
        out = code.hide(x, keep)
    except Exception:  # noqa: BLE001 (it may not accept such padding)
        return
    if out.shape[:2] == x.shape[:2] and bool(out[:, :SHIFT].isnan().any()):
        words = "padding before the tokens becomes NaN, which a next layer may spread"
        yield Part("padding in front", "NaN", words, f"the first {SHIFT} of {TOKENS} tokens hidden")


def _mask(code: Attention, rule: Pattern, told: str) -> Part:
    """The part for the mask, which also says if the mask was given to the code."""
    value: dict[str, Any] = {
        "rule": rule.name,
        "before": rule.before,
        "after": rule.after,
        "ahead": rule.ahead,
    }
    if "context" in code.given:
        alone = rule.name == "empty" or (rule.before, rule.after) == (0, 0)
        more = " alone" if alone else ", and other tokens"
        return Part(
            "mask", {"rule": "context"}, f"cross-attention: a token reads the context{more}", told
        )
    words, sure = rule.words, rule.name != "irregular"
    made, left_out = code.given.get("mask", ""), code.given.get("no mask", "")
    if made:
        words, sure = f"{words}, by the mask it is given", False
        value["given"], told = made, f"{told}; it was given {made}"
    elif left_out and rule.name == "none":
        words = f"no mask of its own (it takes {left_out}, and was given none)"
        value["given"] = None
    elif left_out:
        words, value["given"] = f"{words} where it is given no {left_out}", None
    return Part("mask", value, words, told, certain=sure)


def _in_float64(code: Attention, draw: Draw, test: Callable[[Draw, float], T]) -> T:
    """Run a test in float64, or in the dtype of the draw if the code accepts only that."""
    try:
        with arranged(code, torch.float64) as floor:
            return test(draw.cast(torch.float64), floor)
    except NotDeterministic:
        raise
    except Exception:  # noqa: BLE001 (code of one dtype)
        with arranged(code, draw.dtype) as floor:
            return test(draw, floor)


def _positions(code: Attention, rule: Pattern, draw: Draw, *, short: bool) -> Part:
    """Whether the last output changes if the other tokens are permuted.

    Masks in stacked layers also reveal the order of tokens, and so do windows.
    """
    try:
        looks, seen, alone = _in_float64(
            code, draw, lambda own, floor: _test_positions(code, own, floor)
        )
    except NotDeterministic as error:
        return Part("positions of tokens", None, "", str(error), certain=False)
    if looks:
        plain = rule.name == "none" or (rule.name == "causal" and alone)
        words = "looks at positions" if plain else "looks at the order of tokens"
    elif looks is None:
        words = "positions not seen at these weights" if code.module else "positions not seen"
    else:
        words = "without positions"
    return Part(
        "positions of tokens",
        looks,
        "" if short and not looks else words,
        seen,
        certain=looks is not None,
    )


def _absolute(code: Attention, draw: Draw) -> Part:
    """Whether the same tokens give other outputs further along, with all tokens before them hidden.

    Relative positions give equal outputs.  So does code that counts positions by its mask, in which
    case the result is undecided.
    """
    name, placed, hide = "absolute positions", code.whole_layer, code.hide

    def moved(own: Draw, floor: float) -> tuple[float, float]:
        x = draw.normal(1, TOKENS, code.embed, salt=34).to(own.dtype)
        if placed is not None:
            plain = allowance(lambda x: placed(x, 0), x, draw=own, floor=floor)
            here = placed(x, SHIFT)
        else:
            assert hide is not None  # checked by the caller
            keep = torch.ones(1, TOKENS, dtype=torch.bool, device=draw.device)
            plain = allowance(lambda x: hide(x, keep), x, draw=own, floor=floor)
            more = torch.cat((x[:, :SHIFT].flip(1), x), 1)
            here = hide(more, torch.cat((~keep[:, :SHIFT], keep), 1))[:, SHIFT:]
        return float((here - plain.output).abs().max()), plain(places=TOKENS + SHIFT)

    try:
        off, allowed = _in_float64(code, draw, moved)
    except Exception as error:  # noqa: BLE001 (it may not accept such a call)
        return Part(name, None, "", str(error), certain=False)
    way = "" if placed is not None else " behind hidden tokens"
    seen = f"the same tokens {SHIFT} places further along{way} differ by {off:.1g}"
    if not math.isfinite(off):
        return Part(name, None, "", seen, certain=False)
    if off > allowed:
        return Part(name, True, "", f"{seen}; rounding explains {allowed:.1g}")
    sure = placed is not None
    return Part(name, False if sure else None, "", seen, certain=sure)


def _test_positions(code: Attention, draw: Draw, floor: float) -> tuple[bool | None, str, bool]:
    """Return True, False (bitwise unchanged) or None (within rounding), and the evidence.

    The last entry says whether one call computes a single softmax.  Weights are left enlarged, and
    the caller restores them.
    """
    assert code.layer is not None  # checked by the caller
    layer = code.layer
    tokens = _count(code)
    last = torch.tensor([tokens - 1], device=draw.device)
    order = torch.cat((draw.permutation(tokens - 1, salt=33), last))
    x = draw.normal(1, tokens, code.embed, salt=31)
    with _Softmaxes() as counted:
        layer(x)
    before, offs = 1.0, []
    for factor in WEIGHT_FACTORS:
        for one in code.module.parameters() if code.module is not None else ():
            if one.dim() > 1:
                one.data = one.data * (factor / before)
        before = factor
        plain = allowance(layer, factor * x, draw=draw, floor=floor)
        off = float((layer(factor * x[:, order])[:, -1] - plain.output[:, -1]).abs().max())
        times = f", at {factor:g} times the weights and tokens" if factor > 1 else ""
        if not math.isfinite(off):
            break
        if off > plain():
            return (
                True,
                (
                    f"with the other tokens permuted the last output changes by {off:.1g}; "
                    f"rounding explains {plain():.1g}{times}"
                ),
                counted.many == 1,
            )
        offs.append(off)
    if offs and not any(offs):
        other = torch.cat((draw.normal(1, tokens - 1, code.embed, salt=35).to(x), x[:, -1:]), 1)
        if torch.equal(layer(other)[:, -1], layer(x)[:, -1]):
            return None, "the last output reads no other token, so that no order is visible", False
        return (
            False,
            "with the other tokens permuted the last output is unchanged bit for bit",
            False,
        )
    if not offs:
        return None, "the last output is not finite", False
    seen = (
        f"with the other tokens permuted the last output changes by {offs[0]:.1g}, and at "
        f"{WEIGHT_FACTORS[len(offs) - 1]:g} times the weights and tokens by {offs[-1]:.1g}: "
        "rounding explains it"
    )
    return None, seen, False


class _Softmaxes(Watching):
    """Count the softmaxes, or fused attentions, that one call computes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.many = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.many += any(word in str(func) for word in ("softmax", "attention"))
        return func(*args, **(kwargs or {}))
