"""Pairs that are two functions: none is taken for one, whichever way the second was changed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.false_pairs import Compared, compared, false_pairs
from benchmarks.program_changes import At, FalseProgram, texts
from benchmarks.reference_programs import REFERENCES


@pytest.mark.parametrize(("family", "count"), [("changes", 30), ("lengths", 4)])
def test_no_pair_of_two_functions_is_taken_for_one(family: str, count: int, tmp_path: Path) -> None:
    found = (one for one in false_pairs(family, 3, tmp_path) if isinstance(one, Compared))
    said = list(islice(found, count))
    assert len(said) == count
    assert not [str(one) for one in said if one.is_wrong]
    assert any(one.verdict == "counterexample" for one in said)


def test_a_program_and_the_same_program_are_not_found_to_differ(tmp_path: Path) -> None:
    of = next(one for one in REFERENCES if one.name == "attention")
    same = FalseProgram(of, texts()[of.name], "nothing", (At(2, 9),))
    assert compared(same, tmp_path, "same") == "not found to differ"


def test_what_is_taken_for_one_function_is_told() -> None:
    of = next(one for one in REFERENCES if one.name == "attention")
    program = FalseProgram(of, texts()[of.name], "a change")
    assert Compared(program, At(2, 3), "proved", "1 kernel step").is_wrong
    assert not Compared(program, At(2, 3), "undecided", "nothing").is_wrong
