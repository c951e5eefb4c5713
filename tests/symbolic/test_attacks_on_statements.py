"""Statements that were once decided wrongly: false and "proved", or true and "refuted".

Where a statement cannot be written any more, the test holds what its author is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import (
    Array,
    Claim,
    Statement,
    all_positive,
    at_least,
    boolean,
    differ,
    equal,
    exists,
    for_all,
    function,
    greater,
    index_below,
    iterate,
    natural,
    positive,
    probability_space,
    real,
    rows,
    sizes,
    standard,
    theorem,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Law
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import decide
from tests.cases import each

n, d = sizes("n d")
GIVEN: dict[str, Given] = {
    "b": boolean(),
    "c": boolean(),
    "f": function(0),
    "u": natural(),
    "x": real(),
    "y": real(),
}
b, c, f, u, x, y = (given.named(name) for name, given in GIVEN.items())
MASKED = xp.where(b, x, -xp.inf)
M, X = boolean(d), real(d)


def statement(claim: Claim, *told: Claim, **given: Given) -> Statement:
    """The claim under hypotheses, with further givens."""
    equations = tuple((t.left, t.right) for t in told if t.relation == "=" and t.right is not None)
    laws = tuple(Law(t) for t in told if t.relation != "=")
    return Statement({**GIVEN, **given}, {"": claim}, equations, laws)


def verdict(claim: Claim, *told: Claim, **given: Given) -> str:
    """The verdict of the prover alone."""
    return decide(statement(claim, *told, **given), refuting=False).verdict


def stated(body: Callable[..., Any], **given: Given) -> Statement:
    return theorem("a statement", given=given)(body).statement


# minus infinity


def test_the_exponential_of_a_masked_score_is_not_positive() -> None:
    """exp(−∞) + 1 + cos π is 0."""
    for score, expected in ((x, "proved"), (MASKED, "undecided")):
        assert verdict(all_positive(xp.exp(score) + 1 + xp.cos(y))) == expected


@pytest.mark.parametrize(
    "number",
    [
        lambda score: 1 / (1 + xp.exp(score)),
        lambda score: xp.exp(-xp.maximum(x, score)),
        lambda score: xp.exp(-xp.exp(score)),
    ],
)
def test_what_plus_infinity_would_make_0_is_not_positive(number: Callable[[Array], Array]) -> None:
    """−M is plus infinity where the score M is masked."""
    assert verdict(all_positive(number(MASKED))) == "proved"
    assert verdict(all_positive(number(-MASKED))) == "undecided"


@pytest.mark.parametrize(
    ("layer", "other"),
    [
        (lambda _, s: xp.astype(s <= s - 1, float), lambda _, s: 0 * s),
        (lambda _, s: xp.where(s <= s - 1, 5, 7), lambda _, s: 7 + 0 * s),
        (lambda _, s: xp.exp(s) * xp.exp(-s), lambda _, s: 1 + 0 * s),
    ],
)
def test_layers_that_agree_on_numbers_may_differ_on_minus_infinity(
    layer: Callable[..., Array], other: Callable[..., Array]
) -> None:
    rows_, mask = X.named("X"), M.named("M")
    for start, expected in (
        (xp.where(mask, rows_, 0), "proved"),
        (xp.where(mask, rows_, -xp.inf), "undecided"),
    ):
        claim = equal(iterate(n, start, layer), iterate(n, start, other))
        assert verdict(claim, X=X, M=M) == expected


# a hypothesis about one thing is none about every such thing


@pytest.mark.parametrize("name", ["i0", "j0"])
def test_a_hypothesis_about_one_index_is_none_about_every_entry(name: str) -> None:
    """Whatever an index is called, the rules may call theirs alike."""
    one = index_below(n)
    table = rows(n, f)
    told = all_positive(f(one.named(name)))
    for claim in (all_positive(table), all_positive(xp.sum(table))):
        assert verdict(claim, told, **{name: one}) == "undecided"


def test_a_hypothesis_about_one_number_is_none_about_every_state() -> None:
    """s ↦ (s − 1)² is 0 at s = 1, whatever number is said not to be 1."""
    told = differ(positive().named("y0"), 1)
    layers = iterate(u, 2, lambda _, s: (s - 1) ** 2)
    assert verdict(all_positive(layers), told, y0=positive()) == "undecided"


def test_a_hypothesis_about_a_given_is_none_about_all_that_bear_its_name() -> None:
    """From x = 0 for the x that is given, no x = 0 for all x follows."""
    every = for_all({"x": real()}, lambda x: equal(x, 0)).claim
    assert verdict(equal(x, 0), equal(x, 0)) == "proved"
    assert verdict(every, equal(x, 0)) == "undecided"


# one name is one thing


def test_a_conclusion_for_all_x_is_not_about_another_x_that_is_given() -> None:
    """log(1 + x) > 0 for the positive x was once refuted by a negative x of the conclusion."""

    def body(x: Array) -> Law:
        return for_all({"x": real()}, lambda **every: greater(xp.log(1 + x) + 0 * every["x"], 0))

    told = stated(body, x=positive())
    ((name, _),) = told.claims[""].variables
    assert name == "x′"
    assert decide(told).verdict == "proved"


def test_what_is_said_to_exist_is_not_called_like_a_given() -> None:
    """In 'some x′ has 2 x′ + 0 x = 1' x is the given one; and no name is for two things."""

    def body(name: str) -> Callable[..., Claim]:
        return lambda x: exists(real(), name, lambda z: equal(2 * z + 0 * x, 1), witness=0.5)

    for name, told in (("x", "x′"), ("z", "z")):
        claimed = stated(body(name), x=real())
        assert repr(claimed.claims[""].variable) == told
        assert decide(claimed, refuting=False).verdict == "proved"

    def meaning_another(x: Array) -> Claim:
        del x
        return exists(real(), "x", lambda z: equal(2 * z, 1), witness=0.5)

    with pytest.raises(TypeError, match="x is the name of a given and of the array that exists"):
        stated(meaning_another, x=real())


def test_an_index_that_exists_has_its_whole_name() -> None:
    """Its first letter was once taken for its name, and a page of it raised an error."""

    def body(j: Array) -> Claim:
        return exists(index_below(n), "jk", lambda jk: equal(jk, j), witness=j)

    claimed = stated(body, j=index_below(n))
    assert decide(claimed).verdict == "undecided"  # only what is real is shown to exist


@pytest.mark.parametrize("given", [natural(), real(), index_below(d), real(d)])
def test_a_given_is_not_called_like_a_length(given: Given) -> None:
    """m − i >= 1 for i below a natural number m was once refuted by a size m."""

    def body(n: Array) -> Claim:
        return equal(xp.sum(xp.ones(sizes("n")[0])) + 0 * xp.sum(n * xp.ones(d)), 1)

    with pytest.raises(TypeError, match="n is the name of a given and of a length"):
        stated(body, n=given)


def claimed_twice(x: Array, y: Array) -> dict[str, Claim]:
    return {"x is y": equal(x, y), "x is y": equal(x, x)}  # noqa: F601 (Python keeps the last)


def claimed_alone(x: Array, y: Array) -> Claim:
    equal(x, y)
    return equal(x, x)


def claimed_of_all(x: Array, y: Array) -> Claim:
    for_all({"z": real()}, lambda z: equal(x + 0 * z, y) if z.ndim else equal(x, y))
    return equal(x, x)


@pytest.mark.parametrize("body", [claimed_twice, claimed_alone, claimed_of_all])
def test_a_claim_that_is_made_is_returned(body: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="makes a claim of x and y, and does not return it"):
        stated(body, x=real(), y=real())


def test_a_claim_may_be_part_of_another() -> None:
    def body(x: Array, y: Array) -> dict[str, Any]:
        law = for_all({"z": real()}, lambda z: equal(x + y, y + x + 0 * z))
        return {
            "shown": law,
            "shown with it": equal(x + y, y + x).with_facts(law.at(z=x)),
            "for all": for_all({"z": real()}, lambda z: equal(z * x, x * z)),
            "some": exists(real(), "z", lambda z: equal(z, x), witness=x),
            "larger": greater(x * x + 1, 0),
        }

    assert len(stated(body, x=real(), y=real()).claims) == 5


def test_two_lengths_of_one_name_are_refused() -> None:
    """They are two axes to the kernel, and one number to a reader and to the numbers."""
    tokens, features = (sizes("n", role)[0] for role in ("tokens", "features"))
    both = {"X": real(tokens), "Y": real(features)}
    for body in (lambda X, Y: equal(Y, X), lambda X, Y: equal(X, X + 0 * xp.sum(Y))):
        with pytest.raises(TypeError, match="two lengths are called n, one of the role 'features'"):
            stated(body, **both)
    with pytest.raises(TypeError, match="two lengths are called n"):
        stated(lambda X: equal(X, X + 0 * features), X=real(tokens))


def test_the_range_of_an_index_is_read_by_its_whole_name() -> None:
    """j < nu gives nu − j >= 1; nu was once taken for the size n."""
    nu = index_below(n + 1)
    j = index_below(nu.named("nu"))
    claim = at_least(nu.named("nu") - j.named("j"), 1)
    assert decide(statement(claim, nu=nu, j=j)).verdict != "refuted"


# whole numbers


def test_an_index_below_no_whole_number_proves_nothing() -> None:
    """t + s < 4 fails at t = 1, s = 3, and these are below 3/2 and 5 − 3/2."""

    def all_below(end: Any, depth: Any, s: Array) -> Claim:
        counted = iterate(depth, 0, lambda t, z: z + xp.astype(t + s < end, float))
        return equal(counted, iterate(depth, 0, lambda _, z: z + 1))

    for first, second, end, expected in ((n, d, n + d - 1, "proved"), (x, 5 - x, 4, "undecided")):
        s = index_below(second)
        assert verdict(all_below(end, first, s.named("s")), s=s) == expected


# divisors


@pytest.mark.parametrize("witness", [0 * x, x - x])
def test_no_number_is_shown_to_exist_by_dividing_by_it(witness: Array) -> None:
    """1/z = 0 for no z; the convention 1/0 = 0 makes none."""
    claim = exists(real(), "z", lambda z: equal(1 / z, 0), witness=witness)
    assert verdict(claim) == "undecided"
    found = exists(real(), "z", lambda z: equal(1 / z, 2), witness=witness + 0.5)
    assert verdict(found) == "proved"


@pytest.mark.parametrize("number", [x // 0, u % (x - x), xp.log(-1 * xp.ones(1))])
def test_a_number_that_is_nowhere_defined_equals_nothing(number: Array) -> None:
    assert verdict(equal(number, number)) == "undecided"


# random numbers and truth values


@pytest.mark.parametrize("rows_", [n, 1, n + 1])
def test_random_numbers_have_outcomes_and_no_rows(rows_: Any) -> None:
    """Over one row E z = 0 and E z² = 1 would give 0 = 1."""
    with pytest.raises(TypeError, match="wants a probability_space first"):
        standard(rows_, d)
    assert standard(probability_space("Ω"), d).kind == "standard"


def test_fourth_roots_of_lengths_and_of_any_numbers_are_roots() -> None:
    """A scale is put on queries and on keys by half; of exponentials they stay exponentials."""
    half, of_any = n**-0.25, (y * y) ** 0.25
    for claim, expected in (
        (equal(half * half, n**-0.5), "proved"),
        (equal(half * half, n**-0.75), "undecided"),
        (equal(of_any * of_any, abs(y)), "proved"),
        (equal(of_any * of_any, y), "undecided"),
        (equal(xp.exp(y) ** 0.25, xp.exp(y / 4)), "proved"),
    ):
        assert verdict(claim) == expected


@each(
    [
        lambda: b + b,
        lambda: 2 * b,
        lambda: b * c,
        lambda: -b,
        lambda: x - b,
        lambda: 1 - (x <= y),
        lambda: (x <= y) + (y <= x),
        lambda: b[None] + xp.ones(n),
        lambda: M.named("M") @ X.named("X"),
        lambda: X.named("X") @ M.named("M"),
        lambda: xp.sum(M.named("M")),
        lambda: xp.mean(M.named("M"), axis=0),
    ]
)
def test_truth_values_are_not_counted_unless_they_are_made_numbers(
    computed: Callable[[], Array],
) -> None:
    """b + b is 2·b of a number and b of a truth value."""
    with pytest.raises(TypeError, match="holds truth values"):
        computed()
    number = xp.astype(b, float)
    assert verdict(equal(number + number, 2 * number)) == "proved"


@pytest.mark.parametrize(
    ("start", "layer"),
    [(b, lambda _, s: s), (b, lambda *_: x), (x, lambda _, s: s <= y), (x, lambda *_: b)],
)
def test_the_state_of_a_stack_of_layers_is_no_truth_value(
    start: Array, layer: Callable[..., Array]
) -> None:
    with pytest.raises(TypeError, match="a stack of layers holds numbers"):
        iterate(n, start, layer)
    doubled = [iterate(n, xp.astype(b, float), f) for f in (lambda _, s: s + s, lambda _, s: 2 * s)]
    assert verdict(equal(*doubled)) == "proved"
