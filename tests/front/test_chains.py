"""The links of a record: where the parts of a proof begin, and how the last one ends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from attnproof.documents.evidence import Evidence, ProvedEvidence
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, Law, at_least, chain, differ, equal, for_all, iterate
from attnproof.symbolic.givens import Given, function, natural, positive, real, sizes
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs import translation
from attnproof.theorem_runs.records import LinkRecord

(d,) = sizes("d", "features")
GIVEN: dict[str, Given] = {
    "A": real(d, d),
    "B": real(d, d),
    "m": natural(),
    "k": natural(),
    "s": real(),
    "c": positive(),
    "x": real(d),
    "y": real(d),
    "f": function(0),
}
A, B, m, k, s, c, x, y, f = (GIVEN[name].named(name) for name in GIVEN)


def power(base: Array, exponent: Array) -> Array:
    result = iterate(exponent, xp.eye(d), lambda _, Y: base @ Y)
    assert isinstance(result, Array)
    return result


def found(
    claims: Mapping[str, Claim], *assume: tuple[Array, Array], laws: tuple[Law, ...] = ()
) -> tuple[tuple[LinkRecord, ...], tuple[Evidence, ...]]:
    pairs = tuple((a.term, b.term) for a, b in assume)
    decided = decide(Statement(GIVEN, claims, pairs, laws), refuting=False)
    assert decided.verdict == "proved", [claim.why for claim in decided.claims]
    return translation.chain(decided), translation.evidence(decided)


def shape(links: tuple[LinkRecord, ...]) -> list[tuple[str, str, str]]:
    return [(link.opens, link.relation, link.reason) for link in links]


def test_an_induction_has_a_base_and_a_step() -> None:
    claim = equal(power(A, m + k), power(A, m) @ power(A, k)).by_induction(m)
    links, (evidence,) = found({"": claim})
    assert shape(links) == [
        ("By induction on m. For m = 0:", "=", ""),
        ("From m to m + 1, by the equation at m:", "=", ""),
    ]
    assert [link.left.latex for link in links] == ["A^{k}", "A^{m + 1 + k}"]
    assert isinstance(evidence, ProvedEvidence)
    assert evidence.rules["induction"] == 1
    assert evidence.steps == sum(evidence.rules.values())


def test_a_chain_by_induction_opens_each_half_once() -> None:
    left, right = power(A, m + k), power(A, m) @ power(A, k)
    claim = chain(left, ("as it is", left), ("split", right)).by_induction(m)
    links, _ = found({"": claim})
    assert shape(links) == [
        ("By induction on m. For m = 0:", "=", "as it is"),
        ("", "=", "split"),
        ("From m to m + 1, by the equation at m:", "=", "as it is"),
        ("", "=", "split"),
    ]


def test_an_order_ends_in_a_sign() -> None:
    claim = at_least(s * s + c * c, 2 * s * c, ("complete the square", (s - c) ** 2))
    links, _ = found({"": claim})
    assert [(link.opens, link.relation) for link in links] == [
        ("The left side less the right side:", "="),
        ("", ">="),
    ]
    assert links[0].reason == "complete the square"
    assert [link.right.text for link in links] == ["(s - c)^2", "0"]


def test_a_difference_ends_in_a_contradiction() -> None:
    left, right = s * xp.ones(d), (s + c) * xp.ones(d)
    claim = differ(left, right, left[0], ("an entry", right[0]), -c)
    links, _ = found({"": claim})
    assert [link.opens for link in links] == ["If they were equal, then", "But"]
    assert links[1].right.latex == r"-c \ne 0"
    assert links[1].right.text == "-c ≠ 0"
    assert links[1].relation == "="


def test_squares_and_inverses_say_why_they_are_enough() -> None:
    by_squares, _ = found({"": equal(x, y).by_squares()}, (xp.sum((x - y) ** 2), 0 * s))
    assert by_squares[0].opens == "Numbers whose squares add up to 0 are 0:"
    by_inverse, _ = found({"": equal(B @ A, xp.eye(d)).by_inverse()}, (A @ B, xp.eye(d)))
    assert by_inverse[0].opens == "For square matrices one order of the product is enough:"


def test_the_facts_of_a_proof_are_told_with_where_they_come_from() -> None:
    law = for_all({"m": natural()}, lambda m: equal(f(m + 1), s * f(m)))
    twice = for_all({"m": natural()}, lambda m: equal(f(m + 2), s * s * f(m)))
    first = twice.claim.with_facts(law.at(m=m + 1), law.at(m=m))
    second = equal(f(k + 2), s**2 * f(k)).with_facts(twice.at(m=k))
    _, evidence = found({"two steps": first, "at k": second}, laws=(law,))
    told = [
        (use.formula.text, use.source)
        for e in evidence
        if isinstance(e, ProvedEvidence)
        for use in e.uses
    ]
    assert told == [
        ("f(m + 1 + 1) = s·f(m + 1)", ""),
        ("f(m + 1) = s·f(m)", ""),
        ("f(k + 2) = s·s·f(k)", "two steps"),
    ]


def test_an_equation_opens_with_nothing() -> None:
    links, _ = found({"": chain(s + c, ("commute", c + s), ("again", s + c))})
    assert shape(links) == [("", "=", "commute"), ("", "=", "again")]


def test_what_would_look_alike_is_told_apart() -> None:
    links, _ = found({"": equal(A @ B @ A, A @ (B @ A))})
    assert [(link.left.latex, link.right.latex) for link in links] == [("A B A", "A (B A)")]


@pytest.mark.parametrize(
    ("claimed", "text"),
    [
        (at_least(s * s, 0), "s·s ≥ 0"),
        (differ(c, 0), "c ≠ 0"),
        (
            for_all({"m": natural()}, lambda m: equal(m, m + 0)).claim,
            "for all m ∈ \u2115: m = m + 0",
        ),
    ],
)
def test_statements_in_words(claimed: Claim, text: str) -> None:
    assert translation.statement(Statement({}, {"": claimed})).text == text


def test_hypotheses_and_sizes_of_laws() -> None:
    (n,) = sizes("n", "tokens")
    law = for_all({"v": real(n)}, lambda v: equal(xp.sum(v), s))
    claimed = Statement({}, {"": equal(s, s)}, ((c.term, s.term),), (law, Law(at_least(c, s))))
    assert [h.text for h in translation.hypotheses(claimed)] == [
        "c = s",
        "for all v ∈ ℝ^n: sum(v, axis=0) = s",
        "c ≥ s",
    ]
    assert [size.name for size in translation.sizes(claimed)] == ["n"]
