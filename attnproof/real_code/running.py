"""Code is run in a process of its own: what never ends is killed, and what is finished is kept.

Findings go to its standard output, a line of JSON each; what the code prints goes to standard
error, and what it reads is empty.  It ends when the process that started it ends.
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
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Protocol

from ..symbolic.faults import fault_of
from .request import IN_A_ROW, LIMIT, MOST, Asked, one_line, raised, readable

if TYPE_CHECKING:
    from .collecting import Collected


# The package is found where this one is; the path is then left to the code that is run.
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import attnproof; "
    "sys.path.append(sys.path.pop(0)); from attnproof.real_code.running import main; main()"
)
HOME = str(Path(__file__).resolve().parent.parent.parent)
TAIL = 200  # lines of what code prints that are kept
WAIT = 0.05
LEAST = 0.1  # of the limit of a law is left to each further method of looking at it
FAULTS = ("Stack (most recent", "Current thread 0x", "Fatal Python error: ")


@dataclass(frozen=True)
class Limits:
    """Seconds that one step may take (a law by all methods, an import), and all of them."""

    law: float = LIMIT
    whole: float = 600.0


@dataclass(frozen=True)
class Stopped:
    """Why the process was at an end before its work was."""

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
"""How a process is started, of what is asked."""


def spawned(asked: str) -> Process:
    """A process that begins with nothing."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", BOOT, HOME, asked],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class Child:
    """The process in which one target is run, and what is heard of it."""

    def __init__(self, asked: Asked, start: Start | None = None) -> None:
        self.start = start
        self.process = (start or spawned)(asked.text())
        self.heard: queue.Queue[bytes | None] = queue.Queue()
        self.said: deque[str] = deque(maxlen=TAIL)
        self.readers = [threading.Thread(target=f, daemon=True) for f in (self._hear, self._say)]
        for reader in self.readers:
            reader.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.heard.put(line)
        self.heard.put(None)

    def _say(self) -> None:
        assert self.process.stderr is not None
        while line := self.process.stderr.readline(4096):
            self.said.append(readable(line.decode(errors="replace").rstrip("\n")))

    def place(self) -> list[str]:
        """The lines of the code that are at work, the innermost first, where they can be had."""
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
        """The frames that the fault handler printed last."""
        said = list(self.said)
        marks = [i for i, line in enumerate(said) if line.startswith(FAULTS)]
        told = said[marks[-1] + 1 :] if marks else []
        return [line.strip() for line in told if re.match(r' +File ".*", line \d+ in ', line)]

    def printed(self) -> list[str]:
        """The end of what the code printed, without what the fault handler printed."""
        said = list(self.said)
        marks = (i for i, line in enumerate(said) if line.startswith(FAULTS))
        return [line for line in said[: next(marks, len(said))] if line]

    def kill(self) -> None:
        """End the process and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(0.2)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self.readers):
                pipe.close()


def run(
    heard: Collected,
    limits: Limits,
    tell: Callable[[Collected, dict[str, Any]], None],
    child: Child,
) -> tuple[Stopped | None, str]:
    """Hear what a process tells of its target: why it stopped, if it did, and what it printed last.

    A law that comes to no end is undecided, and the others are asked in a new process.  A method
    by which ``IN_A_ROW`` of them come to none is given up, and the others go on, unless it is the
    one by which the code simply runs: code of which no law ends, or that cannot be loaded a second
    time, is not run again.
    """
    end = monotonic() + limits.whole
    said: list[str] = []
    first: tuple[Stopped, tuple[str, str]] | None = None  # where it was stopped before
    in_a_row, ended = 0, 0
    while True:
        try:
            stopped = _listen(child, heard, limits, end, tell)
        finally:
            child.kill()
        said = [*said, *child.printed()][-TAIL:]
        method, law = heard.at
        if first is not None and not method and (stopped is not None or heard.why):
            (stopped, heard.at), heard.why = first, ""
            return stopped, "\n".join(said)
        if stopped is not None:
            in_a_row = in_a_row + 1 if len(heard.findings) == ended else 1
            heard.lost(_on(stopped))
            ended = len(heard.findings)
        if stopped is None or not method or monotonic() > end:
            return stopped, "\n".join(said)
        given_up = not law or in_a_row == IN_A_ROW
        if method == "measured" and (
            given_up or (ended == len(heard.cut) and not heard.left(method))
        ):
            return stopped, "\n".join(said)
        if given_up or not heard.left(method):
            why = "" if law else _on(stopped)
            heard.hear({"event": "method", "method": method, "why": why, "seconds": 0.0})
            in_a_row = 0
        done = {one.method for one in heard.methods}
        rest = tuple(one for one in heard.asked.methods if one not in done)
        if not rest:
            return None, "\n".join(said)
        first, heard.at = (stopped, heard.at), ("", "")
        further = replace(heard.asked, methods=rest, known=heard.known, as_read=heard.as_read)
        child = Child(further, child.start)


def _on(stopped: Stopped) -> str:
    return stopped.why + (f", at {stopped.line}" if stopped.line else "")


def _listen(
    child: Child,
    heard: Collected,
    limits: Limits,
    end: float,
    tell: Callable[[Collected, dict[str, Any]], None],
) -> Stopped | None:
    """Hear what the process tells until it has ended, crashed, or had its time."""
    spent: dict[str, float] = {}  # on each law, by the methods that go law by law
    since, at = monotonic(), ""
    step: float | None = None  # the libraries are loaded in time that is not the code's
    while True:
        now = monotonic()
        if now > end or (step is not None and now > step):
            seconds = limits.whole if now > end else limits.law
            what = "all of it" if now > end else "it"
            frames = child.place()
            return Stopped(f"{what} had not ended after {seconds:g} s", _line(frames, heard))
        try:
            line = child.heard.get(timeout=max(0.0, min(WAIT, end - now)))
        except queue.Empty:
            if child.process.poll() is None:
                continue
            child.readers[0].join(WAIT)  # something that it started may hold the pipe for ever
            if not child.heard.empty():
                continue
            line = None
        if line is None:
            return _ended(child, heard)
        if not line.endswith(b"\n"):
            continue  # it died while it wrote
        try:
            event = json.loads(line)
            heard.hear(event)
        except (ValueError, KeyError, TypeError):
            return Stopped(f"its output cannot be read: {one_line(repr(line), 80)}")
        tell(heard, event)
        if event["event"] == "ended":
            return None
        law, now = at, monotonic()
        if law:
            spent[law] = spent.get(law, 0.0) + now - since
        at, since = heard.at[1], now
        if heard.torch:
            step = now + max(LEAST * limits.law, limits.law - spent.get(at, 0.0))


def _ended(child: Child, heard: Collected) -> Stopped:
    """The process is gone, and had not said that it would go."""
    try:
        code = child.process.wait(1.0)
    except subprocess.TimeoutExpired:
        return Stopped("it closed the way to its findings", "")
    child.readers[1].join(0.2)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Stopped(f"it crashed with {name}", _line(child.frames(), heard))
    return Stopped(f"its process ended with exit code {code}, as os._exit would end it", "")


def _line(frames: list[str], heard: Collected) -> str:
    """The innermost line of the file that the code stands in, or of any."""
    told = [re.sub(r'^File "(.*)", line (\d+) in (.*)$', r"\1:\2 in \3", f) for f in frames]
    path = heard.asked.target.rpartition("::")[0]
    mine = [f for f in told if heard.file and f.startswith(f"{heard.file}:")]
    mine = mine or [f for f in told if f"/{Path(path).name}:" in f]
    return (mine or told or [""])[0]


YOUNG = 1_000_000  # objects made before cycles are looked for: loading torch makes as many


def main(arguments: list[str] | None = None) -> None:
    """Look at one target; never returns."""
    gc.set_threshold(YOUNG)
    asked = Asked.read((sys.argv[1:] if arguments is None else arguments)[0])
    findings = _streams()
    sys.stdout = printed = counting(1)
    faulthandler.enable()  # a crash tells its line on standard error
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)  # asked where it stands

    own = os.getpid()

    def tell(event: dict[str, Any]) -> None:
        if os.getpid() != own:
            os._exit(0)  # the code forked, and this is the copy: it would tell all of it twice
        findings.write(json.dumps(event, allow_nan=False) + "\n")
        findings.flush()

    try:
        _look(asked, tell)
    except BaseException as error:  # noqa: BLE001 (any code may raise anything)
        fault = fault_of(error)
        tell(
            {
                "event": "refused",
                "why": raised(error) if fault is None else fault.told,
                "traceback": fault.traceback if fault is not None else "",
            }
        )
    tell({"event": "printed", **printed.told()})
    tell({"event": "ended"})
    os._exit(0)  # threads of the code may be left, and hooks at exit


def _look(asked: Asked, tell: Any) -> None:
    import torch

    from ..numeric.devices import DeviceAbsent, chosen
    from ..programs.adapting import OtherKind
    from ..programs.code import NoSetting
    from ..programs.no_adapter import NoAdapter
    from ..programs.running import CodeFault
    from ..programs.signature import SignatureError
    from .checking import adapted, look
    from .loading import CannotLoad, load
    from .targets import sources_loaded

    torch.set_num_threads(1)  # small arrays; and sums in one order on every machine
    tell({"event": "ready", "torch": torch.__version__})
    try:
        chosen(asked.device)
        tell({"event": "begins", "method": "", "law": "", "does": "being imported"})
        code = load(asked.target)
        gc.freeze()  # what is loaded stays, and is not gone through again
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
        tell({"event": "refused", "why": readable(why)[:MOST]})
        return
    look(subject, asked, tell, code.thing)
    tell({"event": "files", "files": sources_loaded(code.file)})


def _streams() -> IO[str]:
    """Take standard output and input away from the code; what findings are written to.

    Whoever started this process holds the other end of its input and writes nothing: when that
    end closes nobody listens, and the code, which may never end, is ended.
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
    """A stream of text that counts the lines that are written to it; empty ones count for none."""

    lines = 0
    first = ""
    begun = ""  # the start of the line that has no end yet

    def write(self, text: str) -> int:
        """Hand the text on, and count its lines."""
        *ended, begun = (self.begun + text).split("\n")
        self.begun = begun[: 2 * FIRST]
        told = [line for line in ended if line.strip()]
        self.lines += len(told)
        if told and not self.first:
            self.first = one_line(told[0], FIRST)
        return super().write(text)

    def told(self) -> dict[str, int | str]:
        """How many lines there are, and the first of them; one without an end is a line too."""
        more = self.begun.strip()
        return {"lines": self.lines + bool(more), "first": self.first or one_line(more, FIRST)}


def counting(number: int) -> Counting:
    """What is written to a descriptor, line by line, for the process may be killed any time."""
    stream = os.fdopen(os.dup(number), "wb")
    return Counting(stream, encoding="utf-8", errors="replace", line_buffering=True)
