"""Pairs of small programs that are one function, and pairs that are not, of public threads.

One program of a pair is what the other is to be: a fix beside the reference, or the fault as its
thread tells it.  The code is our own.  Pairs are collected from the topics of this folder, so that
a new one is two functions and a call of :func:`alike` or :func:`unlike`; no list is edited.

Whether a pair is one function is said by hand, and held by PyTorch alone, in float64: the reader of
call lines here is no part of what is tested.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

# Lengths at which the pairs are run here: small, all different, and long.
LENGTHS: tuple[Mapping[str, int], ...] = (
    {"B": 1, "H": 1, "r": 1, "n": 1, "m": 1, "p": 1},
    {"B": 2, "H": 2, "r": 2, "n": 2, "m": 2, "p": 2},
    {"B": 2, "H": 3, "r": 4, "n": 7, "m": 5, "p": 6},
    {"B": 1, "H": 2, "r": 9, "n": 3, "m": 8, "p": 4},
    {"B": 2, "H": 1, "r": 6, "n": 33, "m": 20, "p": 17},
    {"B": 1, "H": 2, "r": 3, "n": 70, "m": 5, "p": 3},
)
SAME = 1e-9  # of numbers near 1, in float64
APART = 1e-3

Results = tuple[Tensor, ...]


@dataclass(frozen=True)
class Case:
    """Two programs.  ``thread``: owner/name#number.  ``about``: what it is, in a sentence.

    ``call``: how the first is called, and the second where ``other`` is empty.  ``same``: whether
    the two are one function.  ``open``: why that is not proved today, if it is so.  ``by_hand``:
    the arguments of the second made of those of the first, where these are not the same; ``back``:
    its results as those of the first; ``weights_by_hand``: its state, made of that of the first.
    """

    name: str
    thread: str
    about: str
    first: Callable[..., Any]
    second: Callable[..., Any]
    call: str
    same: bool
    other: str = ""
    where: str = ""
    weights: str = ""
    open: str = ""
    by_hand: Callable[..., Results] | None = None
    back: Callable[..., Results] | None = None
    weights_by_hand: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] | None = None

    def apart(self, lengths: Mapping[str, int], seed: int) -> float:
        """How far the results of both are apart at these lengths, by PyTorch alone."""
        given = _drawn(self.call, lengths, seed)
        first, second = _doubled(self.first), _doubled(self.second)
        if isinstance(first, nn.Module) and isinstance(second, nn.Module):
            held = dict(first.state_dict())
            second.load_state_dict(self.weights_by_hand(held) if self.weights_by_hand else held)
        theirs = given if self.by_hand is None else self.by_hand(*given)
        with torch.no_grad():
            one, other = _results(first(*given)), _results(second(*theirs))
        pairs = zip(one, other if self.back is None else self.back(*other), strict=True)
        return max(_apart(here, there) for here, there in pairs)


_CASES: dict[str, Case] = {}


def pair(
    name: str,
    thread: str,
    about: str,
    first: Callable[..., Any],
    second: Callable[..., Any],
    call: str,
    *,
    same: bool,
    **more: Any,
) -> None:
    """Collect a pair.  Raises ``ValueError`` for a name that is used twice."""
    if name in _CASES:
        raise ValueError(f"{name}: this name is used already")
    _CASES[name] = Case(name, thread, about, first, second, call, same, **more)


alike, unlike = partial(pair, same=True), partial(pair, same=False)


def all_cases() -> tuple[Case, ...]:
    """The pairs of all topics of this folder."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "corpus" and not path.stem.startswith("test_"):
            import_module(f"{__package__}.{path.stem}")
    return tuple(_CASES.values())


def _doubled(thing: Any) -> Any:
    return deepcopy(thing).double() if isinstance(thing, nn.Module) else thing


def _results(found: Any) -> Results:
    return found if isinstance(found, tuple) else (found,)


def _apart(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape:
        return math.inf
    off = (one - other).abs().nan_to_num(nan=math.inf)
    off = off.masked_fill(one.isnan() & other.isnan(), 0.0)
    return float(off.max()) if off.numel() else 0.0


def _drawn(call: str, lengths: Mapping[str, int], seed: int) -> tuple[Tensor, ...]:
    """The arrays that a call line names, in its order."""
    draw = torch.Generator().manual_seed(seed)
    found = []
    for part in re.split(r",\s*", call.partition("->")[0].strip()):
        words = re.findall(r"\([^)]*\)|\S+", part.partition(":")[2])
        kind = words.pop() if words and len(words[-1]) > 1 and words[-1].isalpha() else ""
        shape = [_length(axis, lengths) for axis in words]
        if kind == "keep":
            kept = torch.rand(shape, generator=draw) < 0.6
            kept[..., 0] = True
            found.append(kept)
        elif kind == "ids":
            found.append(torch.randint(0, 3, shape, generator=draw))
        elif kind == "positions":
            found.append(torch.arange(3, 3 + shape[-1]).expand(shape))
        else:
            found.append(torch.randn(shape, generator=draw, dtype=torch.float64))
    return tuple(found)


def _length(axis: str, lengths: Mapping[str, int]) -> int:
    """The length of an axis: a letter, a number, or a sum of products of these."""
    terms = (term.split() for term in axis.strip("()").split("+"))
    return sum(math.prod(int(c) if c.isdigit() else lengths[c] for c in term) for term in terms)
