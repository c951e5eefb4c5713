"""Probes of rotary code built with other settings: another base or scaling, an odd width."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from ..calling import evaluating, fresh
from ..declared import DeclaredRotary
from ..draw import Draw
from ..finding import Seen
from ..rotary_matrices import unit_words
from ..subjects import Rotary
from .base import Outcome, broken, held, not_asked, probe, undecided
from .rotary_declared import compare_ladder
from .rotary_reading import Matrices, Read, read, seen

__all__: list[str] = []

BASES = (10_000.0, 500_000.0, 40_000.0)
TIMES = (2.0, 3.0)  # of the declared factor
UNREAD = "the pairs of channels could not be told, so no frequency was read"


@dataclass(frozen=True)
class Before:
    """What was read of the code as it is; ``plain``: its ladder is one of a base, unscaled."""

    made: Read
    declared: DeclaredRotary
    plain: bool


@dataclass(frozen=True)
class Built:
    """Code built anew: what was seen, whether it is as it was, and was compared with a formula."""

    seen: Outcome
    same: bool = False
    compared: bool = False


@probe("follows-its-arguments", "rotary")
def follows_its_arguments(subject: Rotary, draw: Draw) -> Outcome:
    """Built with other bases, or factors of its scaling, and read again.

    Two values are tried of each argument: with the one that it has, it stays as it is.
    """
    declared = subject.declared or DeclaredRotary()
    asked = {"base": tuple(b for b in BASES if b != declared.base)}
    if declared.scaling:
        asked["factor"] = tuple(t * declared.factor for t in TIMES)
    told: list[str] = []
    compared = False
    with evaluating(subject):
        matrices = seen(subject, draw)
        made = read(matrices, subject, declared.layout)
    if made is None:
        return undecided(UNREAD)
    if len(made.omega) < 2:
        return not_asked("one pair turns, and by 1 whatever the base is")
    before = Before(made, declared, _plain(subject, matrices, made))
    for name, values in asked.items():
        seen_with = [_built_with(subject, draw, before, name, value) for value in values]
        found = [one for one in seen_with if one is not None]
        wrong = [one.seen for one in found
                 if not one.same and (one.seen.witness or one.seen.doubtful)]  # fmt: skip
        if wrong:
            return wrong[0]
        if found and all(one.same for one in found):
            return found[0].seen
        told += [one.seen.why for one in found if not one.same]
        compared |= any(one.compared for one in found)
    if not told:
        return not_asked("it takes no other base, and no other factor")
    those = ", those of its formula" if compared else ""
    return held(f"built with {' and '.join(told)} it has other frequencies{those}")


def _built_with(
    subject: Rotary, draw: Draw, before: Before, name: str, value: float
) -> Built | None:
    """What is to be said of code built with one value; None where it cannot be built so."""
    other = fresh(subject, **{name: value})
    if other is None:
        return None
    declared = before.declared
    with evaluating(other):
        found = seen(other, draw)
        after = read(found, other, declared.layout)
    if after is None:
        return Built(undecided(UNREAD))
    if _alike(before.made, after):
        return Built(_unchanged(subject, before.made, after, name, value), same=True)
    words = f"{name} {value:g}"
    # what the frequencies are to be is known of a declared base, and of a plain ladder
    known = declared.base is not None or (before.plain and name == "base")
    if declared.frequencies is not None or not known:
        return Built(held(words))
    changed = replace(declared, width=None, **{name: value})  # type: ignore[arg-type]
    seen_there = compare_ladder(other, changed, found)
    if seen_there.witness is not None and name == "base" and declared.base is None:
        for exponents in _counted_over(2 * len(after.omega), other.width):
            spread = compare_ladder(other, replace(changed, base=value**exponents), found)
            if spread.witness is None and not spread.doubtful:
                return Built(held(words), compared=True)
    if seen_there.witness is None:
        return Built(held(words), compared=not seen_there.doubtful)
    return Built(replace(seen_there, why=f"built with {words}: {seen_there.why}"), compared=True)


def _counted_over(turning: int, width: int) -> tuple[float, ...]:
    """Powers of a base that are as usual as itself, where no base is declared.

    Exponents 2i/D may be counted over the whole head where a part of it turns, and over an odd
    width of which one channel more turns: base^(−2i/D) is (base^c)^(−2i/turning), c = turning/D.
    """
    return tuple(turning / over for over in (width, turning - 1) if over != turning)


def _alike(one: Read, two: Read) -> bool:
    """Whether two ladders that were read are the same, as far as they were read."""
    return len(one.omega) == len(two.omega) and bool(
        ((two.omega - one.omega).abs() <= two.radius + one.radius).all()
    )


def _plain(subject: Rotary, found: Matrices, made: Read) -> bool:
    """Whether the frequencies are base^(−2i/D) for some base, without scaling."""
    size, pairs = made.omega.abs(), len(made.omega)
    if pairs < 2 or not (float(size[0]) > 0 and float(size[-1]) > 0):
        return False
    base = float((size[0] / size[-1]) ** (pairs / (pairs - 1)))
    # the base that was read is off by rounding; the one that was meant has few digits
    tried = (compare_ladder(subject, DeclaredRotary(base=b, layout=made.layout), found)
             for b in (float(f"{base:.3g}"), base))  # fmt: skip
    return any(one.witness is None and not one.doubtful for one in tried)


def _unchanged(subject: Rotary, before: Read, after: Read, name: str, value: float) -> Outcome:
    """What to say of code that stays as it is."""
    pair = len(after.omega) - 1
    return broken(
        f"built with {name} {value:g} it has the same frequencies as before",
        Seen({"argument": name, "value": value, "declared": getattr(subject.declared, name, None)},
             (f"frequency of pair {pair} with {name} {value:g}", float(after.omega[pair])),
             ("before, which should differ", float(before.omega[pair])), 0.0,
             float(after.radius[pair] + before.radius[pair])),
        D=subject.width,
    )  # fmt: skip


@probe("odd-widths", "rotary")
def odd_widths(subject: Rotary, draw: Draw) -> Outcome:
    """Code of an odd width, its own or one it is built with, on unit vectors."""
    declared = subject.declared.width if subject.declared is not None else None
    width = subject.width if subject.width % 2 else declared if declared and declared % 2 else 5
    if subject.width % 2 or (declared and declared % 2):
        code = subject
    else:
        if subject.make is None:
            return not_asked("its width is even, and it cannot be built with another")
        try:
            made = fresh(subject, width=width)
        except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
            told = " ".join(str(error).split())[:200]
            return held(f"width {width} is refused: {type(error).__name__}: {told}")
        if made is None or made.width != width:
            return not_asked("its width is even, and it cannot be built with another")
        code = made
    last = width - 1
    with evaluating(code):
        shape = (1, code.heads, 2, code.width)
        x = torch.zeros(shape, dtype=draw.dtype, device=draw.device)
        x[..., last] = 1
        kind = torch.int64 if code.whole else torch.float32
        ids = torch.tensor([[0, 3]], dtype=kind, device=draw.device) + code.first
        if code.axes:
            ids = ids[..., None].expand(1, 2, code.axes).contiguous()
        try:
            result = code.turn(x, ids).detach().to("cpu", torch.float64)
        except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
            told = " ".join(str(error).split())[:200]
            return held(f"width {width} is refused at the call: {type(error).__name__}: {told}")
    vector = unit_words(last, code.width)
    if tuple(result.shape) != shape:
        return broken(
            f"width {width} is accepted, and {result.shape[-1]} channels come back",
            Seen({"width": width, "vector": vector, "at": [0, 3]},
                 ("channels that come back", result.shape[-1]), ("channels given", code.width),
                 float(abs(result.shape[-1] - code.width))),
            D=code.width,
        )  # fmt: skip
    off = (result - x.cpu().double()).abs().nan_to_num(nan=math.inf)
    if float(off.max()) > 0:
        h, t, j = (int(i) for i in torch.unravel_index(off[0].argmax(), off[0].shape))
        return broken(
            f"width {width} is accepted, and its last channel does not pass through",
            Seen({"width": width, "vector": vector, "at": (0, 3)[t], "channel": j},
                 (f"channel {j} of the result", float(result[0, h, t, j])),
                 (f"channel {j} of the vector", float(x[0, h, t, j])), float(off.max())),
            D=code.width,
        )  # fmt: skip
    return held(f"of width {width} the last channel passes through", 0.0, 0.0, D=code.width)
