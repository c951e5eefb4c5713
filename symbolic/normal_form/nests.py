"""Nested sums: opening and closing them, and reordering the sums of a nest."""

from __future__ import annotations

from ..derivation import Derivation, Reflexive
from ..scalars import index
from ..terms import Term, free, instantiate, make, substitute
from .equations import chain, rewrite, under

__all__ = ["exchanged", "flat", "innermost", "layers", "opened_index", "renamed", "wrap"]


def opened_index(t: Term, length: Term, skip: int = 0) -> Term:
    """The index for opening a binder: numbered by depth, so that equal terms open equally."""
    names = [str(v.data) for v in free(t) if v.op == "index"]
    depths = [int(name[1:]) for name in names if name[0] == "•" and name[1:].isdigit()]
    return index(f"•{max(depths, default=0) + 1 + skip}", length)


def flat(t: Term) -> tuple[Term, ...]:
    """The factors of a product; of any other term, itself."""
    return t.args if t.op == "mul" else (t,)


def layers(t: Term) -> tuple[list[Term], Term]:
    """The indices of nested sums, opened, and the innermost body."""
    indices: list[Term] = []
    start = t
    while t.op == "sum":
        j = opened_index(start, t.args[0], skip=len(indices))
        indices.append(j)
        t = instantiate(t.args[1], j)
    return indices, t


def wrap(t: Term, indices: list[Term], k: int, step: Derivation) -> Derivation:
    """An equation of the body of nested sums, as one of the sums from the k-th on."""
    if k == len(indices):
        return step
    inner = instantiate(t.args[1], indices[k])
    return under(t, (indices[k],), wrap(inner, indices, k + 1, step))


def innermost(t: Term, place: int, count: int) -> Derivation:
    """Nested sums reordered so that the sum at ``place`` stands last."""
    whole: Derivation = Reflexive(t)
    for k in range(place, count - 1):
        whole = chain(whole, exchanged(whole.right, k))
    return whole


def exchanged(t: Term, k: int) -> Derivation:
    """The k-th and the next of the nested sums exchanged."""
    indices, _ = layers(t)
    layer = t
    for j in indices[:k]:
        layer = instantiate(layer.args[1], j)
    return wrap(t, indices[:k], 0, rewrite("exchange", layer))


def renamed(t: Term, names: dict[Term, Term]) -> Term:
    """All the names replaced at once, so that they may be exchanged."""
    holders = {old: make("index", old.args, f"»{k}") for k, old in enumerate(names)}
    for old, holder in holders.items():
        t = substitute(t, old, holder)
    for old, holder in holders.items():
        t = substitute(t, holder, names[old])
    return t
