"""Rotary code that is wrong in the usual ways, and what two checks say of each.

The identity of scores at one offset sees a wrong position; frequencies that are wrong alike for
queries and keys it cannot see, and neither a consistent layout.  The comparison with the
declared frequencies refuses them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .comparison import compare, relative
from .extraction import Turn
from .formats import Format, declared
from .scores import Pairs, turned

__all__ = ["Checked", "checked", "half_split", "wrong"]

SHIFT = 10_000
BASE = 1e4


@dataclass(frozen=True)
class Checked:
    """Rotary code, and the largest error over its bound in both checks; ``why`` of the second."""

    code: str
    form: str
    identity: str
    identity_ratio: float
    comparison: str
    comparison_ratio: float
    why: str


def wrong(form: Format, base: float, pairs: int) -> Iterator[tuple[str, Turn]]:
    """Right code first, then the usual faults, all interleaved but one."""
    usual = form.rounded_frequencies(base, pairs)
    place = torch.arange(pairs)

    def by(frequencies: Tensor) -> Turn:
        return lambda x, p: turned(x, p, form, frequencies)

    yield "as declared", by(usual)
    yield "frequencies in bfloat16", by(usual.to(torch.bfloat16).to(usual.dtype))
    yield f"base {base + 1:g}", by(form.rounded_frequencies(base + 1, pairs))
    yield "angles doubled", by(2 * usual)
    yield "turned the other way", by(-usual)
    yield "one frequency off by 1e-4", by(torch.where(place == pairs // 3, usual * 1.0001, usual))
    yield "the other layout", lambda x, p: half_split(x, p, form, usual)
    yield "positions in bfloat16", lambda x, p: turned(x, p.to(torch.bfloat16), form, usual)


def half_split(x: Tensor, positions: Tensor, form: Format, frequencies: Tensor) -> Tensor:
    """x: (k, 2B) turned in the layout where channels b and B + b are a pair."""
    half = frequencies.shape[0]
    pairs = torch.stack((x[:, :half], x[:, half:]), dim=-1).flatten(1)
    found = turned(pairs, positions, form, frequencies)
    return torch.cat((found[:, 0::2], found[:, 1::2]), dim=-1)


def checked(pairs: Pairs, form: Format, base: float = BASE) -> Iterator[Checked]:
    """Both checks of each code, in a format."""
    count = pairs.q.shape[-1] // 2
    omega = declared(base, count)
    for says, turn in wrong(form, base, count):
        same = relative(turn, omega, pairs, SHIFT, form=form)
        found = compare(turn, omega, "interleaved", form=form)
        yield Checked(
            says, form.name, same.status, same.ratio, found.status, found.ratio, found.why
        )
