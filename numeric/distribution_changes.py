"""Apply an input distribution to the givens of a statement, whatever the statement says.

Whether a given is a query, a key, a value or a score is found in the terms.  Wherever exponentials
are summed over an axis, there is a softmax over it, named or written out.  If its scores are a
matrix product, the queries are on one side and the keys on the other; the weights are multiplied
with the values.  From there givens are followed through gathers, projections, rotations, sums,
layers and functions.

A given with several roles, like the tokens of self-attention, is changed in a way that suits each.
Without attention, distributions act on the rows of all token arrays, and those about scores do not
apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, postorder

from .scale import Scale, terms_of, tokens

# The roles of givens in attention, found by walking the terms

ENTRYWISE = ("broadcast", "add", "mul", "where", "maximum", "gather", "permute", "pick", "new axis")
"""Operations that act on scores entry by entry or only move them."""


@dataclass(frozen=True)
class AttentionInput:
    """A real given that holds tokens: the axis they run over, and its roles.

    ``roles`` are some of "query", "key", "value" and "score"; for a score, the axis is that of the
    keys.  Without attention there are none.
    """

    name: str
    axis: int
    roles: frozenset[str]


def attention_inputs(statement: Statement) -> dict[str, AttentionInput]:
    """Return the real givens with tokens that attention reads, by name; all without attention."""
    walk = _Walk(list(terms_of(statement)))
    roles: dict[str, set[str]] = {}
    axes: dict[str, int] = {}
    for role, names in walk.found():
        for name in names:
            roles.setdefault(name, set()).add(role)
    for name, axis in walk.scores_given():
        roles.setdefault(name, set()).add("score")
        axes[name] = axis
    found = {}
    seen = {str(p.data[0]) for t in walk.terms for p in postorder(t) if p.op == "var"}
    for name, given in statement.givens.items():
        over = [k for k, n in enumerate(given.shape) if tokens(n)]
        if given.kind == "real" and over and name in (roles or seen):
            found[name] = AttentionInput(
                name, axes.get(name, over[0]), frozenset(roles.get(name, ()))
            )
    return found


class _Walk:
    """One walk over the terms of a statement."""

    def __init__(self, terms: list[Term]) -> None:
        self.terms = terms
        parts = dict.fromkeys(part for term in terms for part in postorder(term))
        self.parts = list(parts)
        self.starts = [part.args[1] for part in parts if part.op == "iterate"]
        self.softmaxes: dict[Term, int] = {}
        for part in parts:
            if part.op == "reduce" and part.args[0].op == "exp":
                axis: Any = part.data
                self.softmaxes[part.args[0].args[0]] = axis - part.args[0].ndim

    def found(self) -> Iterator[tuple[str, set[str]]]:
        """Yield each role with the names of givens that have it."""
        for scores, axis in self.softmaxes.items():
            products = list(self._products(scores, axis + scores.ndim))
            for product, at in products:
                last = at == product.ndim - 1 and product.args[1].ndim > 1
                first, second = ("query", "key") if last else ("key", "query")
                yield first, self.behind(product.args[0])
                yield second, self.behind(product.args[1])
            if not products and not list(self._written(scores, axis + scores.ndim)):
                yield "query", self.behind(scores)
                yield "key", self.behind(scores)
        for part in self.parts:
            if part.op == "matmul":
                left, right = part.args
                if self._weights(left):
                    yield "value", self.behind(right)
                elif self._weights(right):
                    yield "value", self.behind(left)
            elif part.op == "reduce" and part.args[0].op == "mul":
                factors = part.args[0].args
                if any(map(self._weights, factors)):
                    for factor in factors:
                        yield "value", self.behind(factor)

    def scores_given(self) -> Iterator[tuple[str, int]]:
        """Yield givens that are themselves scores, with the axis of their keys."""
        for scores, axis in self.softmaxes.items():
            if not list(self._products(scores, axis + scores.ndim)):
                yield from self._written(scores, axis + scores.ndim)

    def behind(self, term: Term) -> set[str]:
        """The names of the variables behind the rows of a term; none for attention weights."""
        names: set[str] = set()
        seen: set[Term] = set()
        left = [term]
        while left:
            t = left.pop()
            if t in seen or self._weights(t):
                continue
            seen.add(t)
            if t.op == "var":
                names.add(str(t.data[0]))
            elif t.op == "bound" and t.ndim:
                left += self.starts
            elif t.op in ("gather", "pick", "slice", "named", "isin"):
                left.append(t.args[0])
            elif t.op in ("iterate", "tabulate"):
                left += t.args[1:]
            else:
                left += t.args
        return names

    def _products(self, scores: Term, axis: int) -> Iterator[tuple[Term, int]]:
        """Yield the matrix products in scores, each with its axis of the keys."""
        if scores.op == "matmul" and axis >= scores.ndim - 2:
            yield scores, axis
        for part, at in _beside(scores, axis):
            yield from self._products(part, at)

    def _written(self, scores: Term, axis: int) -> Iterator[tuple[str, int]]:
        """Yield the variables that enter scores entry by entry, each with its axis of the keys."""
        if scores.op == "var" and scores.shape[axis].op != "num" and tokens(scores.shape[axis]):
            yield str(scores.data[0]), axis
        for part, at in _beside(scores, axis):
            yield from self._written(part, at)

    def _weights(self, t: Term) -> bool:
        """Whether a term is a softmax, possibly moved or masked."""
        while t.op == "named" or t.op in ("gather", "pick", "permute", "broadcast", "new axis"):
            t = t.args[0]
        if t.op == "where":
            return any(map(self._weights, t.args[1:]))
        parts = t.args if t.op == "mul" else (t,)
        return any(part.op == "exp" and part.args[0] in self.softmaxes for part in parts)


def _beside(scores: Term, axis: int) -> Iterator[tuple[Term, int]]:
    """Yield the terms that make up scores entry by entry, each with its axis for this one."""
    data: Any = scores.data
    if scores.op == "named":
        yield scores.args[0], axis
    if scores.op not in ENTRYWISE:
        return
    inner = {"where": scores.args[1:], "gather": scores.args[:1], "pick": scores.args[:1]}
    for part in inner.get(scores.op, scores.args):
        at = axis
        if scores.op == "permute":
            at = data[axis]
        elif scores.op == "new axis":
            at = axis - (axis > data)
        elif scores.op == "pick":
            at = axis + (axis >= data)
        else:
            at = axis - scores.ndim + part.ndim
        if 0 <= at < part.ndim and not (scores.op == "new axis" and axis == data):
            yield part, at


# The changes of each distribution

SHIFT = 32.0  # of the common row of values, relative to the spread of the rest
SHARED_SHIFT = 2.0  # if it changes the scores as well
PEAKED, LARGE = 3.0, 100.0  # of the scores
CALM = 4 / 7  # factor on the entries other than a needle: their scores spread 1
ALONG = 2.0  # component of every query along the needle
ABOVE = 36.0  # of its score above the others; twice that if both sides are projected
CLUSTERS = 16
PRIME = 7_368_787  # separates the draws of distributions from earlier draws


@dataclass(frozen=True)
class _Tokens:
    """The token arrays of a statement, with the axis of tokens first, and their settings."""

    arrays: Mapping[str, Tensor]
    read: Mapping[str, AttentionInput]
    spread: float
    seed: int
    masked: bool

    def of(self, *roles: str) -> list[str]:
        """The arrays with one of these roles, or without any role."""
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
        """A direction of entries 1 and −1, the same for all arrays of one width."""
        width = like.shape[-1] if like.ndim > 1 else 1
        flips = torch.randint(2, (width,), generator=self.generator(width))
        return (2.0 * flips - 1).double()

    def places(self, count: int) -> tuple[int, int]:
        """Two places; under a mask, which may hide later ones, the first two."""
        if self.masked:
            return 0, min(1, count - 1)
        first, second = torch.randperm(count, generator=self.generator(count))[:2].tolist()
        return first, second

    def groups(self, count: int, most: int) -> Tensor:
        """A group for each of ``count`` rows, in random order, such that no group is empty."""
        every = torch.arange(count) % min(count, most)
        return every[torch.randperm(count, generator=self.generator(count))]


def in_distribution(
    statement: Statement, values: Mapping[str, Any], scale: Scale, seed: int
) -> dict[str, Any]:
    """Return the values with the tokens changed to the distribution of the scale.

    ``values`` are drawn as in the normal distribution.  Values that the distribution does not
    change are returned as the same objects.
    """
    change = _CHANGES.get(scale.distribution.name)
    if change is None:
        return dict(values)
    read = {
        k: r for k, r in attention_inputs(statement).items() if _has_enough_tokens(values.get(k), r)
    }
    arrays = {k: values[k].movedim(r.axis, 0) for k, r in read.items()}
    masked = any(p.op == "minus infinity" for t in terms_of(statement) for p in postorder(t))
    changed = change(_Tokens(arrays, read, scale.spread, seed, masked))
    return dict(values) | {k: x.movedim(0, read[k].axis).contiguous() for k, x in changed.items()}


def _has_enough_tokens(value: Any, read: AttentionInput) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.shape[read.axis] > 1


def _shifted(t: _Tokens) -> dict[str, Tensor]:
    """x_j + c, with the same c for all j."""
    changed = {}
    for name in t.of("value"):
        x, alone = t.arrays[name], not t.read[name].roles & {"query", "key", "score"}
        row = torch.randn(x.shape[1:], generator=t.generator(x.ndim), dtype=x.dtype)
        changed[name] = x + (SHIFT if alone else SHARED_SHIFT) * t.spread * row
    return changed


def _times(factor: float) -> Callable[[_Tokens], dict[str, Tensor]]:
    """Multiply scores by a factor: the queries, or both sides by its root if they are shared."""

    def change(t: _Tokens) -> dict[str, Tensor]:
        changed = {name: t.arrays[name] * factor for name in t.of("score")}
        share = math.sqrt(factor) if t.shared else factor
        sides = ("query", "key") if t.shared else ("query",)
        changed |= {name: t.arrays[name] * share for name in t.of(*sides)}
        if not changed:  # the query of these keys is not an array of tokens
            changed = {name: t.arrays[name] * factor for name in t.of("key")}
        return changed

    return change


def _needle(t: _Tokens) -> dict[str, Tensor]:
    """Let one key match all queries: q_i = a u + noise, k_j = noise except b u at one place.

    a and b are chosen so that its score stands out.  A projection or rotation between the two may
    flip the sign of the score, so −b u is at another place.  Without attention one row is far
    larger than the others.
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
    "peaked": lambda t: _times(PEAKED)(t) if t.attended else {},
    "needle": _needle,
    "large": _times(LARGE),
    "clustered": lambda t: _grouped(t, lambda n: max(2, min(CLUSTERS, n // 4)), "key", "score"),
    "constant": lambda t: _grouped(t, lambda _: 1, "query", "key", "value", "score"),
    "structured": _structured,
}
