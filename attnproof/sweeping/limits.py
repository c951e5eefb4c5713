"""The time that a cell may take, kept by the process that measures it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 1.0  # seconds until it is said again, if what was running swallowed the first
LAST = 75  # the exit status of a process that ends itself: EX_TEMPFAIL of sysexits.h
PATIENCE = 5.0  # seconds more, and as long again as the limit, for a kernel to return


class OutOfTime(BaseException):
    """The limit has passed.  No ``Exception``: code that survives those must not survive this."""


def given_up(limit: float) -> float:
    """Seconds after which a process ends itself, because a kernel of it does not return."""
    return 2 * limit + PATIENCE


@contextmanager
def limited_time(limit: float | None) -> Iterator[str]:
    """Raise :class:`OutOfTime` in the block after so many seconds; yields why that cannot be.

    Python hears of a signal between two instructions; where a kernel does not return for long
    after, the process ends itself, and whoever waits for it sees it die.
    """
    if limit is None:
        yield ""
        return
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield "a limit of time needs a process of its own"
        return
    inside = True

    def over(number: int, frame: FrameType | None) -> None:
        del number, frame
        if inside:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    last = threading.Timer(given_up(limit), os._exit, (LAST,))
    last.daemon = True
    last.start()
    signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
    try:
        yield ""
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        last.cancel()
