"""Run one method in a forked process while this process runs the others.

The forked process reports its events through a pipe.  They are passed on when it is the turn of
that method, so that a listener hears what it would hear from one process that runs them in turn.
If the forked process crashes, this one ends in the same way, and at the same law.
"""

from __future__ import annotations

import faulthandler
import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

Event = dict[str, Any]
Tell = Callable[[Event], None]
CAPACITY = 1 << 20  # bytes of events that it can report before they are read
THREADS = 2  # the main thread, and the one that waits for the listener to leave


def is_possible() -> bool:
    """Whether a fork is safe, and would have a processor to itself."""
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
    own = os.getpid()
    with os.fdopen(pipe, "w", encoding="utf-8") as reports:

        def tell(event: Event) -> None:
            if os.getpid() != own:
                os._exit(0)  # a fork made by the code, which would report everything twice
            reports.write(json.dumps(event, allow_nan=False) + "\n")
            reports.flush()

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
