"""The corpus is whole: every public bug and every claim that was none, each with its threads."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from attnproof.theorems.laws import laws_of
from tests.cases import each

from .corpus import PUBLIC, Bug, Control, Make, all_bugs, all_controls, bug, control

BUGS, CONTROLS = all_bugs(), all_controls()
ENTRIES: tuple[Bug | Control, ...] = (*BUGS, *CONTROLS)
THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def test_every_entry_of_the_list_is_there() -> None:
    there = {entry.id[:3] for entry in ENTRIES}
    assert there == set(PUBLIC)
    assert len(PUBLIC) == 61 + 7


def test_a_variant_has_a_letter_and_comes_with_others() -> None:
    for entry in ENTRIES:
        assert re.fullmatch(r"[PN]\d\d[a-z]?", entry.id)
        alike = [e.id for e in ENTRIES if e.id[:3] == entry.id[:3]]
        assert len(alike) == 1 if len(entry.id) == 3 else len(alike) > 1, entry.id


@each(ENTRIES)
def test_threads_are_cited(entry: Bug | Control) -> None:
    assert entry.threads
    assert all(THREAD.fullmatch(thread) for thread in entry.threads), entry.threads


@each(BUGS)
def test_mutant_and_correct_code_are_asked_alike(one: Bug) -> None:
    mutant, correct = one.mutant(), one.correct()
    assert mutant.kind == correct.kind
    assert {one.law, *one.obeys} <= {law.id for law in laws_of(mutant.kind)}
    assert one.law not in one.obeys
    assert one.title
    assert one.symptom


@each(BUGS)
def test_each_call_builds_code_of_its_own(one: Bug) -> None:
    first, second = one.mutant(), one.mutant()
    assert first is not second
    assert first.module is None or first.module is not second.module


def numbers(make: Make) -> dict[str, Tensor]:
    """The parameters and buffers of code that is built anew; none of a function."""
    module = make().module
    return {} if module is None else dict(module.state_dict())


WITH_NUMBERS = [one for one in BUGS if numbers(one.mutant) and numbers(one.correct)]


def test_many_entries_have_numbers() -> None:
    assert len(WITH_NUMBERS) > 15


@each(WITH_NUMBERS)
def test_code_that_is_built_twice_has_the_same_numbers(one: Bug) -> None:
    for build in (one.mutant, one.correct):
        here, there = numbers(build), numbers(build)
        assert here.keys() == there.keys()
        assert all(torch.equal(here[name], there[name]) for name in here)


def test_an_id_is_used_once_and_a_law_is_known() -> None:
    with pytest.raises(ValueError, match="no such law: relativ"):
        bug("P99", title="", symptom="", law="relativ", correct=BUGS[0].correct)
    with pytest.raises(ValueError, match="P01 is there already; a variant has a letter: P01a"):
        bug("P01", title="", symptom="", law="relative", correct=BUGS[0].correct)(BUGS[0].mutant)
    with pytest.raises(ValueError, match="N01 is there already"):
        control("N01", claim="", verdict="")(BUGS[0].mutant)
