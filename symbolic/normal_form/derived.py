"""Derived rules: derivations composed of kernel rules, so that the kernel needs no further rules.

Each docstring states the formula that is shown; ``Refused`` is raised if a rule it uses refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import ONE, ZERO, add, entry, indicator, integer, mul, num, power, subtract, unary
from ..terms import Term, bind, instantiate, make, substitute
from .equations import chain, flat, inside, opened_index, reverse, rewrite, under
from .permutations import inverse_of, solved_permutation


def sorted_integer(t: Term) -> Derivation:
    """An integer expression equals its sorted form."""
    return rewrite("ring", t, integer(t))


def condition_power(t: Term) -> Derivation:
    """[c]^k = [c] for k other than 0, as [c]·1^k + (1 − [c])·0^k."""
    (gate,) = t.args
    step = rewrite("either", t, gate)
    return chain(step, rewrite("ring", step.right, gate))


def under_condition(t: Term, place: int, other: int) -> Derivation:
    """[c]·f([c]) = [c]·f(1) in a product, as [c]·([c]·f(1) + (1 − [c])·f(0)) with [c]² = [c]."""
    gate = t.args[place]
    opened = inside(t, [(other, rewrite("either", t.args[other], gate))])
    holds, fails = (substitute(t.args[other], gate, value) for value in (ONE, ZERO))
    rest = [f for k, f in enumerate(t.args) if k not in (place, other)]
    square = power(gate, 2)
    gap = make("add", (gate, make("mul", (num(-1), square))))
    apart = make("add", (make("mul", (square, holds, *rest)), make("mul", (gap, fails, *rest))))
    step = chain(opened, rewrite("ring", opened.right, apart))
    once = condition_power(square)
    within = [
        inside(apart.args[0], [(0, once)]),
        inside(gap, [(1, inside(gap.args[1], [(1, once)]))]),
    ]
    back = inside(apart, [(0, within[0]), (1, inside(apart.args[1], [(0, within[1])]))])
    return chain(step, back, rewrite("ring", back.right, mul(gate, holds, *rest)))


def without_implied(t: Term, place: int, other: int) -> Derivation:
    """[c]·[d]·f = [c]·f if c implies d, as [c]·(1 − [d]) is neither positive nor negative."""
    gate, implied = t.args[place], t.args[other]
    rest = [f for k, f in enumerate(t.args) if k not in (place, other)]
    excess = make("add", (gate, make("mul", (num(-1), gate, implied))))
    apart = make("add", (mul(gate, *rest), make("mul", (num(-1), excess, *rest))))
    back = inside(apart, [(1, inside(apart.args[1], [(1, _nothing(excess))]))])
    left = mul(*(f for k, f in enumerate(t.args) if k != other))
    return chain(rewrite("ring", t, apart), back, rewrite("ring", back.right, left))


def _nothing(x: Term) -> Derivation:
    """x = 0 for x <= 0 and x >= 0, as [x = 0]·x with [x = 0] = [x <= 0] + [0 <= x] − 1."""
    tie = rewrite("turned", indicator("equal", x, ZERO))
    both = [(k, rewrite("decide", part)) for k, part in enumerate(tie.right.args[:2])]
    tie = chain(tie, inside(tie.right, both))
    tie = chain(tie, rewrite("ring", tie.right, ONE))
    product = make("mul", (ONE, x))
    step = chain(rewrite("ring", x, product), inside(product, [(0, reverse(tie))]))
    step = chain(step, rewrite("equals for equals", step.right, x, ZERO))
    return chain(step, rewrite("ring", step.right, ZERO))


def parity(t: Term, a: Term) -> Derivation:
    """cos(−a) = cos a;  sin(−a) = −sin a, from cos(a − a) = 1 and sin(a − a) = 0.

    cos(−a) = cos a·cos(a − a) + sin a·sin(a − a);  sin(−a) = cos a·sin(a − a) − sin a·cos(a − a).
    """
    cosine, sine = unary("cos", a), unary("sin", a)
    square = rewrite("sin² + cos² = 1", power(sine, 2))
    split = make("add", (mul(t, power(cosine, 2)), make("mul", (t, square.right))))
    step = rewrite("ring", t, split)
    step = chain(step, inside(split, [(1, inside(split.args[1], [(1, reverse(square))]))]))
    whole, nothing = _of_no_angle("cos", a, t.args[0]), _of_no_angle("sin", a, t.args[0])
    first, second = (cosine, sine) if t.op == "cos" else (mul(num(-1), sine), cosine)
    there = make("add", (make("mul", (whole.left, first)), make("mul", (nothing.left, second))))
    parts = [(0, inside(there.args[0], [(0, whole)])), (1, inside(there.args[1], [(0, nothing)]))]
    step = chain(step, rewrite("ring", step.right, there), inside(there, parts))
    return chain(step, rewrite("ring", step.right, first))


def _of_no_angle(op: str, a: Term, opposite: Term) -> Derivation:
    """cos a·cos b − sin a·sin b = 1 and sin a·cos b + cos a·sin b = 0 for b = −a."""
    t = unary(op, ZERO)
    return chain(reverse(rewrite("angle addition", t, a, opposite)), rewrite("known angle", t))


def logarithm(t: Term, target: Term) -> Derivation:
    """log(Π x_k^{p_k}) = Σ p_k·log x_k for x_k > 0, by x = exp(log x);  log 1 = 0."""
    (x,) = t.args
    parts = [_as_exponential(factor) for factor in flat(x)] if x is not ONE else []
    product = inside(x, enumerate(parts)) if x.op == "mul" else chain(*(parts or [Reflexive(x)]))
    joined = reverse(rewrite("exp", unary("exp", target), product.right))
    step = inside(t, [(0, chain(product, joined))])
    return chain(step, rewrite("log", step.right))


def _as_exponential(factor: Term) -> Derivation:
    """x = exp(log x), also inside a power."""
    if factor.op == "power":
        return inside(factor, [(0, _as_exponential(factor.args[0]))])
    return reverse(rewrite("exp of log", unary("exp", unary("log", factor))))


def root_power(t: Term) -> Derivation:
    """(1/√x)² = 1/x for x >= 0; 1/0 is 0 on both sides."""
    (base,) = t.args
    square = power(power(base if base.op == "sqrt" else base.args[0], 2), -1)
    step = rewrite("ring", t, square)
    return chain(step, inside(square, [(0, rewrite("root", square.args[0]))]))


def exponential_power(t: Term) -> Derivation:
    """exp(log(x)/q)^q = x and exp(log(x)/q)^−q = 1/x for x > 0."""
    (base,) = t.args
    whole = power(base, abs(t.data))
    joined = reverse(rewrite("exp", unary("exp", base.args[0].args[1]), whole))
    step = chain(joined, rewrite("exp of log", joined.right))
    if t.data > 0:
        return step
    inverse = power(whole, -1) if whole.op != "power" else make("power", (whole,), -1)
    return chain(rewrite("ring", t, inverse), inside(inverse, [(0, step)]))


def square_root(
    t: Term, z: Term, parts: Sequence[Derivation], positive: Sequence[Term] = ()
) -> Derivation:
    """√x = z for z >= 0 with z² = x; ``parts`` lead from factors of x to squares.

    ``positive`` are factors that cancel.
    """
    (x,) = t.args
    product = make("mul", tuple(p.left for p in parts)) if len(parts) > 1 else parts[0].left
    step: Derivation = Reflexive(x) if product is x else rewrite("ring", x, product, *positive)
    squares = inside(product, enumerate(parts)) if len(parts) > 1 else parts[0]
    step = inside(t, [(0, chain(step, squares))])
    step = chain(step, rewrite("root of a square", step.right, unary("abs", z)))
    return chain(step, absolute_value(step.right))


def as_root_squared(x: Term) -> Derivation:
    """x = (√x)² for x >= 0."""
    return reverse(rewrite("root", power(unary("sqrt", x), 2)))


def as_absolute_squared(x: Term) -> Derivation:
    """x² = |x|²."""
    return reverse(absolute_square(power(unary("abs", x), 2)))


def absolute_product(
    t: Term, z: Term, parts: Sequence[Derivation], positive: Sequence[Term] = ()
) -> Derivation:
    """|x| = z for z >= 0 with z² = x²; ``parts`` lead from factors of x² to squares."""
    (x,) = t.args
    step = reverse(_root(x, x))
    return chain(step, square_root(step.right, z, parts, positive))


def absolute_value(t: Term) -> Derivation:
    """|x| = x for x >= 0, as [0 <= x]·x − (1 − [0 <= x])·x with [0 <= x] = 1."""
    (x,) = t.args
    step = rewrite("absolute value as a choice", t)
    step = chain(step, rewrite("where", step.right))
    holds = rewrite("decide", indicator("less_equal", ZERO, x))
    step = chain(step, inside(step.right, [(k, _first(step.right.args[k], holds)) for k in (0, 1)]))
    return chain(step, rewrite("ring", step.right, x))


def _first(product: Term, step: Derivation) -> Derivation:
    return inside(product, [(0, step)])


def ordered_absolute(t: Term, place: int, distance: Term) -> Derivation:
    """[a <= b]·f(|b − a|) = [a <= b]·f(b − a), as [a <= b]·[|b − a| = b − a] = [a <= b]."""
    if t.op != "mul":
        raise Refused("not a product with a distance", t)
    gate = t.args[place]
    low, high = gate.args[0].args
    gap = subtract(high, low)
    rest = [f for k, f in enumerate(t.args) if k != place]
    tie, front = _tied(gate, distance, gap), make("mul", (gate, *rest))
    step = chain(rewrite("ring", t, front), inside(front, [(0, reverse(tie))]))
    swapped = make("mul", (tie.left.args[1], gate, *rest))
    step = chain(step, rewrite("ring", step.right, swapped))
    step = chain(step, rewrite("equals for equals", swapped, distance, gap))
    grouped = make("mul", (tie.left, *(substitute(f, distance, gap) for f in rest)))
    return chain(step, rewrite("ring", step.right, grouped), inside(grouped, [(0, tie)]))


def _tied(gate: Term, distance: Term, gap: Term) -> Derivation:
    """[a <= b]·[d = b − a] = [a <= b] for d = |b − a| or |a − b|."""
    equal = indicator("equal", distance, gap)
    (x,) = distance.args
    size = Reflexive(distance) if x is gap else mirrored_absolute(x, gap)
    size = chain(size, rewrite("absolute value as a choice", unary("abs", gap)))
    size = chain(size, rewrite("where", size.right))
    turned = rewrite("comparison", indicator("less_equal", ZERO, gap), *gate.args[0].args)
    size = chain(
        size, inside(size.right, [(k, _first(size.right.args[k], turned)) for k in (0, 1)])
    )
    product = make("mul", (gate, equal))
    step = inside(product, [(1, inside(equal, [(0, inside(equal.args[0], [(0, size)]))]))])
    step = chain(step, under_condition(step.right, 0, 1))
    last = len(step.right.args) - 1
    step = chain(step, inside(step.right, [(last, rewrite("decide", step.right.args[last]))]))
    return chain(step, rewrite("ring", step.right, gate))


def absolute_square(t: Term) -> Derivation:
    """|x|² = x², as (√(x²))²."""
    (x,) = t.args[0].args
    step = inside(t, [(0, reverse(_root(x, x)))])
    return chain(step, rewrite("root", step.right))


def mirrored_absolute(x: Term, opposite: Term) -> Derivation:
    """|x| = |−x|, through √(x²)."""
    return chain(reverse(_root(x, x)), _root(x, opposite))


def _root(x: Term, y: Term) -> Derivation:
    """√(x²) = |y| if y² = x²."""
    return rewrite("root of a square", unary("sqrt", power(x, 2)), unary("abs", y))


def mirrored_maximum(t: Term) -> Derivation:
    """max(a, b) = a + b + max(−a, −b): as choices, the two differ by [a = b]·(a − b) = 0."""
    a, b = t.args
    minus_a, minus_b = mul(num(-1), a), mul(num(-1), b)
    target = add(a, b, make("maximum", (minus_a, minus_b)))
    last = len(target.args) - 1
    here, there = _chosen(t, b, a), inside(target, [(last, _chosen(target.args[last], a, b))])
    tie = rewrite("turned", indicator("equal", a, b))
    apart = make("mul", (tie.right, make("add", (a, make("mul", (num(-1), b))))))
    tied = inside(apart, [(0, reverse(tie))])
    whole = make("add", (there.right, apart))
    step = chain(here, rewrite("ring", here.right, whole))
    step = chain(step, inside(whole, [(1, chain(tied, _without_gap(tied.right, a, b)))]))
    return chain(step, rewrite("ring", step.right, there.right), reverse(there))


def _chosen(t: Term, low: Term, high: Term) -> Derivation:
    """A maximum equals a choice by [low <= high]."""
    step = rewrite("maximum as a choice", t)
    step = chain(step, rewrite("where", step.right))
    gates = [
        (k, inside(part, [(0, rewrite("comparison", part.args[0], low, high))]))
        for k, part in enumerate(step.right.args[:2])
    ]
    return chain(step, inside(step.right, gates))


def _without_gap(t: Term, a: Term, b: Term) -> Derivation:
    """[a = b]·(a − b) = 0."""
    try:
        step = rewrite("equals for equals", t, a, b)
        return chain(step, rewrite("ring", step.right, ZERO))
    except Refused:
        step = rewrite("equals for equals", t, b, a)
        return chain(step, rewrite("ring", step.right, ZERO))


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
            return chain(turned, solved_permutation(turned.right))
        step = reverse(solved_permutation(indicator("equal", entry(sigma, k), j)))
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
