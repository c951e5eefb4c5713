"""Conditions and entries in the normal form: indicators, equations of indices, minus infinity."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index_range,
    is_integer,
    is_truth,
    mul,
    num,
    number_of,
    split_integer,
)
from ..signs import find_sign
from ..terms import Opened, Term, bind, free, instantiate, make, postorder, substitute
from . import derived
from .equations import chain, inside, occurs, opened_index, operations, reverse, rewrite, under
from .polynomial import Polynomial, expand, sign_facts, to_term

if TYPE_CHECKING:
    from .normaliser import Normaliser


# Equations of indices, [σ(a) = τ(b)], solved for one index or brought to one form

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
    base = t.args[0] if t.op == "inverse" else t
    return base.op == "var" and base.data[1] == "permutation"


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


def _peeled(gate: Term) -> Derivation | None:
    """Derive [σ(a) = b] = [a = σ⁻¹(b)] or [σ⁻¹(a) = b] = [a = σ(b)], or return None."""
    x, y = gate.args[0].args
    if x.op != "entry" or len(x.args) != 2:
        return None
    array, a = x.args
    try:
        if _is_given_permutation(array):
            return derived.solved_permutation(gate)
        if array.op == "inverse" and _is_given_permutation(array.args[0]):
            back = derived.solved_permutation(_gate(entry(array.args[0], y), a))
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
    while t.op == "entry" and len(t.args) == 2:
        array = t.args[0].args[0] if t.args[0].op == "inverse" else t.args[0]
        if not _is_given_permutation(array):
            break
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


# Entries of arrays in the normal form, and arrays as arguments of functions


def entry_(norm: Normaliser, t: Term) -> Derivation:
    """Normalise an entry: unfold it if the array is computed; other entries are atoms."""
    array = t.args[0]
    first = inside(t, [(k, norm(at)) for k, at in enumerate(t.args) if k])
    u = first.right
    if array.op not in ("var", "inverse", "iterate", "call") or (
        array.op == "call" and array.data[1]
    ):
        try:
            return chain(first, norm.at("entry", u))
        except Refused:
            return first
    if array.op == "call":
        first = chain(first, inside(u, [(0, norm.arguments(array))]))
        first = chain(first, equivariance(norm, first.right))
        return chain(first, norm.hypothesis(first.right))
    if array.op == "iterate":
        first = chain(first, inside(u, [(0, stack(norm, array))]))
        layers = first.right.args[0]
        if _has_last(layers.args[0]):
            last = inside(first.right, [(0, rewrite("layer", layers))])
            return norm.then(chain(first, last))
        u = first.right
    if u.args[1].op == "entry":
        try:
            return chain(first, norm.at("permutation", u))
        except Refused:
            pass
    return chain(first, norm.hypothesis(first.right))


def stack(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a stack of layers: unfold the last layer of a number if the depth shows one."""
    first = inside(t, [(0, _depth(norm, t.args[0]))])
    u = first.right
    if not u.shape and _has_last(u.args[0]):
        return chain(first, norm.at("layer", u))
    if u.shape:
        return first
    layer = opened_index(u, u.args[0])
    state = make("var", (), (Opened((u, "•state")), "real"))
    inner = under(u, (layer, state), norm(instantiate(u.args[2], layer, state)))
    first = chain(first, inner)
    return chain(first, norm.hypothesis(first.right))


def _depth(norm: Normaliser, t: Term) -> Derivation:
    """Bring a depth into sorted form, after normalising entries of maps such as σ(σ⁻¹(j))."""
    parts = enumerate(t.args if t.op in ("add", "mul") else ())
    mapped = (
        norm(t)
        if t.op == "entry"
        else inside(t, [(k, norm(part)) for k, part in parts if part.op == "entry"])
    )
    return chain(mapped, derived.sorted_integer(mapped.right))


def equivariance(norm: Normaliser, t: Term) -> Derivation:
    """Derive f(X[σ]) = f(X)[σ] for a function given as equivariant."""
    f = t.args[0]
    traits = f.data[2] if f.op == "call" else ()
    if "equivariant" not in traits or f.args[0].op != "tabulate":
        return Reflexive(t)
    table = f.args[0]
    row = opened_index(table, table.args[0])
    body = instantiate(table.args[1], row)
    words = words_on(body, row)
    if not words or any(not word for word in words):
        return Reflexive(t)
    sigma = words[0][-1]
    if sigma.op not in ("var", "inverse") or any(word[-1] is not sigma for word in words):
        return Reflexive(t)
    plain_body = strip_word(body, row, sigma)
    moved = make("tabulate", (table.args[0], bind(plain_body, row)), shape=table.shape)
    return norm.then(rewrite("equivariance", t, sigma, moved))


def call(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a number that is the value of an uninterpreted function."""
    first = norm.arguments(t)
    return chain(first, norm.hypothesis(first.right))


def array(norm: Normaliser, t: Term) -> Derivation:
    """Normalise an array, as argument of a function, to the table of its entries."""
    if t.op == "call" and not t.data[1]:
        first = norm.arguments(t)
        return tabled(norm, chain(first, rewrite("tabulate", first.right)))
    first = Reflexive(t) if t.op == "tabulate" else rewrite("tabulate", t)
    return tabled(norm, first)


def tabled(norm: Normaliser, first: Derivation) -> Derivation:
    """Continue a derivation that ends in a table to the normal form of its entries."""
    return chain(first, table(norm, first.right))


def table(norm: Normaliser, t: Term) -> Derivation:
    """Normalise the rows of a table, or any other term."""
    if t.op != "tabulate":
        return norm(t)
    row = opened_index(t, t.args[0])
    return under(t, (row,), table(norm, instantiate(t.args[1], row)))


def _has_last(depth: Term) -> bool:
    """Whether a depth in sorted form is 0 or has a positive constant term."""
    parts = depth.args if depth.op == "add" else (depth,)
    constant = number_of(parts[0])
    return constant is not None and (constant > 0 or depth is ZERO)


# Conditions and minus infinity in the normal form


def extended(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a number that may be −inf to nested choices between finite numbers and −inf."""
    if t.op == "minus infinity":
        return Reflexive(t)
    if t.op == "entry":
        first = inside(t, [(k, norm(at)) for k, at in enumerate(t.args) if k])
        return norm.then(chain(first, rewrite("entry", first.right)))
    if t.op == "named":
        return norm.at("definition", t)
    first = norm.arguments(t)
    u = first.right
    if u.finite:
        return norm.then(first)
    if u.op == "where":
        return first
    for place, arg in enumerate(u.args):
        if arg.op == "where" and not arg.finite:
            return norm.then(chain(first, rewrite("push", u, place)))
    if u.op in ("add", "mul") and MINUS_INFINITY in u.args:
        return chain(first, rewrite("infinity", u))
    return first


def exponential(norm: Normaliser, t: Term) -> Derivation:
    """Normalise exp of a number that may be −inf."""
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    if u.args[0].finite:
        return norm.then(first)
    if u.args[0] is MINUS_INFINITY:
        return chain(first, rewrite("exp", u, ZERO))
    if u.args[0].op == "where":
        return norm.then(chain(first, rewrite("push", u, 0)))
    return first


def choice(norm: Normaliser, t: Term) -> Derivation:
    """Write where(c, a, b) of numbers by [c]; of truth values, normalise the arguments only."""
    return norm.arguments(t) if is_truth(t) else norm.at("where", t)


def indicator(norm: Normaliser, t: Term) -> Derivation:
    """Normalise [c]: connectives are opened, comparisons decided or brought into one form."""
    c = t.args[0]
    if c.op in ("not", "and", "or", "where") or (c.op == "equal" and all(map(is_truth, c.args))):
        return norm.at("indicator", t)
    if c.op == "entry" and c.args[0].op != "var":
        first = inside(t, [(0, _condition_entry(norm, c))])
        return chain(first, norm(first.right)) if first.right is not t else first
    if c.op == "is in":
        inner = inside(c, [(0, norm(c.args[0]))])
    else:
        inner = entry_(norm, c) if c.op == "entry" else norm.arguments(c)
    first = inside(t, [(0, inner)])
    u = first.right
    c = u.args[0]
    if c.op == "is in":
        return norm.then(chain(first, rewrite("image", u)))
    if c.op == "less" and not _of_integers(c) and u.finite:
        return norm.then(chain(first, rewrite("turned", u)))
    if c.op in ("equal", "less", "less_equal"):
        first = chain(first, _comparison(norm, u))
        u = first.right
        if norm.turned and u.op == "indicator" and u.args[0].op == "less" and u.finite:
            return norm.then(chain(first, rewrite("turned", u)))
        if norm.equals and _is_greater(u):
            return norm.then(chain(first, _by_equality(u)))
    if norm.assume and first.right.op == "indicator":
        return chain(first, norm.hypothesis(first.right))
    return first


def _is_greater(t: Term) -> bool:
    """Whether a term is [b <= a] with b after a in the order of terms."""
    if t.op != "indicator" or t.args[0].op != "less_equal" or not t.finite:
        return False
    b, a = t.args[0].args
    return a.key < b.key


def _by_equality(t: Term) -> Derivation:
    """Derive [b <= a] = 1 − [a <= b] + [a = b]."""
    b, a = t.args[0].args
    equal = make("indicator", (make("equal", (a, b)),))
    opened = rewrite("turned", equal)
    other = mul(num(-1), make("indicator", (make("less_equal", (a, b)),)))
    target = make("add", (ONE, other, opened.right))
    step = rewrite("ring", t, target)
    return chain(step, inside(target, [(2, reverse(opened))]))


def _is_gate(t: Term) -> bool:
    return t.op == "indicator" and not (t.loose or t.shape)


def _of_integers(c: Term) -> bool:
    return is_integer(c.args[0]) and is_integer(c.args[1])


def _condition_entry(norm: Normaliser, c: Term) -> Derivation:
    first = inside(c, [(k, norm(at)) for k, at in enumerate(c.args) if k])
    return chain(first, rewrite("entry", first.right))


def _comparison(norm: Normaliser, t: Term) -> Derivation:
    try:
        return rewrite("decide", t)
    except Refused:
        pass
    x, y = t.args[0].args
    gate = next((g for side in (x, y) for g in postorder(side) if _is_gate(g)), None)
    if gate is not None and t.finite:
        return norm.at("either", t, gate)
    gap = expand(add(x, mul(num(-1), y)))
    high = {m: c for m, c in gap.items() if c > 0}
    low = {m: -c for m, c in gap.items() if c < 0}
    a, b = to_term(high), to_term(low)
    if t.args[0].op == "equal":
        for width in _radices(x, y):
            if all(split_integer(side, width)[0] is ZERO for side in (x, y)):
                continue
            try:
                return norm.at("digits", t, width)
            except Refused:
                continue
        if (b.key, a.key) < (a.key, b.key):
            a, b = b, a
        step = rewrite("comparison", t, a, b)
        step = chain(step, _unwrap(norm, step.right))
        if step.right.op == "indicator":
            ordered = settled(step.right)
            words = [
                entry_(norm, side) if side.op == "entry" else Reflexive(side)
                for side in ordered.right.args[0].args
            ]
            inner = inside(ordered.right.args[0], list(enumerate(words)))
            step = chain(step, ordered, inside(ordered.right, [(0, inner)]))
        return step
    if _of_integers(t.args[0]):
        return _of_whole(t, gap)
    return rewrite("comparison", t, a, b)


def _of_whole(t: Term, gap: Polynomial) -> Derivation:
    """Write [x < y] or [x <= y] of integers with <=, or < if <= had a constant on its left."""
    strict = t.args[0].op == "less"
    constant = gap.get((), Fraction(0)) + (1 if strict else 0)  # of x − y, when written as [x <= y]
    step = (1 if strict else 0) - (1 if constant > 0 else 0)
    moved = {m: c for m, c in gap.items() if m} | {(): gap.get((), Fraction(0)) + step}
    high = {m: c for m, c in moved.items() if c > 0}
    low = {m: -c for m, c in moved.items() if c < 0}
    return rewrite("whole comparison" if step else "comparison", t, to_term(high), to_term(low))


def _radices(x: Term, y: Term) -> list[Term]:
    """Return the possible digit widths in mixed-radix expressions x and y."""
    widths: dict[Term, None] = {}
    for side in (x, y):
        for part in side.args if side.op == "add" else (side,):
            length = index_range(part)
            if length is not None:
                widths.setdefault(length)
            for factor in part.args if part.op == "mul" else ():
                if factor.op in ("num", "size"):
                    widths.setdefault(factor)
    return list(widths)


def _unwrap(norm: Normaliser, t: Term) -> Derivation:
    """Derive [e(a) = e(b)] = [a = b] for an injective e, if the gate has this form."""
    if t.args[0].op != "equal":
        return Reflexive(t)
    x, y = t.args[0].args
    if x.op == y.op == "entry" and x.args[0] is y.args[0] and _is_injective(x.args[0]):
        try:
            return norm.at("injective", t)
        except Refused:
            pass
    return Reflexive(t)


def _is_injective(array: Term) -> bool:
    return array.op == "var" and array.data[1] in ("permutation", "injection")


def reduce_gates(norm: Normaliser, t: Term, factors: tuple[Term, ...]) -> Derivation:
    """Simplify a product with [c]·f([c]), [a = b]·f(a), [a <= b]·|b − a| or two comparisons."""
    for place, gate in enumerate(factors):
        if gate.op != "indicator":
            continue
        inner = _within(gate, factors)
        if inner is not None:
            return derived.under_condition(t, place, inner)
        if len(gate.args[0].args) != 2:
            continue
        swapped = _swapped(t, gate, place, factors)
        if swapped is not None:
            return swapped
        others = (other for other in range(len(factors)) if other != place)
        ways = (s for k in others for s in (_implied(t, place, k), _overlap(norm, t, place, k)))
        shorter = next((s for s in ways if s is not None), None)
        if shorter is not None:
            return shorter
        if gate.args[0].op == "less_equal":
            measured = [f for f in factors if "abs" in operations(f)]
            for distance in (x for f in measured for x in postorder(f) if x.op == "abs"):
                try:
                    return rewrite("ordered absolute value", t, distance)
                except Refused:
                    continue
    return Reflexive(t)


def _swapped(t: Term, gate: Term, place: int, factors: tuple[Term, ...]) -> Derivation | None:
    """Replace the less simple of a and b by the other in [a = b]·f, or return None."""
    if gate.args[0].op != "equal":
        return None
    a, b = gate.args[0].args
    others = [f for k, f in enumerate(factors) if k != place]
    for old, new in ((a, b), (b, a)):
        if _simpler(new, old) and any(occurs(old, f) for f in others):
            step = rewrite("equals for equals", t, old, new)
            if step.right is not t:
                return step
    return None


def _within(gate: Term, factors: tuple[Term, ...]) -> int | None:
    """Return the place of a factor, other than an indicator, in which the gate occurs, or None."""
    places = (k for k, f in enumerate(factors) if f.op != "indicator" and f.finite)
    return next((k for k in places if occurs(gate, factors[k])), None)


def _implied(t: Term, place: int, other: int) -> Derivation | None:
    """Remove from a product a comparison that another one certainly implies, or return None."""
    gate, implied = t.args[place], t.args[other]
    pair = (gate, implied)
    if any(x.op != "indicator" or x.args[0].op not in ("less", "less_equal") for x in pair):
        return None
    (a, b), (c, d) = gate.args[0].args, implied.args[0].args
    slack = to_term(expand(add(d, mul(num(-1), c), a, mul(num(-1), b))))
    if not find_sign(slack, sign_facts())[0]:
        return None
    try:
        return rewrite("implied", t, place, other, slack)
    except Refused:
        return None


def _overlap(norm: Normaliser, t: Term, place: int, other: int) -> Derivation | None:
    """Simplify a product of two comparisons of integers that cannot both hold, or both fail.

    If [a < b] implies that [c <= d] fails, the latter is negated, which leaves 0.  If one of
    [a <= b] and [c <= d] always holds, [a <= b]·[c <= d] = [a <= b] + [c <= d] − 1; this is used
    with ``norm.turned`` only, where a range may be written as a difference of two comparisons.
    """
    gate, second = t.args[place], t.args[other]
    for x in (gate, second):
        good = x.op == "indicator" and x.args[0].op in ("less", "less_equal")
        if not (good and _of_integers(x.args[0])):
            return None
    (a, b), (c, d) = gate.args[0].args, second.args[0].args
    slack = to_term(expand(add(d, mul(num(-1), c), b, mul(num(-1), a))))
    if gate.args[0].op == "less":
        fails = find_sign(mul(num(-1), slack), sign_facts())[0]
        return inside(t, [(other, rewrite("turned", second))]) if fails else None
    if not norm.turned or second.args[0].op == "less" or not find_sign(slack, sign_facts())[0]:
        return None
    rest = [f for k, f in enumerate(t.args) if k not in (place, other)]
    opened = inside(t, [(place, rewrite("turned", gate))])
    against = make("indicator", (make("less", (b, a)),))
    product = make("mul", (against, second, *rest))
    apart = make("add", (mul(second, *rest), make("mul", (num(-1), product))))
    try:
        shorter = rewrite("implied", product, 0, 1, slack)
        back = inside(apart, [(1, inside(apart.args[1], [(1, shorter)]))])
        return chain(opened, rewrite("ring", opened.right, apart), back)
    except Refused:
        return None


def _simpler(new: Term, old: Term) -> bool:
    """Whether ``new`` is simpler: a literal, an index, fewer parts, or else the smaller key."""
    rank = {"num": 0, "index": 1, "var": 1}
    return (rank.get(new.op, 2), len({*postorder(new)}), new.key) < (
        rank.get(old.op, 2),
        len({*postorder(old)}),
        old.key,
    )
