"""The line of a verdict leaves no condition out, and says each once."""

from __future__ import annotations

import pytest

from attnproof.verdict_line import Condition, clauses, verdict_line


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
