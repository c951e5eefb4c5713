"""Run code that someone else wrote: how long it may take, and what it raised, in words."""

from __future__ import annotations

import contextlib
import inspect
import math
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from attnproof.symbolic.faults import Fault, fault_of

from .code import DoesNotFit
from .signature import SignatureError
from .subjects import Subject


class CodeFault(RuntimeError):
    """Code under test did not end in the time it had; the text says what to do next."""


HERE = Path(__file__)
CALLERS = tuple(sorted({*HERE.parent.glob("*.py")} - {HERE}))  # what calls the code


def fault_in(subject: Subject, error: BaseException) -> Fault | None:
    """The fault of attnproof that was met while code was looked at; None where the code raised it.

    Code of torch itself may have no line of its own (it is compiled): what is raised where it is
    called is then the code's.

    >>> from .subjects import Layer
    >>> fault_in(Layer(name="f", call=lambda x: x, embed=4), SystemExit()) is None
    True
    """
    file = subject.source.rpartition(":")[0]
    own: tuple[str | Path, ...] = (file,) if file else ()
    library = not file or any(f"/{name}/" in file for name in ("torch", "numpy"))
    return fault_of(error, (*own, *CALLERS) if library and subject.adapted else own)


def told_of(error: Exception, most: int = 300) -> str:
    """What code raised, in a line; that the call of it does not fit is not the code's.

    >>> told_of(ValueError("no")), told_of(SignatureError("wanted n"))
    ('the code raised ValueError: no', 'the call of it does not fit: wanted n')
    """
    if isinstance(error, SignatureError | DoesNotFit):
        return f"the call of it does not fit: {text_of(error, most)}"
    return f"the code raised {in_a_line(error, most)}"


def refusal(subject: Subject, error: Exception, most: int = 200) -> str:
    """What code refuses with; raised again where it is not the code that does."""
    if isinstance(error, SignatureError | DoesNotFit) or fault_in(subject, error) is not None:
        raise error
    return in_a_line(error, most)


def in_a_line(error: Exception, most: int = 300) -> str:
    """An error by its name, with its text in one line, cut where it is long."""
    return f"{type(error).__name__}: {text_of(error, most)}"


def text_of(error: Exception, most: int) -> str:
    """The text of an error in one line, cut where it is long."""
    return " ".join(str(error).split())[:most]


def seeded(seed: int) -> None:
    """``torch.manual_seed``, where there is no accelerator without what it does for those.

    It keeps a list of seeds, each with a stack of calls, for every kind of device that may be
    used later; a check seeds some hundred times.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


class _TooLong(BaseException):
    """Raised by the clock; no ``except Exception`` of the code under test catches it."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self.limit = limit


IDLE = 10  # times the limit that may pass by the clock, for code that waits or shares the machine


LATER = 0.05  # seconds until the next look where a library is being loaded


def _imports(frame: FrameType | None) -> int:
    """How many modules are being loaded: one that is broken off would stay a half for good."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count


class _Limit:
    """Seconds of the processor that a block may take, and by the clock so many times more."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rung = False
        self.imports = _imports(inspect.currentframe())
        self._start, self._worked = time.monotonic(), time.process_time()

    def left(self) -> float:
        if self.rung:  # what ends the block is not ended itself
            return math.inf
        worked = time.process_time() - self._worked
        passed = time.monotonic() - self._start
        return min(self.seconds - worked, IDLE * self.seconds - passed)


class _Clock:
    """The one alarm of Python, shared by the limits inside one another."""

    def __init__(self) -> None:
        self._limits: list[_Limit] = []
        self._others: Any = None  # who had the alarm before, and when it was to ring
        self._rings = 0.0

    def enter(self, limit: _Limit) -> None:
        if not self._limits:
            self._others = signal.signal(signal.SIGALRM, self._look)
            waits, _ = signal.getitimer(signal.ITIMER_REAL)
            self._rings = time.monotonic() + waits if waits > 0 else math.inf
        self._limits.append(limit)
        self._set()

    def leave(self, limit: _Limit) -> None:
        self._limits.remove(limit)
        if not self._limits:
            signal.signal(signal.SIGALRM, self._others)
        self._set()

    def _look(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() >= self._rings:
            self._rings = math.inf
            self._set()
            if callable(self._others):
                self._others(number, frame)
        for limit in self._limits:
            if limit.left() <= 0:
                if _imports(frame) > limit.imports:
                    signal.setitimer(signal.ITIMER_REAL, LATER)
                    return
                limit.rung = True
                raise _TooLong(limit)
        self._set()

    def _set(self) -> None:
        ways = [limit.left() for limit in self._limits]
        ways.append(self._rings - time.monotonic())
        next_look = min(ways)
        signal.setitimer(signal.ITIMER_REAL, max(next_look, 1e-3) if next_look < math.inf else 0)


_CLOCK = _Clock()


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop Python code after so many seconds of the processor, with ``CodeFault``.

    Code that waits is stopped after ten times as many by the clock: how busy a machine is does
    not decide what is said of the code.  The alarm reaches Python code in the main thread; one
    long call into C ends first.  Elsewhere, and for 0 seconds, there is no limit.  Of limits
    inside one another the first that is reached ends its own block.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds <= 0 or not main or not hasattr(signal, "setitimer"):
        yield
        return
    limit = _Limit(seconds)
    _CLOCK.enter(limit)
    try:
        yield
    except _TooLong as error:
        if error.limit is not limit:
            raise
        raise CodeFault(
            f"The code did not end within {seconds:g} s.  Give it smaller sizes, or more time, or "
            "look for a loop over positions that can be one operation on tensors."
        ) from None
    finally:
        _CLOCK.leave(limit)
