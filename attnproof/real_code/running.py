"""Run code in a process of its own: if it never ends it is killed, and finished results are kept.

The process writes findings to its standard output, one line of JSON each.  What the code prints
goes to standard error, and its standard input is empty.  The process ends when the one that started
it ends.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Protocol

from ..symbolic.faults import fault_of
from .request import IN_A_ROW, LIMIT, MAX_LENGTH, CodeRequest, one_line, raised, readable

if TYPE_CHECKING:
    from .collecting import Collected


# The folder of this package comes first on the path for its own import, and last for the code.
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import attnproof; "
    "sys.path.append(sys.path.pop(0)); from attnproof.real_code.running import main; main()"
)
HOME = str(Path(__file__).resolve().parent.parent.parent)
TAIL = 200  # lines of the code's output that are kept
WAIT = 0.05
LEAST = 0.1  # share of a law's limit that each further method gets at least
FAULTS = ("Stack (most recent", "Current thread 0x", "Fatal Python error: ")


@dataclass(frozen=True)
class Limits:
    """Seconds for one step (one law by all methods, or an import), and for all steps together."""

    law: float = LIMIT
    whole: float = 600.0


@dataclass(frozen=True)
class Stopped:
    """Why the process ended before its work was done."""

    why: str
    line: str = ""


class Process(Protocol):
    """A process that leads a session, with pipes to its standard streams."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


Start = Callable[[str], Process]
"""Start a process for a request, given as JSON."""
Event = dict[str, Any]  # its keys are listed in checking.py
Tell = Callable[[Event], None]
"""Report an event."""


def spawned(asked: str) -> Process:
    """Start a fresh interpreter for a request."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", BOOT, HOME, asked],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class Child:
    """The process in which one target is run, and what has been received from it."""

    def __init__(self, asked: CodeRequest, start: Start | None = None) -> None:
        self.start = start
        self.process = (start or spawned)(asked.text())
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.said: deque[str] = deque(maxlen=TAIL)
        self.readers = [threading.Thread(target=f, daemon=True) for f in (self._hear, self._say)]
        for reader in self.readers:
            reader.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _say(self) -> None:
        assert self.process.stderr is not None
        while line := self.process.stderr.readline(4096):
            self.said.append(readable(line.decode(errors="replace").rstrip("\n")))

    def place(self) -> list[str]:
        """Return the frames that are running, innermost first; none if they cannot be obtained."""
        if not hasattr(signal, "SIGUSR1") or self.process.poll() is not None:
            return []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.process.pid, signal.SIGUSR1)
        for _ in range(10):
            if frames := self.frames():
                return frames
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(WAIT)
        return []

    def frames(self) -> list[str]:
        """Return the frames that the fault handler printed last."""
        said = list(self.said)
        marks = [i for i, line in enumerate(said) if line.startswith(FAULTS)]
        told = said[marks[-1] + 1 :] if marks else []
        return [line.strip() for line in told if re.match(r' +File ".*", line \d+ in ', line)]

    def printed(self) -> list[str]:
        """Return the end of what the code printed, without the output of the fault handler."""
        said = list(self.said)
        marks = (i for i, line in enumerate(said) if line.startswith(FAULTS))
        return [line for line in said[: next(marks, len(said))] if line]

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self.process.kill()  # one that was just forked does not lead a group yet
        self.process.wait()
        for reader in self.readers:
            reader.join(0.2)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self.readers):
                pipe.close()


def run(
    collected: Collected,
    limits: Limits,
    tell: Callable[[Collected, Event], None],
    child: Child,
) -> tuple[Stopped | None, str]:
    """Take in what a process reports; return why it was stopped, if it was, and its last output.

    A law that does not finish is undecided, and the others are examined in a new process.  A method
    is given up if ``IN_A_ROW`` laws in a row do not finish, and the other methods go on.  Code is
    not run again if this happens to the method "measured", which simply runs it, if none of its
    laws finish there, or if the code cannot be loaded a second time.
    """
    end = monotonic() + limits.whole
    said: list[str] = []
    first: tuple[Stopped, tuple[str, str]] | None = None  # where it was stopped last time
    in_a_row, ended = 0, 0
    while True:
        try:
            stopped = _listen(child, collected, limits, end, tell)
        finally:
            child.kill()
        said = [*said, *child.printed()][-TAIL:]
        method, law = collected.at
        if first is not None and not method and (stopped is not None or collected.why):
            (stopped, collected.at), collected.why = first, ""
            return stopped, "\n".join(said)
        if stopped is not None:
            in_a_row = in_a_row + 1 if len(collected.findings) == ended else 1
            collected.lost(_reason(stopped))
            ended = len(collected.findings)
        if stopped is None or not method or monotonic() > end:
            return stopped, "\n".join(said)
        given_up = not law or in_a_row == IN_A_ROW
        if method == "measured" and (
            given_up or (ended == len(collected.cut) and not collected.left(method))
        ):
            return stopped, "\n".join(said)
        if given_up or not collected.left(method):
            why = "" if law else _reason(stopped)
            collected.receive({"event": "method", "method": method, "why": why, "seconds": 0.0})
            in_a_row = 0
        done = {one.method for one in collected.methods}
        rest = tuple(one for one in collected.asked.methods if one not in done)
        if not rest:
            return None, "\n".join(said)
        first, collected.at = (stopped, collected.at), ("", "")
        further = replace(
            collected.asked,
            methods=rest,
            known=collected.known,
            lengthened=tuple(collected.lengthened),
            as_read=collected.as_read,
        )
        child = Child(further, child.start)


def _reason(stopped: Stopped) -> str:
    return stopped.why + (f", at {stopped.line}" if stopped.line else "")


def _listen(
    child: Child,
    collected: Collected,
    limits: Limits,
    end: float,
    tell: Callable[[Collected, Event], None],
) -> Stopped | None:
    """Take in what the process reports until it ends, crashes or runs out of time."""
    spent: dict[str, float] = {}  # on each law, over all methods that go law by law
    since, at = monotonic(), ""
    step: float | None = None  # loading the libraries does not count
    while True:
        now = monotonic()
        if now > end or (step is not None and now > step):
            seconds = limits.whole if now > end else limits.law
            what = "all of it" if now > end else "it"
            frames = child.place()
            return Stopped(f"{what} had not ended after {seconds:g} s", _line(frames, collected))
        try:
            line = child.lines.get(timeout=max(0.0, min(WAIT, end - now)))
        except queue.Empty:
            if child.process.poll() is None:
                continue
            child.readers[0].join(WAIT)  # a process that it started may hold the pipe forever
            if not child.lines.empty():
                continue
            line = None
        if line is None:
            return _ended(child, collected)
        if not line.endswith(b"\n"):
            continue  # it died while writing
        try:
            event = json.loads(line)
            collected.receive(event)
        except (ValueError, KeyError, TypeError):
            return Stopped(f"its output cannot be read: {one_line(repr(line), 80)}")
        tell(collected, event)
        if event["event"] == "ended":
            return None
        law, now = at, monotonic()
        if law:
            spent[law] = spent.get(law, 0.0) + now - since
        at, since = collected.at[1], now
        if collected.torch:
            step = now + max(LEAST * limits.law, limits.law - spent.get(at, 0.0))


def _ended(child: Child, collected: Collected) -> Stopped:
    """Return how the process ended without announcing it."""
    try:
        code = child.process.wait(1.0)
    except subprocess.TimeoutExpired:
        return Stopped("it closed the pipe for its findings", "")
    child.readers[1].join(0.2)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Stopped(f"it crashed with {name}", _line(child.frames(), collected))
    return Stopped(f"its process ended with exit code {code}, as os._exit would end it", "")


def _line(frames: list[str], collected: Collected) -> str:
    """Return the innermost frame in the file of the code, or else in any file."""
    told = [re.sub(r'^File "(.*)", line (\d+) in (.*)$', r"\1:\2 in \3", f) for f in frames]
    path = collected.asked.target.rpartition("::")[0]
    mine = [f for f in told if collected.file and f.startswith(f"{collected.file}:")]
    mine = mine or [f for f in told if f"/{Path(path).name}:" in f]
    return (mine or told or [""])[0]


YOUNG = 1_000_000  # allocations before a garbage collection: loading torch makes as many


def main(arguments: list[str] | None = None) -> None:
    """Examine one target; never returns."""
    gc.set_threshold(YOUNG)
    asked = CodeRequest.read((sys.argv[1:] if arguments is None else arguments)[0])
    tell = reporting(_streams())
    faulthandler.enable()  # a crash prints its line to standard error
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)  # prints the current line

    _tell_all(tell, partial(_look, asked))
    tell({"event": "ended"})
    os._exit(0)  # the code may have left threads and exit hooks


def reporting(stream: IO[str]) -> Tell:
    """Return what writes an event to a stream, in this process only."""
    own = os.getpid()

    def tell(event: Event) -> None:
        if os.getpid() != own:
            os._exit(0)  # a fork made by the code, which would report everything twice
        stream.write(json.dumps(event, allow_nan=False) + "\n")
        stream.flush()

    return tell


def _tell_all(tell: Tell, examine: Callable[[Tell], None]) -> None:
    """Examine code, and report in the end what it raised and what it printed."""
    sys.stdout = printed = counting(1)
    try:
        examine(tell)
    except BaseException as error:  # noqa: BLE001 (any code may raise anything)
        fault = fault_of(error)
        tell(
            {
                "event": "refused",
                "why": raised(error) if fault is None else fault.message,
                "traceback": fault.traceback if fault is not None else "",
            }
        )
    tell({"event": "printed", **printed.told()})


def _look(asked: CodeRequest, tell: Tell) -> None:
    import torch

    from ..numeric.devices import DeviceAbsent, chosen
    from ..programs.adapting import OtherKind
    from ..programs.code import NoSetting
    from ..programs.execution.running import CodeFault
    from ..programs.no_adapter import NoAdapter
    from ..programs.signatures.signature import SignatureError
    from .checking import adapted, look
    from .forking import Beside, is_possible
    from .loading import CannotLoad, load
    from .targets import sources_loaded

    torch.set_num_threads(1)  # arrays are small; sums have the same order everywhere
    tell({"event": "ready", "torch": torch.__version__})
    try:
        chosen(asked.device)
        tell({"event": "begins", "method": "", "law": "", "does": "being imported"})
        code = load(asked.target)
        gc.freeze()  # what is loaded stays, and is not scanned again
        tell({"event": "begins", "method": "", "law": "", "does": "being adapted"})
        subject = adapted(code.thing, asked, code.name, code.file, tell)
    except (
        CannotLoad,
        CodeFault,
        DeviceAbsent,
        NoAdapter,
        NoSetting,
        OtherKind,
        SignatureError,
    ) as error:
        why = error.on_command_line if isinstance(error, NoAdapter) else str(error)
        tell({"event": "refused", "why": readable(why)[:MAX_LENGTH]})
        return

    def with_files(examine: Callable[[Tell], None], tell: Tell) -> None:
        examine(tell)
        tell({"event": "files", "files": sources_loaded(code.file)})

    def fork(examine: Callable[[Tell], None]) -> Beside:
        return Beside(partial(_tell_all, examine=partial(with_files, examine)))

    beside = fork if is_possible() else None
    with_files(lambda tell: look(subject, asked, tell, code.thing, fork=beside), tell)


def _streams() -> IO[str]:
    """Take standard output and input away from the code; return the stream for findings.

    Whoever started this process holds the other end of its input and writes nothing.  When that end
    closes, nobody is listening, and this process exits, even if the code would never end.
    """
    findings = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    held = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        while os.read(held, 1):
            pass
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
    return findings


if __name__ == "__main__":
    main()


FIRST = 80  # characters of the first line that are shown


class Counting(io.TextIOWrapper):
    """A text stream that counts the lines written to it, except empty ones."""

    lines = 0
    first = ""
    begun = ""  # the start of an unfinished line

    def write(self, text: str) -> int:
        """Pass the text on, and count its lines."""
        *ended, begun = (self.begun + text).split("\n")
        self.begun = begun[: 2 * FIRST]
        told = [line for line in ended if line.strip()]
        self.lines += len(told)
        if told and not self.first:
            self.first = one_line(told[0], FIRST)
        return super().write(text)

    def told(self) -> dict[str, int | str]:
        """Return the number of lines and the first of them; an unfinished line counts."""
        more = self.begun.strip()
        return {"lines": self.lines + bool(more), "first": self.first or one_line(more, FIRST)}


def counting(number: int) -> Counting:
    """Return a line-buffered stream to a descriptor, as the process may be killed at any time."""
    stream = os.fdopen(os.dup(number), "wb")
    return Counting(stream, encoding="utf-8", errors="replace", line_buffering=True)
