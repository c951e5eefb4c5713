"""When a theorem is as expected."""

from __future__ import annotations

import pytest

from attnproof.evidence import DerivedEvidence, MeasuredEvidence, Status, UndecidedEvidence, Verdict
from attnproof.judgement import against, opposite
from attnproof.records import Expected


def measured(
    status: Status, dtype: str = "float32", says: str = "", tolerance: float = 1.0
) -> MeasuredEvidence:
    return MeasuredEvidence(
        says=says,
        implementation="torch",
        device="cpu",
        dtype=dtype,
        sizes={"n": 4},
        seed=0,
        sampled="every entry",
        error="non-finite" if status == "non-finite" else 0.5,
        tolerance=tolerance,
        worst=(0,),
        seconds=0.0,
        status=status,
        reason="",
    )


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
    other = fine.model_copy(update={"implementation": "another"})
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
    assert against("proved", "proved", found)[0] == "SymPy contradicts it: it fails at x = 1"
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
