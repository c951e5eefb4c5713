"""What a proof of a conclusion may take, and what its verdict says it took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import (
    Claim,
    at_least,
    equal,
    for_all,
    permutation,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.derivation import Reflexive
from attnproof.symbolic.kernel import Refused, replay
from attnproof.symbolic.prove import check_proof, decide
from attnproof.symbolic.statement import Statement

n, m = sizes("n m")
GIVEN = {"X": real(n), "s": permutation(n), "C": real(m), "D": real(m)}
X = GIVEN["X"].named("X")


def proved(body: Callable[..., Any], assume: Callable[..., Any] | None = None) -> tuple[str, ...]:
    """Return the assumptions of the only conclusion, which is proved."""
    found = decide(theorem("checked", given=GIVEN, assume=assume)(body).statement)
    assert found.verdict == "proved", found.claims[0].why
    return found.claims[0].assumptions


def test_a_variable_of_a_conclusion_brings_what_it_is_given_to_be() -> None:
    used = proved(lambda: {"a ratio": for_all({"p": positive()}, lambda p: equal(p / p, 1))})
    assert used == ("p is positive",)


def equal_arrays(C: Any, D: Any) -> Claim:
    return equal(C, D)


def test_a_hypothesis_may_read_what_another_keeps_inside_its_axis() -> None:
    used = proved(equal_arrays, lambda X, C, D: [at_least(n, m), (C, X[n - m :]), (D, X[n - m :])])
    assert "n - m >= 0" in used


def pairs(s: Any) -> Any:
    return xp.where(s[:, None] == s[None, :], 1, 0)


def test_a_permutation_is_not_said_to_be_injective_as_well() -> None:
    assert proved(lambda s: equal(pairs(s), xp.eye(n))) == ("s is injective",)
    used = proved(lambda X, s: equal(pairs(s) * xp.sum(X[s]), xp.eye(n) * xp.sum(X)))
    assert used == ("s is a permutation",)


def test_a_proof_of_a_statement_that_reads_outside_is_refused_by_its_message() -> None:
    last = X[n - m :]
    claim = equal(last, last)
    with pytest.raises(Refused, match=r"a hypothesis at_least\(n, m\) in assume= would show it"):
        check_proof(claim, Statement(GIVEN, {"": claim}), replay(Reflexive(last.term)))
