"""Without any declaration at least 40 of the public bugs are caught, and nothing that is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attnproof.numeric.devices import one_thread
from attnproof.programs.finding import Remark
from attnproof.programs.identify import identify
from attnproof.programs.identify.remarks import remarks_on

from .caught import undeclared
from .corpus import Bug, Control, Make, all_bugs, all_controls
from .table import asked

BUGS = all_bugs()
CORRECT = {number: make for make, number in {one.correct: one.id for one in BUGS}.items()}

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


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


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
