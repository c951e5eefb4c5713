"""Run code under test: a time limit for it, and its errors in words."""

from __future__ import annotations

import contextlib
import inspect
import math
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from attnproof.symbolic.faults import Fault, fault_of

from .. import ORDER
from ..code import DoesNotFit
from ..signatures.signature import SignatureError
from ..subjects import Subject


class CodeFault(RuntimeError):
    """Code under test did not finish in time; the text says what to do next."""


_ROOT = Path(__file__).parent.parent
CALLERS = tuple(  # the files that call the code
    sorted({p for name in (".", *ORDER) for p in (_ROOT / name).glob("*.py")} - {Path(__file__)})
)


def fault_in(subject: Subject, error: BaseException) -> Fault | None:
    """Return the fault of attnproof that an error shows; None if the code under test raised it.

    Code of torch itself may have no source line (it is compiled): an error raised at its call then
    counts as the code's.

    >>> from ..subjects import Layer
    >>> fault_in(Layer(name="f", call=lambda x: x, embed=4), SystemExit()) is None
    True
    """
    file = subject.source.rpartition(":")[0]
    own: tuple[str | Path, ...] = (file,) if file else ()
    library = not file or any(f"/{name}/" in file for name in ("torch", "numpy"))
    return fault_of(error, (*own, *CALLERS) if library and subject.adapted else own)


def describe_error(error: Exception, most: int = 300) -> str:
    """Describe in a line what the code raised, or that the call does not fit it.

    >>> describe_error(ValueError("no")), describe_error(SignatureError("wanted n"))
    ('the code raised ValueError: no', 'the call does not fit: wanted n')
    """
    if isinstance(error, SignatureError | DoesNotFit):
        return f"the call does not fit: {text_of(error, most)}"
    return f"the code raised {in_a_line(error, most)}"


def describe_refusal(subject: Subject, error: Exception, most: int = 200) -> str:
    """Describe the error with which code refuses a call; other errors are raised again."""
    if isinstance(error, SignatureError | DoesNotFit) or fault_in(subject, error) is not None:
        raise error
    return in_a_line(error, most)


def in_a_line(error: Exception, most: int = 300) -> str:
    """Return the name and text of an error in one line of limited length."""
    return f"{type(error).__name__}: {text_of(error, most)}"


def text_of(error: Exception, most: int) -> str:
    """Return the text of an error in one line of at most ``most`` characters.

    An error without a text, as of an ``assert`` without one, is told by the line that raised it.
    """
    told = str(error) or "".join(
        one.line or "" for one in traceback.extract_tb(error.__traceback__)[-1:]
    )
    return " ".join(told.split())[:most]


def uncompiled() -> contextlib.AbstractContextManager[Any]:
    """Run functions that ``torch.compile`` wraps as they are written, within a context.

    Compiling anew for each length would take most of the time, and what is compiled says nothing of
    its operations.  While ``torch._dynamo`` is not imported nothing is wrapped.
    """
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    eager: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return eager


def seeded(seed: int) -> None:
    """Call ``torch.manual_seed``, or seed only the default generator if there is no accelerator.

    ``torch.manual_seed`` queues a seed, with a stack of calls, for every kind of device that may be
    used later; a check seeds some hundred times.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


class _TooLong(BaseException):
    """Raised by the timer; ``except Exception`` in the code under test does not catch it."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self.limit = limit


IDLE = 10  # times the limit in wall-clock time, for code that waits or shares the machine


RETRY_AFTER = 0.05  # seconds until the next look while a module is being imported
CLEANING = 1.0  # seconds at least that a block has to end in, before it is interrupted again


def _imports(frame: FrameType | None) -> int:
    """Count the modules being imported: an interrupted import would stay incomplete for good."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count


class _Limit:
    """The processor time that a block may take, and IDLE times as much wall-clock time."""

    def __init__(self, seconds: float) -> None:
        self.imports = _imports(inspect.currentframe())
        self.begin(seconds)

    def begin(self, seconds: float) -> None:
        self.seconds = seconds
        self._start, self._worked = time.monotonic(), time.process_time()

    def left(self) -> float:
        worked = time.process_time() - self._worked
        passed = time.monotonic() - self._start
        return min(self.seconds - worked, IDLE * self.seconds - passed)


class _Clock:
    """The process's one alarm signal, shared by nested limits.

    What it raises may come to nothing: Python ignores errors of finalizers and of callbacks, and
    code may catch everything.  So a block that goes on is interrupted again.
    """

    def __init__(self) -> None:
        self._limits: list[_Limit] = []
        self._others: Any = None  # the earlier handler of the signal; _rings: when it is due
        self._rings = 0.0

    def enter(self, limit: _Limit) -> None:
        if not self._limits:
            self._others = signal.signal(signal.SIGALRM, self._look)
            waits, _ = signal.getitimer(signal.ITIMER_REAL)
            self._rings = time.monotonic() + waits if waits > 0 else math.inf
        self._limits.append(limit)
        self._set()

    def leave(self, limit: _Limit) -> None:
        if limit not in self._limits:
            return
        del self._limits[self._limits.index(limit) :]
        self._set()
        if not self._limits:
            signal.signal(signal.SIGALRM, self._others)

    def _look(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() >= self._rings:
            self._rings = math.inf
            self._set()
            if callable(self._others):
                self._others(number, frame)
        over = next((limit for limit in self._limits if limit.left() <= 0), None)
        if over is None:
            self._set()
        elif _imports(frame) > over.imports:
            signal.setitimer(signal.ITIMER_REAL, RETRY_AFTER, RETRY_AFTER)
        else:
            over.begin(max(over.seconds, CLEANING))
            self._set()
            raise _TooLong(over)

    def _set(self) -> None:
        ways = [limit.left() for limit in self._limits]
        ways.append(self._rings - time.monotonic())
        next_look = min(ways)
        signal.setitimer(
            signal.ITIMER_REAL,
            max(next_look, 1e-3) if next_look < math.inf else 0,
            RETRY_AFTER if self._limits else 0,  # a signal may be lost
        )


_CLOCK = _Clock()


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop Python code with ``CodeFault`` after so many seconds of processor time.

    Code that waits is stopped after ten times as many seconds of wall-clock time, so that the
    verdict does not depend on the load of the machine.  The alarm reaches Python code in the main
    thread; one long call into C ends first.  In other threads, and for 0 seconds, there is no
    limit.  Of nested limits, the first that is reached ends its own block.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds <= 0 or not main or not hasattr(signal, "setitimer"):
        yield
        return
    limit = _Limit(seconds)
    try:
        try:
            _CLOCK.enter(limit)
            yield
        finally:
            _CLOCK.leave(limit)
    except _TooLong as error:
        _CLOCK.leave(limit)  # it may have rung on the way out
        if error.limit is not limit:
            raise
        raise CodeFault(
            f"The code did not finish within {seconds:g} s.  Give it smaller sizes or more time, "
            "or look for a loop over positions that could be one operation on tensors."
        ) from None
