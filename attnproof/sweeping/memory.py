"""Memory that is spent: how it shows, and how much a process may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIGNS = (
    "out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory",
    "unable to allocate", "MemoryError", "std::bad_alloc",
)  # fmt: skip
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
