"""Numbers beside the verdicts of cells: they support, they speak against, they never prove."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof import Encoding, real
from attnproof.cards.verdicts import FORM, SHOWN, decided, measured
from attnproof.encoding.law import EncodingLaw, law
from attnproof.encodings.additive import LearnedTable
from attnproof.encodings.bias import T5Buckets
from attnproof.encodings.masks import Nope, NopeCausal
from attnproof.encodings.powers import MatrixPowers, PlaneRotation
from attnproof.encodings.relative import Shaw
from attnproof.encodings.rope import Rope, Xpos
from attnproof.laws.attention import acts_on_scores, independent_of_length, translation
from attnproof.laws.positions import bounded
from attnproof.laws.scores import even, relative
from attnproof.numeric.results import MeasuredEvidence
from attnproof.symbolic.claim import Claim, equal


class Plain(Encoding):
    """A bias c·(m − n)."""

    given = {"c": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.c * (m - n)


@law("|a + b| + |a − b| is twice the larger", group="tests", example="plain", breaks="rope")
def hidden(e: Plain, a: Any, b: Any) -> Claim:
    """True, and beyond the normal form."""
    from attnproof.symbolic import namespace as xp

    larger = xp.maximum(xp.abs(a), xp.abs(b))
    return equal(xp.abs(a + b) + xp.abs(a - b), 2 * larger + 0 * e.c)


@law("tanh(a + b) is the sum", group="tests", example="plain", breaks="rope")
def wrong(e: Plain, a: Any, b: Any) -> Claim:
    """False."""
    from attnproof.symbolic import namespace as xp

    return equal(xp.tanh(a + b), xp.tanh(a) + xp.tanh(b) + 0 * e.c)


def test_a_proved_cell_gains_numbers() -> None:
    cell = decided(Rope, relative)
    found = measured(Rope, relative, cell)
    numbers = [e for e in found.evidence if isinstance(e, MeasuredEvidence)]
    assert found.verdict == "proved"
    assert {e.dtype for e in numbers} >= {"float64", "float32"}
    assert "held" in {e.status for e in numbers}
    assert "violated" not in {e.status for e in numbers}


def test_an_undecided_cell_that_holds_is_measured() -> None:
    cell = decided(Plain, hidden)
    assert cell.verdict == "undecided"
    found = measured(Plain, hidden, cell)
    assert found.verdict == "measured"
    assert found.line == "measured, for integer positions"
    assert ", at random inputs of sizes up to " in found.why
    assert "not proved" in found.why


@pytest.mark.parametrize("told", ["undecided", "proved"])
def test_numbers_that_speak_against_a_cell_are_told(told: str) -> None:
    cell = decided(Plain, wrong).model_copy(update={"verdict": told, "why": "because"})
    found = measured(Plain, wrong, cell)
    assert found.verdict == told
    assert "a measurement contradicts it" in found.why


@pytest.mark.parametrize(
    ("law", "verdict", "why"),
    [(even, "refuted", SHOWN), (bounded, "proved", FORM), (acts_on_scores, "proved", SHOWN)],
)
def test_a_method_that_has_nothing_to_say_says_why(
    law: EncodingLaw, verdict: str, why: str
) -> None:
    cell = decided(Rope, law)
    assert cell.verdict == verdict
    found = measured(Rope, law, cell)
    assert (found.verdict, found.why) == (verdict, cell.why)
    methods = found.evidence[len(cell.evidence) :]
    assert [(method.kind, getattr(method, "reason", "")) for method in methods] == [
        ("measured", why),
        ("exact", why),
    ]


def test_the_contrary_of_a_law_that_claims_a_difference_is_measured() -> None:
    cell = decided(Nope, acts_on_scores)
    assert cell.verdict == "refuted"
    found = measured(Nope, acts_on_scores, cell)
    numbers = [e for e in found.evidence if isinstance(e, MeasuredEvidence)]
    assert "held" in {e.status for e in numbers}
    assert found.why == cell.why


def test_a_law_that_does_not_apply_is_left_alone() -> None:
    cell = decided(Nope, even).model_copy(update={"verdict": "does not apply"})
    assert measured(Nope, even, cell) is cell


def test_positions_too_large_for_a_number_are_drawn_smaller() -> None:
    cell = decided(Xpos, relative)
    found = measured(Xpos, relative, cell)
    numbers = [e for e in found.evidence if isinstance(e, MeasuredEvidence)]
    assert {e.status for e in numbers} == {"held"}
    assert any("positions were drawn once more" in e.reason for e in numbers)
    assert found.why == cell.why


def test_where_the_definition_has_no_number_nothing_is_told() -> None:
    cell = decided(NopeCausal, translation)
    found = measured(NopeCausal, translation, cell)
    assert "contradicts" not in found.why
    skipped = [
        e.reason
        for e in found.evidence
        if isinstance(e, MeasuredEvidence) and e.status == "skipped"
    ]
    assert any("every key of a row is hidden" in reason for reason in skipped)


@pytest.mark.parametrize("kind", [MatrixPowers, LearnedTable, PlaneRotation, Shaw, T5Buckets])
def test_rows_at_whole_positions_are_read(kind: type[Encoding]) -> None:
    found = measured(kind, independent_of_length, decided(kind, independent_of_length))
    numbers = [e for e in found.evidence if isinstance(e, MeasuredEvidence)]
    assert "held" in {e.status for e in numbers}
    assert {e.status for e in numbers} <= {"held", "skipped"}
    assert "failed" not in found.why


def test_the_laws_of_these_tests_are_laws() -> None:
    assert isinstance(hidden, EncodingLaw)
