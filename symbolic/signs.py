"""The search for signs: numbers that are certainly > 0, >= 0 or not 0, with steps for the kernel.

Nothing here is trusted.  A search returns the sign found (2: > 0; 1: >= 0; 0: neither) and the
steps after which the kernel can read it off the form of the number.  In a sum, negative terms are
bounded by positive ones that are at least as large (``bounding.py``, for sums in the form of
``linear.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import islice, product

from .bounding import Search, by_bounding, gap, lower_bound
from .budget import check_time
from .derivation import SignStep
from .linear import (
    KIND,
    NEITHER,
    Found,
    Steps,
    as_term,
    collected,
    divided,
    joined,
    minus,
    multiples,
    step,
    times,
)
from .rules.base import NOTHING, Assumption, Facts
from .rules.entries import written_out
from .rules.inequalities import known_after, one_sum
from .rules.polynomials import same_polynomial
from .rules.signs import BY_FORM, BY_KIND, CARRIED, Sign, Signs, with_squares
from .scalars import (
    ONE,
    ZERO,
    always_less,
    below,
    entry,
    is_integer,
    is_truth,
    mul,
    num,
    number_of,
    subtract,
)
from .sign_of_sums import (
    as_one_sum,
    by_common_factor,
    by_difference_of_squares,
    by_logarithms,
    by_roots,
    by_squares,
    by_tangent,
    over_denominators,
)
from .terms import Opened, Term, free, instantiate, make, opened, postorder, substitute

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
    for (kind, _), x, given in _known_numbers(t, facts):
        if kind != "nonzero":
            continue
        if x is t:
            return True, given
        for one in (x, times(num(-1), x)):
            if same_polynomial(t, one):
                return True, (*given, SignStep("nonzero", t, "multiple", (one,)))
        whole = collected(x)
        others = divided(next(iter(whole)), (t,)) if len(whole) == 1 else None
        if others is not None:
            by = mul(*map(num, whole.values()), *others)
            return True, (*given, SignStep("nonzero", t, "multiple", (x, by)))
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


def _search(facts: Facts) -> Search:
    return lambda t: find_sign(t, facts)


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
    certain, steps = gap(ONE, x, _search(facts))
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
    found = _least_sign(with_squares(t), facts)
    gated = not found[0] and t.finite and any(x.op == "indicator" for x in t.args)
    return _by_cases(t, facts) if gated else found


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
    find = _search(facts)
    if _is_unbounded(t, facts):
        return NEITHER
    low, strict, rest, steps = lower_bound(t, find)
    if low is not None and low >= 0:
        certain = 2 if low > 0 or strict else 1
        found: Found = certain, joined(steps, (step(certain, t, "total", num(low), *rest),))
    else:
        found = next((one for way in _WAYS if (one := way(t, find))[0]), NEITHER)
    if not found[0]:
        return _by_cases(t, facts)
    return found if found[0] == 2 else max(found, _strictly_positive(t, facts), key=lambda s: s[0])


def _is_unbounded(t: Term, facts: Facts) -> bool:
    """Whether t is of odd degree in a number of any sign, which nothing else depends on.

    Conditions may cancel what it is multiplied with.
    """
    linear = collected(t)
    factors = {f for m in linear for f in m}
    leaves = {f for f in factors if f.op in ("entry", "var")}
    others = {x for f in factors - leaves for x in postorder(f)}
    if any(x.op == "indicator" for x in others):
        return False
    others |= {x for _, known in facts for x in postorder(known)}
    for leaf in leaves:
        array = leaf.args[0] if leaf.op == "entry" else leaf
        if array in others or array.op != "var" or find_sign(leaf, facts)[0]:
            continue
        if max(m.count(leaf) for m in linear) % 2:
            return True
    return False


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
    length, (one, less) = more.args[0], (num(1), num(-1))
    both = length, one, more, less, taken
    certain, steps = find_sign(one_sum(*both), facts)
    return (2, (*steps, step(2, t, "linear", *both))) if certain == 2 else NEITHER


_WAYS = (
    by_bounding,
    by_common_factor,
    over_denominators,
    as_one_sum,
    by_tangent,
    by_logarithms,
    by_roots,
    by_squares,
    by_difference_of_squares,
)
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
    for fact, x, given in _known_numbers(t, facts):
        kind = fact[0]
        if kind not in BY_KIND or not x.finite:
            continue
        for factor, rest in multiples(collected(t), collected(x)):
            certain, steps = find_sign(factor, facts)
            other = as_term(rest)
            left, more = find_sign(other, facts - {fact}) if certain else NEITHER
            if left:
                strict = left == 2 or (certain == 2 and BY_KIND[kind] == 2)
                last = step(1 + strict, t, "total", times(factor, x), other)
                return 1 + strict, joined(steps, more, given, (last,))
    return NEITHER


MAX_PLACES = 16


def _known_numbers(t: Term, facts: Facts) -> Iterator[tuple[Assumption, Term, Steps]]:
    """Yield facts about numbers, also with entries unfolded, and those of arrays where t reads."""
    for fact in sorted(facts, key=lambda fact: (fact[0], fact[1].key)):
        kind, x = fact
        given = _given_step(kind, x)
        if not x.shape:
            yield fact, x, given
        for number in islice(_entries(x, t), MAX_PLACES):
            plain = written_out(number)
            if plain is not number:
                yield fact, plain, (*given, SignStep(kind, plain, "unfolded", (number,)))


def _entries(x: Term, t: Term) -> Iterator[Term]:
    """Yield a number, or the entries of an array at the places that occur in a number."""
    places = {at: None for part in postorder(t) if part.op == "entry" for at in part.args[1:]}
    ordered = sorted(places, key=lambda at: at.key)
    fitting = ([at for at in ordered if not at.loose and below(at, n)] for n in x.shape)
    return (entry(x, *at) for at in product(*fitting))


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
