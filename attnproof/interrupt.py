"""Ctrl-C: held back while libraries load, and told in one line when it ends a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """What an interrupt left, in one line; the exit code is 130."""


@contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done, then raise the ``KeyboardInterrupt``.

    A library that is imported by half stays so, and what is then computed with it is wrong.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python hands interrupts to the main thread only
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
