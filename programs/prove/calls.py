"""The calls of a subject that are traced: example inputs, symbolic axes, their letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.verdict_line import Condition

from ..subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from .windows import places_of, window_of

__all__ = ["Call", "CodeRaised", "calls_of", "symbolic"]


class CodeRaised(Exception):
    """The code raised something: it may, at lengths for which it was not traced."""


@dataclass(frozen=True)
class Call:
    """One call: its name in laws, the code, example inputs, and the letter of each axis.

    ``where`` says of which settings it is a call, beside the lengths of its inputs.  ``beside``:
    the second input is turned in the same call as the first, and laws hold whatever it is.
    ``pair``: the code as one call of two inputs that gives both results, of which this is the one
    at ``place``: of the second input, where that is 1.
    """

    name: str
    code: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]
    letters: tuple[str, ...]
    modules: tuple[nn.Module, ...] = ()
    where: tuple[Condition, ...] = ()
    beside: bool = False
    pair: Callable[..., tuple[Tensor, Tensor]] | None = None
    place: int = 0

    def alone(self, *given: Tensor) -> Tensor:
        """The call as laws make it: what is turned beside the first input is drawn.

        Raises ``CodeRaised`` where the code raises anything.
        """
        if self.beside:
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


def _modules(subject: Subject) -> tuple[nn.Module, ...]:
    return () if subject.module is None else (subject.module,)


def calls_of(subject: Subject) -> tuple[Call, ...]:
    """What can be traced of this code; of a window, what a module makes for the one it has."""
    used = _modules(subject)
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
        return (_counted("biased", subject.bias, used, _beside(subject)),)
    if isinstance(subject, Bias):
        made = window_of(subject)
        return () if made is None else (
            Call("windowed", made.bias, (), (), (made.module,),
                 (Condition(f"window = {made.sizes}", "for"),)),
        )  # fmt: skip
    if isinstance(subject, Mask):
        return (_counted("masked", subject.mask, used, _beside(subject)),)
    return ()


def _counted(
    name: str, made: Callable[[int, int], Tensor], used: tuple[nn.Module, ...],
    where: tuple[Condition, ...],
) -> Call:  # fmt: skip
    """Code of two counts, as code of two lists of that many numbers: queries, keys."""

    def call(x: Tensor, y: Tensor) -> Tensor:
        return made(x.shape[0], y.shape[0])

    return Call(name, call, (torch.randn(5), torch.randn(7)), ("r", "n"), used, where)


def _rotary(subject: Rotary, used: tuple[nn.Module, ...]) -> tuple[Call, ...]:
    heads = 1 if "H" in subject.single else max(2, subject.heads)
    starts = (0, 2, 7)[: 1 if "B" in subject.single else 3]
    x = torch.randn(len(starts), heads, 5, subject.width)
    p = torch.stack([torch.arange(5) + k for k in starts])
    letters = ("B H n D", "B n")
    if subject.axes:
        p = torch.stack([p + k for k in range(subject.axes)], dim=-1)
        letters = ("B H n D", "B n C")
    p = p if subject.whole else p.float()
    if subject.beside is not None:
        return _both(subject, used, x, p, letters)
    where = _beside(subject)
    if subject.running is not None:
        return (Call("running", subject.running, (x,), ("B H n D",), used, where),)
    found = [Call("turn", subject.turn, (x, p), letters, used, where)]
    if subject.key is not None:
        found.append(Call("key", subject.key, (x, p), letters, used, where))
    return tuple(found)


def _both(
    subject: Rotary, used: tuple[nn.Module, ...], x: Tensor, p: Tensor, letters: tuple[str, str]
) -> tuple[Call, ...]:
    """Code that turns queries and keys in one call, each beside any others."""
    made, other = subject.beside, torch.randn(x.shape)
    assert made is not None  # who calls has seen it
    vectors, places = letters
    beside, where = vectors, _beside(subject)
    if subject.grouped:  # the heads of what is turned beside are another length
        x, beside = torch.cat((x, other), 1), vectors.replace("H", "G")

    def on_start(a: Tensor, b: Tensor) -> Tensor:
        return made(a, b, torch.arange(a.shape[2]).expand(a.shape[0], a.shape[2]), 0)

    def turned(place: int) -> Callable[..., Tensor]:
        return lambda a, b, positions: made(a, b, positions, place)

    if subject.running is not None:
        return (Call("running", on_start, (x, other), (vectors, beside), used, where, beside=True),)
    both = (vectors, beside, places)
    return tuple(Call(name, turned(place), (*own, p), both, used, where, beside=True,
                      pair=subject.pair, place=place)
                 for place, (name, own) in enumerate(
                     (("turn", (x, other)), ("key", (other, x)))))  # fmt: skip


def _tokens(subject: Subject) -> int:
    """How many tokens the traced call has: an image of more than one row, where it is one."""
    return 6 if "image" in subject.given else 5


def _beside(subject: Subject) -> tuple[Condition, ...]:
    """What is given with a call, or left out of it: a proof is of that call."""
    given = subject.given
    told = [*given.get("values", "").split("; "), given.get("image", "")]
    if given.get("mask"):
        told.append(f"the mask that is given is {given['mask']}")
    elif "full mask" in given:
        told.append(f"{given['full mask']} shows every key")
    elif "no mask" in given:
        told.append("no mask is given")
    return tuple(Condition(one, "where") for one in told if one)


def _attention(subject: Attention, used: tuple[nn.Module, ...]) -> tuple[Call, ...]:
    found = []
    if subject.layer is not None:
        x = torch.randn(3, places_of(subject.module) or _tokens(subject), subject.embed)
        found.append(Call("layer", subject.layer, (x,), ("B n E",), used, _beside(subject)))
    if subject.attend is not None:
        width, attend = subject.width or 8, subject.attend
        q = torch.randn(3, subject.heads, 5, width)
        k, v = torch.randn(2, 3, subject.groups, 5, width)

        def on_three(a: Tensor, b: Tensor, c: Tensor) -> Any:
            return attend(a, b, c, None)

        masked = subject.masks or "mask" in subject.adapted.partition(";")[0]
        where = _beside(subject)
        if masked and not where:
            where = (Condition("no mask is given", "where"),)
        letters = ("B H r D", "B G n D", "B G n D")
        found.append(Call("attend", on_three, (q, k, v), letters, used, where))
    return tuple(found)


def symbolic(call: Call, fixed: str = "") -> tuple[tuple[bool, ...], ...]:
    """Of each axis of each input whether its length should be symbolic; ``fixed`` letters are not.

    Features are not; heads are where each has its own key head: which heads share one is a matter
    of two numbers.
    """
    lengths: dict[str, int] = {
        letter: n for told, x in zip(call.letters, call.inputs, strict=True)
        for letter, n in zip(told.split(), x.shape, strict=True)
    }  # fmt: skip
    grouped = "G" in lengths and lengths["G"] != lengths["H"] and not call.beside
    free = set("Bnr" if grouped else "BnHrG") - set(fixed)
    return tuple(tuple(letter in free for letter in told.split()) for told in call.letters)
