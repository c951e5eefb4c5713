"""The order of nested sums, chosen without looking at any accidental name.

Each index is coloured by what it is tied to, with all other indices of the nest made alike; only
ties between colours are tried out.  Inner sums are sorted again under the names given here, so
outer indices are fixed before inner ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..scalars import index
from ..terms import Term, free, substitute
from .equations import chain
from .nests import exchanged, layers, renamed, wrap

if TYPE_CHECKING:
    from .normaliser import Normaliser

__all__ = ["ordered"]


def ordered(norm: Normaliser, t: Term) -> Derivation:
    """Nested sums in the order that no name decides, their body sorted under that order."""
    indices, body = layers(t)
    if len(indices) == 1:
        return Reflexive(t)
    best: tuple[bytes, tuple[int, ...]] | None = None
    for order in _orders(norm, indices, body):
        names = dict(zip([indices[k] for k in order], indices, strict=True))
        if any(a.args != b.args for a, b in names.items()):
            names = {old: index(str(new.data), old.args[0]) for old, new in names.items()}
        key = norm(renamed(body, names)).right.key
        lengths = b"".join(indices[k].args[0].key for k in order)
        if best is None or (lengths + key, order) < best:
            best = (lengths + key, order)
    assert best is not None
    whole: Derivation = Reflexive(t)
    current = list(range(len(indices)))
    for target, wanted in enumerate(best[1]):
        for k in range(current.index(wanted), target, -1):
            whole = chain(whole, exchanged(whole.right, k - 1))
            current[k - 1], current[k] = current[k], current[k - 1]
    names_, inner = layers(whole.right)
    return chain(whole, wrap(whole.right, names_, 0, norm(inner)))


def _orders(norm: Normaliser, indices: list[Term], body: Term) -> Iterator[tuple[int, ...]]:
    """Orders of the indices: by what each is tied to, and all orders among ties."""
    factors = body.args if body.op == "mul" else (body,)
    colours: list[tuple[bytes, ...]] = []
    for j in indices:
        names = {i: index("?" if i is not j else "!", i.args[0]) for i in indices}
        seen = Counter(norm(_anonymous(f, names)).right.key for f in factors if j in free(f))
        colours.append((j.args[0].key, *sorted(seen.elements())))
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for k, colour in enumerate(colours):
        groups.setdefault(colour, []).append(k)
    ties = [permutations(groups[colour]) for colour in sorted(groups)]
    for choice in product(*ties):
        yield tuple(k for group in choice for k in group)


def _anonymous(t: Term, names: dict[Term, Term]) -> Term:
    for old, new in names.items():
        t = substitute(t, old, new)
    return t
