"""Every public bug is caught by its law, most without a declaration; correct code is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from attnproof.numeric.devices import one_thread
from attnproof.programs.finding import Remark
from attnproof.programs.identify import identify
from attnproof.programs.identify.remarks import remarks_on
from attnproof.programs.measure.examine import examine

from .caught import undeclared
from .compared import differences
from .corpus import Bug, Control, Make, all_bugs, all_controls
from .table import DRAW, asked, found, row, stored_rows

BUGS, CONTROLS = all_bugs(), all_controls()
# Several bugs are faults of the same correct code: each of these once, under its last bug.
CORRECT = {number: make for make, number in {one.correct: one.id for one in BUGS}.items()}
MANY = 3  # bugs of the same code, which is then asked every law, as each control is

# A witness is read by a person: so many numbers, in inputs and both sides together.
NUMBERS = 32


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


def numbers(value: Any) -> int:
    """How many plain values there are in nested lists and mappings; a tensor would be refused."""
    if isinstance(value, Mapping):
        return sum(numbers(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return sum(numbers(v) for v in value)
    assert value is None or isinstance(value, (bool, int, float, str)), type(value)
    return 1


@pytest.mark.parametrize("one", BUGS, ids=lambda one: one.id)
def test_the_mutant_is_caught_as_the_document_says(one: Bug, root: Path) -> None:
    """Else ``python -m tests.bugs.table > docs/bugs.md`` writes it anew."""
    seen = found(one)
    assert seen.verdict == "broken", f"{seen.verdict}: {seen.why}"
    assert seen.witness is not None
    within = seen.witness.difference <= seen.witness.allowed  # of NaN this is False
    # Two sides that should differ, and are the same, say so; else it is the other way round.
    assert within == ("should differ" in seen.witness.there[0]), seen.witness
    size = numbers(seen.witness.inputs) + numbers([seen.witness.here[1], seen.witness.there[1]])
    assert size <= NUMBERS, f"{size} numbers: {seen.witness}"
    assert differences(row(one, seen), stored_rows(root)[one]) == []


@pytest.mark.parametrize(
    ("one", "law"),
    [(one, law) for one in BUGS for law in one.obeys],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
def test_other_laws_do_not_see_the_mutant(one: Bug, law: str) -> None:
    seen = asked(one.mutant(), law)
    assert seen.verdict == "holds", f"{seen.verdict}: {seen.why}"


@pytest.mark.parametrize("correct", CORRECT.values(), ids=CORRECT.keys())
def test_the_correct_code_breaks_no_law_and_obeys_those_of_its_bugs(correct: Make) -> None:
    laws = [one.law for one in BUGS if one.correct is correct]
    seen = examine(correct(), (DRAW,), () if len(laws) >= MANY else laws)
    assert not [(s.law, s.why) for s in seen if s.verdict == "broken"]
    assert not [(s.law, s.why) for s in seen if s.law in laws and s.verdict == "undecided"]
    assert set(laws) <= {s.law for s in seen if s.verdict == "holds"}


@pytest.mark.parametrize("one", CONTROLS, ids=lambda one: one.id)
def test_no_law_is_broken_by_a_control(one: Control) -> None:
    seen = examine(one.subject(), (DRAW,))
    assert any(s.verdict == "holds" for s in seen)
    assert not [(s.law, s.why) for s in seen if s.verdict == "broken"]


# What only a declaration tells: code that is right as another thing, or conventions.
# Caught without declarations by another law than the one of the list.
BY_ANOTHER = {"P27": "equal-axes-are-one", "P40": "paths-agree", "P43": "true-means-visible"}
DECLARED_ONLY = {
    "P03": "half-split code is right where nobody says interleaved",
    "P15b": "a causal mask aligned at the start is a convention (N05)",
    "P15c": "a causal mask aligned at the start is a convention (N05)",
    "P24a": "its scale of 1 is written in its source",
    "P36b": "a row that sees nothing may read the mean",
    "P42": "its own setting has one key more",
}


def remarked(make: Make) -> tuple[Remark, ...]:
    subject = undeclared(make())
    return remarks_on(subject, identify(subject))


@pytest.mark.parametrize("one", BUGS, ids=lambda one: one.id)
def test_a_bug_is_caught_without_declarations(one: Bug) -> None:
    law = asked(undeclared(one.mutant()), BY_ANOTHER.get(one.id, one.law))
    caught = law.verdict == "broken" or bool(remarked(one.mutant))
    assert caught == (one.id not in DECLARED_ONLY), law.why


def test_most_are_caught() -> None:
    whole = {one.id[:3] for one in BUGS}
    assert len(whole) == 61
    assert len(whole - {number[:3] for number in DECLARED_ONLY}) >= 40


@pytest.mark.parametrize("correct", CORRECT.values(), ids=CORRECT.keys())
def test_nothing_is_remarked_of_correct_code(correct: Make) -> None:
    assert remarked(correct) == ()


@pytest.mark.parametrize("one", all_controls(), ids=lambda one: one.id)
def test_nothing_is_remarked_of_a_control(one: Control) -> None:
    assert remarked(one.subject) == ()
