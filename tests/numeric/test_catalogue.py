"""Every theorem in numbers at small sizes, its negative control with the opposite verdict."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import cast

import pytest

from attnproof import theorems
from attnproof.numeric.check import measure
from attnproof.numeric.results import MeasuredEvidence
from attnproof.symbolic.array import AxisMismatch
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import positive, real, sizes
from attnproof.symbolic.statement import Statement, Theorem
from attnproof.theorem_runs.judgement import against, opposite
from attnproof.theorem_runs.records import Expected
from attnproof.theorems.definitions.attention import attention


def catalogue() -> list[Theorem]:
    found = []
    for module in walk_packages(theorems.__path__, "attnproof.theorems."):
        if not module.ispkg and ".definitions." not in module.name:
            values = vars(import_module(module.name)).values()
            found += [value for value in values if isinstance(value, Theorem)]
    return found


# Every second theorem is measured in bfloat16, and what is false in a dtype that tells it apart.
DTYPES = {theorem: ("float32", "bfloat16")[k % 2] for k, theorem in enumerate(catalogue())}


@cache
def measured(theorem: Theorem, *, control: bool = False) -> list[MeasuredEvidence]:
    """The numbers of a theorem or of its negative control, at small sizes."""
    expected = cast("Expected", theorem.expected)
    statement = theorem.control if control else theorem.statement
    expected = opposite(expected) if control else expected
    dtype = DTYPES[theorem] if expected == "proved" else "float32"
    return measure(statement, scale="small", device="cpu", dtypes=[dtype], expected=expected)


def speaks_against(found: list[MeasuredEvidence], expected: Expected) -> tuple[str, ...]:
    """What the numbers say against the expected verdict, as the judgement of a run reads them."""
    assert found
    assert not [m for m in found if m.status == "non-finite"]
    assert all(m.reason for m in found if m.status == "skipped")
    return against(expected, expected, tuple(found))


@pytest.mark.parametrize("theorem", DTYPES, ids=lambda theorem: theorem.body.__name__)
def test_numbers_agree_and_refuse_the_control(theorem: Theorem) -> None:
    expected = cast("Expected", theorem.expected)
    if expected == "ill-typed":
        with pytest.raises(AxisMismatch):
            theorem.statement  # noqa: B018 (building it is the test)
    else:
        assert speaks_against(measured(theorem), expected) == ()
    assert speaks_against(measured(theorem, control=True), opposite(expected)) == ()


def test_most_statements_are_measured() -> None:
    """Skipping speaks against nothing, so it must stay the exception."""
    proved = [theorem for theorem in DTYPES if theorem.expected == "proved"]
    silent = [t.title for t in proved if not any(m.status == "held" for m in measured(t))]
    assert len(proved) > 8 * len(silent), silent


def test_what_is_computed_before_attention_is_in_the_bound() -> None:
    """The sums K + b and Q / t are rounded too before any kernel sees them."""
    r, n = sizes("r n", "tokens")
    ell, d = sizes("ell d", "features")
    given = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "b": real(ell), "t": positive()}
    Q, K, V, b, t = (g.named(name) for name, g in given.items())
    claims = {
        "a key bias cancels": equal(attention(Q, K + b[None, :], V), attention(Q, K, V)),
        "temperature": equal(attention(Q / t, K, V), attention(Q, K / t, V)),
    }
    for seed in range(2):
        found = measure(Statement(given, claims), scale="small", device="cpu", seed=seed)
        assert {m.status for m in found} <= {"held", "skipped"}
        assert {m.dtype for m in found if m.status == "held"} >= {"float64", "float32"}
