"""Forked processes: one with the libraries loaded, and one method beside the others.

Loading the libraries takes seconds in a fresh process.  A command with several targets starts a
process that has loaded them once.  It has one thread and runs none of their code.  A process forked
from it is like a fresh one: it has the working directory and environment of the moment, a session
of its own, and newly seeded random numbers.

A method that runs beside the others, in a process forked for it, reports its events through a pipe.
They are passed on when it is the turn of that method, so that a listener hears what it would hear
from one process that runs them in turn.  If the forked process crashes, this one ends in the same
way, and at the same law.
"""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self

from .running import BOOT, HOME, Event, Process, Tell, main, reporting, spawned

NUMBER = struct.Struct("q")  # a process id, an exit code, or the length of a request
NO_CUDA = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # a fork cannot use CUDA once its parent does
SERVE = BOOT.replace("running import main; main()", "forking import serve; serve()")
LOADED = (
    "torch._dynamo",
    "torch.export._trace",
    "attnproof.programs.exact",
    "attnproof.programs.identify.remarks",
    "attnproof.programs.identify.suggestions",
    "attnproof.programs.measure.examine",
    "attnproof.programs.no_adapter",
    "attnproof.programs.prove",
    "attnproof.programs.subject",
    "attnproof.real_code.checking",
    "attnproof.real_code.loading",
    "attnproof.real_code.targets",
    "attnproof.symbolic.latex",
)


class ForkServer:
    """The process that has loaded the libraries, and forks; it starts with the first request."""

    def __init__(self) -> None:
        self.way: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.way is not None and self.process is not None:
            self.way.close()  # which ends it
            self.process.wait()

    def _begun(self) -> socket.socket:
        if self.way is None:
            self.way, there = socket.socketpair()
            with there:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", SERVE, HOME, str(there.fileno())],
                    env={**os.environ, **NO_CUDA},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                    start_new_session=True,
                )
        return self.way

    def started(self, asked: str) -> Process:
        """Return a process for a target; if forking fails, one that loads everything itself."""
        way = self._begun()
        told = json.dumps([asked, str(Path.cwd()), dict(os.environ)]).encode()
        (stdin, own_in), (own_out, stdout), (own_err, stderr), (told_of, status) = (
            os.pipe() for _ in range(4)
        )
        forked = Forked(own_in, own_out, own_err, told_of)
        try:
            socket.send_fds(way, [NUMBER.pack(len(told))], (stdin, stdout, stderr, status))
            way.sendall(told)
        except OSError:
            pass
        finally:
            for number in (stdin, stdout, stderr, status):
                os.close(number)
        return forked if forked.begins() else spawned(asked)


class Forked:
    """A forked process, with those methods of ``subprocess.Popen`` that are used."""

    def __init__(self, stdin: int, stdout: int, stderr: int, status: int) -> None:
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", buffering=0)
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb")
        self.status = os.fdopen(status, "rb", buffering=0)
        self.code: int | None = None
        self.pid = 0

    def begins(self) -> bool:
        """Whether there is such a process; if not, all pipes are closed."""
        self.pid = self._number() or 0
        if not self.pid:
            for pipe in (self.stdin, self.stdout, self.stderr, self.status):
                assert pipe is not None
                pipe.close()
        return bool(self.pid)

    def _number(self) -> int | None:
        """Return the next number reported about the process; None if nobody is left to report."""
        told = self.status.read(NUMBER.size) or b""
        return int(NUMBER.unpack(told)[0]) if len(told) == NUMBER.size else None

    def poll(self) -> int | None:
        """Return the exit code; None if it has not ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended.  Raises ``TimeoutExpired``."""
        if self.code is None:
            told = select.poll()
            told.register(self.status, select.POLLIN)
            if not told.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            code = self._number()
            self.code = -signal.SIGKILL if code is None else code
            self.status.close()
        return self.code

    def kill(self) -> None:
        """Kill it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def serve() -> None:
    """Fork for each request, until the other side closes the socket."""
    way = socket.socket(fileno=int(sys.argv[1]))
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()  # what is loaded stays, in pages shared by all processes
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
    while True:
        length, numbers, *_ = socket.recv_fds(way, NUMBER.size, 4)
        if not length:
            os._exit(0)
        told = json.loads(_received(way, NUMBER.unpack(length)[0]))
        if os.fork() == 0:
            way.close()
            _watched(told, *numbers)
        for number in numbers:
            os.close(number)


def _received(way: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = way.recv(length - len(found))
        if not part:
            os._exit(1)
        found += part
    return found


def _watched(told: Any, stdin: int, stdout: int, stderr: int, status: int) -> None:
    """Fork once more, and report the id of that process and how it ended; never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            os.close(status)
            _begin(told, stdin, stdout, stderr)
        for number in (stdin, stdout, stderr):
            os.close(number)
        os.write(status, NUMBER.pack(pid))
        _, ended = os.waitpid(pid, 0)
        os.write(status, NUMBER.pack(os.waitstatus_to_exitcode(ended)))
    finally:
        os._exit(0)


def _begin(told: Any, *numbers: int) -> None:
    """Become like a fresh process for this target; never returns."""
    import numpy as np

    asked, folder, environment = told
    os.setsid()
    for place, number in enumerate(numbers):
        os.dup2(number, place)
        os.close(number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    random.seed()
    np.random.seed()  # noqa: NPY002 (the default generator of users' code)
    main([asked])


CAPACITY = 1 << 20  # bytes of events that it can report before they are read
THREADS = 2  # the main thread, and the one that waits for the listener to leave


def is_possible() -> bool:
    """Whether a fork is safe, and would have a processor to itself."""
    import torch

    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and threading.active_count() <= THREADS
        and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    )


class Beside:
    """A method that runs in a forked process, and the events that it reports."""

    def __init__(self, run: Callable[[Tell], None]) -> None:
        self.reports, here = os.pipe()
        fcntl.fcntl(here, fcntl.F_SETPIPE_SZ, CAPACITY)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reports)
            _run(run, here)
        os.close(here)

    def events(self) -> Iterator[Event]:
        """Yield the events as they come.  If the process does not end regularly, end as it did."""
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, self._ask_for_line)
        ended = False
        with os.fdopen(self.reports, encoding="utf-8") as reports:
            for line in reports:
                if not line.endswith("\n"):
                    break  # it died while writing
                event = json.loads(line)
                ended = event["event"] == "ended"
                if not ended:
                    yield event
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if not ended:
            _end_as(code)
        faulthandler.register(signal.SIGUSR1, all_threads=False)

    def _ask_for_line(self, *_: object) -> None:
        """Let the forked process print the line that it runs: this one only waits."""
        os.kill(self.pid, signal.SIGUSR1)


def _run(run: Callable[[Tell], None], pipe: int) -> None:
    """Run the method, and report through the pipe; never returns."""
    with os.fdopen(pipe, "w", encoding="utf-8") as reports:
        tell = reporting(reports)
        run(tell)
        tell({"event": "ended"})
    os._exit(0)


def _end_as(code: int) -> None:
    """End with this exit code, or by this signal if it is negative; never returns."""
    if code < 0:
        faulthandler.disable()  # the forked process has printed where it was
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
