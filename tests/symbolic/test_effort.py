"""How long a proof and a witness are looked for, and which comes first."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from typing import Any

import pytest

from attnproof.symbolic import chain, derive, equal, exists, injection, prove, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.budget import Budget, OutOfTime, check_time, within
from attnproof.symbolic.claim import Claim
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.givens import Given
from attnproof.symbolic.normal_form.normaliser import Normaliser
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.refute import refute
from attnproof.symbolic.statement import Statement

N, D, B = sizes("n d B")
GIVEN: dict[str, Given] = {"X": real(N, D), "Y": real(D, N), "a": real(), "b": real()}
X, Y, a, b = (given.named(name) for name, given in GIVEN.items())
TRUE = equal((X @ Y).mT, Y.mT @ X.mT)
FALSE = equal(xp.exp(a + b), xp.exp(a) + xp.exp(b))
QUICK = Effort(limit=0.5, glance=6)


def decided(claim: Claim, effort: Effort | None = None) -> Decision:
    return decide(Statement(GIVEN, {"": claim}), effort=effort)


def never(*_: object, **__: object) -> Any:
    raise AssertionError("this was not to be tried")


def test_a_budget_counts_what_this_thread_does() -> None:
    asleep = Budget(0.05)
    time.sleep(0.1)
    assert not asleep.over
    while not asleep.over:
        pass
    assert Budget(10, whole=asleep).over
    assert not Budget(10).over


def test_a_limit_inside_a_limit_is_no_longer() -> None:
    check_time()
    with within(10):
        check_time()
        with within(0), pytest.raises(OutOfTime, match="in 0 seconds"):
            check_time()
        check_time()
    with within(0), within(10), pytest.raises(OutOfTime):
        check_time()
    with within(0), pytest.raises(OutOfTime):
        Normaliser()((xp.exp(a + b)).term)


@pytest.mark.parametrize("glance", [0, 6])
def test_a_proof_that_takes_too_long_is_none(glance: int) -> None:
    effort = replace(QUICK, prove=0, patience=0, glance=glance)
    claim = decided(TRUE, effort).claims[0]
    assert (claim.verdict, claim.why) == ("undecided", "no proof was found in 0 seconds")
    assert decided(FALSE, effort).verdict == "refuted"
    assert decided(TRUE, replace(effort, prove=10)).verdict == "proved"
    patient = decided(TRUE, replace(effort, patience=10))
    assert patient.verdict == ("proved" if glance else "undecided")


def test_a_glance_saves_the_proof_of_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decided(TRUE, QUICK).verdict == "proved"
    monkeypatch.setattr(prove, "show", never)
    assert decided(FALSE, QUICK).verdict == "refuted"
    for claim, effort in ((TRUE, QUICK), (FALSE, replace(QUICK, glance=0))):
        with pytest.raises(AssertionError, match="not to be tried"):
            decided(claim, effort)


def test_a_witness_under_a_glance_obeys_the_hypotheses() -> None:
    free = Statement(GIVEN, {"": equal(a, b)})
    bound = replace(free, assume=((a.term, b.term),))
    assert decide(free, effort=replace(QUICK, refuting=False)).verdict == "refuted"
    assert decide(bound, effort=QUICK).verdict == "proved"


def test_a_glance_looks_where_the_givens_have_values() -> None:
    given = {"place": injection(2 * B, D), "x": real(D)}
    place, x = (g.named(name) for name, g in given.items())
    found = refute(equal(x[place], 0 * x[place]), given, guesses=3)
    assert found is not None
    assert found.sizes == {"B": 1, "d": 2}
    assert refute(equal(x[place] - x[place], 0 * x[place]), given, guesses=3) is None


def test_a_named_array_is_shown_before_it_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = exists(real(D, D), "A", lambda A: equal(X @ A, X * 2), witness=2 * xp.eye(D))
    monkeypatch.setattr(prove, "_find_witness", never)
    assert decided(claim, QUICK).verdict == "proved"
    with pytest.raises(AssertionError, match="not to be tried"):
        decided(TRUE, QUICK)


def test_a_witness_saves_the_second_way_to_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = [xp.where(xp.arange(N) < 1, x, b) for x in (a, b, a - b)]
    ways: list[object] = []
    plainly = derive._by_normal_forms

    def noted(*args: Any) -> Any:
        ways.append(args[2])
        return plainly(*args)

    monkeypatch.setattr(derive, "_by_normal_forms", noted)
    found = decided(equal(masked[0], masked[1])).claims[0]
    assert (found.verdict, len(ways)) == ("refuted", 1)
    assert found.witness == decided(equal(masked[0], masked[1])).claims[0].witness
    ways.clear()
    assert decided(equal(masked[0], masked[1]), Effort(refuting=False)).verdict == "undecided"
    assert len(ways) > 1
    ways.clear()
    both = chain(masked[0], ("false", masked[1]), ("false", masked[2]))
    assert decided(both).verdict == "refuted"
    assert len(ways) > 2  # of several steps each may hold


def test_what_is_proved_and_refuted_at_once_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("attnproof.symbolic.prove")
    early = module._BriefSearch
    monkeypatch.setattr(
        module, "_BriefSearch", lambda *args: replace(early(*args), witness=object())
    )
    (found,) = decided(TRUE, QUICK).claims
    assert found.verdict == "internal error"
    assert "proved, and a witness refutes it" in found.why
