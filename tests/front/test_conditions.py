"""The conditions of a theorem are part of its verdict wherever that is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnproof.catalogue import Source
from attnproof.checking import VACUOUS, Options, check
from attnproof.page import page
from attnproof.records import TheoremRecord
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, differ, equal, greater
from attnproof.symbolic.givens import real
from attnproof.symbolic.statement import Theorem, theorem
from attnproof.terminal import conditions
from attnproof.verdict_line import clauses

GIVEN = {"x": real(), "y": real()}


def record(stated: Theorem) -> TheoremRecord:
    @stated.negative_control("another number")
    def other(x: Array, y: Array) -> Claim:
        return equal(x, y + 1)

    source = Source(Path(__file__))
    found = check(stated, source, Options(numeric=False))
    assert isinstance(found, TheoremRecord), found
    assert found.verdict == "proved"
    return found


def under(stated: Theorem) -> list[str]:
    return clauses(record(stated).conditions)


def test_a_hypothesis_and_a_divisor_stand_on_the_line() -> None:
    stated = theorem("t", given=GIVEN, assume=lambda x: [differ(x, 1)])(
        lambda x, y: {"one": equal(x / y, x * (1 / y)), "two": equal(x + y, y + x)}
    )
    found = record(stated)
    assert clauses(found.conditions) == ["if x ≠ 1 and y ≠ 0 (for one)"]
    assert list(conditions(found)) == ["if x ≠ 1 and y ≠ 0 (for one)"]
    lines = page(found).splitlines()
    assert lines[3] == "✓ proved, if x ≠ 1 and y ≠ 0 (for one) (as expected)"
    assert "nothing useful" in page(found)


def test_a_proof_without_conditions_has_a_bare_line() -> None:
    assert under(theorem("t", given=GIVEN)(lambda x, y: equal(x + y, y + x))) == []


@pytest.mark.parametrize("false", [True, False])
def test_hypotheses_that_nothing_satisfies_are_told(false: bool) -> None:
    """x > 0 and −x > 0 would give anything of x; nothing is known to be such."""
    stated = theorem("t", given=GIVEN, assume=lambda x: [greater(x, 0), *[greater(-x, 0)] * false])(
        lambda x, y: greater(x + 0 * y, 0)
    )
    assert (VACUOUS in record(stated).conditions[-1].text) == false
