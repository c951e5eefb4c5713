"""Pairs of public threads: what is one function is called so, and what is not never is."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any
from unittest.mock import patch

import pytest

from attnproof.programs.equal import measure
from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.inputs import lengths_tried
from attnproof.programs.equal.sides import Operand
from tests.cases import each

from .corpus import APART, LENGTHS, SAME, Case, all_cases

CASES = all_cases()
ALIKE, UNLIKE = ([one for one in CASES if one.same is same] for same in (True, False))
# One function each, and not proved to be: what is missing stands at each.
OPEN = ("rolling-cache",)
# How long a proof is looked for: most take less than a second, and none may be missed because the
# machine is loaded; of what is open none is expected.
SECONDS = {False: 60.0, True: 1.0}
# Of each topic, one pair that goes the whole way: also traced at lengths of 1, which takes as long
# again, and run beside its graph at more lengths.
WHOLE_WAY = ("cache", "window", "lse-units", "rotated-offset", "sink", "gate-up")


def told(thing: Callable[..., Any], call: str) -> Operand:
    return Operand(thing, getattr(thing, "__name__", type(thing).__name__), call)


def compared(one: Case) -> Verdict:
    """What is one function, as torch itself says here, is so at each of few lengths."""
    with nullcontext() if one.same else patch.object(measure, "lengths_tried", lengths_tried):
        return compare(
            told(one.first, one.call),
            told(one.second, one.other or one.call),
            where=one.where,
            weights=one.weights,
            seconds=SECONDS[bool(one.open)],
        )


@pytest.fixture(autouse=True)
def traced_once(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fewer_lengths: None
) -> None:
    """Most pairs are proved from 2 tokens on, and run beside their graphs at few lengths."""
    del fewer_lengths
    asked = getattr(request.node, "callspec", None)
    if asked is not None and asked.params["one"].name not in WHOLE_WAY:
        widening = import_module("attnproof.programs.prove.widening")
        monkeypatch.setattr(widening, "MAX_OPERATIONS", 0)
        request.getfixturevalue("few_lengths")


def named(one: Case) -> str:
    return one.name


@each(CASES)
def test_what_is_said_of_a_pair_is_so(one: Case) -> None:
    """By PyTorch alone: at all lengths alike, or at one of them clearly not."""
    apart = [one.apart(lengths, seed) for seed, lengths in enumerate(LENGTHS)]
    assert max(apart) < SAME if one.same else max(apart) > APART, apart


@pytest.mark.parametrize("one", UNLIKE, ids=named)
def test_two_functions_have_a_counterexample(one: Case) -> None:
    found = compared(one)
    assert found.verdict == "counterexample", f"{found.verdict}: {found.why}"
    assert found.counterexample is not None
    assert found.counterexample.difference > found.counterexample.allowed


@pytest.mark.parametrize("one", ALIKE, ids=named)
def test_one_function_is_proved_to_be_one(one: Case) -> None:
    found = compared(one)
    wanted = ("measured", "exact", "proved") if one.open else ("proved",)
    assert found.verdict in wanted, f"{found.verdict}: {found.why}"
    assert found.counterexample is None


def test_the_open_ones_are_few_and_named() -> None:
    assert tuple(sorted(one.name for one in CASES if one.open)) == OPEN
    assert all(one.same for one in CASES if one.open)
    assert len(CASES) >= 60
    assert len(OPEN) * 12 <= len(CASES)


def test_both_answers_are_asked_for() -> None:
    assert min(len(ALIKE), len(UNLIKE)) >= 30


def test_a_pair_is_of_a_thread() -> None:
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", one.thread) for one in CASES)


def test_two_programs_are_not_told_apart_by_names_alone() -> None:
    """No pair is of one program with itself."""
    assert not [one.name for one in CASES if one.first is one.second]
