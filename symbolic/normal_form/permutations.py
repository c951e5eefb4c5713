"""Indices under permutations: the words of maps on an index, and [σ(a) = τ(b)] solved for one."""

from __future__ import annotations

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import entry
from ..terms import Term, free, make, substitute
from .equations import chain, inside, reverse, rewrite

Word = tuple[Term, ...]


def words_on(t: Term, j: Term) -> list[Word]:
    """Return the words of maps applied to the occurrences of an index, outermost map first.

    A word is () if no map is applied.  A shared part of t is visited once.
    """
    found: list[Word] = []
    seen: set[tuple[Term, Word]] = set()

    def visit(x: Term, above: Word) -> None:
        if (x, above) in seen:
            return
        seen.add((x, above))
        if x is j:
            found.append(above)
        elif x.op == "entry" and len(x.args) == 2 and is_permutation(x.args[0]):
            visit(x.args[1], (*above, x.args[0]))
        else:
            for arg in x.args:
                if j in free(arg):
                    visit(arg, ())

    visit(t, ())
    return found


def is_permutation(t: Term) -> bool:
    """Whether an index map is a given permutation or the inverse of one."""
    return _is_given_permutation(t.args[0] if t.op == "inverse" else t)


def inverse_of(sigma: Term) -> Term:
    """Return the inverse of an index map; for an inverse, the map itself."""
    return sigma.args[0] if sigma.op == "inverse" else make("inverse", (sigma,), shape=sigma.shape)


def strip_word(t: Term, j: Term, sigma: Term) -> Term:
    """Return t with σ(j) replaced by j, if j occurs only in this form."""
    holder = make("index", j.args, "»")
    return substitute(substitute(t, entry(sigma, j), holder), holder, j)


def common_word(touching: list[Term], j: Term) -> Term | None:
    """Return the inverse of the map applied innermost to every occurrence of the index, or None."""
    words = [w for f in touching for w in words_on(f, j)]
    innermost = {w[-1] if w else None for w in words}
    if len(innermost) == 1:
        (sigma,) = innermost
        return None if sigma is None else inverse_of(sigma)
    return None


def _gate(a: Term, b: Term) -> Term:
    return make("indicator", (make("equal", (a, b)),))


def _is_given_permutation(array: Term) -> bool:
    return array.op == "var" and array.data[1] == "permutation"


def solved_permutation(gate: Term) -> Derivation:
    """[σ(a) = b] = [a = σ⁻¹(b)] for a permutation, as [σ(a) = σ(σ⁻¹(b))]."""
    x, b = gate.args[0].args
    sigma = x.args[0]
    if b.op == "entry" and b.args[0] is sigma:
        return rewrite("injective", gate)
    inverse = make("inverse", (sigma,), shape=sigma.shape)
    there = rewrite("permutation", entry(sigma, entry(inverse, b)))
    step = inside(gate, [(0, inside(gate.args[0], [(1, reverse(there))]))])
    return chain(step, rewrite("injective", step.right))


def _peeled(gate: Term) -> Derivation | None:
    """Derive [σ(a) = b] = [a = σ⁻¹(b)] or [σ⁻¹(a) = b] = [a = σ(b)], or return None."""
    x, y = gate.args[0].args
    if x.op != "entry" or len(x.args) != 2:
        return None
    array, a = x.args
    try:
        if _is_given_permutation(array):
            return solved_permutation(gate)
        if array.op == "inverse" and _is_given_permutation(array.args[0]):
            back = solved_permutation(_gate(entry(array.args[0], y), a))
            if back.right is _gate(y, x):
                turned = rewrite("comparison", gate, y, x)
                step = chain(turned, reverse(back))
                return chain(step, rewrite("comparison", step.right, a, entry(array.args[0], y)))
    except Refused:
        pass
    return None


def solved(gate: Term, j: Term) -> Derivation | None:
    """Solve an equation of indices for j, as [j = a] with a free of j, or return None."""
    if gate.op != "indicator" or gate.args[0].op != "equal":
        return None
    x, y = gate.args[0].args
    for side, other in ((x, y), (y, x)):
        if j in free(other) or j not in free(side):
            continue
        step: Derivation = Reflexive(gate)
        if side is not x:
            step = rewrite("comparison", gate, side, other)
        while step.right.args[0].args[0] is not j:
            further = _peeled(step.right)
            if further is None:
                break
            step = chain(step, further)
        else:
            return step
    return None


def _base(t: Term) -> Term:
    """Return the index to which a word of permutations is applied."""
    while t.op == "entry" and len(t.args) == 2 and is_permutation(t.args[0]):
        t = t.args[1]
    return t


def settled(gate: Term) -> Derivation:
    """Solve [v(a) = w(b)], with words v, w of permutations, for the index with the smaller key."""
    x, y = gate.args[0].args
    a, b = _base(x), _base(y)
    if a is b or (a is x and b is y) or "index" not in (a.op, b.op):
        return Reflexive(gate)
    first, other = (a, y) if a.key < b.key else (b, x)
    if first.op != "index" or first in free(other):
        return Reflexive(gate)
    step = solved(gate, first)
    return Reflexive(gate) if step is None else step
