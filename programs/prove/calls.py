"""The calls of a subject that are traced: example inputs, symbolic axes, their letters, windows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.documents.verdict_line import Condition

from ..calls.counts import bias_of_table
from ..calls.supplied_inputs import copies_to, zeros_to
from ..subjects import Additive, Attention, Bias, Layer, Mask, Pair, Rotary, Subject, lengths_in

SHARED = "·"  # in place of B: the batch axis, of length 1, of positions shared by all rows


class CodeRaised(Exception):
    """The code raised, as it may at lengths for which it was not traced."""


@dataclass(frozen=True)
class Call:
    """A call to trace: its name in laws, the code, example inputs, and the letter of each axis.

    ``where``: the settings of the call, besides the lengths of its inputs.  ``paired``: the second
    input is rotated in the same call as the first, and laws hold for any such input.  ``pair``: the
    code as a single call of two inputs that gives both results, of which this call is the one at
    ``place`` (1: of the second input).  ``free``: letters of lengths that may be symbolic; if
    empty, those of tokens, rows and heads.  ``sources``: what the code calls, if the code itself
    does not show it.  ``masked``: the call takes a mask, so that it is traced separately.
    ``aliases``: names under which laws make the same call at other inputs.
    """

    name: str
    code: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]
    letters: tuple[str, ...]
    modules: tuple[nn.Module, ...] = ()
    where: tuple[Condition, ...] = ()
    paired: bool = False
    pair: Callable[..., tuple[Tensor, Tensor]] | None = None
    place: int = 0
    free: str = ""
    sources: tuple[Any, ...] = ()
    masked: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that laws have for the call."""
        return (self.name, *self.aliases)

    @property
    def roots(self) -> tuple[Any, ...]:
        """All objects that the call may run, in which its source is searched for."""
        return (self.code, *self.modules, *self.sources)

    def alone(self, *given: Tensor) -> Tensor:
        """Make the call as laws do, with random numbers for what is rotated beside the first input.

        Raises ``CodeRaised`` if the code raises anything.
        """
        if self.paired:
            x, *more = given
            generator = torch.Generator().manual_seed(x.numel())
            shape = list(x.shape)
            if "G" in self.letters[1]:
                shape[1] = 2 * shape[1] if self.place else -(-shape[1] // 2)
            given = (x, torch.randn(shape, generator=generator).to(x.dtype), *more)
        try:
            return self.code(*given)
        except Exception as error:
            raise CodeRaised from error


def calls_of(subject: Subject) -> tuple[Call, ...]:
    """Return the calls of this code that can be traced, or those that make a window's bias."""
    used = () if subject.module is None else (subject.module,)
    if isinstance(subject, Rotary):
        return _rotary(subject, used)
    if isinstance(subject, Attention):
        return _attention(subject, used)
    if isinstance(subject, Additive):
        x = torch.randn(3, _tokens(subject), subject.width)
        return (Call("added", subject.added, (x,), ("B n E",), used, _beside(subject)),)
    if isinstance(subject, Layer):
        x = torch.randn(3, _tokens(subject), subject.embed)
        return (Call("call", subject.call, (x,), ("B n E",), used, _beside(subject)),)
    if isinstance(subject, Bias) and subject.bias is not None:
        return (_call_of_counts("biased", subject.bias, used, _beside(subject)),)
    if isinstance(subject, Bias):
        return tuple(_windowed(subject))
    if isinstance(subject, Mask):
        return (_call_of_counts("masked", subject.mask, used, _beside(subject)),)
    if isinstance(subject, Pair):
        return _pair_calls(subject)
    return ()


def _pair_calls(subject: Pair) -> tuple[Call, ...]:
    """Return each result of both programs, on the same inputs; every length may be symbolic."""
    free = "".join(c for told in subject.letters for c in told.split() if c.isalpha())
    each = tuple(subject.module.children()) if subject.module is not None else ()
    return tuple(
        Call(name, code, subject.inputs, subject.letters, each, free=free, sources=subject.sources)
        for name, code in subject.calls.items()
    )


def _call_of_counts(
    name: str,
    made: Callable[[int, int], Tensor],
    used: tuple[nn.Module, ...],
    where: tuple[Condition, ...],
) -> Call:
    """Return code of two counts as code of two arrays with that many entries: queries, keys."""

    def call(x: Tensor, y: Tensor) -> Tensor:
        return made(x.shape[0], y.shape[0])

    return Call(name, call, (torch.randn(5), torch.randn(7)), ("r", "n"), used, where)


def _rotary(subject: Rotary, used: tuple[nn.Module, ...]) -> tuple[Call, ...]:
    heads = 1 if "H" in subject.single else max(2, subject.heads)
    rows = 1 if "B" in subject.single else 3
    x = torch.randn(rows, heads, 5, subject.width)
    p = torch.stack([torch.arange(5) + k for k in (0, 2, 7)[: 1 if subject.shared else rows]])
    letters = ("B H n D", f"{SHARED if subject.shared else 'B'} n")
    if subject.axes:
        p = torch.stack([p + k for k in range(subject.axes)], dim=-1)
        letters = (letters[0], f"{letters[1]} C")
    p = p if subject.whole else p.float()
    if subject.beside is not None:
        return _both(subject, used, x, p, letters)
    where = _beside(subject)
    if subject.running is not None:
        return (Call("running", subject.running, (x,), ("B H n D",), used, where),)
    found = [Call("rotate", subject.rotate, (x, p), letters, used, where)]
    if subject.key is not None:
        found.append(Call("key", subject.key, (x, p), letters, used, where))
    return tuple(found)


def _both(
    subject: Rotary, used: tuple[nn.Module, ...], x: Tensor, p: Tensor, letters: tuple[str, str]
) -> tuple[Call, ...]:
    """Return the calls of code that rotates queries and keys together, each beside any other."""
    made, other = subject.beside, torch.randn(x.shape)
    assert made is not None  # checked by the caller
    vectors, places = letters
    beside, where = vectors, _beside(subject)
    if subject.grouped:  # the other input has its own number of heads
        x, beside = torch.cat((x, other), 1), vectors.replace("H", "G")

    def on_start(a: Tensor, b: Tensor) -> Tensor:
        return made(a, b, torch.arange(a.shape[2]).expand(a.shape[0], a.shape[2]), 0)

    def rotated(place: int) -> Callable[..., Tensor]:
        return lambda a, b, positions: made(a, b, positions, place)

    if subject.running is not None:
        return (Call("running", on_start, (x, other), (vectors, beside), used, where, paired=True),)
    both = (vectors, beside, places)
    return tuple(
        Call(
            name,
            rotated(place),
            (*own, p),
            both,
            used,
            where,
            paired=True,
            pair=subject.pair,
            place=place,
        )
        for place, (name, own) in enumerate((("rotate", (x, other)), ("key", (other, x))))
    )


def _tokens(subject: Subject) -> int:
    """Return how many tokens the traced call has; an image has more than one row."""
    only = subject.only_length or (
        places_of(subject.module) if isinstance(subject, Attention) else 0
    )
    return only or (6 if "image" in subject.given else 5 * subject.multiple_of)


def _beside(subject: Subject, *, padded: bool = False) -> tuple[Condition, ...]:
    """Return what is passed, omitted or chosen in a call: the conditions of a proof about it.

    ``padded``: the call also receives a padding mask.
    """
    given = subject.given
    told = [*given.get("values", "").split("; "), given.get("image", ""), given.get("running", "")]
    known = given.get("mask", "")
    lengthened = (zeros_to(subject.only_length), copies_to(f"({subject.multiple_of} n)"))
    told += [
        one for one in subject.conditions if not (known and known in one) and one not in lengthened
    ]
    if "constants" in given:
        told.append(f"{given['constants']} is made here, the same for all tokens")
    if "context" in given:
        told.append("keys and values come from a context that is drawn here")
    if padded:
        told.append(given.get("padding", ""))
        return tuple(Condition(one, "where") for one in told if one)
    if given.get("mask"):
        told.append(f"the mask is {given['mask']}")
    told += given.get("full mask", "").split("; ")
    if "left out" in given:
        told.append(f"nothing is given for {given['left out']}")
    if "no mask" in given:
        told.append("no mask is given")
    return tuple(Condition(one, "where") for one in told if one)


def _attention(subject: Attention, used: tuple[nn.Module, ...]) -> tuple[Call, ...]:
    found = []
    if subject.layer is not None:
        x = torch.randn(3, _tokens(subject), subject.embed)
        found.append(Call("layer", subject.layer, (x,), ("B n E",), used, _beside(subject)))
    # lengths can only express padding at the end, and the laws are about any mask
    hide = None if "counted" in subject.given else subject.hide
    if hide is not None and not places_of(subject.module):
        x = torch.randn(3, _tokens(subject), subject.embed)
        keep = torch.arange(x.shape[1]) < x.shape[1] - torch.tensor([[0], [2], [1]])
        found.append(
            Call(
                "hide",
                hide,
                (x, keep),
                ("B n E", "B n"),
                used,
                _beside(subject, padded=True),
                masked=True,
                # with a causal mask and rotary tables, no proof finishes
                aliases=() if subject.given.get("mask") else ("alone",),
            )
        )
    if subject.attend is not None:
        width, attend = subject.width or 8, subject.attend
        q = torch.randn(3, subject.heads, 5, width)
        k, v = torch.randn(2, 3, subject.groups, 5, width)

        def on_three(a: Tensor, b: Tensor, c: Tensor) -> Any:
            return attend(a, b, c, None)

        masked = subject.masks or "mask" in subject.adapted.partition(";")[0]
        where = _beside(subject)
        if masked and not {"mask", "full mask", "no mask"} & set(subject.given):
            where = (*where, Condition("no mask is given", "where"))
        letters = ("B H r D", "B G n D", "B G n D")
        found.append(Call("attend", on_three, (q, k, v), letters, used, where))
        found += _masked_calls(subject, (q, k, v), letters, used)
    return tuple(found)


def _masked_calls(
    subject: Attention,
    three: tuple[Tensor, ...],
    letters: tuple[str, ...],
    used: tuple[nn.Module, ...],
) -> Iterator[Call]:
    """Yield calls under a mask (B, r, n), of truth values or numbers, as the code takes them."""
    attend, seen = subject.attend, torch.ones(3, 5, 5, dtype=torch.bool).tril(1)
    where = _beside(subject, padded=True)
    assert attend is not None  # checked by the caller

    def under(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        rows = mask[:, None, :1].expand(-1, 1, q.shape[2], -1) if subject.by_key else mask[:, None]
        return attend(q, k, v, rows)

    def lowered(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        numbers = torch.zeros(mask.shape).to(q).masked_fill(~mask, -torch.inf)
        return under(q, k, v, numbers)

    letters = (*letters, "B r n")
    if subject.masks:
        code = under if "bool" in subject.masks else lowered
        yield Call("attend_under", code, (*three, seen), letters, used, where, masked=True)
    if "float" in subject.masks:
        numbers = torch.randn(seen.shape)
        yield Call("attend_plus", under, (*three, numbers), letters, used, where, masked=True)


def symbolic(call: Call, fixed: str = "") -> tuple[tuple[bool, ...], ...]:
    """Return for each axis of each input whether its length is symbolic; ``fixed`` letters are not.

    Features are fixed.  Heads are symbolic only if each has its own key head: how heads share key
    heads depends on two numbers.
    """
    lengths = lengths_in(call.letters, call.inputs)
    shared = {"G", "H"} <= lengths.keys() and lengths["G"] != lengths["H"]
    free = set(call.free or ("Bnr" if shared and not call.paired else "BnHrG")) - set(fixed)
    return tuple(tuple(letter in free for letter in told.split()) for told in call.letters)


BIAS_METHODS = ("forward", "get_bias", "get_relative_position_bias", "_get_rel_pos_bias")


def places_of(module: nn.Module | None) -> int:
    """Return the number of places in a module's window if it admits no other, else 0."""
    for part in () if module is None else module.modules():
        sizes, index = _sizes(getattr(part, "window_size", None)), _index(part)
        if sizes and index is not None and index.numel() == prod(sizes) ** 2:
            return prod(sizes)
    return 0


def _index(module: Any) -> Tensor | None:
    """Return the stored index into a table of biases."""
    found = getattr(module, "relative_position_index", None)
    return found if isinstance(found, Tensor) else None


def _windowed(subject: Bias) -> Iterator[Call]:
    """Yield the bias (H, *window, *window) of a module's window, without axes of length 1.

    Nothing for code that is not a module with a window and an index, or that has no bias without
    further inputs.  The module is a copy with random parameters, since a table often starts as
    zeros, for which every law holds.
    """
    module: Any = subject.module
    sizes = _sizes(getattr(module, "window_size", None))
    if _index(module) is None or prod(sizes) < 2:
        return
    longer = [n for n in sizes if n > 1]
    try:
        copy = _with_random_weights(module)
        made = _bias_maker(copy)
    except Exception:  # noqa: BLE001 (copying may fail, and calls may lack a signature)
        return
    if made is None:
        return
    places, told, name = prod(sizes), " by ".join(map(str, sizes)), type(module).__name__

    def windowed() -> Tensor:
        bias = made()
        while bias.ndim > 3 and bias.shape[0] == 1:
            bias = bias[0]
        if bias.ndim != 3 or tuple(bias.shape[1:]) != (places, places):
            raise ValueError(
                f"wanted a bias of (heads, {places}, {places}) for a window of {told}; {name} gave "
                f"{tuple(bias.shape)}"
            )
        return bias.reshape(-1, *longer, *longer)

    where = Condition(f"window = {' × '.join(map(str, sizes))}", "for")
    yield Call("windowed", windowed, (), (), (copy,), (where,))


def _sizes(told: Any) -> tuple[int, ...]:
    """Return the lengths of a window; a single number is a square."""
    if isinstance(told, int):
        return (told, told)
    whole = isinstance(told, tuple | list | torch.Size) and all(isinstance(n, int) for n in told)
    return tuple(told) if whole else ()


def _with_random_weights(module: nn.Module) -> nn.Module:
    copy = deepcopy(module)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return copy


def _bias_maker(module: Any) -> Callable[[], Tensor] | None:
    """Return how a module makes its bias: a call without inputs, or its table at its index."""
    for name in BIAS_METHODS:
        call = getattr(module, name, None)
        written = name != "forward" or type(module).forward is not nn.Module.forward
        if call is not None and written and not _requires_input(call):
            return module if name == "forward" else call  # type: ignore[no-any-return]
    if not isinstance(getattr(module, "relative_position_bias_table", None), Tensor):
        return None
    return partial(bias_of_table, module)


def _requires_input(call: Any) -> bool:
    """Whether a call requires an input."""
    return any(
        p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        for p in inspect.signature(call).parameters.values()
    )
