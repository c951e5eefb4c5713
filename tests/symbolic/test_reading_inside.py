"""A statement that may read outside of an axis is neither proved nor refuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import Claim, at_least, equal, permutation, real, rows, sizes, theorem
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.derivation import Reflexive
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.prove import decide
from attnproof.symbolic.reading import open_ranges
from attnproof.symbolic.scalars import add, entry, index, mul, num
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import make
from tests.cases import each

n, m, h, r = sizes("n m h r")
GIVEN = {"X": real(n), "K": real(h, 3), "s": permutation(n)}
X, K, s = (given.named(name) for name, given in GIVEN.items())
N, M = n.term, m.term

Assume = Callable[..., list[Any]]


def stated(body: Callable[..., Claim], assume: Assume | None = None) -> Statement:
    return theorem("reads", given=GIVEN, assume=assume)(body).statement


def last(X: Any) -> Any:
    return xp.sum(0 * X[n - m :] + 1)


def test_a_slice_that_may_leave_its_axis_is_refused_where_the_statement_is_built() -> None:
    with pytest.raises(IndexError, match=r"slice n - m:n of axis 0 of X.*at_least\(n, m\)"):
        stated(lambda X: equal(last(X), m))
    with pytest.raises(IndexError, match=r"index j0 \+ 1 of axis 0 of X.*rows"):
        stated(lambda X: equal(rows(n, lambda i: X[i + 1]), X))
    with pytest.raises(IndexError, match=r"slice m:n"):
        stated(lambda X: equal(X, X), lambda X: [(X[m:] * 0, X[m:])])


def test_a_hypothesis_that_itself_reads_outside_shows_nothing() -> None:
    with pytest.raises(IndexError, match=r"at_least\(n, m\)"):
        stated(lambda X: equal(X, X), lambda X: [at_least(n + 0 * xp.sum(X[m:]), m)])


def test_such_a_statement_is_undecided_even_if_it_is_true_of_terms_or_false() -> None:
    for right in (m, m + 1):
        found = decide(Statement(GIVEN, {"": equal(last(X), right)}))
        assert found.verdict == "undecided"
        assert "at_least(n, m)" in found.claims[0].why


def test_under_a_hypothesis_it_is_proved_and_says_so() -> None:
    found = decide(stated(lambda X: equal(last(X), m), lambda: [at_least(n, m)]))
    assert found.verdict == "proved"
    assert found.claims[0].assumptions == ("n - m >= 0",)
    false = decide(stated(lambda X: equal(last(X), m + 1), lambda: [at_least(n, m)]))
    assert false.verdict == "refuted"
    with pytest.raises(IndexError, match="at_least"):
        stated(lambda X: equal(last(X), m), lambda: [at_least(n + 1, m)])


def test_the_code_is_compared_at_sizes_that_obey_the_hypothesis() -> None:
    sixth = stated(lambda X: equal(X[5] - X[-6], X[5] - X[n - 6]), lambda: [at_least(n, 6)])
    assert decide(sixth).verdict == "proved"
    wrong = stated(
        lambda X: equal(X[5] + (0 if isinstance(X, Array) else 1), X[5]), lambda: [at_least(n, 6)]
    )
    found = decide(wrong)
    assert found.verdict == "misread"
    assert "n = 6" in found.claims[0].why


@each(
    [
        make("slice", (X.term, add(N, mul(num(-1), M))), (0, 1), (M,)),
        make("slice", (X.term, num(0)), (0, 1), (M,)),
        make("slice", (X.term, num(0)), (0, 1), (add(N, mul(num(-1), M)),)),
        make("slice", (X.term, num(0)), (0, 2), (N,)),
        make("pick", (X.term, num(1)), 0),
        make("pick", (X.term, index("i", M)), 0),
        make("pick", (X.term, X[0].term), 0),
        make("gather", (real(m).named("Y").term, s.term), 0, (N,)),
        entry(X.term, add(index("i", N), num(1))),
        make("row", (X.term, num(3))),
        make("reduce", (make("slice", (X.term, M), (0, 1), (N,)),), 0),
        rows(m, lambda i: X[i]).term,
        xp.zeros(n - m).term,
    ]
)
def test_the_kernel_closes_no_proof_of_a_term_that_leaves_its_axis(t: Any) -> None:
    assert open_ranges(t)
    with pytest.raises(Refused, match="outside of its axis"):
        close(replay(Reflexive(t)), frozenset(), ("=", t, t))


def test_what_its_form_shows_is_closed() -> None:
    computed = (K[xp.arange(h * r) // r], X[n - 1 - xp.arange(n)])
    for a in (X[1:], X[:-1], X[-1], X[s], X[s[s]], *computed):
        assert not open_ranges(a.term)
        close(replay(Reflexive(a.term)), frozenset(), ("=", a.term, a.term))


def test_tables_of_computed_places_are_read() -> None:
    """Grouped queries: head j reads the keys of group ⌊j/r⌋."""
    grouped = K[xp.arange(h * r) // r]
    told = xp.reshape(xp.broadcast_to(K[:, None], (h, r, 3)), (h * r, 3))
    claims = {
        "repeated": equal(grouped, told),
        "summed": equal(xp.sum(grouped, axis=0), r * xp.sum(K, axis=0)),
        "twice": equal(X[s[s]], X[s][s]),
        "backwards": equal(xp.sum(X[n - 1 - xp.arange(n)]), xp.sum(X)),
    }
    assert decide(Statement(GIVEN, claims)).verdict == "proved"
    false = {"": equal(K[xp.arange(h * r) % h], grouped)}
    assert decide(Statement(GIVEN, false)).verdict == "refuted"


def test_an_axis_that_may_be_empty_sums_to_0() -> None:
    claims = {"": equal(xp.sum(X[1:]) + X[0], xp.sum(X))}
    assert decide(Statement(GIVEN, claims)).verdict == "proved"
    mean = {"": equal(xp.mean(0 * X[1:] + 1), 1)}
    assert decide(Statement(GIVEN, mean)).verdict != "proved"
    weights = {"": equal(xp.sum(xp.exp(X[1:]) / xp.sum(xp.exp(X[1:]))), 1)}
    assert decide(Statement(GIVEN, weights)).verdict == "refuted"
