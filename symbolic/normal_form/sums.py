"""Finite sums in the normal form.

A sum of products becomes the factors that do not depend on the index times one *component*: nested
sums over one product of atoms in which every index is tied to the others.  In a component, indices
fixed by an equation are contracted, orthogonal pairs are summed, and a map applied to every
occurrence of an index is removed by reindexing.  Last, the nested sums are put into an order that
does not depend on names.

In statements, lengths are symbolic, and the few literal ones are small: two channels of a pair,
three parts of a proof.  In programs all lengths are literal, heads and features, and sums over them
are best kept as sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import (
    ONE,
    ZERO,
    always_less,
    below,
    integer,
    mul,
    number_of,
    power,
    split_integer,
    subtract,
)
from ..terms import Term, bind, free, instantiate, make
from . import derived
from .equations import (
    chain,
    flat,
    innermost,
    inside,
    layers,
    opened_index,
    operations,
    ordered,
    parts_with,
    renamed,
    reverse,
    rewrite,
    under,
    wrap,
)
from .matching import copies, in_sum, rewritten
from .permutations import common_word, solved
from .polynomial import expand, positive

if TYPE_CHECKING:
    from .normaliser import Normaliser


# The literal length up to which an axis is written out entry by entry

DEFAULT_LONGEST = 8
_LONGEST: ContextVar[int] = ContextVar("longest", default=DEFAULT_LONGEST)


def longest_written_out() -> int:
    """Return the length of the longest literal axis that is written out."""
    return _LONGEST.get()


@contextmanager
def written_out(most: int) -> Iterator[None]:
    """Write out only axes of literal length up to ``most`` inside the block."""
    token = _LONGEST.set(most)
    try:
        yield
    finally:
        _LONGEST.reset(token)


# Components of a sum: nested sums over one product in which every index is tied to the others


def component(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a sum of one product in which every factor depends on the index."""
    front = _prenex(t)
    step = _contracted(norm, front.right)
    if step is not None:
        return norm.then(chain(front, step))
    return chain(front, ordered(norm, front.right))


def _prenex(t: Term) -> Derivation:
    """Move sums among the factors to the front: Σ_j a·Σ_k b = Σ_j Σ_k a·b."""
    whole: Derivation = Reflexive(t)
    while True:
        indices, body = layers(whole.right)
        factors = flat(body)
        step = next((p for k in range(len(factors)) if (p := _pulled(factors, k, body))), None)
        if step is None:
            return whole
        whole = chain(whole, wrap(whole.right, indices, 0, step))


def _pulled(factors: tuple[Term, ...], place: int, body: Term) -> Derivation | None:
    """Derive a·(Σ_k b)^m = Σ_k a·(Σ_k b)^{m−1}·b, for the factor at a place, or return None."""
    factor = factors[place]
    exponent = factor.data if factor.op == "power" else 1
    inner = factor.args[0] if factor.op == "power" else factor
    if inner.op != "sum" or not isinstance(exponent, int) or exponent < 1 or body is inner:
        return None
    others = [x for k, f in enumerate(factors) if k != place for x in flat(f)]
    if exponent > 1:
        others.append(power(inner, exponent - 1))
    target = make("mul", (*others, inner))
    k = opened_index(body, inner.args[0])
    wide = make("mul", (*others, *flat(instantiate(inner.args[1], k))))
    pulled = make("sum", (inner.args[0], bind(wide, k)))
    back = rewrite("factor", pulled, len(others))
    return chain(rewrite("ring", body, target), reverse(back))


def _contracted(norm: Normaliser, t: Term) -> Derivation | None:
    """Derive one contraction of a component, or return None."""
    indices, body = layers(t)
    factors = body.args if body.op == "mul" else (body,)
    for place, j in enumerate(indices):
        local = _contraction(factors, j) or _divided_sum(norm, factors, j)
        if local is None:
            continue
        rule, arrangement, arguments, outside = local
        moved = innermost(t, place, len(indices))
        names, inner = layers(moved.right)
        translate = dict(zip([*indices[:place], *indices[place + 1 :], j], names, strict=True))
        target = renamed(arrangement, translate)
        args = tuple(renamed(a, translate) for a in arguments)
        last = names[-1]
        around = moved.right
        for name in names[:-1]:
            around = instantiate(around.args[1], name)
        arrange: Derivation = Reflexive(inner)
        if rule == "delta":
            arrange = _gate_solved(inner, names[-1])
        if target is not arrange.right:
            arrange = chain(arrange, rewrite("ring", arrange.right, target))
        step = under(around, (last,), arrange)
        if outside:
            step = chain(step, rewrite("factor", step.right, outside))
        end = len(step.right.args) - 1
        part = step.right.args[end] if outside else step.right
        summed = _DERIVED.get(rule, partial(rewrite, rule))(part, *args)
        step = chain(step, inside(step.right, [(end, summed)]) if outside else summed)
        return chain(moved, wrap(moved.right, names[:-1], 0, step))
    return _by_equation(norm, t, indices, factors) if norm.assume else None


def _divided_sum(norm: Normaliser, factors: tuple[Term, ...], j: Term) -> Contraction | None:
    """Take the sum over j to itself if another factor is its inverse: Σ_j f(j)/(Σ_j f(j)) = 1.

    A sum that may be 0 does not cancel, and would be moved back among the others, without end.
    """
    others = [f for f in factors if j not in free(f)]
    below = {f.args[0] for f in others if f.op == "power" and f.data < 0}
    if not any(x.op == "sum" for x in below):
        return None
    touching = [f for f in factors if j in free(f)]
    whole = norm(make("sum", (j.args[0], bind(mul(*touching), j)))).right
    if whole not in below or not positive(whole):
        return None
    apart = [x for f in others for x in flat(f)]
    return "itself", make("mul", (*apart, *touching)), (), len(apart)


def _choice(gate: Term, j: Term) -> Derivation | None:
    """Solve an indicator for j as [j = a] with a certainly in the range of j, or return None."""
    step = solved(gate, j)
    return step if step is not None and below(step.right.args[0].args[1], j.args[0]) else None


def _gate_solved(inner: Term, j: Term) -> Derivation:
    """Solve the first indicator of a product that can be solved for j."""
    for place, factor in enumerate(inner.args if inner.op == "mul" else (inner,)):
        step = _choice(factor, j)
        if step is not None:
            return inside(inner, [(place, step)]) if inner.op == "mul" else step
    return Reflexive(inner)


def _by_equation(
    norm: Normaliser, t: Term, indices: list[Term], factors: Sequence[Term]
) -> Derivation | None:
    """Rewrite a part of nested sums by an assumed equation, or return None."""
    found = in_sum(norm, indices, factors)
    if found is None:
        return None
    moved: Derivation = Reflexive(t)
    order = list(indices)
    for j in found.summed:
        moved = chain(moved, innermost(moved.right, order.index(j), len(order)))
        order.append(order.pop(order.index(j)))
    names, inner = layers(moved.right)
    translate = dict(zip(order, names, strict=True))
    rest = [renamed(f, translate) for f in found.outside]
    target = mul(*rest, *(renamed(f, translate) for f in found.factors))
    step: Derivation = Reflexive(inner) if target is inner else rewrite("ring", inner, target)
    outer, count = len(names) - len(found.summed), len([x for f in rest for x in flat(f)])
    for depth in range(len(names) - 1, outer - 1, -1):
        around = moved.right
        for name in names[:depth]:
            around = instantiate(around.args[1], name)
        step = under(around, (names[depth],), step)
        if rest:
            step = chain(step, rewrite("factor", step.right, count))
    values = {p: renamed(v, translate) for p, v in found.values.items()}
    part = step.right.args[-1] if rest else step.right
    last = rewritten(norm, part, found.pattern, values)
    if last is None:
        return None
    step = chain(step, inside(step.right, [(len(step.right.args) - 1, last)]) if rest else last)
    return chain(moved, wrap(moved.right, names[:outer], 0, step))


Contraction = tuple[str, Term, tuple[Term, ...], int]
_DERIVED: dict[str, Callable[..., Derivation]] = {
    "reindex": derived.reindexed,
    "reflect": derived.reflected,
    "itself": Reflexive,
}


def _contraction(factors: tuple[Term, ...], j: Term) -> Contraction | None:
    """Return (rule, product arranged for it, arguments, factors outside) for an index, or None."""
    touching = [f for f in factors if j in free(f)]
    others = [f for f in factors if j not in free(f)]
    for gate in touching:
        if gate.op == "indicator" and gate.args[0].op == "equal":
            step = _choice(gate, j)
            if step is not None:
                rest = [f for f in factors if f is not gate]
                return "delta", mul(step.right, *rest), (), 0
    pair = [x for f in touching for x in copies(f)]
    outside = len([x for f in others for x in flat(f)])
    if len(pair) == 2 and all(x.op == "entry" and len(x.args) == 3 for x in pair):
        x, y = pair
        g = x.args[0]
        turned = g is y.args[0] and g.op == "var" and g.data[1] == "orthogonal"
        if turned and any(x.args[k] is y.args[k] is j for k in (1, 2)):
            return "orthogonal", make("mul", (*others, x, y)), (), outside
    if j.args[0].op == "space" and len(pair) <= 2 and all(_is_standard(x, j) for x in pair):
        return "standard", mul(*others, *pair), (), outside
    if len(touching) == 1 and _counted(touching[0], j):
        return "count", mul(*others, *touching), (), outside
    word = common_word(touching, j)
    if word is not None:
        return "reindex", mul(*factors), (word,), 0
    if _backwards(touching, j):
        return "reflect", mul(*factors), (), 0
    return None


def _backwards(factors: Sequence[Term], j: Term) -> bool:
    """Whether arrays are read at indices that fall with j (n − 1 − j), and none that rise."""
    signs = set[bool]()
    here = frozenset((j,))
    for t in (part for f in factors for part in parts_with(f, here) if part.op == "entry"):
        for at in t.args[1:]:
            for monomial, c in expand(at).items():
                if any(atom is j for atom, _ in monomial):
                    signs.add(c > 0)
    return signs == {False}


def _is_standard(x: Term, j: Term) -> bool:
    """Whether a factor is one of the random numbers z[j, i] given as standard."""
    if x.op != "entry" or len(x.args) != 3 or x.args[1] is not j or j in free(x.args[2]):
        return False
    return x.args[0].op == "var" and x.args[0].data[1] == "standard"


def _counted(f: Term, j: Term) -> bool:
    """Whether a factor is [j <= m] or [j < m] with m on the axis."""
    if f.op != "indicator" or f.args[0].op not in ("less", "less_equal"):
        return False
    try:
        rewrite("count", make("sum", (j.args[0], bind(f, j))))
    except Refused:
        return False
    return True


# The normal form of a sum


def summation(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a sum."""
    length = t.args[0]
    count = number_of(length)
    if count is not None and count <= longest_written_out():
        return norm.at("unroll", t)
    if integer(length) is not length:
        return norm.then(inside(t, [(0, derived.sorted_integer(length))]))
    j = opened_index(t, length)
    body = norm(instantiate(t.args[1], j))
    split = _needed_split(body.right, j, length) or norm.splits.get(length)
    if split is not None:
        kind, size = split
        if kind == "digits":
            return norm.then(derived.in_digits(t, split_integer(length, size)[0], size))
        return norm.at("cut", t, size)
    first = under(t, (j,), body)
    return chain(first, _summed(norm, first.right, j))


SPLITTING = frozenset(("floor_divide", "remainder", "concat"))


def _needed_split(body: Term, j: Term, length: Term) -> tuple[str, Term] | None:
    """Return the split of the axis that the body needs for a division or a concat, or None."""
    if SPLITTING.isdisjoint(operations(body)):
        return None
    for part in parts_with(body, frozenset((j,))):
        if part.op in ("floor_divide", "remainder") and j in free(part.args[0]):
            width = part.args[1]
            if width is not ONE and number_of(split_integer(length, width)[1]) == 0:
                return ("digits", width)
        if part.op == "entry" and part.args[0].op == "concat":
            axis: Any = part.args[0].data
            place, first = part.args[1 + axis], part.args[0].args[0].shape[axis]
            if j in free(place):
                seam = integer(subtract(first, subtract(place, j)))
                known = j not in free(seam) and always_less(ZERO, seam)
                return ("cut", seam if known and always_less(seam, length) else first)
    return None


def _summed(norm: Normaliser, t: Term, j: Term) -> Derivation:
    """Normalise a sum whose body is in normal form."""
    body = instantiate(t.args[1], j)
    if body.op == "add":
        step = rewrite("distribute", t)
        parts = [(k, norm(part)) for k, part in enumerate(step.right.args)]
        whole = chain(step, inside(step.right, parts))
        return chain(whole, norm.settle(whole.right))
    if body is ZERO or body is ONE:
        return rewrite("constant", t)
    factors = body.args if body.op == "mul" else (body,)
    outside = [f for f in factors if j not in free(f)]
    inner = [f for f in factors if j in free(f)]
    if outside:
        target = mul(*outside, *inner) if inner else mul(*outside, ONE)
        sorted_ = rewrite("ring", body, target)
        first = under(t, (j,), sorted_)
        taken = rewrite("factor", first.right, len(outside))
        last = len(taken.right.args) - 1
        rest = inside(taken.right, [(last, norm(taken.right.args[last]))])
        whole = chain(first, taken, rest)
        return chain(whole, norm.settle(whole.right))
    return component(norm, t)
