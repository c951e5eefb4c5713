"""Exact checks in records, judgements and words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attnproof.evidence import ExactEvidence
from attnproof.evidence_words import exact_lines
from attnproof.judgement import against
from attnproof.numeric.residues.exact import ExactCheck


def found(status: Any = "held", says: str = "", **changed: Any) -> ExactEvidence:
    skipped = status == "skipped"
    return ExactEvidence.model_validate(
        {
            "says": says,
            "primes": () if skipped else (11, 23),
            "sizes": {"n": 4},
            "seed": 0,
            "compared": 0 if skipped else 12,
            "undefined": 1,
            "worst": (),
            "status": status,
            "error": "",
            "argument": "",
            "reason": "a maximum" * skipped,
            "seconds": 0.0,
            **changed,
        }
    )


def test_a_check_becomes_evidence() -> None:
    check = ExactCheck(
        "the rows", "held", (11, 23), {"n": 4}, 3, 12, 1, Fraction(2, 11), "V is random", (), 0.1
    )
    record = ExactEvidence.of(check)
    assert (record.status, record.primes, record.compared, record.undefined) == (
        "held",
        (11, 23),
        12,
        1,
    )
    assert record.error == "≤ 1.8e-01"
    assert record.argument == "V is random"


def test_a_true_statement_may_not_be_violated_in_any_field() -> None:
    wrong = found("violated", worst=(2, 1))
    assert not against("proved", "proved", (found(), found("skipped")))
    assert against("proved", "proved", (found(), wrong)) == (
        "exact modulo 11, 23: violated at (2, 1)",
    )


def test_a_false_statement_must_be_violated_in_one() -> None:
    assert not against("refuted", "refuted", (found("violated"), found()))
    assert against("refuted", "refuted", (found(), found())) == (
        "exact in finite fields: held, and should have been violated",
    )


def test_a_conclusion_without_a_reading_may_be_the_false_one() -> None:
    assert not against("refuted", "refuted", (found("skipped"),))
    assert not against("refuted", "refuted", (found(), found("skipped", "the largest")))


def test_a_line_for_each_conclusion() -> None:
    checks = (
        found(error="≤ 1.8e-01"),
        found(),
        found("skipped", "b"),
        found(says="c"),
        found("violated", "c", worst=(2,), primes=(7, 43)),
    )
    first, second, third = exact_lines(checks)
    assert first.text == (
        "exact in 2 towers of fields (p = 11 | 23; 11 | 23): held, n = 4, 12 entries, 1 undefined, "
        "error ≤ 1.8e-01 each"
    )
    assert (second.status, second.why) == ("skipped", "a maximum")
    assert third.status == "violated"
    assert third.text.endswith("violated, n = 4, 12 entries, 1 undefined, first at (2,)")
