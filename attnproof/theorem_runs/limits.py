"""Limits on the time and memory of a process that measures, and the memory that it retains."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

AGAIN = 1.0  # seconds until the signal repeats, if the running code swallowed it
TIMEOUT_EXIT = 75  # the exit status of a process that ends itself: EX_TEMPFAIL of sysexits.h
PATIENCE = 5.0  # seconds beyond twice the limit, for a kernel to return


class OutOfTime(BaseException):
    """The limit has passed.  Not an ``Exception``: code that catches those must not survive it."""


def given_up(limit: float) -> float:
    """Return after how many seconds a process ends itself, as its kernel does not return."""
    return 2 * limit + PATIENCE


@contextmanager
def limited_time(limit: float | None) -> Iterator[str]:
    """Raise :class:`OutOfTime` in the block after so many seconds; yield why that is impossible.

    Python handles a signal between two instructions.  If a kernel does not return for long after,
    the process ends itself, and whoever waits for it sees it die.
    """
    if limit is None:
        yield ""
        return
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield "a time limit needs a separate process"
        return
    inside = True

    def over(number: int, frame: FrameType | None) -> None:
        del number, frame
        if inside:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    last = threading.Timer(given_up(limit), os._exit, (TIMEOUT_EXIT,))
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


SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "unable to allocate",
    "MemoryError",
    "std::bad_alloc",
)
"""Messages of PyTorch, NumPy, Python and C++; PyTorch on a CPU has no exception class for this."""


def spent_memory(text: str) -> bool:
    """Whether a text says that memory ran out.

    >>> spent_memory("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 TB")
    True
    """
    return any(sign.lower() in text.lower() for sign in SIGNS)


@contextmanager
def limited_memory(gibibytes: float | None) -> Iterator[str]:
    """Let this process take so much more memory in the block; yield why that is impossible.

    The limit is on address space (what the process has now, and so much more) and is enforced by
    the operating system: exceeding it raises, and no other process is affected.
    """
    if gibibytes is None:
        yield ""
        return
    try:
        import resource
    except ImportError:
        yield "this system does not support memory limits"
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _address_space() + int(gibibytes * 2**30)
    hard = before[1]
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield ""
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    """Return the address space of this process, in bytes."""
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as in malloc.h of glibc


def keep_memory() -> None:
    """Retain freed memory of large arrays for the next ones of this process, if malloc can do so.

    Given back to the system it would return page by page, each cleared, which took up to a third of
    the time of a theorem at the default scale.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library, or another system
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def keep_worker() -> None:
    """Let joblib keep this worker when it grows, as it does by design.

    Where psutil is installed, joblib otherwise ends a worker that has grown by 300 MB, which it
    takes for a leak: terms and freed memory are retained on purpose, and the next worker has to
    import, and prove or draw, everything again.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize  # noqa: SLF001 (there is no public setting)
