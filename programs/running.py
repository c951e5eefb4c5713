"""Run code that someone else wrote: what it prints is kept, what it does wrong is told in words."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.faults import Fault, fault_of

from .code import DoesNotFit
from .missing_packages import advice
from .settings import given_back
from .signature import SignatureError
from .subjects import Subject


class CodeFault(RuntimeError):
    """Code under test did not do what it was called for.

    ``what``: raised, time, shape, numbers, no tensor, inputs, or device (which it, or a
    package, is missing).  The text is one paragraph: what was called, with which shapes, what
    happened, what to do next.  ``said`` is what the code printed before.
    """

    def __init__(self, what: str, text: str, said: str = "") -> None:
        super().__init__(text)
        self.what = what
        self.said = said


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
    text = " ".join(str(error).split())[:most]
    if isinstance(error, SignatureError | DoesNotFit):
        return f"the call of it does not fit: {text}"
    return f"the code raised {type(error).__name__}: {text}"


def refusal(subject: Subject, error: Exception, most: int = 200) -> str:
    """What code refuses with; raised again where it is not the code that does."""
    if isinstance(error, SignatureError | DoesNotFit) or fault_in(subject, error) is not None:
        raise error
    return f"{type(error).__name__}: {' '.join(str(error).split())[:most]}"


@dataclass(frozen=True)
class Ran:
    """What a call returned, and what it printed to either stream."""

    value: Any
    said: str


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


def shapes(*values: Any) -> str:
    """The shapes and dtypes of arguments, as a reader would write them.

    >>> import torch
    >>> shapes(torch.zeros(2, 3), 4)
    'float32 (2, 3), 4'
    """
    return ", ".join(_shape(value) for value in values) or "no arguments"


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, tuple | list) and any(isinstance(v, Tensor) for v in value):
        return f"({shapes(*value)})"
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}"


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
            "time",
            f"The code did not end within {seconds:g} s.  Give it smaller sizes, or more time, or "
            "look for a loop over positions that can be one operation on tensors.",
        ) from None
    finally:
        _CLOCK.leave(limit)


def guarded(
    call: Callable[..., Any],
    *given: Any,
    name: str = "",
    seconds: float = 0,
    shape: Sequence[int] | None = None,
    tensor: bool = True,
    finite: bool = True,
    no_mutation: bool = True,
    **named: Any,
) -> Ran:
    """Call code and hold it to what was wanted of the result; torch is set as before afterwards.

    ``shape``: the one wanted.  ``tensor``: that a tensor was wanted; ``finite``: without NaN or
    infinity; ``no_mutation``: that the tensors given are what they were before.

    Raises ``CodeFault``.

    >>> import torch
    >>> guarded(torch.neg, torch.zeros(2), shape=(2,)).said
    ''
    """
    name = name or getattr(call, "__qualname__", type(call).__name__)
    called = f"{name} was called with {shapes(*given, *named.values())}"
    kept = [(v, v.detach().clone()) for v in (*given, *named.values()) if isinstance(v, Tensor)]
    said = io.StringIO()

    def fault(what: str, text: str) -> CodeFault:
        return CodeFault(what, f"{called}; {text}", said.getvalue())

    try:
        with (
            given_back(),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            limited(seconds),
        ):
            value = call(*given, **named)
    except CodeFault as error:
        raise fault(error.what, str(error)) from None
    except KeyboardInterrupt:
        raise
    except _TooLong:
        raise
    except BaseException as error:
        raise fault(*_raised(error)) from error
    if tensor and not isinstance(value, Tensor):
        raise fault(
            "no tensor",
            f"wanted a tensor back, got {_what(value)}.  Return the "
            "tensor, or wrap the code in a function that does.",
        )
    if isinstance(value, Tensor):
        _look(value, shape, finite, fault)
    for index, (now, before) in enumerate(kept):
        if no_mutation and not _same(now, before):
            raise fault(
                "inputs",
                f"it changed its tensor argument {index + 1} of {len(kept)} in "
                "place.  Work on a copy, or write the result to a new tensor.",
            )
    return Ran(value, said.getvalue())


def _raised(error: BaseException) -> tuple[str, str]:
    text = " ".join(str(error).split())[:400]
    told = f"it raised {type(error).__name__}: {text}".rstrip(": ")
    if advised := advice(text):
        return "device", f"{told}.  {advised}"
    what_next = "Run that call by itself to see where, or say how it is to be called."
    return "raised", f"{told}.  {what_next}"


def _what(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {shapes(value)}".strip()


def _look(
    value: Tensor,
    shape: Sequence[int] | None,
    finite: bool,
    fault: Callable[[str, str], CodeFault],
) -> None:
    if shape is not None and tuple(value.shape) != tuple(shape):
        raise fault(
            "shape",
            f"wanted shape {tuple(shape)} back, got {tuple(value.shape)}.  "
            "Say the order of the axes, or give the code its own sizes.",
        )
    if finite and (value.is_floating_point() or value.is_complex()):
        bad = ~torch.isfinite(value)
        if bool(bad.any()):
            place = tuple(int(i) for i in bad.nonzero()[0])
            raise fault(
                "numbers",
                f"{int(bad.sum())} of {value.numel()} numbers that came back "
                f"are NaN or infinite, the first at {place}.  Look for a division by zero "
                "or a softmax over a row that is hidden entirely.",
            )


def _same(now: Tensor, before: Tensor) -> bool:
    if now.shape != before.shape or now.dtype != before.dtype:
        return False
    return torch.equal(torch.nan_to_num(now.detach()), torch.nan_to_num(before))
