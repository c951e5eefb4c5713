"""What an input design does to the givens of a statement, whatever the statement says.

Which given is a query, a key, a value or a score is read off the terms
(:mod:`~attnproof.numeric.attention_inputs`).  One that is several at once, like the tokens of
self-attention, is changed in a way that does for each.  Where nothing attends, designs act on the
rows of all token arrays; those about scores do not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import postorder

from .attention_inputs import Read, read_as
from .scale import Scale, terms_of

__all__ = ["designed"]

SHIFT = 32.0  # of the row that values have in common, over the spread of what differs
SHARED_SHIFT = 2.0  # where it moves the scores as well
PEAKED, LARGE = 3.0, 100.0  # of the scores
CALM = 4 / 7  # of the other entries beside a needle: scores then spread 1
ALONG = 2.0  # of every query along the needle
ABOVE = 36.0  # of its score over the others; twice as far where it is projected on both sides
CLUSTERS = 16
PRIME = 7_368_787  # keeps what designs draw apart from what is drawn before


@dataclass(frozen=True)
class _Tokens:
    """The token arrays of one statement, the axis of tokens first, and what else a design asks."""

    arrays: Mapping[str, Tensor]
    read: Mapping[str, Read]
    spread: float
    seed: int
    masked: bool

    def of(self, *roles: str) -> list[str]:
        """The arrays that are read as one of these, or as nothing."""
        return [k for k, r in self.read.items() if not r.roles or r.roles & set(roles)]

    @property
    def attended(self) -> bool:
        return any(r.roles for r in self.read.values())

    @property
    def shared(self) -> bool:
        """Whether one array is both queries and keys."""
        return any({"query", "key"} <= r.roles for r in self.read.values())

    def generator(self, what: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed + PRIME * (1 + what))

    def signs(self, like: Tensor) -> Tensor:
        """One direction of 1 and −1, the same for all arrays of one width."""
        width = like.shape[-1] if like.ndim > 1 else 1
        flips = torch.randint(2, (width,), generator=self.generator(width))
        return (2.0 * flips - 1).double()

    def places(self, count: int) -> tuple[int, int]:
        """Two places; the first two under a mask, which later ones may not pass."""
        if self.masked:
            return 0, min(1, count - 1)
        first, second = torch.randperm(count, generator=self.generator(count))[:2].tolist()
        return first, second

    def groups(self, count: int, most: int) -> Tensor:
        """A group for every one of ``count`` rows, each of them taken, in random order."""
        every = torch.arange(count) % min(count, most)
        return every[torch.randperm(count, generator=self.generator(count))]


def designed(
    statement: Statement, values: Mapping[str, Any], scale: Scale, seed: int
) -> dict[str, Any]:
    """The values with the tokens as the design of the scale has them.

    ``values`` are drawn as in the normal design.  What the design does not touch is the same
    object as before.
    """
    change = _CHANGES.get(scale.design.name)
    if change is None:
        return dict(values)
    read = {k: r for k, r in read_as(statement).items() if _enough(values.get(k), r)}
    arrays = {k: values[k].movedim(r.axis, 0) for k, r in read.items()}
    masked = any(p.op == "minus infinity" for t in terms_of(statement) for p in postorder(t))
    changed = change(_Tokens(arrays, read, scale.spread, seed, masked))
    return dict(values) | {
        k: x.movedim(0, read[k].axis).contiguous() for k, x in changed.items()
    }


def _enough(value: Any, read: Read) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.shape[read.axis] > 1


def _shifted(t: _Tokens) -> dict[str, Tensor]:
    """x_j + c, c the same for all j."""
    changed = {}
    for name in t.of("value"):
        x, alone = t.arrays[name], not t.read[name].roles & {"query", "key", "score"}
        row = torch.randn(x.shape[1:], generator=t.generator(x.ndim), dtype=x.dtype)
        changed[name] = x + (SHIFT if alone else SHARED_SHIFT) * t.spread * row
    return changed


def _times(factor: float) -> Callable[[_Tokens], dict[str, Tensor]]:
    """Scores times a factor: the queries, or both sides by its root where they share an array."""

    def change(t: _Tokens) -> dict[str, Tensor]:
        changed = {name: t.arrays[name] * factor for name in t.of("score")}
        share = math.sqrt(factor) if t.shared else factor
        sides = ("query", "key") if t.shared else ("query",)
        changed |= {name: t.arrays[name] * share for name in t.of(*sides)}
        if not changed:  # scores of keys with a query that is no array of tokens
            changed = {name: t.arrays[name] * factor for name in t.of("key")}
        return changed

    return change


def _peaked(t: _Tokens) -> dict[str, Tensor]:
    return _times(PEAKED)(t) if t.attended else {}


def _needle(t: _Tokens) -> dict[str, Tensor]:
    """q_i = a u + noise, k_j = noise but at one place, b u, with a, b so that its score stands out.

    A projection or rotation between the two may turn the sign of the score: at another place is
    −b u.  Without attention one row is far larger than the others.
    """
    changed: dict[str, Tensor] = {}
    size = t.spread * CALM
    for name in t.of("query", "key", "score"):
        x, roles = t.arrays[name] * CALM, t.read[name].roles
        along, across = size * t.signs(x), x.shape[-1] if x.ndim > 1 else 1
        first, second = t.places(len(x))
        top = ABOVE / (ALONG * math.sqrt(across))
        if roles == {"score"}:
            x[first] = x.amax() + ABOVE * size**2
        elif not roles:
            x[first] = x[first] * ABOVE
        elif "query" in roles:
            x, top = x + ALONG * along, ALONG + 2 * top
        if "key" in roles:
            x[first], x[second] = (sign * (top * along).expand_as(x[:1])[0] for sign in (1, -1))
        changed[name] = x
    return changed


def _clustered(t: _Tokens) -> dict[str, Tensor]:
    """Keys take few values, of which each occurs."""
    return _grouped(t, lambda n: max(2, min(CLUSTERS, n // 4)), "key", "score")


def _constant(t: _Tokens) -> dict[str, Tensor]:
    return _grouped(t, lambda _: 1, "query", "key", "value", "score")


def _grouped(t: _Tokens, count: Callable[[int], int], *roles: str) -> dict[str, Tensor]:
    return {
        name: t.arrays[name][t.groups(len(t.arrays[name]), count(len(t.arrays[name])))]
        for name in t.of(*roles)
    }


def _structured(t: _Tokens) -> dict[str, Tensor]:
    """Two keys and two values; rows that are both are x and −x."""
    changed = {}
    for name in t.of("key", "value", "score"):
        x, roles = t.arrays[name], t.read[name].roles
        group = t.groups(len(x), 2)
        sign = (1.0 - 2 * group).double().reshape(-1, *[1] * (x.ndim - 1))
        if roles == {"value"}:
            changed[name] = sign.expand(x.shape)
        else:
            changed[name] = x[group] if roles <= {"key", "score"} and roles else sign * x[:1]
    return changed


_CHANGES: dict[str, Callable[[_Tokens], dict[str, Tensor]]] = {
    "shifted": _shifted,
    "peaked": _peaked,
    "needle": _needle,
    "large": _times(LARGE),
    "clustered": _clustered,
    "constant": _constant,
    "structured": _structured,
}
