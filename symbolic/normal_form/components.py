"""Components of a sum: nested sums over one product in which every index is tied to the others.

Equal indices are contracted, orthogonal pairs summed, and a map that stands on every occurrence
of an index is renamed away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules import Refused
from ..scalars import entry, mul, power
from ..terms import Term, bind, free, instantiate, make
from .equations import chain, inside, reverse, rewrite, under
from .nests import flat, innermost, layers, opened_index, renamed, wrap
from .order import ordered
from .words import common_word

if TYPE_CHECKING:
    from .normaliser import Normaliser

__all__ = ["component"]


def component(norm: Normaliser, t: Term) -> Derivation:
    """A sum of one product in which every factor depends on the index."""
    front = _prenex(t)
    step = _contracted(front.right)
    if step is not None:
        return norm.then(chain(front, step))
    return chain(front, ordered(norm, front.right))


def _prenex(t: Term) -> Derivation:
    """Sums among the factors moved to the front: Σ_j a·Σ_k b = Σ_j Σ_k a·b."""
    whole: Derivation = Reflexive(t)
    while True:
        indices, body = layers(whole.right)
        factors = flat(body)
        step = next((p for k in range(len(factors)) if (p := _pulled(factors, k, body))), None)
        if step is None:
            return whole
        whole = chain(whole, wrap(whole.right, indices, 0, step))


def _pulled(factors: tuple[Term, ...], place: int, body: Term) -> Derivation | None:
    """a·(Σ_k b)^m as Σ_k a·(Σ_k b)^{m−1}·b, for the factor at a place, or None."""
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


def _contracted(t: Term) -> Derivation | None:
    """One contraction of a component, or None."""
    indices, body = layers(t)
    factors = body.args if body.op == "mul" else (body,)
    for place, j in enumerate(indices):
        local = _contraction(factors, j)
        if local is None:
            continue
        rule, arrangement, arguments = local
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
        if target is not inner:
            arrange = _gate_steps(inner, target)
        step = under(around, (last,), arrange)
        if rule == "orthogonal" and len(flat(target)) > 2:
            step = chain(step, rewrite("factor", step.right, len(flat(target)) - 2))
            end = len(step.right.args) - 1
            summed = rewrite(rule, step.right.args[end])
            step = chain(step, inside(step.right, [(end, summed)]))
        else:
            step = chain(step, rewrite(rule, step.right, *args))
        return chain(moved, wrap(moved.right, names[:-1], 0, step))
    return None


def _gate_steps(inner: Term, target: Term) -> Derivation:
    """From the sorted product to the arrangement a contraction needs."""
    try:
        return rewrite("ring", inner, target)
    except Refused:
        gate, *_ = target.args if target.op == "mul" else (target,)
        for place, factor in enumerate(inner.args if inner.op == "mul" else (inner,)):
            if factor.op != "indicator" or factor.args[0].op != "equal":
                continue
            for a, b in (factor.args[0].args, reversed(factor.args[0].args)):
                turned = make("indicator", (make("equal", (a, b)),))
                try:
                    swap = rewrite("comparison", factor, a, b)
                    solve = rewrite("injective", turned)
                except Refused:
                    continue
                if solve.right is gate:
                    solved = chain(swap, solve)
                    whole = inside(inner, [(place, solved)]) if inner.op == "mul" else solved
                    return chain(whole, rewrite("ring", whole.right, target))
        raise


Contraction = tuple[str, Term, tuple[Term, ...]]


def _contraction(factors: tuple[Term, ...], j: Term) -> Contraction | None:
    """(rule, the product as the rule wants it, arguments) for an index, or None."""
    touching = [f for f in factors if j in free(f)]
    others = [f for f in factors if j not in free(f)]
    for gate in touching:
        if gate.op == "indicator" and gate.args[0].op == "equal":
            solved = _solved(gate, j)
            if solved is not None:
                rest = [f for f in factors if f is not gate]
                return "delta", mul(solved, *rest), ()
    pair = [x for f in touching for x in _copies(f)]
    if len(pair) == 2 and all(x.op == "entry" and len(x.args) == 3 for x in pair):
        x, y = pair
        g = x.args[0]
        turned = g is y.args[0] and g.op == "var" and g.data[1] == "orthogonal"
        if turned and any(x.args[k] is y.args[k] is j for k in (1, 2)):
            return "orthogonal", make("mul", (*others, x, y)), ()
    word = common_word(touching, j)
    if word is not None:
        return "reindex", mul(*factors), (word,)
    return None


def _copies(f: Term) -> list[Term]:
    if f.op == "power" and isinstance(f.data, int) and f.data > 0:
        return [f.args[0]] * f.data
    return [f]


def _solved(gate: Term, j: Term) -> Term | None:
    """The gate as [j = a] with a free of j, if it can be solved for j."""
    for x, y in (gate.args[0].args, reversed(gate.args[0].args)):
        if x is j and j not in free(y):
            return gate
        if x.op == "entry" and x.args[1:] == (j,) and j not in free(y):
            sigma = x.args[0]
            if sigma.op == "var" and sigma.data[1] == "permutation":
                inverse = make("inverse", (sigma,), shape=sigma.shape)
                return make("indicator", (make("equal", (j, entry(inverse, y))),))
    return None
