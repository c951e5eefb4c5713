"""Builders of derivations, and the canonical order of nested sums.

To order nested sums, each index is coloured by the factors it occurs in, with all other indices
made indistinguishable; only the orders among indices of equal colour are tried.  Inner sums are
sorted again after renaming, so outer indices are fixed before inner ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING

from ..budget import check_time
from ..derivation import Chain, Derivation, Inside, Reflexive, Reverse, Rewrite, Under
from ..rules import ON_SIGNS, applied
from ..signs import SearchedSigns
from ..terms import Term, bind, free, instantiate, is_opened, make, opened
from .polynomial import sign_facts

if TYPE_CHECKING:
    from .normaliser import Normaliser


# The parts of a term


@cache
def operations(term: Term) -> frozenset[str]:
    """Return the operations of a term and of its parts."""
    return frozenset((term.op,)).union(*(operations(part) for part in term.args))


def parts_with(term: Term, names: frozenset[Term]) -> Iterator[Term]:
    """Yield every distinct part that contains all these names, inner parts first."""
    seen: set[Term] = set()
    stack: list[tuple[Term, bool]] = [(term, False)]
    while stack:
        current, done = stack.pop()
        if done:
            yield current
        elif current not in seen:
            seen.add(current)
            if names <= free(current):
                stack.append((current, True))
                stack.extend((arg, False) for arg in reversed(current.args))


def occurs(old: Term, t: Term) -> bool:
    """Whether ``old`` is ``t`` or a part of it."""
    names = free(old)
    return names <= free(t) and old.op in operations(t) and old in parts_with(t, names)


# Builders of derivations, which leave out the steps that change nothing


def rewrite(rule: str, term: Term, *arguments: object) -> Derivation:
    """Apply a rule at the root of a term; raises ``Refused`` if it does not apply."""
    if rule not in ON_SIGNS:
        after, _ = applied(rule, term, arguments)
        return Reflexive(term) if after is term else Rewrite(rule, term, arguments, after)
    asked = SearchedSigns(sign_facts())
    after, used = applied(rule, term, arguments, asked)
    if after is term:
        return Reflexive(term)
    return Rewrite(rule, term, arguments, after, asked.steps(used))


def chain(*parts: Derivation) -> Derivation:
    """Chain equations, each starting where the last one ends."""
    flat: list[Derivation] = []
    for part in parts:
        if isinstance(part, Chain):
            flat.extend(part.parts)
        elif not isinstance(part, Reflexive):
            flat.append(part)
    if not flat or flat[0].left is flat[-1].right:
        return Reflexive(parts[0].left)
    for a, b in pairwise(flat):
        assert a.right is b.left, (a.right, b.left)
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def inside(term: Term, parts: Iterable[tuple[int, Derivation]]) -> Derivation:
    """Turn equations of some arguments of a term into an equation of the term."""
    kept = tuple((place, part) for place, part in parts if not isinstance(part, Reflexive))
    if not kept:
        return Reflexive(term)
    args = list(term.args)
    for place, part in kept:
        args[place] = part.right
    return Inside(term, kept, make(term.op, tuple(args), term.data, term.shape))


def under(term: Term, variables: tuple[Term, ...], part: Derivation) -> Derivation:
    """Turn an equation of the opened body into an equation of the binder."""
    if isinstance(part, Reflexive):
        return Reflexive(term)
    body = bind(part.right, *variables)
    return Under(
        term, variables, part, make(term.op, (*term.args[:-1], body), term.data, term.shape)
    )


def reverse(part: Derivation) -> Derivation:
    """Return the equation read from right to left."""
    if isinstance(part, Reflexive):
        return part
    return part.part if isinstance(part, Reverse) else Reverse(part)


# Nested sums: opening and closing them, and reordering the sums of a nest


def opened_index(t: Term, length: Term, skip: int = 0) -> Term:
    """Return an index for opening a binder, numbered by depth so that equal terms open equally."""
    return opened(length, f"•{_deepest(t) + 1 + skip}")


@cache
def _deepest(t: Term) -> int:
    names = [str(v.data) for v in free(t) if v.op == "index" and is_opened(v)]
    depths = [int(name[1:]) for name in names if name[0] == "•" and name[1:].isdigit()]
    return max(depths, default=0)


def flat(t: Term) -> tuple[Term, ...]:
    """Return the factors of a product; for any other term, the term."""
    return t.args if t.op == "mul" else (t,)


def layers(t: Term) -> tuple[list[Term], Term]:
    """Return the opened indices of nested sums and the innermost body."""
    indices: list[Term] = []
    start = t
    while t.op == "sum":
        check_time()
        j = opened_index(start, t.args[0], skip=len(indices))
        indices.append(j)
        t = instantiate(t.args[1], j)
    return indices, t


def wrap(t: Term, indices: list[Term], k: int, step: Derivation) -> Derivation:
    """Turn an equation of the innermost body into one of the nested sums from the k-th on."""
    if k == len(indices):
        return step
    inner = instantiate(t.args[1], indices[k])
    return under(t, (indices[k],), wrap(inner, indices, k + 1, step))


def innermost(t: Term, place: int, count: int) -> Derivation:
    """Derive the exchange of nested sums that makes the sum at ``place`` the innermost."""
    whole: Derivation = Reflexive(t)
    for k in range(place, count - 1):
        whole = chain(whole, exchanged(whole.right, k))
    return whole


def exchanged(t: Term, k: int) -> Derivation:
    """Derive the exchange of the k-th nested sum with the next."""
    indices, _ = layers(t)
    layer = t
    for j in indices[:k]:
        layer = instantiate(layer.args[1], j)
    return wrap(t, indices[:k], 0, rewrite("exchange", layer))


def renamed(t: Term, names: dict[Term, Term]) -> Term:
    """Return t with all names replaced simultaneously, so that names can be exchanged."""
    check_time()
    return instantiate(bind(t, *names), *names.values()) if names else t


# The canonical order of nested sums, independent of names


def ordered(norm: Normaliser, t: Term) -> Derivation:
    """Bring nested sums into their canonical order, and normalise the body under it."""
    indices, body = layers(t)
    if len(indices) == 1:
        return Reflexive(t)
    best: tuple[bytes, tuple[int, ...]] | None = None
    for order in _orders(norm, indices, body):
        names = dict(zip([indices[k] for k in order], indices, strict=True))
        if any(a.args != b.args for a, b in names.items()):
            names = {old: opened(old.args[0], str(new.data)) for old, new in names.items()}
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
    """Yield the candidate orders of the indices: by colour, in all ways within a colour."""
    factors = body.args if body.op == "mul" else (body,)
    colours: list[tuple[bytes, ...]] = []
    alike = Counter(j.args[0] for j in indices)
    for j in indices:
        names = {i: opened(i.args[0], "?" if i is not j else "!") for i in indices}
        tied = [f for f in factors if j in free(f)] if alike[j.args[0]] > 1 else []
        seen = sorted(norm(renamed(f, names)).right.key for f in tied)
        colours.append((j.args[0].key, *seen))
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for k, colour in enumerate(colours):
        groups.setdefault(colour, []).append(k)
    ties = [permutations(groups[colour]) for colour in sorted(groups)]
    for choice in product(*ties):
        yield tuple(k for group in choice for k in group)
