"""How long something may be looked for.

The time is that of the thread that looks, so that a busy machine decides nothing.  A limit inside a
limit ends with the outer one, so that one limit holds for a law, a cell or an equation as a whole:
its proof, its witness, what is supposed for it and what is computed on the way.  Each loop
that may be long asks :func:`spend`; what cannot ask (one operation on polynomials) is kept small by
those who call it, and SymPy alone is interrupted.
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
AGAIN = 0.01  # seconds until an interruption that would be lost is tried again


class OutOfTime(Exception):
    """The search for a proof took longer than it may."""


class Budget:
    """So many seconds of this thread, from now on; a part of another budget ends with it.

    ``ends`` is read on the thread's clock.

    >>> Budget(10, whole=Budget(0)).over
    True
    """

    def __init__(self, seconds: float, whole: Budget | None = None) -> None:
        own, wall = thread_time(), perf_counter()
        outer = whole is not None and whole.ends < own + seconds  # that one ends it
        self.seconds: float = whole.seconds if whole is not None and outer else seconds
        self.ends: float = whole.ends if whole is not None and outer else own + seconds
        self._wall = wall + (self.ends - own)

    @property
    def over(self) -> bool:
        """Whether the time is over.

        The thread's clock is dear, and never faster than the other: it is asked only when all that
        was left at the last look may have gone by.
        """
        wall = perf_counter()
        if wall < self._wall:
            return False
        self._wall = wall + (self.ends - thread_time())
        return self._wall <= wall

    @property
    def left(self) -> float:
        """Seconds of the thread that are left, of this budget and of what it is a part of."""
        return max(0.0, self.ends - thread_time())


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
    if budget is not None and budget.over:
        raise OutOfTime(f"no proof was found in {budget.seconds:g} seconds")


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
