"""What was measured and what was computed exactly: in the record, on the page, in the report."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from pydantic import TypeAdapter

from attnproof.numeric.results import ExactEvidence, MeasuredEvidence, PolicyRecord, Status
from attnproof.report.page import environment
from attnproof.theorem_runs.evidence_words import (
    exact_lines,
    nearest,
    not_applied,
    number_lines,
    policy_lines,
)
from attnproof.theorem_runs.judgement import against
from tests.front.outputs import MEASURED


def record(*policies: PolicyRecord, status: Status = "held", reason: str = "") -> MeasuredEvidence:
    told: dict[str, Any] = {"implementation": "eager", "dtype": "bfloat16", "policies": policies}
    told |= {"distribution": "peaked", "distributions": ("normal", "peaked")}
    return replace(MEASURED, error=0.1, tolerance=1.0, status=status, reason=reason, **told)


MEASUREMENT = TypeAdapter(MeasuredEvidence)
CERTAIN = PolicyRecord("deterministic", "held", 0.1, "entry (0,)")
RESIDUAL = PolicyRecord(
    "residual", "violated", 3.2, "|z| = 22.4 along key 12 of the left side, limit 7"
)
SKIPPED = PolicyRecord("probabilistic", "skipped", 0.0, "inputs are clustered")
BITS = PolicyRecord(
    "bitwise", "violated", float("inf"), "queries in another order: 1 entries differ"
)


def test_the_record_holds_every_policy() -> None:
    found = record(CERTAIN, SKIPPED, RESIDUAL, BITS)
    assert (found.distribution, found.distributions) == ("peaked", ("normal", "peaked"))
    assert [p.ratio for p in found.policies] == [0.1, None, 3.2, "non-finite"]
    assert MEASUREMENT.validate_json(MEASUREMENT.dump_json(found)) == found


def test_the_policy_nearest_to_its_limit_is_named() -> None:
    assert nearest(record(CERTAIN, RESIDUAL)) == "residual 3.2"
    assert nearest(record(CERTAIN, SKIPPED)) == ""
    assert nearest(record(CERTAIN, RESIDUAL, BITS)) == "bitwise: differs"


def test_each_policy_that_was_applied_has_a_line() -> None:
    lines = policy_lines([record(CERTAIN, SKIPPED, RESIDUAL), record(CERTAIN)])
    assert lines[0].startswith("deterministic: 2 of 2; nearest to its limit in eager, bfloat16")
    assert "key 12" in lines[1]
    assert len(lines) == 2


def test_what_was_not_applied_has_one_line_with_every_reason_once() -> None:
    bits = PolicyRecord("bitwise", "skipped", 0.0, "no rows were computed both ways")
    residual = PolicyRecord("residual", "skipped", 0.0, "inputs are clustered")
    other = PolicyRecord("bitwise", "skipped", 0.0, "it is not promised")
    every = [record(CERTAIN, SKIPPED, residual, bits), record(CERTAIN, SKIPPED, other)]
    assert not_applied(every) == (
        "Not applied to all measurements: probabilistic, residual (inputs are clustered); "
        "bitwise (no rows were computed both ways; it is not promised)."
    )
    assert not_applied([record(CERTAIN)]) == ""


def test_the_report_shows_them() -> None:
    template = environment().from_string(
        "{% for e in rows %}{{ nearest(e) }}{% endfor %}: {{ policy_lines(rows) | join('. ') }}"
    )
    told = template.render(rows=[record(CERTAIN, RESIDUAL)])
    assert told.startswith("residual 3.2: deterministic: 1 of 1")


def test_the_report_says_once_what_was_not_applied() -> None:
    template = environment().from_string(
        '{% import "parts.html.j2" as parts with context %}'
        '{{ parts.numbers([("", "", statement)]) }}'
    )
    one = record(CERTAIN, SKIPPED)
    groups = [one, replace(one, says="the other conclusion")]
    told = template.render(statement=SimpleNamespace(evidence=groups))
    assert told.count("<li>deterministic: 1 of 1") == 2
    assert told.count("probabilistic") == told.count("inputs are clustered") == 1
    assert "Not applied" not in template.render(
        statement=SimpleNamespace(evidence=[record(CERTAIN)])
    )


def test_the_page_has_a_row_with_a_column_for_each_policy() -> None:
    lines = list(number_lines([record(CERTAIN, SKIPPED, reason="")]))
    assert lines[0] == "  n = 4; every entry; on cpu"
    assert lines[3].split() == ["✓", "bfloat16", "0.1", "1", "0.1", "–", "–", "–"]
    assert lines[4] == "        inputs: normal, peaked"
    assert lines[5] == "    – probabilistic: inputs are clustered"


def test_the_page_says_which_policy_refuses_what_the_bound_lets_pass() -> None:
    lines = list(number_lines([record(CERTAIN, RESIDUAL, BITS, status="violated", reason="no")]))
    assert lines[3].split() == ["✗", "bfloat16", "0.1", "1", "0.1", "–", "3.2", "differs"]
    told = " ".join(" ".join(lines[4:]).split())
    assert "violated at entry (0,): no residual: |z| = 22.4 along key 12" in told
    assert "bitwise: queries in another order" in told


# Exact checks in records, judgements and words.


def found(status: Any = "held", says: str = "", **changed: Any) -> ExactEvidence:
    skipped = status == "skipped"
    told: dict[str, Any] = {
        "primes": () if skipped else (11, 23),
        "sizes": {"n": 4},
        "seed": 0,
        "compared": 0 if skipped else 12,
        "undefined": 1,
        "error": "",
        "argument": "",
        "reason": "a maximum" * skipped,
        "seconds": 0.0,
    }
    return ExactEvidence(says=says, status=status, **told | changed)


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
