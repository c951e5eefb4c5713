"""One limit for a law as a whole, on a clock that most of these tests move."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import dataclass
from time import thread_time

import pytest
import sympy as sp

from attnproof.cards.table import cell
from attnproof.cards.verdicts import LIMIT
from attnproof.encodings.bias import Alibi
from attnproof.symbolic import budget
from attnproof.symbolic.budget import (
    Budget,
    OutOfTime,
    check_time,
    interrupted_after,
    seconds_left,
    within,
)
from attnproof.symbolic.claim import equal
from attnproof.symbolic.expressions.array import Expressions
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.linear import collected
from attnproof.symbolic.normal_form.polynomial import expand
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.refute import refute
from attnproof.symbolic.signs import sign
from attnproof.symbolic.statement import Statement

(n,) = sizes("n")
GIVEN = {"a": real(n), "b": real(n)}


@dataclass
class Clock:
    """Seconds of the thread: each look at them takes ``step`` of it."""

    seconds: float = 0.0
    step: float = 0.0
    asked: int = 0

    def __call__(self) -> float:
        self.asked += 1
        self.seconds += self.step
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(budget, "perf_counter", made)
    monkeypatch.setattr(budget, "thread_time", made)
    return made


def test_a_limit_inside_a_limit_ends_with_the_outer_one(clock: Clock) -> None:
    with within(10), within(100):
        check_time()
        assert seconds_left() == 10
        clock.seconds += 11
        with pytest.raises(OutOfTime):
            check_time()
    check_time()  # outside there is none
    assert Budget(100, Budget(0)).over


@pytest.mark.parametrize(
    ("slower", "steps"), [(0.5, 200), (1, 100), (2, 100), (3.5, 100), (5, 20), (100, 1)]
)
def test_a_slow_machine_has_the_time_for_as_many_steps(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, slower: float, steps: int
) -> None:
    monkeypatch.setattr(budget, "STEPS_PER_SECOND", 100)
    made, taken = Budget(50, Budget(1)), 0
    while not made.over and taken < 1000:
        clock.seconds += slower / 100
        taken += 1
    assert abs(taken - steps) <= 1


def test_the_clock_of_the_thread_is_asked_when_all_that_was_left_may_be_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, own = Clock(step=1.0), Clock()
    monkeypatch.setattr(budget, "perf_counter", wall)
    monkeypatch.setattr(budget, "thread_time", own)
    busy = Budget(10, Budget(1000))  # the machine does something else
    assert not any(busy.over for _ in range(100))
    assert own.asked <= 2 + 100 / 10
    own.seconds += 9
    assert not any(busy.over for _ in range(10))
    own.seconds += 1
    assert any(busy.over for _ in range(10))


class Last:
    """Something that takes its time when it is let go."""

    def __del__(self) -> None:
        busy(0.05)


def busy(seconds: float) -> None:
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def busy_after_letting_go() -> None:
    weakref.finalize(last := Last(), busy, 0.05)
    del last
    busy(60)


def test_what_never_asks_is_interrupted() -> None:
    with pytest.raises(OutOfTime), interrupted_after(0.02):
        busy(60)


def test_an_interruption_is_not_lost_while_an_object_is_let_go() -> None:
    with pytest.raises(OutOfTime), interrupted_after(0.02):
        busy_after_letting_go()


def test_what_ends_in_time_is_not_interrupted_after_it() -> None:
    with interrupted_after(0.02):
        pass
    busy(0.05)


def claim() -> Statement:
    a, b = (given.named(name) for name, given in GIVEN.items())
    return Statement(GIVEN, {"": equal(sum([(a + b) ** k for k in range(1, 5)], a), b)})


def test_a_product_of_polynomials_asks_whether_there_is_time(clock: Clock) -> None:
    a, b = (given.named(name)[0] for name, given in GIVEN.items())
    assert len(expand(((a + b) ** 40).term)) == 41
    clock.step = 1.0
    with within(20), pytest.raises(OutOfTime):
        expand(((a + b) ** 41).term)  # what was expanded before is kept


def test_the_search_for_a_witness_is_part_of_the_limit_around_it(clock: Clock) -> None:
    a, b = (given.named(name) for name, given in GIVEN.items())
    wrong = equal(a, b)
    assert refute(wrong, GIVEN) is not None
    clock.step = 0.5
    with within(1):
        assert refute(wrong, GIVEN, limit_seconds=1000) is None


def test_a_witness_is_as_small_on_a_slow_machine(clock: Clock) -> None:
    given = {"A": real(n, n), "B": real(n, n)}
    A, B = (one.named(name) for name, one in given.items())
    wrong = equal(A @ B, B @ A)

    def text(shrinking: int = budget.SHRINKING) -> str:
        found = refute(wrong, given, limit_seconds=1000, shrinking=shrinking)
        assert found is not None
        return found.text

    small = text()
    assert text(0) != small  # otherwise this would show nothing
    clock.step = 0.02
    assert text() == small


def test_what_is_decided_ends_with_the_limit_of_the_whole(clock: Clock) -> None:
    assert decide(claim(), effort=Effort(shrinking=0)).verdict == "refuted"
    clock.step = 0.5
    clock.asked = 0
    decision = decide(claim(), effort=Effort(limit=1e6, whole=10.0))
    assert decision.verdict == "undecided"
    assert clock.asked < 200  # it asked, and stopped soon after 10 seconds had passed


def test_a_cell_ends_with_its_limit_and_starts_nothing_after_it(clock: Clock) -> None:
    from attnproof.laws.scores import relative

    assert cell(Alibi, relative).verdict == "proved"
    clock.step = LIMIT
    found = cell(Alibi, relative)
    assert found.verdict == "undecided"
    clock.step = 0.0
    assert cell(Alibi, relative, limit=0.0).verdict == "undecided"


def test_the_sign_of_a_number_asks_whether_there_is_time(clock: Clock) -> None:
    term = GIVEN["a"].named("a")[0]
    for k in range(40):
        term = term * term + k  # so large and of such a form in no other test
    clock.step = 1.0
    with within(20), pytest.raises(OutOfTime):
        sign(term.term)
    with within(0), pytest.raises(OutOfTime):
        collected(term.term)


def test_what_ends_a_search_is_told_by_its_own_seconds() -> None:
    with within(0), within(), pytest.raises(OutOfTime, match="in 0 seconds"):
        check_time()
    with within(5), within(0), pytest.raises(OutOfTime, match="in 0 seconds"):
        check_time()


def test_an_alarm_is_not_lost_in_a_callback_of_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def callback(*_: object) -> None:
        seen.append(budget._is_lost(sys._getframe()))

    monkeypatch.setattr(gc, "callbacks", [*gc.callbacks, callback])
    callback("start", {})
    monkeypatch.setattr(gc, "callbacks", [])
    callback("start", {})
    assert seen == [True, False]


@pytest.mark.parametrize(("file", "lost"), [("torch/weak.py", True), ("sympy/core.py", False)])
def test_an_alarm_is_not_lost_in_a_callback_of_torch(file: str, lost: bool) -> None:
    names = {"budget": budget, "sys": sys}
    text = "def callback(): return budget._is_lost(sys._getframe())\n"
    exec(compile(text, f"/packages/{file}", "exec"), names)
    assert names["callback"]() is lost  # type: ignore[operator]


class Late(sp.Symbol):  # type: ignore[misc]
    """A symbol whose products take too long."""

    def __mul__(self, other: object) -> sp.Expr:
        raise OutOfTime(f"no time for {other}")


def test_a_product_of_matrices_that_is_interrupted_says_so() -> None:
    x, late = sp.Symbol("x"), Late("late")
    with pytest.raises(OutOfTime, match="no time for x"):
        Expressions([[late, x], [x, x]]) @ Expressions([[x, x], [x, x]])
