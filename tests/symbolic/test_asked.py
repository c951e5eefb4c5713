"""Code that asks for what is not an array, or keeps something, is refused; honest code is not."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import singledispatch
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.faults import fault_of
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.refusals import arrays_only
from attnproof.symbolic.statement import OutsideAxis, Theorem
from tests.cases import each

(n,) = sizes("n")
X: Any = real(n).named("X")
LIST: list[int] = []
QUEUE: deque[int] = deque()
CALLS = itertools.count()
NUMBERS = np.zeros(1)
STATE = SimpleNamespace(calls=0)


@singledispatch
def counted(length: Any) -> int:
    """A length by its class."""
    del length
    return 1


def refusal(of: Callable[[], object]) -> None:
    with suppress(Exception):
        of()


def asks(ask: Callable[[], object]) -> Callable[[], object]:
    return lambda: refusal(ask)


def counts() -> None:
    NUMBERS[0] += 1


def counts_here() -> None:
    STATE.calls += 1


def has_calls() -> None:
    setattr(has_calls, "calls", getattr(has_calls, "calls", 0) + 1)  # noqa: B010


ASKS: list[Callable[[], object]] = [
    asks(lambda: bool(X[0] > 0)),
    asks(lambda: int(n)),
    asks(lambda: range(n)),
    asks(lambda: len(X)),
    asks(lambda: {n: 1}),
    asks(lambda: X.numpy),
    asks(lambda: xp.sort(X)),
    asks(lambda: X[0, 0]),
    asks(lambda: real(2).named("Y") + real(3).named("Z")),
    lambda: isinstance(n, int),
    lambda: isinstance(X, Sequence),
    lambda: isinstance(n, Integral),
    lambda: counted(n),
    lambda: hasattr(n, "bit_length"),
    lambda: f"{n}",
    lambda: repr([X]),
    lambda: str(n),
    lambda: type(X.shape[0]) is int,
]
KEEPS: list[Callable[[], object]] = [
    lambda: LIST.append(1),
    lambda: QUEUE.append(1),
    lambda: next(CALLS),
    counts,
    counts_here,
    has_calls,
]
HONEST: list[Callable[[], object]] = [
    lambda: X @ X + n,
    lambda: X[:1] * np.float64(2),
    lambda: isinstance(X, object),
    lambda: np.float64(2) * X,
    lambda: X.shape[0] * X.ndim,
    lambda: xp.astype(X > 0, X.dtype),
    lambda: isinstance(2, int),
    lambda: random.Random(1).random() * X,
]


@each(ASKS)
def test_code_that_asks_for_what_is_no_array_is_refused(code: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"mine: the code asks for .* one line of array code"):
        run(code)


@pytest.mark.parametrize("code", KEEPS)
def test_code_that_keeps_something_is_refused(code: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="mine: it keeps state between calls"):
        run(code)


def draws_with_numpy() -> Any:
    return np.random.rand(2)  # noqa: NPY002 (the generator that all code shares)


@pytest.mark.parametrize("code", [random.random, lambda: random.randint(1, 6), draws_with_numpy])
def test_code_that_draws_random_numbers_is_refused(code: Callable[[], object]) -> None:
    """One draw in a hundred may differ, and two runs may not show it."""
    with pytest.raises(TypeError, match="mine: it draws random numbers"):
        run(code)


@pytest.mark.parametrize("code", HONEST)
def test_array_code_is_taken(code: Callable[[], object]) -> None:
    run(code)


def run(code: Callable[[], object]) -> None:
    with arrays_only("mine", code):
        code()


def test_a_slice_that_may_leave_its_axis_is_its_authors_error() -> None:
    (m,) = sizes("m")

    def body(X: Any) -> Any:
        from attnproof.symbolic.claim import equal

        return equal(xp.sum(X[:m]), 0)

    with pytest.raises(OutsideAxis) as caught:
        _ = Theorem("t", {"X": real(n)}, body).statement
    assert fault_of(caught.value.with_traceback(within(caught.value))) is None


def within(error: BaseException) -> Any:
    """The frames of attnproof alone, as where a command catches it."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    return tb
