"""Random conditions on two places: what is proved the same is the same at all small sizes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import Statement, equal, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.prove import Effort, decide

Build = Callable[[Any, Any, Any], Any]  # (where, rows, columns) -> truth values
EFFORT = Effort(refuting=False, whole=3.0)
SIZES = [(a, b) for a in range(1, 8) for b in range(1, 8)]


def drawn(random: Random, depth: int = 2) -> Build:
    """A condition: comparisons of i, j and small numbers, joined, chosen, equated, or counted."""
    kinds = ("and", "or", "not", "same", "choice", "count", "leaf")
    kind = random.choice(kinds) if depth else "leaf"
    if kind == "leaf":
        shift, turned, op = random.randint(-2, 2), random.random() < 0.5, random.choice("<≤>≥=")

        def leaf(_: Any, i: Any, j: Any) -> Any:
            a, b = (j, i + shift) if turned else (i, j + shift)
            return {
                "<": lambda: a < b,
                "≤": lambda: a <= b,
                ">": lambda: a > b,
                "≥": lambda: a >= b,
                "=": lambda: a == b,
            }[op]()

        return leaf
    parts = [drawn(random, depth - 1) for _ in range(3)]
    number = random.randint(0, 2)

    def joined(space: Any, i: Any, j: Any) -> Any:
        a, b, c = (part(space, i, j) for part in parts)
        if kind == "count":
            one, other = (space.astype(x, int) for x in (a, b))
            return one + other == number
        return {
            "and": lambda: a & b,
            "or": lambda: a | b,
            "not": lambda: ~a,
            "same": lambda: a == b,
            "choice": lambda: space.where(a, b, c),
        }[kind]()

    return joined


def numbers(condition: Build, rows: int, columns: int) -> Any:
    i, j = np.arange(rows)[:, None], np.arange(columns)[None]
    return np.broadcast_to(condition(np, i, j), (rows, columns))


def same_at_all(first: Build, second: Build) -> bool:
    return all(np.array_equal(numbers(first, *at), numbers(second, *at)) for at in SIZES)


def proved(first: Build, second: Build, effort: Effort = EFFORT) -> bool:
    n, m = sizes("n m")

    def side(condition: Build) -> Any:
        made = condition(xp, xp.arange(n)[:, None], xp.arange(m)[None])
        return xp.astype(xp.broadcast_to(made, (n, m)), float)

    statement = Statement({}, {"": equal(side(first), side(second))})
    return decide(statement, effort=effort).verdict == "proved"


@pytest.mark.parametrize("seed", range(80))
def test_what_is_proved_of_two_conditions_is_so(seed: int) -> None:
    random = Random(seed)
    first, second = drawn(random), drawn(random)
    if not same_at_all(first, second):
        assert not proved(first, second)


@pytest.mark.parametrize("seed", range(40))
def test_a_condition_is_proved_what_its_negation_is_not(seed: int) -> None:
    condition = drawn(Random(seed))
    twice = Effort(refuting=False)
    assert proved(condition, lambda space, i, j: ~(~condition(space, i, j)), twice)
    assert not proved(condition, lambda space, i, j: ~condition(space, i, j))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda _, i, j: i < j, lambda _, i, j: i + 1 <= j),
        (lambda _, i, j: ~(i < j), lambda _, i, j: j <= i),
        (lambda _, i, j: (i < j) | (j < i), lambda _, i, j: ~(i == j)),
        (lambda _, i, j: (i <= j) & (j <= i), lambda _, i, j: i == j),
        (lambda _, i, j: (i <= j) == (j <= i), lambda _, i, j: j == i),
        (lambda _, i, j: (j <= i) & (i < j + 3), lambda _, i, j: ~((i < j) | (i - j > 2))),
        (lambda _, i, j: (j <= i) == (j <= i + 1), lambda _, i, j: ~(i < j) | (i + 1 < j)),
        (
            lambda xp, i, j: xp.astype(j <= i, int) - xp.astype(j + 3 <= i, int) == 1,
            lambda _, i, j: (j <= i) & (i - j < 3),
        ),
    ],
)
def test_conditions_that_are_the_same_in_another_form(first: Build, second: Build) -> None:
    assert same_at_all(first, second)
    assert proved(first, second, Effort(refuting=False))  # a limit would count collecting garbage


def test_much_of_what_is_the_same_is_proved() -> None:
    random = Random(5)
    alike: list[tuple[Build, Build]] = []
    while len(alike) < 30:
        pair = drawn(random), drawn(random)
        if same_at_all(*pair):
            alike.append(pair)
    assert sum(proved(*pair) for pair in alike) >= 12
