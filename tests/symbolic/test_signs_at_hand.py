"""Signs that a statement takes as given, used by the rules that ask for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, Law, at_least, differ, equal, greater
from attnproof.symbolic.derivation import Rewrite, SignStep
from attnproof.symbolic.derive import NotProved, derive
from attnproof.symbolic.givens import Given, real, sizes
from attnproof.symbolic.kernel import close, replay
from attnproof.symbolic.normal_form.polynomial import with_sign_facts
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules import ON_SIGNS, RULES
from attnproof.symbolic.rules.base import Refused
from attnproof.symbolic.scalars import ONE, add, entry, index, mul, power
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term
from tests.cases import each
from tests.symbolic.vocabulary import a, b, case

(size,) = sizes("size")
GIVEN: dict[str, Given] = {
    "x": real(size),
    "z": real(size),
    "w": real(size, size),
    "s": real(),
    "t": real(),
}
x, z, w, s, t = (given.named(name) for name, given in GIVEN.items())


def verdict(claim: Claim, *laws: Claim, refuting: bool = False) -> str:
    told = Statement(GIVEN, {"": claim}, (), tuple(map(Law, laws)))
    return decide(told, refuting=refuting).verdict


PROVED = {
    "x/x": (equal(x / x, 1 + 0 * x), greater(x, 0)),
    "s/s²": (equal(s / s**2, 1 / s), greater(s, 0)),
    "s/s² where s differs from 0": (equal(s / s**2, 1 / s), differ(s, 0)),
    "a common factor": (equal(s * x / s, x), differ(s, 0)),
    "a difference": (equal((s - t) * x / (s - t), x), greater(s, t)),
    "inside a function": (equal(xp.exp(x / x), xp.exp(1 + 0 * x)), greater(x, 0)),
    "inside a sum": (equal(xp.sum(x / x), 0 * s + size), greater(x, 0)),
    "a root": (equal(xp.sqrt(x) ** 2, x), at_least(x, 0)),
    "a logarithm": (equal(xp.exp(xp.log(x)), x), greater(x, 0)),
    "a product in a logarithm": (
        equal(xp.log(x * z), xp.log(x) + xp.log(z)),
        greater(x, 0),
        greater(z, 0),
    ),
    "an absolute value": (equal(xp.abs(x * z), x * z), at_least(x, 0), at_least(z, 0)),
    "rows": (equal(w / w, 1 + 0 * w), greater(w, 0)),
}


@each(PROVED)
def test_a_sign_that_is_given_is_used_and_nothing_without_it(told: str) -> None:
    claim, *laws = PROVED[told]
    assert verdict(claim, *laws) == "proved"
    for missing in laws:
        assert verdict(claim, *(law for law in laws if law is not missing)) == "undecided"


NOT = {
    "of another array": (equal(x / x, 1 + 0 * x), greater(z, 0)),
    "not strict": (equal(x / x, 1 + 0 * x), at_least(x, 0)),
    "of the other sign": (equal(xp.sqrt(x) ** 2, x), at_least(0, x)),
    "of some entry": (equal(x / x, 1 + 0 * x), differ(x, 0 * x)),
    "of one entry": (equal(x / x, 1 + 0 * x), greater(x[0], 0)),
    "a number that differs has no sign": (equal(xp.abs(s), s), differ(s, 0)),
}


@pytest.mark.parametrize("told", NOT)
def test_a_sign_of_something_else_is_no_help(told: str) -> None:
    assert verdict(*NOT[told]) == "undecided"


def test_a_false_equation_stays_refuted_under_a_sign() -> None:
    assert verdict(equal(x / x, 2 + 0 * x), greater(x, 0), refuting=True) == "refuted"
    assert verdict(equal(xp.abs(s), -s), greater(s, 0), refuting=True) == "refuted"


def test_maximum_and_minimum_share_their_numbers() -> None:
    assert verdict(equal(xp.maximum(x, z) + xp.minimum(x, z), x + z)) == "proved"
    assert verdict(equal(xp.maximum(x, 0 * x) - xp.maximum(-x, 0 * x), x)) == "proved"
    assert verdict(equal(xp.maximum(x, z) - xp.minimum(x, z), x - z), refuting=True) == "refuted"
    assert verdict(equal(xp.maximum(x, z), xp.maximum(-x, -z)), refuting=True) == "refuted"


def masked_total(seen: Callable[[Any, Any], Any]) -> Array:
    """The sum of each row of exp(w) over the places that are seen from it."""
    place = xp.arange(size)
    return xp.sum(xp.where(seen(place[:, None], place[None, :]), xp.exp(w), 0 * w), axis=1)


@pytest.mark.parametrize(
    ("seen", "certain"),
    [
        (lambda i, j: j <= i, True),
        (lambda i, j: (j <= i) & (i < j + 3), True),
        (lambda i, j: j >= 0 * i, True),
        (lambda i, j: j < i, False),
        (lambda i, j: j <= i - 1, False),
        (lambda i, j: (j <= i) & (j > 0), False),
        (lambda i, j: i < j + 0 * i, False),
    ],
)
def test_a_condition_that_certainly_holds_at_a_place_makes_a_sum_positive(
    seen: Callable[[Any, Any], Any], certain: bool
) -> None:
    rows = masked_total(seen)
    assert verdict(equal(rows / rows, 1 + 0 * rows)) == ("proved" if certain else "undecided")


POSITIVE = ("positive", a)


def shows(facts: set[tuple[str, Term]], granted: set[tuple[str, Term]], rule: str = "ring") -> None:
    left = mul(a, power(a, -1))
    step = Rewrite(rule, left, (ONE, a), ONE, tuple(SignStep(*fact) for fact in facts))
    close(replay(step), frozenset(granted), ("=", left, ONE))


def test_the_kernel_takes_a_sign_as_an_assumption_that_must_be_granted() -> None:
    shows({POSITIVE}, {POSITIVE})
    shows({("nonzero", a)}, {("nonzero", a)})
    for granted in (set(), {("nonnegative", a)}, {("positive", b)}):
        with pytest.raises(Refused, match="not granted"):
            shows({POSITIVE}, granted)
    for facts in (set(), {("nonnegative", a)}, {("positive", b)}, {("any", a)}):
        with pytest.raises(Refused):
            shows(facts, {POSITIVE, *facts})


def test_rules_that_ask_for_no_sign_take_none() -> None:
    left = add(a, b)
    assert set(RULES) > ON_SIGNS
    with pytest.raises(Refused, match="uses no signs"):
        replay(Rewrite("entry", left, (), left, (SignStep(*POSITIVE),)))


def test_what_is_given_of_one_entry_shows_nothing_of_all() -> None:
    """The index of a case must be arbitrary, also in the signs that the case takes as given."""
    left, right = (x / x).term, (1 + 0 * x).term
    (length,) = x.term.shape
    with with_sign_facts(frozenset({("positive", entry(x.term, case(left, right)))})):
        of_one = derive(left, right)
    with pytest.raises(Refused, match="open index"):
        replay(of_one)
    told = frozenset({("positive", entry(x.term, index("i0", length)))})
    with with_sign_facts(told), pytest.raises(NotProved):
        derive(left, right)
    with with_sign_facts(frozenset({("positive", x.term)})):
        of_all = derive(left, right)
    assert replay(of_all).assumes == {("positive", x.term)}
