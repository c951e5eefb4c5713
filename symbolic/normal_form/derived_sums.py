"""Steps on sums that follow from contraction and exchange, so that the kernel needs no rule.

The first three replace the index: Σ_j f(j) = Σ_j Σ_k [k = g(j)]·f(j) = Σ_k Σ_j [j = h(k)]·f(j)
= Σ_k f(h(k)), where g and h are inverse to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

from ..derivation import Derivation
from ..scalars import add, entry, indicator, integer, mul, num, power
from ..signs import sign
from ..terms import Term, bind, free, instantiate, make, postorder, substitute
from . import derived
from .equations import chain, flat, inside, layers, opened_index, reverse, rewrite, under
from .permutations import inverse_of
from .polynomial import expand

Solve = Callable[[Term, Term, Term], Derivation]


def reflected(t: Term) -> Derivation:
    """Σ_{j<n} f(j) = Σ_{j<n} f(n − 1 − j)."""
    length = t.args[0]

    def opposite(j: Term) -> Term:
        return integer(add(length, num(-1), mul(num(-1), j)))

    def solve(gate: Term, j: Term, k: Term) -> Derivation:
        return rewrite("comparison", gate, j, opposite(k))

    return _replaced(t, opposite, solve)


def reindexed(t: Term, sigma: Term) -> Derivation:
    """Σ_j f(j) = Σ_j f(σ(j)) for a permutation σ, or the inverse of one."""
    inverse = inverse_of(sigma)

    def solve(gate: Term, j: Term, k: Term) -> Derivation:
        if sigma.op == "inverse":
            turned = rewrite("comparison", gate, entry(inverse, j), k)
            return chain(turned, derived.solved_permutation(turned.right))
        step = reverse(derived.solved_permutation(indicator("equal", entry(sigma, k), j)))
        return chain(step, rewrite("comparison", step.right, j, entry(sigma, k)))

    return _replaced(t, lambda j: entry(inverse, j), solve)


def _replaced(t: Term, g: Callable[[Term], Term], solve: Solve) -> Derivation:
    """Σ_j f(j) = Σ_k f(h(k)) over one length; ``solve`` derives [k = g(j)] = [j = h(k)]."""
    length = t.args[0]
    j, k = (opened_index(t, length, skip) for skip in (0, 1))
    first = under(t, (j,), _inserted(instantiate(t.args[1], j), k, indicator("equal", k, g(j))))
    step = chain(first, rewrite("exchange", first.right))
    part = instantiate(step.right.args[1], k)
    product = instantiate(part.args[1], j)
    solved = under(part, (j,), inside(product, [(0, solve(product.args[0], j, k))]))
    solved = chain(solved, rewrite("delta", solved.right))
    return chain(step, under(step.right, (k,), solved))


def _inserted(body: Term, k: Term, gate: Term) -> Derivation:
    """Derive f = Σ_k [k = x]·f or Σ_k [x = k]·f, for an x on the axis of k."""
    product = mul(gate, body)
    return reverse(rewrite("delta", make("sum", (k.args[0], bind(product, k)))))


def in_digits(t: Term, blocks: Term, width: Term) -> Derivation:
    """Σ_{j < mk} f(j) = Σ_{a < m} Σ_{b < k} f(a·k + b), by a = ⌊j/k⌋ and b = j mod k."""
    j = opened_index(t, t.args[0])
    a, b = opened_index(t, blocks, 1), opened_index(t, width, 2)
    high, low = make("floor_divide", (j, width)), make("remainder", (j, width))
    body = instantiate(t.args[1], j)
    once = _inserted(body, a, indicator("equal", high, a))
    opened = instantiate(once.right.args[1], a)
    once = chain(once, under(once.right, (a,), _inserted(opened, b, indicator("equal", low, b))))
    step = under(t, (j,), once)
    step = chain(step, rewrite("exchange", step.right))
    part = instantiate(step.right.args[1], a)
    step = chain(step, under(step.right, (a,), rewrite("exchange", part)))
    part = instantiate(instantiate(step.right.args[1], a).args[1], b)
    gates = _digits(j, a, b, width)
    product = instantiate(part.args[1], j)
    grouped = make("mul", (gates.right, *flat(body)))
    solved = chain(rewrite("ring", product, grouped), inside(grouped, [(0, reverse(gates))]))
    solved = under(part, (j,), solved)
    solved = chain(solved, rewrite("delta", solved.right))
    around = instantiate(step.right.args[1], a)
    return chain(step, under(step.right, (a,), under(around, (b,), solved)))


def _digits(j: Term, a: Term, b: Term, width: Term) -> Derivation:
    """Derive [j = a·k + b] = [⌊j/k⌋ = a]·[j mod k = b], by j = ⌊j/k⌋·k + j mod k."""
    gate = indicator("equal", j, integer(add(mul(a, width), b)))
    rest = rewrite("remainder", make("remainder", (j, width)))
    whole = add(mul(make("floor_divide", (j, width)), width), rest.left)
    last = len(whole.args) - 1
    split = inside(whole, [(last, rest)])
    split = reverse(chain(split, rewrite("ring", split.right, j)))
    step = inside(gate, [(0, inside(gate.args[0], [(0, split)]))])
    return chain(step, rewrite("digits", step.right, width))


def with_squares(norm: Callable[[Term], Derivation], t: Term) -> Derivation:
    """The normal form of t with (Σ_j f(j))² for Σ_j Σ_k f(j)·f(k)."""
    first = norm(t)
    target = first.right
    for atom in dict.fromkeys(a for m in expand(target) for a, _ in m if a.op == "sum"):
        target = substitute(target, atom, _as_square(atom))
    back = norm(target)
    return chain(first, reverse(back)) if back.right is first.right else first


def with_magnitudes(norm: Callable[[Term], Derivation], t: Term) -> Derivation | None:
    """The normal form of t with |x|² for x² where |x| occurs too, or None."""
    first = norm(t)
    known = {part.args[0]: part for part in postorder(first.right) if part.op == "abs"}

    def squared(x: Term) -> Term:
        if x.op == "power" and x.data == 2 and x.args[0] in known:
            return power(known[x.args[0]], 2)
        return make(x.op, tuple(map(squared, x.args)), x.data, x.shape)

    target = squared(first.right) if known else first.right
    if target is first.right:
        return None
    back = norm(target)
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


def over_tangents(norm: Callable[[Term], Derivation], t: Term) -> Derivation | None:
    """The normal form of t as Σ_j w(j)·(exp(y(j)) − 1 − y(j)), or None.

    With weights w of sum 1 these are Gibbs' inequality and what a log-sum-exp is above its tangent.
    """
    first = norm(t)
    if not any(part.op == "log" for part in postorder(first.right)):
        return None
    for target in _over_tangents(first.right):
        back = norm(target)
        if back.right is first.right:
            return chain(first, reverse(back))
    return None


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
