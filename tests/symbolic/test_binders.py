"""Binders: the relation stays with its sides, and a bound variable with what binds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from attnproof.symbolic.array import Array, AxisMismatch
from attnproof.symbolic.claim import (
    Claim,
    Law,
    all_positive,
    at_least,
    differ,
    equal,
    exists,
    for_all,
    greater,
    iterate,
    over,
    rows,
)
from attnproof.symbolic.derivation import Reflexive, Sign, Witness
from attnproof.symbolic.derive import law_of
from attnproof.symbolic.givens import Given, function, index_below, natural, real, sizes
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.latex import claim_latex
from attnproof.symbolic.plain import plain_claim
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import ZERO, add, mul, num
from attnproof.symbolic.statement import Statement, theorem
from attnproof.symbolic.terms import Opened, make, opened, substitute

(n,) = sizes("n")
x = real().named("x")
X = real(n).named("X")
GIVEN = {"x": real(), "X": real(n)}


def verdict(claim: Claim | Law, *laws: Law, **given: Given) -> str:
    said = claim.claim if isinstance(claim, Law) else claim
    told = Statement({**GIVEN, **given}, {"": said}, (), laws)
    return decide(told, limit_seconds=0.5).verdict


def some(body: Callable[[Array], Any], witness: Any = None, kind: Given | None = None) -> Claim:
    return exists(kind or real(), "z", body, witness=witness)


# the relation


@pytest.mark.parametrize(
    ("body", "good", "bad"),
    [
        (lambda z: greater(z, x), x + 1, x),
        (lambda z: greater(x, z), x - 1, x),
        (lambda z: at_least(z, x), x, x - 1),
        (lambda z: at_least(x, z), x, x + 1),
        (lambda z: differ(z, x), x + 1, x),
        (lambda z: all_positive(z - x), x + 2, x - 2),
        (lambda z: equal(z, x), x, x + 1),
    ],
    ids=["above", "below", "at least", "at most", "differs", "positive", "equal"],
)
def test_an_existence_is_shown_of_its_witness_in_its_own_relation(
    body: Callable[[Array], Claim], good: Array, bad: Array
) -> None:
    assert verdict(some(body, good)) == "proved"
    assert verdict(some(body, bad)) == "undecided"  # another array may do


def test_an_inequality_of_arrays_has_a_witness() -> None:
    assert verdict(some(lambda Z: greater(Z, X), X + 1, real(n))) == "proved"
    assert verdict(some(lambda Z: greater(Z, X), X, real(n))) == "undecided"


@pytest.mark.parametrize("more", [0, 1])
def test_nothing_makes_zero_times_it_larger(more: int) -> None:
    """0·z > 0·x fails for every z; an equation of the two sides would hold."""
    assert verdict(some(lambda z: greater(0 * z, 0 * x + more), 0)) == "refuted"
    assert verdict(some(lambda z: at_least(0 * z, 0 * x + more), 0)) == ["proved", "refuted"][more]


def test_the_relation_is_printed() -> None:
    claim = some(lambda z: at_least(z, x), x)
    assert plain_claim(claim) == "there is z with z ≥ x"
    assert r"\ge" in claim_latex(claim)
    assert plain_claim(some(lambda z: differ(z, x), x + 1)) == "there is z with z ≠ x"


def test_the_kernel_knows_in_which_relation_the_witness_stands() -> None:
    one = num(1)
    z = real().named("z").term
    part = Sign(one, (), (Reflexive(one),))
    claim = (add(z, one), ZERO)
    shown = Sign(add(ZERO, one), (), (Reflexive(add(ZERO, one)),))
    witness = Witness(z, ZERO, (), claim, shown, ">")
    close(replay(witness), frozenset(), ("exists", *claim, z, (), ">"))
    weaker = replace(witness, relation=">=")
    close(replay(weaker), frozenset(), ("exists", *claim, z, (), ">="))
    for other in ("=", "!=", "<", "exists"):
        with pytest.raises(Refused, match="witness: "):
            replay(replace(witness, relation=other))
    with pytest.raises(Refused, match="witness: not the claim"):
        replay(replace(witness, part=part))
    square = mul(x.term, x.term)
    zero_or_more = Sign(square, (), (Reflexive(square),))
    with pytest.raises(Refused, match="it shows >= and not >"):
        replay(Witness(z, ZERO, (), (square, ZERO), zero_or_more, ">"))
    with pytest.raises(Refused, match="close: it shows something else"):
        close(replay(witness), frozenset(), ("exists", *claim, z, (), "="))


@pytest.mark.parametrize(
    "body",
    [
        lambda z: {"one": equal(z, x)},
        lambda z: (z, x),
        lambda z: for_all({"w": real()}, lambda w: equal(z, w)),
        lambda z: exists(real(), "w", lambda w: equal(z, w), witness=x),
    ],
    ids=["a dict", "a pair", "for all", "another existence"],
)
def test_what_an_existence_cannot_hold_is_refused_in_a_sentence(body: Any) -> None:
    with pytest.raises(TypeError, match=r"exists (wants|returns one)"):
        some(body, x)


def test_a_witness_has_the_shape_of_what_exists() -> None:
    with pytest.raises(AxisMismatch, match="z has shape"):
        some(lambda Z: equal(Z, X), 0, real(n))


def test_an_existence_is_shown_as_its_author_advises() -> None:
    f = function(0).named("f")
    law = for_all({"t": real()}, lambda t: equal(f(t), t + 1))
    claim = some(lambda z: equal(f(z), x).with_facts(law.at(t=x - 1)), x - 1)
    assert verdict(claim, law, f=function(0)) == "proved"
    assert verdict(some(lambda z: equal(f(z), x), x - 1), law, f=function(0)) == "undecided"
    m = natural().named("m")
    counted = iterate(m, 0 * m, lambda _, y: y + 1)
    by = some(lambda z: equal(counted + z, m + x).by_induction(m), x)
    assert by.by == "induction"


# the variable


def test_for_all_z_some_w_is_not_about_one_number_of_two_names() -> None:
    """For all z some w has 0·w = z: false, and once proved with both called z."""
    claim = for_all({"z": real()}, lambda z: some(lambda w: equal(0 * w, z + 0 * x), 0))
    assert plain_claim(claim.claim) == "for all z ∈ ℝ: there is z′ with 0·z′ = z + 0·x"
    assert verdict(claim) == "refuted"
    true = for_all({"z": real()}, lambda z: some(lambda w: equal(w, z + x), x))
    assert verdict(true) == "undecided"
    assert verdict(for_all({"z": real()}, lambda z: some(lambda w: equal(w, z), z))) == "proved"


def test_a_variable_is_not_the_given_of_its_name() -> None:
    outer = x
    claim = for_all({"x": real()}, lambda x: equal(x, outer))
    assert plain_claim(claim.claim) == "for all x′ ∈ ℝ: x′ = x"
    assert verdict(claim) == "refuted"
    assert law_of(claim) is not law_of(for_all({"x": real()}, lambda x: equal(x, x)))


def test_one_for_all_in_another_has_the_variables_of_both() -> None:
    same = for_all({"x": real()}, lambda x: for_all({"x": real()}, lambda **k: equal(k["x"], x)))
    assert [name for name, _ in same.claim.variables] == ["x", "x′"]
    assert verdict(same) == "refuted"
    two = for_all({"a": real()}, lambda a: for_all({"b": real()}, lambda b: equal(a + b, b + a)))
    assert plain_claim(two.claim) == "for all a ∈ ℝ, b ∈ ℝ: a + b = b + a"
    assert verdict(two) == "proved"
    ranged = for_all(
        {"m": natural()}, lambda m: for_all({"i": index_below(m)}, lambda i: at_least(m, i))
    )
    assert plain_claim(ranged.claim) == "for all m ∈ \u2115, i < m: m ≥ i"
    assert claim_latex(ranged.claim).endswith(r"m \in \mathbb{N}, i \in \{0, \dots, m - 1\}")
    assert verdict(ranged) != "refuted"


def test_laws_that_differ_in_names_are_one_law() -> None:
    f = function(0).named("f")
    one = for_all({"s": real()}, lambda s: equal(f(s), s * s))
    other = for_all({"x": real()}, lambda x: equal(f(x), x * x))
    assert law_of(one) is law_of(other)
    claim = equal(f(x + 1), (x + 1) * (x + 1)).with_facts(one.at(s=x + 1))
    assert verdict(claim, other, f=function(0)) == "proved"


def test_a_law_is_used_at_values_that_mention_its_own_variables() -> None:
    f = function(0, 0).named("f")
    a, b = (real().named(name) for name in "ab")
    law = for_all({"a": real(), "b": real()}, lambda a, b: equal(f(a, b), a - b))
    given = {"f": function(0, 0), "a": real(), "b": real()}
    swapped = law.at(a=b, b=a)
    assert verdict(equal(f(b, a), b - a).with_facts(swapped), law, **given) == "proved"
    assert verdict(equal(f(b, a), a - b).with_facts(swapped), law, **given) != "proved"


def test_a_variable_with_a_prime_is_named_without() -> None:
    f = function(0).named("f")
    outer = x
    law = for_all({"x": real()}, lambda x: equal(f(x), x + outer))
    assert law.claim.variables[0][0] == "x′"
    given = {"f": function(0)}
    assert verdict(equal(f(2), 2 + x).with_facts(law.at(x=2)), law, **given) == "proved"
    with pytest.raises(TypeError, match="the law has no variable y; its variables: x′"):
        law.at(y=2)


def test_a_family_within_a_family_has_two_indices() -> None:
    f = function(0).named("f")
    law = for_all({"t": real()}, lambda t: equal(f(t), 2 * t))
    table = rows(n, lambda i: rows(n, lambda j: f(i + 2 * j)))
    twice = rows(n, lambda i: rows(n, lambda j: 2 * i + 4 * j))
    turned = rows(n, lambda i: rows(n, lambda j: 2 * j + 4 * i))
    both = over(n, lambda i: over(n, lambda j: law.at(t=i + 2 * j)))
    assert verdict(equal(table, twice).with_facts(both), law, f=function(0)) == "proved"
    assert verdict(equal(table, turned).with_facts(both), law, f=function(0)) != "proved"


KEPT: list[Array] = []


def keeping(at: Array, value: Any) -> Any:
    KEPT.append(at)
    return value


@pytest.mark.parametrize(
    "binder",
    [
        lambda: rows(n, lambda i: keeping(i, X[i])),
        lambda: iterate(natural().named("m"), x, keeping),
        lambda: iterate(natural().named("m"), x, lambda _, y: keeping(y, y)),
        lambda: for_all({"x": real()}, lambda x: keeping(x, equal(x, x))),
        lambda: exists(real(), "x", lambda x: keeping(x, equal(x, x)), witness=1),
    ],
    ids=["rows", "the layer", "the state", "for all", "exists"],
)
def test_what_a_body_keeps_means_nothing_outside(binder: Callable[[], Any]) -> None:
    KEPT.clear()
    binder()
    (kept,) = KEPT
    with pytest.raises(TypeError, match="is bound elsewhere and free"):
        Statement(GIVEN, {"": equal(kept + x, x + kept)})
    with pytest.raises(TypeError, match="is bound elsewhere and free"):
        Statement(GIVEN, {"": some(lambda z: equal(z, z), kept)})


def test_the_kernel_takes_no_name_of_a_binder() -> None:
    for own in (make("var", data=(Opened(("x",)), "real")), opened(n.term, "x")):
        assert own is not x.term
        assert substitute(own, x.term, ZERO) is own
        proof = replay(Reflexive(own))  # of whatever is open
        with pytest.raises(Refused, match="it mentions an open index"):
            close(proof, frozenset(), ("=", own, own))
    for of in ((1,), (object(),), (("x",),), (frozenset(),)):
        with pytest.raises(Refused, match="'var' does not fit"):
            replay(Reflexive(make("var", data=(Opened(of), "real"))))
        with pytest.raises(Refused, match="'index' does not fit"):
            replay(Reflexive(make("index", (n.term,), Opened(of))))


def test_a_theorem_speaks_of_what_is_given() -> None:
    def body(x: Array) -> Claim:
        return equal(x + real().named("y"), real().named("y") + x)

    with pytest.raises(TypeError, match="y is not given, and body uses it"):
        theorem("t", given={"x": real()})(body).statement  # noqa: B018
    theorem("t", given={"x": real(), "y": real()})(body).statement  # noqa: B018
    with pytest.raises(TypeError, match="y is not given"):
        theorem("t", given={"x": real(), "y": natural()})(body).statement  # noqa: B018
