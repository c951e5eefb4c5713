"""The time and the memory that a process which measures may take, and what it keeps."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
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


SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "unable to allocate",
    "MemoryError",
    "std::bad_alloc",
)
"""What PyTorch, NumPy, Python and C++ say; PyTorch on a CPU raises no error of its own kind."""


def spent_memory(text: str) -> bool:
    """Whether a text tells that memory was spent.

    >>> spent_memory("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 TB")
    True
    """
    return any(sign.lower() in text.lower() for sign in SIGNS)


@contextmanager
def limited_memory(gibibytes: float | None) -> Iterator[str]:
    """Let this process take so much memory more, while the block lasts; yields why it cannot.

    The limit is of address space, what the process has now and so much more, and is kept by the
    kernel: what goes above it raises, and nobody else is disturbed.
    """
    if gibibytes is None:
        yield ""
        return
    try:
        import resource
    except ImportError:
        yield "this system keeps no limit of memory"
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
    """The address space of this process, in bytes."""
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as malloc.h of glibc has them


def keep_memory() -> None:
    """What large arrays leave is kept for the next ones of this process, where malloc can do so.

    Given back to the system it would come again page by page, each cleared, which was up to a third
    of the time of a theorem at the default scale.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library, or another system
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
