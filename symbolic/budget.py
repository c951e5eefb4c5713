"""How long something may be looked for.

The time is that of the thread that looks, so that a busy machine decides nothing, and a slow one
has the time for as many steps as another takes.  A limit inside a limit ends with the outer one, so
that one limit holds for a law, a cell or an equation as a whole: its proof, its witness, what is
supposed for it and what is computed on the way.  Each loop that may be long asks :func:`spend`;
what cannot ask (one operation on polynomials) is kept small by those who call it, and SymPy alone
is interrupted.
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

TORCH, SYMPY = (f"{os.sep}{name}{os.sep}" for name in ("torch", "sympy"))  # in paths of files
STEPS = 10_000  # of a search in a second, on one core of an ordinary computer
SLOWER = 4.0  # and so many times fewer on a slow or a shared one
AGAIN = 0.01  # seconds until an interruption that would be lost is tried again


class OutOfTime(Exception):
    """The search for a proof took longer than it may."""


class Budget:
    """So many seconds of this thread, from now on; a part of another budget ends with it.

    A search asks here at each of its steps, ``STEPS`` in a second.  Where it has taken fewer when
    the seconds are over it goes on until it has taken as many, unless it is more than ``SLOWER``
    times slower: what can be proved does not depend on the machine.

    >>> Budget(10, whole=Budget(0)).over
    True
    """

    def __init__(self, seconds: float, whole: Budget | None = None) -> None:
        self.seconds, self.within = seconds, whole
        self._start, self._steps = thread_time(), 0
        self._wall = perf_counter() + seconds

    @property
    def over(self) -> bool:
        """Whether the time is over, here or of what this is a part of."""
        return self.ended is not None

    @property
    def ended(self) -> Budget | None:
        """The outermost budget whose time is over, of this and of those of which it is a part."""
        ended, wall = None, perf_counter()
        part: Budget | None = self
        while part is not None:
            if part.ends(wall):
                ended = part
            part = part.within
        return ended

    def ends(self, wall: float) -> bool:
        """Take a step at a time of the wall's clock; whether the time of this one is over.

        The thread's clock is dear, and never faster than the other: it is asked only when all that
        was left at the last look may have gone by.
        """
        self._steps += 1
        if wall < self._wall:
            return False
        left = self._left
        self._wall = wall + left
        return left <= 0

    @property
    def left(self) -> float:
        """Seconds of the thread that are left, of this budget and of what it is a part of."""
        return max(0.0, min(self._left, inf if self.within is None else self.within.left))

    @property
    def _left(self) -> float:
        """The seconds that are left; of a slow machine those in which the other steps are taken."""
        spent = thread_time() - self._start
        if spent < self.seconds or spent > SLOWER * self._steps / STEPS:
            return self.seconds - spent
        return self.seconds - self._steps / STEPS


_now: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limit: float | Budget = inf) -> Iterator[None]:
    """Let what is done here look for a proof so long; never longer than a limit around it.

    ``limit`` is in seconds, or a budget that runs already.

    >>> with within(0):
    ...     spend()
    Traceback (most recent call last):
        ...
    attnproof.symbolic.budget.OutOfTime: no proof was found in 0 seconds
    """
    token = _now.set(limit if isinstance(limit, Budget) else Budget(limit, _now.get()))
    try:
        yield
    finally:
        _now.reset(token)


def now() -> Budget | None:
    """The budget in force here, for a search that ends by itself when it is over."""
    return _now.get()


def left(most: float = inf) -> float:
    """The seconds that may be spent here, at most these.

    >>> with within(0):
    ...     left(5)
    0.0
    >>> left(5)
    5
    """
    budget = _now.get()
    return most if budget is None else min(most, budget.left)


def spend() -> None:
    """Stop the search if its time is over."""
    budget = _now.get()
    ended = None if budget is None else budget.ended
    if ended is not None:
        raise OutOfTime(f"no proof was found in {ended.seconds:g} seconds")


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Stop even inside SymPy, in the main thread of a system that has such a timer."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "SIGVTALRM"
    ):
        yield
        return

    def stop(_number: int, frame: FrameType | None) -> None:
        if not _is_lost(frame):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            raise OutOfTime("SymPy took longer than it may")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _is_lost(frame: FrameType | None) -> bool:
    """Whether Python throws away what is raised here: while it lets go of objects.

    torch has callbacks of its own for what is let go of, by no name that tells; inside of SymPy
    nothing else of it runs.
    """
    told = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        place = frame.f_code.co_filename
        if frame.f_code.co_name == "__del__" or place == weakref.__file__ or TORCH in place:
            return True
        if SYMPY in place:
            return False
        if frame.f_code in told:
            return True
        frame = frame.f_back
    return False
