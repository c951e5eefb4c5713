"""The search for signs: numbers that are certainly > 0, >= 0 or not 0, with steps for the kernel.

Nothing here is trusted.  A search returns the sign found (2: > 0; 1: >= 0; 0: neither) and the
steps after which the kernel can read it off the form of the number.  In a sum, negative terms are
bounded by positive ones that are at least as large (``linear.py`` has the form in which sums are
compared).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import product

from .budget import check_time
from .derivation import SignStep
from .linear import (
    KIND,
    Monomial,
    Steps,
    as_term,
    collected,
    common_factors,
    joined,
    minus,
    multiples,
    order,
    step,
    times,
)
from .rules.base import NOTHING, Assumption, Facts
from .rules.inequalities import LEAST, known_after
from .rules.polynomials import same_polynomial
from .rules.signs import BY_FORM, BY_KIND, CARRIED, Sign, Signs, with_squares
from .scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    is_integer,
    is_truth,
    mul,
    num,
    number_of,
    power,
    subtract,
)
from .terms import Opened, Term, free, instantiate, make, opened, postorder, substitute

Found = tuple[int, Steps]
NEITHER: Found = (0, ())
MAX_INDICATORS = 3


# Signs found here and checked by the kernel


def sign(t: Term, facts: Facts = NOTHING) -> Sign:
    """Return 2 if t > 0 is certain, 1 if t >= 0 is, 0 if neither; and the facts used."""
    return signs_after(find_sign(t, facts)[1], free(t)).sign(t)


def nonzero(t: Term, facts: Facts = NOTHING) -> tuple[bool, Facts]:
    """Return whether t is certainly not 0, and the facts used."""
    return signs_after(find_nonzero(t, facts)[1], free(t)).nonzero(t)


@cache
def signs_after(steps: Steps, over: frozenset[Term]) -> Signs:
    """Return the signs that the kernel knows after the steps; ``over`` as in ``known_after``."""
    return known_after(steps, over=over) if steps else BY_FORM


class SearchedSigns(Signs):
    """Signs for a rule, searched for under facts; records the steps to those that were found."""

    def __init__(self, facts: Facts) -> None:
        super().__init__({})
        self.given = facts
        self.found: dict[Assumption, Steps] = {}

    def sign(self, t: Term) -> Sign:
        """Return the sign found, as a fact that rests on itself."""
        certain, steps = find_sign(t, self.given)
        if not steps or not certain:
            return super().sign(t)
        self.found[KIND[certain], t] = steps
        return certain, frozenset({(KIND[certain], t)})

    def nonzero(self, t: Term) -> tuple[bool, Facts]:
        """Return whether t was found not to be 0, as a fact that rests on itself."""
        certain, steps = find_nonzero(t, self.given)
        if not steps or not certain:
            return super().nonzero(t)
        self.found["nonzero", t] = steps
        return certain, frozenset({("nonzero", t)})

    def steps(self, used: Facts) -> Steps:
        """Return the steps to the signs that a rule used."""
        return joined(*(self.found[fact] for fact in self.found if fact in used))


def _given_step(kind: str, t: Term) -> Steps:
    return (SignStep(kind, t),)


# By the form of a number


@cache
def find_sign(t: Term, facts: Facts = NOTHING) -> Found:
    """Return the sign of a number, found by its form and by facts, and the steps to it."""
    value = number_of(t)
    if value is not None:
        return (2 if value > 0 else 1 if value == 0 else 0), ()
    for kind, certain in BY_KIND.items():
        if (kind, t) in facts:
            return (2, ()) if BY_FORM.sign(t)[0] == 2 else (certain, _given_step(kind, t))
    check_time()
    found = _METHODS[t.op](t, facts) if t.op in _METHODS else NEITHER
    return max(found, _by_facts(t, facts), key=lambda s: s[0]) if found[0] < 2 else found


@cache
def find_nonzero(t: Term, facts: Facts = NOTHING) -> tuple[bool, Steps]:
    """Return whether a number is not 0, by its form and by facts, and the steps to it."""
    value = number_of(t)
    if value is not None:
        return value != 0, ()
    for kind, x in sorted(facts, key=lambda fact: (fact[0], fact[1].key)):
        if kind != "nonzero" or x.shape:
            continue
        if x is t:
            return True, _given_step(kind, x)
        for one in (x, times(num(-1), x)):
            if same_polynomial(t, one):
                return True, (*_given_step(kind, x), SignStep("nonzero", t, "multiple", (one,)))
    if t.op in ("power", "abs") and t.finite:
        return find_nonzero(t.args[0], facts)
    certain, steps = find_sign(t, facts)
    if certain == 2:
        return True, steps
    if t.op == "mul":
        parts = [find_nonzero(arg, facts) for arg in t.args]
        return all(p for p, _ in parts), joined(*(s for _, s in parts))
    if t.op == "sin":
        inner, steps = find_nonzero(t.args[0], facts)
        return inner and signs_after(steps, free(t)).nonzero(t)[0], steps
    return BY_FORM.nonzero(t)[0], ()


def _by_form(t: Term, _: Facts) -> Found:
    return BY_FORM.sign(t)[0], ()


def _indicator(t: Term, facts: Facts) -> Found:
    """An indicator is positive if its condition holds, shown by contradiction with the negation."""
    form = _by_form(t, facts)
    return form if form[0] == 2 or t.loose or not t.finite else max(form, _by_negation(t, facts))


def _by_negation(t: Term, facts: Facts) -> Found:
    told, before = case_facts(t, facts)[1]
    for one in told:
        steps = _contradiction(one, facts)
        if steps:
            return 2, (step(2, t, "cases", t, (), (*before, *steps)),)
    return NEITHER


def _power(t: Term, facts: Facts) -> Found:
    if t.data % 2 or not t.finite:
        return _argument_sign(t, facts)
    apart, steps = find_nonzero(t.args[0], facts)
    return (2, steps) if apart else (1, ())


def _argument_sign(t: Term, facts: Facts) -> Found:
    return find_sign(t.args[0], facts) if t.finite else NEITHER


def _absolute(t: Term, facts: Facts) -> Found:
    inner, steps = _argument_sign(t, facts)
    return (max(inner, 1) if t.finite else 0), steps


def _log(t: Term, facts: Facts) -> Found:
    """log x is at least 0 if x is at least 1."""
    (x,) = t.args
    if not x.finite or x.shape:
        return NEITHER
    certain, steps = _gap(ONE, x, facts)
    return (certain, (*steps, step(certain, t, "rising", "log", ONE, x))) if certain else NEITHER


def _sum(t: Term, facts: Facts) -> Found:
    """A sum of terms >= 0 is positive if all terms are, or the one at a free index or at 0."""
    length, body = t.args
    j = opened(length, t)
    inner, steps = find_sign(instantiate(body, j), facts)
    if length.op == "space":
        return _every(inner, t, j, steps)
    some = always_less(ZERO, length)
    if inner == 1:
        for at in [*sorted(free(t), key=lambda v: v.key), ZERO]:
            if (at is ZERO and some) or (at.op == "index" and at.args[0] is length):
                here, more = find_sign(instantiate(body, at), facts)
                if here == 2:
                    return 2, (*more, step(2, t, "every", j, steps, at))
    return _every(inner if some else min(inner, 1), t, j, steps)


def _every(certain: int, t: Term, j: Term, steps: Steps) -> Found:
    """Wrap the steps for an arbitrary index, unless they are all given facts."""
    if not certain or all(step.rule == "given" for step in steps):
        return certain, steps
    return certain, (step(certain, t, "every", j, steps),)


def _mul(t: Term, facts: Facts) -> Found:
    return _least_sign(with_squares(t), facts)


def _least_sign(parts: Iterable[Term], facts: Facts) -> Found:
    found = [find_sign(part, facts) for part in parts]
    return min(s for s, _ in found), joined(*(steps for _, steps in found))


def _maximum(t: Term, facts: Facts) -> Found:
    return max((find_sign(arg, facts) for arg in t.args), key=lambda part: part[0])


def _iterate(t: Term, facts: Facts) -> Found:
    """A stack is positive if its start is, and every layer maps positive numbers to such."""
    depth, start, body = t.args
    first, steps = find_sign(start, facts)
    if t.shape or first < 2:
        return NEITHER
    layer, state = opened(depth, t), make("var", (), (Opened((t,)), "positive"))
    then, more = find_sign(instantiate(body, layer, state), facts)
    plain = all(step.rule == "given" for step in more)  # the kernel opens the layer by itself
    return (2, joined(steps, more)) if then == 2 and plain else NEITHER


def _add(t: Term, facts: Facts) -> Found:
    parts = [find_sign(arg, facts) for arg in t.args]
    signs = [s for s, _ in parts]
    if min(signs):
        return max(signs), joined(*(steps for _, steps in parts))
    if t.shape or not t.finite:
        return NEITHER
    low, strict, rest, steps = _lower_bound(t, facts)
    if low is not None and low >= 0:
        certain = 2 if low > 0 or strict else 1
        found: Found = certain, joined(steps, (step(certain, t, "total", num(low), *rest),))
    else:
        found = _by_bounding(t, facts)
    if not found[0]:
        return _by_cases(t, facts)
    return found if found[0] == 2 else max(found, _strictly_positive(t, facts), key=lambda s: s[0])


def _strictly_positive(t: Term, facts: Facts) -> Found:
    """Whether a number >= 0 is > 0: as 1 − [c] with an impossible c, or as Σ f − Σ [c] f."""
    if len(closed_indicators(t)) == 1:
        found = _by_cases(t, facts)
        if found[0] == 2:
            return found
    linear = collected(t)
    sums = {c: m[0] for m, c in linear.items() if len(m) == 1 and m[0].op == "sum"}
    more, taken = sums.get(Fraction(1)), sums.get(Fraction(-1))
    if len(linear) != 2 or more is None or taken is None or more.args[0] is not taken.args[0]:
        return NEITHER
    length, body = more.args
    certain, steps = find_sign(make("sum", (length, subtract(body, taken.args[1]))), facts)
    return (2, (*steps, step(2, t, "linear", more, taken))) if certain == 2 else NEITHER


_METHODS: dict[str, Callable[[Term, Facts], Found]] = dict.fromkeys(
    ("var", "size", "pi", "index", "exp"), _by_form
) | {
    **dict.fromkeys(CARRIED, lambda t, facts: find_sign(t.args[0], facts)),
    "indicator": _indicator,
    "power": _power,
    "log": _log,
    "tanh": _argument_sign,
    "sqrt": _argument_sign,
    "abs": _absolute,
    "sum": _sum,
    "add": _add,
    "mul": _mul,
    "where": lambda t, facts: _least_sign(t.args[1:], facts),
    "maximum": _maximum,
    "iterate": _iterate,
}


# By facts, and by cases of a condition in the number


def _by_facts(t: Term, facts: Facts) -> Found:
    """Find the sign of t = c·g·x + rest from a fact about the sign of the number x."""
    if t.shape or not t.finite:
        return NEITHER
    for fact in sorted(facts, key=lambda fact: (fact[0], fact[1].key)):
        kind, x = fact
        if kind not in BY_KIND or x.shape or not x.finite:
            continue
        for factor, rest in multiples(collected(t), collected(x)):
            certain, steps = find_sign(factor, facts)
            other = as_term(rest)
            left, more = find_sign(other, facts - {fact}) if certain else NEITHER
            if left:
                strict = left == 2 or (certain == 2 and BY_KIND[kind] == 2)
                last = step(1 + strict, t, "total", times(factor, x), other)
                return 1 + strict, joined(steps, more, _given_step(kind, x), (last,))
    return NEITHER


def _by_cases(t: Term, facts: Facts) -> Found:
    """Find the sign that a sum has both if a condition in it holds and if it fails."""
    found = closed_indicators(t)
    if not 0 < len(found) <= MAX_INDICATORS:
        return NEITHER
    gate, least, ways = found[0], 2, list[Steps]()
    for value, (told, before) in zip((ONE, ZERO), case_facts(gate, facts), strict=True):
        against = next((steps for one in told if (steps := _contradiction(one, facts))), None)
        if against is not None:
            ways.append(joined(before, against))
            continue
        case = substitute(t, gate, value)
        form = as_term(collected(case))
        certain, steps = find_sign(form, facts.union(told))
        if not certain:
            return NEITHER
        least = min(least, certain)
        last = () if form is case else (step(certain, case, "total", form),)
        ways.append(joined(before, steps, last))
    return least, (step(least, t, "cases", gate, *ways),)


def _contradiction(told: Assumption, facts: Facts) -> Steps:
    """Return the steps to 0 > 0 if a fact is certainly false, or no steps."""
    kind, x = told
    other = minus(ZERO, x)
    certain, steps = find_sign(other, facts)
    good = certain == 2 or (certain and kind == "positive")
    return (*steps, step(2, ZERO, "total", x, other)) if good else ()


def closed_indicators(t: Term) -> list[Term]:
    """Return the closed indicators of conditions on finite numbers that occur in a number."""
    return [
        x for x in postorder(t) if x.op == "indicator" and not x.loose and not x.shape and x.finite
    ]


FactsAndSteps = tuple[list[Assumption], Steps]


def case_facts(gate: Term, facts: Facts) -> tuple[FactsAndSteps, FactsAndSteps]:
    """Return the facts about a and b if a <= b, a < b or a = b holds, and those if it fails.

    Each comes with the steps to it from the facts that the kernel has in that case.  Any other
    condition gives no facts.
    """
    c = gate.args[0]
    if c.op not in ("less", "less_equal", "equal") or is_truth(c.args[0]):
        return ([], ()), ([], ())
    a, b = c.args
    if c.op == "equal":
        both = [_nonnegative_fact(b, a), _nonnegative_fact(a, b)]
        holds = [one for told, _ in both for one in told], joined(*(steps for _, steps in both))
        for x, y in ((b, a), (a, b)):
            up = minus(x, y)
            certain, steps = find_sign(up, facts)
            if certain:
                by = times(num(-1), subtract(b, a)) if x is a else subtract(b, a)
                other = SignStep("nonzero", up, "multiple", (by,))
                told, more = _positive_fact(up, up)
                return holds, (told, (*steps, other, step(2, up, "apart"), *more))
        return holds, ([], ())
    if c.op == "less":
        return _positive_fact(minus(b, a), subtract(b, a)), _nonnegative_fact(a, b)
    return _nonnegative_fact(b, a), _positive_fact(minus(a, b), subtract(a, b))


def _nonnegative_fact(x: Term, y: Term) -> FactsAndSteps:
    """x − y >= 0."""
    up = minus(x, y)
    return [("nonnegative", up)], (step(1, up, "total", subtract(x, y)),)


def _positive_fact(up: Term, told: Term) -> FactsAndSteps:
    """up > 0, from the same number in another form; for an integer, up − 1 >= 0."""
    if is_integer(up) and is_integer(told):
        whole = minus(up, ONE)
        return [("nonnegative", whole)], (step(1, whole, "whole", told),)
    return [("positive", up)], (step(2, up, "total", told),)


# Lower bounds


LowerBound = tuple[Fraction | None, bool, list[Term], Steps]
NO_BOUND: LowerBound = (None, False, [], ())


def _lower_bound(t: Term, facts: Facts) -> LowerBound:
    """Return a literal lower bound of t or None, and whether t is certainly above it.

    Then follow the difference, as a list of numbers >= 0 that add up to it, and the steps that
    show their signs.
    """
    if t.op == "add":
        lows = [_lower_bound(arg, facts) for arg in t.args]
        if any(low is None for low, *_ in lows):
            return NO_BOUND
        total = sum((low for low, *_ in lows if low is not None), Fraction())
        rest = [x for _, _, rest, _ in lows for x in rest]
        return total, any(one[1] for one in lows), rest, joined(*(one[3] for one in lows))
    scale, inner = _scaled(t)
    literal = number_of(inner)
    if literal is not None:
        return scale * literal, False, [], ()
    if inner.op in ("cos", "sin", "tanh", "indicator") and inner.finite:
        if inner.op == "indicator" and scale >= 0:
            return Fraction(), False, [t], ()
        other = add(ONE, inner) if scale > 0 else subtract(ONE, inner)
        how = step(1, other, "bounded", inner)
        return -abs(scale), False, [times(num(abs(scale)), other)], (how,)
    if scale < 0 and inner.finite and not inner.shape:
        certain, other, steps = _at_most_one(inner, facts)
        if certain:
            return scale, certain == 2, [times(num(-scale), other)], steps
    if t.op == "maximum":
        return _lower_bound_of_maximum(t, facts)
    if t.op == "exp":
        certain, steps = _gap(ZERO, t.args[0], facts)
        if certain:
            more = subtract(t, ONE)
            last = step(certain, more, "rising", "exp", ZERO, t.args[0])
            return Fraction(1), certain == 2, [more], (*steps, last)
        return Fraction(), t.args[0].finite, [t], ()
    if t.op == "size":
        more = subtract(t, ONE)
        return Fraction(1), False, [more], (step(1, more, "ranges"),)
    certain, steps = find_sign(t, facts)
    return (Fraction(), certain == 2, [t], steps) if certain else NO_BOUND


def _lower_bound_of_maximum(t: Term, facts: Facts) -> LowerBound:
    """Return the best lower bound among those of the maximum's arguments."""
    best, more = NO_BOUND, t
    for x in t.args:
        found = _lower_bound(x, facts)
        if found[0] is not None and (best[0] is None or found[:2] > best[:2]):
            best, more = found, x
    low, strict, rest, steps = best
    if low is None:
        return NO_BOUND
    gap = subtract(t, more)
    return low, strict, [gap, *rest], (*steps, step(1, gap, "largest", t, more))


def _at_most_one(t: Term, facts: Facts) -> tuple[int, Term, Steps]:
    """Return 1 if t = exp(x) or 1/x^k is <= 1, 2 if it is < 1, else 0; with 1 − t and the steps."""
    other = subtract(ONE, t)
    if t.op == "exp" and t.args[0].finite:
        certain, steps = _gap(t.args[0], ZERO, facts)
        if certain:
            return certain, other, (*steps, step(certain, other, "rising", "exp", t.args[0], ZERO))
    if t.op == "power" and t.data < 0:
        (x,) = t.args
        certain, steps = _gap(ONE, x, facts)
        if certain:
            room = subtract(ONE, power(x, -1))  # 1 − 1/x^k = Σ_{m<k} (1 − 1/x)/x^m
            first = step(certain, room, "rising", "power", ONE, x)
            if t.data == -1:
                return certain, other, (*steps, first)
            above = step(2, x, "total", ONE, subtract(x, ONE))
            parts = [times(room, power(x, -m)) if m else room for m in range(-t.data)]
            last = step(certain, other, "total", *parts)
            return certain, other, (*steps, first, above, last)
    return 0, other, ()


def _scaled(t: Term) -> tuple[Fraction, Term]:
    """Return (c, x) for c·x with a literal c; (1, t) for any other number."""
    scale = number_of(t.args[0]) if t.op == "mul" and len(t.args) == 2 else None
    return (Fraction(1), t) if scale is None else (scale, t.args[1])


# Negative terms of a sum bounded by positive ones


def _by_bounding(t: Term, facts: Facts) -> Found:
    """Find the sign of a sum by bounding each negative term by positive ones at least as large."""
    linear = collected(t)
    available = {m: c for m, c in linear.items() if c > 0}
    parts, steps = list[Term](), list[Steps]()
    for small in sorted((m for m, c in linear.items() if c < 0), key=order):
        missing = -linear[small]
        for large in sorted(available, key=lambda m: (-len(common_factors(small, m)[0]), order(m))):
            amount = min(missing, available[large])
            by = _no_larger(small, large, facts) if amount else None
            if by is not None:
                missing, available[large] = missing - amount, available[large] - amount
                parts += [times(num(amount), piece) for piece in by[0]]
                steps.append(by[1])
        if missing:
            return NEITHER
    rest = [(c, mul(*m)) for m, c in available.items() if c]
    found = [find_sign(x, facts) for _, x in rest]
    if not all(certain for certain, _ in found):
        return NEITHER
    certain = max((s for s, _ in found), default=1)
    parts += [times(num(c), x) for c, x in rest]
    last = step(certain, t, "total", *parts)
    return certain, joined(*steps, *(more for _, more in found), (last,))


Less = tuple[list[Term], Steps]


def _no_larger(small: Monomial, large: Monomial, facts: Facts) -> Less | None:
    """Return large − small, of two products, as numbers >= 0 that add up to it, or None.

    The common factors must be >= 0.  Of the others, either at most one in each product is left,
    and these are compared with each other or with 1; or all left in ``small`` are >= 0, each is at
    most one in ``large`` or at most 1, and what remains in ``large`` is at least 1.
    """
    both, left, right = common_factors(small, large)
    common = mul(*both)
    certain, steps = find_sign(common, facts)
    if not certain:
        return None
    known = [steps]
    alone = len(left) <= 1 and len(right) <= 1
    pairs: list[tuple[Term, Term]] = []
    for x in tuple(left):
        if not alone:
            certain, more = find_sign(x, facts)
            if not certain:
                return None
            known.append(more)
        for y in right:
            by = _below(x, y, facts)
            if by is not None:
                left.remove(x)
                right.remove(y)
                pairs.append((x, y))
                known.append(by)
                break
    for x, y in (*((x, ONE) for x in left), *((ONE, y) for y in right)):
        least = 1 if x is ONE else -1
        low, _, rest, more = _lower_bound(y if x is ONE else mul(num(-1), x), facts)
        if low is None or low < least:
            return None
        pairs.append((x, y))
        known += [more, (step(1, subtract(y, x), "total", num(low - least), *rest),)]
    if alone:  # y − x = (y − 1) + (1 − x)
        return [times(common, subtract(y, x)) for x, y in pairs], joined(*known)
    pieces: list[Term] = []
    for chosen in product((False, True), repeat=len(pairs)):
        if any(chosen):  # Π (x + e) − Π x is the sum over all choices of an e or the x
            each = zip(chosen, pairs, strict=True)
            pieces.append(times(common, *(subtract(y, x) if e else x for e, (x, y) in each)))
    return pieces, joined(*known)


def _below(small: Term, large: Term, facts: Facts) -> Steps | None:
    """Return the steps to f(x) <= f(y) for two terms with the same function f, or None."""
    if small.op != large.op:
        return None
    if small.op in ("exp", "tanh", "log", "sqrt"):
        return _rising(small.op, small.args[0], large.args[0], subtract(large, small), facts)
    if small.op == "power" and small.data == large.data == -1:
        return _rising("power", large.args[0], small.args[0], subtract(large, small), facts)
    if small.op == "maximum":
        return _maximum_at_most(small, large, facts)
    if small.op == "sum" and small.args[0] is large.args[0]:
        return _sum_at_most(small, large, facts)
    if small.op == "indicator":
        return _implies(small, large, facts)
    return None


def _rising(f: str, x: Term, y: Term, t: Term, facts: Facts) -> Steps | None:
    least = LEAST[f]
    first, steps = find_sign(x, facts) if least else NEITHER
    certain, more = _gap(x, y, facts) if first >= least else NEITHER
    return joined(steps, more, (step(1, t, "rising", f, x, y),)) if certain else None


def _gap(x: Term, y: Term, facts: Facts) -> Found:
    """Find the sign of y − x, with steps to the form that the kernel checks."""
    if not (x.finite and y.finite) or x.shape:
        return NEITHER
    form, whole = minus(y, x), subtract(y, x)
    certain, steps = find_sign(form, facts)
    if not certain or form is whole:
        return certain, steps
    return certain, (*steps, step(certain, whole, "total", form))


def _maximum_at_most(small: Term, large: Term, facts: Facts) -> Steps | None:
    """max(x, ..) <= max(y, ..) if each x is at most some y."""
    if small.op == "maximum":
        if not small.finite or any(not x.finite for x in small.args):
            return None
        parts = [_maximum_at_most(x, large, facts) for x in small.args]
        known = [steps for steps in parts if steps is not None]
        last = step(1, subtract(large, small), "least", small, large)
        return joined(*known, (last,)) if len(known) == len(parts) else None
    return _at_most_maximum(small, large, facts)


def _at_most_maximum(x: Term, large: Term, facts: Facts) -> Steps | None:
    """Return the steps to x <= max(y, ..) if x is at most some y, or None."""
    if large.op != "maximum":
        certain, steps = _gap(x, large, facts)
        return steps if certain else None
    for y in large.args:
        below = _at_most_maximum(x, y, facts) if y.finite else None
        if below is not None:
            up, whole = subtract(large, y), subtract(large, x)
            last = (step(1, up, "largest", large, y), step(1, whole, "total", up, subtract(y, x)))
            return joined(below, last)
    return None


def _sum_at_most(small: Term, large: Term, facts: Facts) -> Steps | None:
    """Σ_j f(j) <= Σ_j g(j) if every f(j) is at most g(j)."""
    whole = make("sum", (small.args[0], subtract(large.args[1], small.args[1])))
    j = opened(small.args[0], whole)
    certain, steps = _gap(instantiate(small.args[1], j), instantiate(large.args[1], j), facts)
    if not certain or not (small.finite and large.finite):
        return None
    every = step(1, whole, "every", j, steps)
    return every, step(1, subtract(large, small), "linear", large, small)


def _implies(first: Term, then: Term, facts: Facts) -> Steps | None:
    """[a <= b] <= [c <= d] if d − c is at least b − a; the same for <, and from < to <=."""
    strict = {"less": 1, "less_equal": 0}
    one, other = first.args[0], then.args[0]
    if one.op not in strict or other.op not in strict or not (first.finite and then.finite):
        return None
    (a, b), (c, d) = one.args, other.args
    slack = add(d, mul(num(-1), c), a, mul(num(-1), b))
    form = as_term(collected(slack))
    certain, steps = find_sign(form, facts)
    if not certain or certain <= strict[other.op] - strict[one.op]:
        return None
    t = subtract(then, first)
    above, below = (substitute(t, first, value) for value in (ONE, ZERO))
    if then not in above.args:  # one occurs in the other
        return None
    against = step(2, ZERO, "total", subtract(b, a), subtract(c, d), slack)
    both = step(1, substitute(above, then, ONE), "total")
    holds = step(1, above, "cases", then, (both,), (against,))
    last = step(1, t, "cases", first, (holds,), (step(1, below, "total", then),))
    return joined(steps, (step(certain, slack, "total", form), last))
