"""Other forms of a normal form, in which its sign can be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

from ..derivation import Derivation
from ..scalars import add, mul, num, power
from ..signs import sign
from ..terms import Term, bind, free, instantiate, make, postorder, substitute
from .equations import chain, flat, layers, opened_index, reverse
from .polynomial import expand


def with_squares(norm: Callable[[Term], Derivation], t: Term) -> Derivation | None:
    """The normal form of t with (Σ_j f(j))² for Σ_j Σ_k f(j)·f(k), or None."""
    first = norm(t)
    target = first.right
    for atom in dict.fromkeys(a for m in expand(target) for a, _ in m if a.op == "sum"):
        target = substitute(target, atom, _as_square(atom))
    return _continued(norm, first, target)


def _continued(
    norm: Callable[[Term], Derivation], first: Derivation, form: Term
) -> Derivation | None:
    """Continue from a normal form to another form that has it, or return None."""
    if form is first.right:
        return None
    back = norm(form)
    return chain(first, reverse(back)) if back.right is first.right else None


def _as_square(t: Term) -> Term:
    """A nest of sums with one square of a sum in it, or the nest itself."""
    indices, body = layers(t)
    factors = flat(body)
    for j, k in combinations(indices, 2):
        one, other = (mul(*(f for f in factors if at in free(f))) for at in (j, k))
        alike = j.args[0] is k.args[0] and k not in free(one) and j not in free(other)
        if alike and expand(substitute(one, j, k)) == expand(other):
            inner = make("sum", (j.args[0], bind(one, j)))
            found = mul(*(f for f in factors if not {j, k} & free(f)), power(inner, 2))
            for at in reversed([at for at in indices if at not in (j, k)]):
                found = make("sum", (at.args[0], bind(found, at)))
            return found
    return t


def with_magnitudes(norm: Callable[[Term], Derivation], t: Term) -> Derivation | None:
    """The normal form of t with |x|² for x² where |x| occurs too, or None."""
    first = norm(t)
    known = {part.args[0]: part for part in postorder(first.right) if part.op == "abs"}

    def squared(x: Term) -> Term:
        if x.op == "power" and x.data == 2 and x.args[0] in known:
            return power(known[x.args[0]], 2)
        return make(x.op, tuple(map(squared, x.args)), x.data, x.shape)

    return _continued(norm, first, squared(first.right)) if known else None


def over_tangents(norm: Callable[[Term], Derivation], t: Term) -> Derivation | None:
    """The normal form of t as Σ_j w(j)·(exp(y(j)) − 1 − y(j)), or None.

    With weights w of sum 1 these are Gibbs' inequality and what a log-sum-exp is above its tangent.
    """
    first = norm(t)
    if not any(part.op == "log" for part in postorder(first.right)):
        return None
    forms = (_continued(norm, first, form) for form in _over_tangents(first.right))
    return next((form for form in forms if form is not None), None)


def _over_tangents(t: Term) -> Iterator[Term]:
    """For the sums of t over one axis, such a form with what they have in common as weights."""
    terms = [(c, [power(a, k) for a, k in m]) for m, c in expand(t).items()]
    lengths = {a.args[0]: None for _, m in terms for a in m if a.op == "sum" and a.finite}
    for length in sorted(lengths, key=lambda n: n.key):
        j = opened_index(t, length)
        weighted, rest = list[tuple[Fraction, list[Term]]](), list[Term]()
        for c, m in terms:
            own = next((a for a in m if a.op == "sum" and a.args[0] is length), None)
            if own is None:
                rest.append(mul(num(-c), *m))
            else:
                others = [a for a in m if a is not own]
                weighted.append((c, [*others, *flat(instantiate(own.args[1], j))]))
        weight = Counter(f for f in weighted[0][1] if sign(f)[0] > 0)
        for _, factors in weighted[1:]:
            weight &= Counter(factors)
        y = [mul(num(-c), *(Counter(factors) - weight).elements()) for c, factors in weighted]
        gap = add(make("exp", (add(*y, *rest),)), num(-1), mul(num(-1), add(*y, *rest)))
        yield make("sum", (length, bind(mul(*weight.elements(), gap), j)))
