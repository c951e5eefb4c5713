"""Maps applied to a bound index: which, in what order, and how to take one away."""

from __future__ import annotations

from ..scalars import entry
from ..terms import Term, free, make, substitute

__all__ = ["Word", "common_word", "is_permutation", "strip_word", "words_on"]

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
