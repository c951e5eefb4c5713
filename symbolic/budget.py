"""Time limits of searches for proofs and witnesses.

Time is CPU time of the searching thread, so that a busy machine does not change results, and a
slow machine is given the time for as many steps as a fast one takes.  Nested limits end with the
outer one, so that one limit covers a law, a cell or an equation as a whole: its proof, its witness,
its assumptions and everything computed on the way.  Each potentially long loop calls
:func:`check_time`.  Code that cannot call it (a single operation on polynomials) is kept small by
its callers, and only SymPy is interrupted.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter, thread_time
from types import FrameType

TORCH_FOLDER, SYMPY_FOLDER = (f"{os.sep}{name}{os.sep}" for name in ("torch", "sympy"))
STEPS_PER_SECOND = 10_000  # search steps per second on one core of an ordinary computer
MAX_SLOWDOWN = 4.0  # the largest factor by which a slow or shared machine may be slower
SHRINKING = 200  # guesses for making a witness small; theorems, claims and cards need up to 91
RETRY_SECONDS = 0.01  # seconds until an interruption that would be lost is tried again


class OutOfTime(Exception):
    """Raised when a search has used up its time."""


class Budget:
    """A number of seconds of thread time from now on; a part of another budget ends with it.

    A search checks it at each of its steps, of which it should take ``STEPS_PER_SECOND``.  If it
    has taken fewer when the seconds are over, it continues until it has taken that many, unless it
    is more than ``MAX_SLOWDOWN`` times slower, so that results do not depend on the machine.

    >>> Budget(10, whole=Budget(0)).over
    True
    """

    def __init__(self, seconds: float, whole: Budget | None = None) -> None:
        self.seconds, self.enclosing = seconds, whole
        self._start, self._steps = thread_time(), 0
        self._wall = perf_counter() + seconds

    @property
    def over(self) -> bool:
        """Whether the time of this budget, or of one that contains it, is over."""
        return self.ended is not None

    @property
    def ended(self) -> Budget | None:
        """The outermost budget, among this one and those that contain it, whose time is over."""
        ended, wall = None, perf_counter()
        part: Budget | None = self
        while part is not None:
            if part.ends(wall):
                ended = part
            part = part.enclosing
        return ended

    def ends(self, wall: float) -> bool:
        """Count a step at a wall-clock time; return whether the time of this budget is over.

        The thread clock is expensive to read and never faster than the wall clock, so it is read
        only when the time that was left at the last reading may have passed.
        """
        self._steps += 1
        if wall < self._wall:
            return False
        left = self._left
        self._wall = wall + left
        return left <= 0

    @property
    def left(self) -> float:
        """Seconds of thread time left in this budget and in those that contain it."""
        return max(0.0, min(self._left, inf if self.enclosing is None else self.enclosing.left))

    @property
    def _left(self) -> float:
        """The seconds left; on a slow machine, those for the steps that are left."""
        spent = thread_time() - self._start
        if spent < self.seconds or spent > MAX_SLOWDOWN * self._steps / STEPS_PER_SECOND:
            return self.seconds - spent
        return self.seconds - self._steps / STEPS_PER_SECOND


_now: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limit: float | Budget = inf) -> Iterator[None]:
    """Limit the searches inside the block, never beyond an enclosing limit.

    ``limit`` is in seconds, or a budget that is already running.

    >>> with within(0):
    ...     check_time()
    Traceback (most recent call last):
        ...
    attnproof.symbolic.budget.OutOfTime: no proof was found in 0 seconds
    """
    token = _now.set(limit if isinstance(limit, Budget) else Budget(limit, _now.get()))
    try:
        yield
    finally:
        _now.reset(token)


def current_budget() -> Budget | None:
    """Return the current budget or None, for a search that stops by itself when it is over."""
    return _now.get()


def seconds_left() -> float:
    """Return the seconds that may still be spent here.

    >>> with within(0):
    ...     seconds_left()
    0.0
    >>> seconds_left()
    inf
    """
    budget = _now.get()
    return inf if budget is None else budget.left


def check_time() -> None:
    """Raise :class:`OutOfTime` if the time of the current budget is over."""
    budget = _now.get()
    ended = None if budget is None else budget.ended
    if ended is not None:
        raise OutOfTime(f"no proof was found in {ended.seconds:g} seconds")


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt the block after some seconds, even inside SymPy.

    This works in the main thread of a system with virtual timers; elsewhere it does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "SIGVTALRM"
    ):
        yield
        return

    def stop(_number: int, frame: FrameType | None) -> None:
        if not _is_lost(frame):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            raise OutOfTime("SymPy exceeded its time limit")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, RETRY_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _is_lost(frame: FrameType | None) -> bool:
    """Whether Python would discard an exception raised here, as it does while freeing objects.

    torch has unnamed callbacks for freed objects; none of its other code runs inside SymPy.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        place = frame.f_code.co_filename
        if frame.f_code.co_name == "__del__" or place == weakref.__file__ or TORCH_FOLDER in place:
            return True
        if SYMPY_FOLDER in place:
            return False
        if frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False
