"""The verdict on a claim follows from what was found, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from attnproof.documents.evidence import (
    DerivedEvidence,
    RefutedEvidence,
    UndecidedEvidence,
    Verdict,
)
from attnproof.documents.verdict_line import Condition, clauses, verdict_line
from attnproof.numeric.results import MeasuredEvidence, Status
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, differ, equal, greater
from attnproof.symbolic.givens import real
from attnproof.symbolic.statement import Theorem, theorem
from attnproof.theorem_runs.catalogue import Source
from attnproof.theorem_runs.checking import VACUOUS, Options, check
from attnproof.theorem_runs.claims import Findings, derive
from attnproof.theorem_runs.judgement import against, opposite
from attnproof.theorem_runs.ledger import VERDICTS, ClaimEntry, ClaimVerdict
from attnproof.theorem_runs.page import page
from attnproof.theorem_runs.records import Expected, Outcome, TheoremRecord
from attnproof.theorem_runs.terminal import conditions
from tests.cases import each
from tests.front.outputs import MEASURED

TRUE, MENDED, FALSE, NOT_CHECKABLE, UNDECIDED = VERDICTS
P, D, C, N = ("printed",), ("disproof",), ("corrected",), ("numbers",)


def entry(
    printed: tuple[str, ...] = (),
    disproof: tuple[str, ...] = (),
    corrected: tuple[str, ...] = (),
    demonstrations: tuple[str, ...] = (),
    expected: str = TRUE,
    **words: str,
) -> ClaimEntry:
    return ClaimEntry(
        "900",
        "Z1",
        "page 1",
        "document",
        "theorem",
        "..",
        expected,
        printed,
        disproof,
        corrected,
        demonstrations,
        **words,
    )


def verdict(claim: ClaimEntry, *found: Verdict, shown: Outcome = "reproduced") -> ClaimVerdict:
    """The verdict when the statements named were found so, in the order of their roles."""
    names = dict.fromkeys(text for _, text in claim.references)
    return derive(claim, Findings(dict(zip(names, found, strict=True)), {"numbers": shown}))


# What the ledger says, what was found, and the verdict; flipping any finding changes it.
DECIDED: list[tuple[ClaimEntry, tuple[Verdict, ...], str]] = [
    (entry(P), ("proved",), TRUE),
    (entry(P), ("refuted",), FALSE),
    (entry(P), ("ill-typed",), FALSE),
    (entry(P, corrected=C), ("refuted", "proved"), FALSE),
    (entry(P, corrected=C), ("ill-typed", "proved"), FALSE),
    (entry(P, corrected=C, mends="type"), ("ill-typed", "proved"), MENDED),
    (entry(P, corrected=C, mends="hypothesis"), ("refuted", "proved"), MENDED),
    (entry(disproof=D), ("proved",), FALSE),
    (entry(disproof=D, corrected=C), ("proved", "proved"), FALSE),
    (entry(disproof=D, corrected=C, mends="hypothesis"), ("proved", "proved"), MENDED),
    (entry(P, D), ("proved", "proved"), FALSE),
    (entry(corrected=C, unstated="never defined"), ("proved",), MENDED),
    (entry(disproof=D, corrected=C, unstated="vague"), ("proved", "proved"), MENDED),
    (entry(("one", "two")), ("proved", "proved"), TRUE),
    (entry(("one", "two")), ("refuted", "undecided"), FALSE),
]


@each(DECIDED)
def test_a_claim_is_decided_by_its_statements(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str
) -> None:
    assert verdict(claim, *found) == wanted


@each(DECIDED)
def test_a_verdict_falls_with_each_statement_it_rests_on(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str
) -> None:
    roles = [role for role, _ in claim.references]
    for place, other in product(range(len(found)), get_args(Verdict)):
        flipped = (*found[:place], other, *found[place + 1 :])
        if flipped != found:
            same = roles[place] == "printed" and wanted != TRUE and still_false(claim, flipped)
            assert (verdict(claim, *flipped) == wanted) == same, (place, other)


def still_false(claim: ClaimEntry, found: tuple[Verdict, ...]) -> bool:
    """Whether something is left that shows the printed form false."""
    printed = found[: len(claim.printed)]
    return bool(claim.disproof) or "refuted" in printed or "ill-typed" in printed


@each([claim for claim, *_ in DECIDED])
def test_with_an_undecided_statement_nothing_is_true(claim: ClaimEntry) -> None:
    places = len(list(claim.references))
    for found in product(get_args(Verdict), repeat=places):
        if "undecided" in found:
            assert verdict(claim, *found) != TRUE
            rest = found[len(claim.printed) :]
            if "undecided" in rest:
                assert verdict(claim, *found) == UNDECIDED


@each(DECIDED)
def test_what_is_expected_has_no_say(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str
) -> None:
    for expected in VERDICTS:
        asked = ClaimEntry(**{**vars(claim), "expected": expected})
        assert verdict(asked, *found) == wanted, expected


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", TRUE), ("differs", FALSE), ("failed", UNDECIDED)]
)
def test_a_demonstration_decides_by_itself(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(demonstrations=N), shown=shown) == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", MENDED), ("differs", UNDECIDED), ("failed", UNDECIDED)]
)
def test_what_is_meant_has_to_come_out(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(demonstrations=N, unstated="no seed"), shown=shown) == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", TRUE), ("differs", FALSE), ("failed", UNDECIDED)]
)
def test_a_proof_does_not_outweigh_numbers_that_differ(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(P, demonstrations=N), "proved", shown=shown) == wanted


def test_numbers_do_not_outweigh_a_proof_that_is_missing() -> None:
    assert verdict(entry(P, demonstrations=N), "undecided") == UNDECIDED
    assert verdict(entry(P, demonstrations=N), "refuted") == FALSE


def test_nothing_decides_nothing() -> None:
    assert verdict(entry()) == UNDECIDED


def test_a_mended_claim_needs_the_statement_that_is_right() -> None:
    assert verdict(entry(P, mends="type"), "ill-typed") == UNDECIDED
    assert verdict(entry(unstated="vague")) == UNDECIDED


@pytest.mark.parametrize("found", get_args(Verdict))
def test_a_reason_in_the_ledger_is_a_verdict_whatever_was_found(found: Verdict) -> None:
    assert verdict(entry(P, not_checkable="a word on beauty"), found) == NOT_CHECKABLE
    assert verdict(entry(P, undecided="no rule for limits"), found) == UNDECIDED


def test_what_was_not_looked_at_is_no_verdict() -> None:
    with pytest.raises(KeyError):
        derive(entry(P), Findings({}, {}))


# When a theorem is as expected.


def measured(
    status: Status, dtype: str = "float32", says: str = "", tolerance: float = 1.0
) -> MeasuredEvidence:
    told: dict[str, Any] = {"says": says, "dtype": dtype, "tolerance": tolerance, "status": status}
    told["reason"] = "no such kernel" if status == "skipped" else ""
    told["error"] = "non-finite" if status == "non-finite" else 0.5
    return replace(MEASURED, **told)


@pytest.mark.parametrize("expected", ["proved", "refuted"])
@pytest.mark.parametrize("verdict", ["proved", "refuted", "undecided"])
def test_only_the_expected_verdict_is_as_expected(expected: Expected, verdict: Verdict) -> None:
    assert bool(against(expected, verdict, ())) == (verdict != expected)


def test_undecided_is_never_as_expected_and_the_reason_is_told() -> None:
    evidence = UndecidedEvidence(says="", why="no witness found", seconds=0.0)
    told = against("proved", "undecided", (evidence,))
    assert told == ("expected proved, is undecided", "no witness found")


@pytest.mark.parametrize("status", ["violated", "non-finite"])
def test_a_true_statement_may_not_fail_in_numbers(status: Status) -> None:
    evidence = (measured("held", "float64"), measured(status))
    (told,) = against("proved", "proved", evidence)
    assert told.startswith(f"torch, cpu, float32: {status}, error ")


def test_a_skipped_measurement_says_nothing_either_way() -> None:
    assert not against("proved", "proved", (measured("skipped"),))
    assert not against("refuted", "refuted", (measured("skipped"),))


def test_a_false_statement_must_fail_in_every_dtype() -> None:
    seen = (measured("violated", "float64"), measured("held", "bfloat16", tolerance=0.4))
    assert against("refuted", "refuted", seen) == (
        "torch, cpu, bfloat16: held, and should have been violated",
    )


def test_a_dtype_too_coarse_to_see_the_difference_is_excused() -> None:
    fine, coarse = measured("violated", "float64"), measured("held", "bfloat16", tolerance=0.6)
    assert not against("refuted", "refuted", (fine, coarse))
    assert against("refuted", "refuted", (coarse,))
    other = replace(fine, implementation="another")
    assert against("refuted", "refuted", (other, coarse))


def test_a_true_conclusion_beside_the_false_one_does_not_undo_the_excuse() -> None:
    coarse = measured("held", "bfloat16", "false", tolerance=0.6)
    seen = (measured("violated", "float64", "false"), coarse, measured("held", "bfloat16", "true"))
    assert not against("refuted", "refuted", seen)
    assert against("refuted", "refuted", (seen[0], seen[2]))


def test_one_false_conclusion_is_enough() -> None:
    seen = (measured("held", says="the first"), measured("violated", says="the second"))
    assert not against("refuted", "refuted", seen)


def test_numbers_that_could_not_be_taken_speak_against_a_proof() -> None:
    stopped = UndecidedEvidence(says="", why="the numbers stopped with ValueError", seconds=0.0)
    assert against("proved", "proved", (stopped,)) == ("the numbers stopped with ValueError",)


def test_a_control_is_expected_to_be_the_opposite() -> None:
    assert (opposite("proved"), opposite("refuted")) == ("refuted", "proved")


def derived(status: str, *sizes: dict[str, int], cases: int = 4, of: int = 4) -> DerivedEvidence:
    return DerivedEvidence.model_validate(
        {
            "status": status,
            "why": "it fails at x = 1",
            "sizes": sizes,
            "cases": cases,
            "all_cases": of,
            "natural": False,
            "seconds": 0.0,
        }
    )


CROSSING = ({"n": 2, "d": 2}, {"n": 3, "d": 1})


def test_what_sympy_contradicts_is_told_first_although_it_is_proved() -> None:
    found = (measured("violated"), derived("refused", *CROSSING))
    assert (
        against("proved", "proved", found)[0]
        == "SymPy contradicts the statement: it fails at x = 1"
    )
    assert not against("proved", "proved", (derived("not derived"),))
    assert not against("proved", "proved", (derived("derived", *CROSSING),))


def test_a_false_statement_may_not_be_derived_in_all_cases_at_crossing_sizes() -> None:
    (told,) = against("refuted", "refuted", (derived("derived", *CROSSING),))
    assert told.startswith("SymPy derived it")
    assert against("refuted", "refuted", (derived("derived", {"n": 2}, {"n": 3}),))
    assert not against("refuted", "refuted", (derived("refused", *CROSSING),))


@pytest.mark.parametrize(
    "found",
    [
        derived("derived", {"n": 2, "d": 2}),
        derived("derived", {"n": 2}, {"n": 1}),
        derived("derived", {"n": 2, "d": 2}, {"n": 1, "d": 1}),
        derived("derived", *CROSSING, cases=3),
    ],
)
def test_a_false_statement_that_is_true_at_one_size_does_not_speak_against_itself(
    found: DerivedEvidence,
) -> None:
    assert not against("refuted", "refuted", (found,))


def test_lengths_that_sympy_has_never_apart_are_apart_in_a_witness() -> None:
    paired = [{"n": a, "c": b, "d": b} for a, b in ((2, 2), (3, 2), (2, 3), (1, 1))]
    found = derived("derived", *paired)
    witness = {"values": {}, "text": "", "place": (), "left": "1", "right": "0", "gap": "1"}
    together, apart = (
        RefutedEvidence.model_validate(
            {
                "says": "",
                "witness": {**witness, "sizes": sizes, "certified_by": "balls"},
                "seconds": 0.0,
            }
        )
        for sizes in ({"n": 1, "c": 2, "d": 2}, {"n": 1, "c": 1, "d": 2})
    )
    assert against("refuted", "refuted", (found,))
    assert against("refuted", "refuted", (found, together))
    assert not against("refuted", "refuted", (found, apart))


# The line of a verdict leaves no condition out, and says each once.


def test_every_condition_stands_on_the_line_after_how_it_is_known() -> None:
    told: list[Condition | str] = [
        Condition("the buffer flag is True, as it was found", "where"),
        Condition("x ≠ 0"),
        Condition("n ≥ 2", "for"),
        "y ≠ 0",
        Condition("n ≤ 8·H", "for"),
    ]
    assert verdict_line("proved", told, how="31 kernel steps") == (
        "proved, 31 kernel steps, for n ≥ 2 and n ≤ 8·H, if x ≠ 0 and y ≠ 0, "
        "where the buffer flag is True, as it was found"
    )


def test_a_verdict_without_conditions_is_its_word() -> None:
    assert verdict_line("proved") == "proved"
    assert clauses(()) == []


def test_a_condition_is_said_once_and_with_the_conclusion_it_limits() -> None:
    told: list[Condition | str] = [
        "x ≠ 0",
        Condition("x ≠ 0"),
        Condition("x ≠ 0", of="norms"),
        Condition("n ≥ 2", "for"),
    ]
    assert clauses(told) == ["for n ≥ 2", "if x ≠ 0 and x ≠ 0 (for norms)"]


def test_a_phrase_with_a_comma_is_not_run_into_the_next() -> None:
    assert clauses(["for all x, y: f(x) = f(y)", "a ≠ 0"]) == [
        "if for all x, y: f(x) = f(y); and a ≠ 0"
    ]


@pytest.mark.parametrize(("text", "kind"), [("", "if"), (" ", "for"), ("x ≠ 0", "under")])
def test_an_empty_phrase_and_an_unknown_kind_are_refused(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match="wanted a phrase and one of for, if, where"):
        Condition(text, kind)  # type: ignore[arg-type]


# The conditions of a theorem are part of its verdict wherever that is printed.


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
