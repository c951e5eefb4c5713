"""Equations of indices, [σ(a) = τ(b)], solved for one index or brought to one form."""

from __future__ import annotations

from ..derivation import Derivation, Reflexive
from ..rules import Refused
from ..scalars import entry
from ..terms import Term, free, make, substitute
from .equations import chain, reverse, rewrite

__all__ = ["Word", "common_word", "is_permutation", "settled", "solved", "strip_word", "words_on"]


Word = tuple[Term, ...]


def words_on(t: Term, j: Term) -> list[Word]:
    """The maps applied to each occurrence of an index, outermost first; () for none."""
    found: list[Word] = []

    def visit(x: Term, above: Word) -> None:
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
    """Whether the map is a given permutation or the inverse of one."""
    base = t.args[0] if t.op == "inverse" else t
    return base.op == "var" and base.data[1] == "permutation"


def inverse_of(sigma: Term) -> Term:
    return sigma.args[0] if sigma.op == "inverse" else make("inverse", (sigma,), shape=sigma.shape)


def strip_word(t: Term, j: Term, sigma: Term) -> Term:
    """t with σ(j) written as j, where j occurs only so."""
    holder = make("index", j.args, "»")
    return substitute(substitute(t, entry(sigma, j), holder), holder, j)


def common_word(touching: list[Term], j: Term) -> Term | None:
    """The inverse of the map to rename away: applied to every occurrence of the index."""
    words = [w for f in touching for w in words_on(f, j)]
    innermost = {w[-1] if w else None for w in words}
    if len(innermost) == 1:
        (sigma,) = innermost
        return None if sigma is None else inverse_of(sigma)
    return None


def _gate(a: Term, b: Term) -> Term:
    return make("indicator", (make("equal", (a, b)),))


def _is_permutation(array: Term) -> bool:
    return array.op == "var" and array.data[1] == "permutation"


def _peeled(gate: Term) -> Derivation | None:
    """[σ(a) = b] as [a = σ⁻¹(b)], and [σ⁻¹(a) = b] as [a = σ(b)], for the map on the left."""
    x, y = gate.args[0].args
    if x.op != "entry" or len(x.args) != 2:
        return None
    array, a = x.args
    try:
        if _is_permutation(array):
            return rewrite("injective", gate)
        if array.op == "inverse" and _is_permutation(array.args[0]):
            back = rewrite("injective", _gate(entry(array.args[0], y), a))
            if back.right is _gate(y, x):
                turned = rewrite("comparison", gate, y, x)
                step = chain(turned, reverse(back))
                return chain(step, rewrite("comparison", step.right, a, entry(array.args[0], y)))
    except Refused:
        pass
    return None


def solved(gate: Term, j: Term) -> Derivation | None:
    """An equation of indices as [j = a] with a free of j; None if it is none or cannot be."""
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
    """The index at the end of a word of permutations."""
    while t.op == "entry" and len(t.args) == 2:
        array = t.args[0].args[0] if t.args[0].op == "inverse" else t.args[0]
        if not _is_permutation(array):
            break
        t = t.args[1]
    return t


def settled(gate: Term) -> Derivation:
    """[v(a) = w(b)] for words v, w of permutations as [a = v⁻¹ w(b)], the smaller key first."""
    x, y = gate.args[0].args
    a, b = _base(x), _base(y)
    if a is b or (a is x and b is y) or "index" not in (a.op, b.op):
        return Reflexive(gate)
    first, other = (a, y) if a.key < b.key else (b, x)
    if first.op != "index" or first in free(other):
        return Reflexive(gate)
    step = solved(gate, first)
    return Reflexive(gate) if step is None else step
