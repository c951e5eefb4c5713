"""Which givens attention reads as queries, keys, values or scores, found by walking the terms.

Wherever exponentials are summed over an axis, there is a softmax over it, named or written out.
Of its scores, a product of matrices has the queries on one side and the keys on the other; what
the weights are multiplied with are the values.  From there givens are followed through gathers,
projections, rotations, sums, layers and functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, postorder

from .scale import terms_of, tokens

__all__ = ["Read", "read_as"]

BESIDE = ("broadcast", "add", "mul", "where", "maximum", "gather", "permute", "pick", "new axis")
"""What is done to scores entry by entry, or only moves them."""


@dataclass(frozen=True)
class Read:
    """A real given that holds tokens: the axis they run over, and what it is read as.

    ``roles`` are some of "query", "key", "value" and "score"; of a score the axis is that of the
    keys.  Without attention there are none.
    """

    name: str
    axis: int
    roles: frozenset[str]


def read_as(statement: Statement) -> dict[str, Read]:
    """The real givens with tokens that attention reads, by name; all of them if there is none."""
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
            found[name] = Read(name, axes.get(name, over[0]), frozenset(roles.get(name, ())))
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
        """Each role with names of givens that have it."""
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
        """Givens that are scores themselves, with the axis of their keys."""
        for scores, axis in self.softmaxes.items():
            if not list(self._products(scores, axis + scores.ndim)):
                yield from self._written(scores, axis + scores.ndim)

    def behind(self, term: Term) -> set[str]:
        """The names of the variables that make the rows of a term; of weights there are none."""
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
        """The products of matrices that scores are made of, each with its axis of the keys."""
        if scores.op == "matmul" and axis >= scores.ndim - 2:
            yield scores, axis
        for part, at in _beside(scores, axis):
            yield from self._products(part, at)

    def _written(self, scores: Term, axis: int) -> Iterator[tuple[str, int]]:
        """The variables that scores are read from entry by entry."""
        if scores.op == "var" and scores.shape[axis].op != "num" and tokens(scores.shape[axis]):
            yield str(scores.data[0]), axis
        for part, at in _beside(scores, axis):
            yield from self._written(part, at)

    def _weights(self, t: Term) -> bool:
        """Whether a term is a softmax, moved or masked or not."""
        while t.op == "named" or t.op in ("gather", "pick", "permute", "broadcast", "new axis"):
            t = t.args[0]
        if t.op == "where":
            return any(map(self._weights, t.args[1:]))
        parts = t.args if t.op == "mul" else (t,)
        return any(_exponential(part, self.softmaxes) for part in parts)


def _exponential(t: Term, softmaxes: Iterable[Term]) -> bool:
    return t.op == "exp" and t.args[0] in softmaxes


def _beside(scores: Term, axis: int) -> Iterator[tuple[Term, int]]:
    """What scores are made of entry by entry, each part with the axis it has for this one."""
    data: Any = scores.data
    if scores.op == "named":
        yield scores.args[0], axis
    if scores.op not in BESIDE:
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
