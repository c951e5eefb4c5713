"""Targets of one command, in turn: each is run, printed and kept, and stops no other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeAlias

from ..faults import tell_faults
from ..usage import Interrupted, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ..sweeping.store import Store
    from .collecting import Collected
    from .records import CodeRecord
    from .request import Asked
    from .running import Limits, Start

Ran: TypeAlias = "tuple[CodeRecord, int, dict[str, str]]"


def in_rotate(
    targets: Sequence[str],
    asked: Callable[[str], Asked],
    whole: float,
    json: Path | None,
    *,
    identifying: bool,
    verbose: bool = False,
    store: Store | None = None,
    fresh: bool = False,
) -> int:
    """Run the targets, one after the other; what one does stops no other.  The exit code."""
    from .running import Limits

    start = monotonic()
    done: list[CodeRecord] = []
    codes: list[int] = []
    left = list(dict.fromkeys(targets))
    try:
        with _starting(len(left)) as begin:
            while left and 130 not in codes:
                one = asked(left[0])
                limits = Limits(one.limit, whole)
                found = partial(run_target, one, limits, identifying=identifying, begin=begin)
                record, code = _kept(one, found, store, identifying=identifying, fresh=fresh)
                done.append(record)
                codes.append(code)
                left.pop(0)
                _show(record, identifying=identifying, first=len(done) == 1, verbose=verbose)
    except KeyboardInterrupt:
        codes.append(130)
    if not done:
        raise Interrupted("interrupted before any law was decided; nothing written")
    for record in done:
        tell_faults(record, json)
    if json is not None:
        _write(done, left, monotonic() - start, json)
    return max(codes, key=lambda code: (code == 130, code))


@contextmanager
def _starting(count: int) -> Iterator[Start | None]:
    """How the processes of so many targets are started: those of several load no library twice."""
    if count < 2 or sys.platform != "linux":
        yield None
        return
    from .forking import ForkServer

    with ForkServer() as server:
        yield server.started


def _kept(
    asked: Asked, run: Callable[[], Ran], store: Store | None, *, identifying: bool, fresh: bool
) -> tuple[CodeRecord, int]:
    """What the store has of a target of which nothing has changed; else it is run, and kept.

    Only what came to its end is kept, and only of code that runs on the processor.
    """
    if store is None or asked.device != "cpu":
        return run()[:2]
    from .unchanged import keep, key_of, recalled
    from .words import exit_code

    key = key_of(asked)
    record = None if fresh else recalled(store, key)
    if record is not None:
        return record, exit_code(record, identifying=identifying)
    began = time()
    record, code, files = run()
    if code in (0, 1) and not any(method.why for method in record.methods):
        keep(store, key, record, files, began)
    return record, code


def run_target(
    asked: Asked, limits: Limits, *, identifying: bool, begin: Start | None = None
) -> Ran:
    """Run one target: its record, the exit code, and the digests of the files it loaded.

    Raises ``KeyboardInterrupt`` where that came before anything was found.
    """
    from .loading import CannotLoad, require_target
    from .running import Child, run

    start = monotonic()
    child, why = None, ""
    try:
        require_target(asked.target)
        child = Child(asked, begin)  # it loads its libraries while this process loads its own
    except CannotLoad as error:
        why = str(error)
    from rich.console import Console

    from .collecting import Collected
    from .words import exit_code, stopped_told

    heard, stopped, said, code = Collected(asked), "", "", None
    if child is None:
        heard.hear({"event": "refused", "why": why})
    else:
        try:
            with code_progress(Console(stderr=True), asked.target) as tell:
                cause, said = run(heard, limits, tell, child)
            stopped = stopped_told(heard, cause) if cause is not None else ""
        except KeyboardInterrupt:
            if not heard.findings:
                raise
            stopped, code = f"{asked.target} was interrupted; what was found is kept.", 130
    record = heard.record(monotonic() - start, stopped=stopped, said=said)
    code = exit_code(record, identifying=identifying) if code is None else code
    return record, code, heard.files


def _show(record: CodeRecord, *, identifying: bool, first: bool, verbose: bool) -> None:
    """Print one target, an empty line before it if it is not the first."""
    from rich.console import Console

    from .table import code_page, identity_page

    console = Console()
    width = console.width
    page = (
        identity_page(record, width) if identifying else code_page(record, width, verbose=verbose)
    )
    with console.capture() as told:
        # A command that is to be copied stays whole.
        console.print(page, highlight=False, markup=False, crop=False)
    _say("\n" * (not first) + told.get())


def _say(text: str) -> None:
    """Print; where nobody reads on, such as behind `| head`, go on without."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(done: Sequence[CodeRecord], left: Sequence[str], seconds: float, file: Path) -> None:
    from ..options import write_json
    from .records import codes_record

    try:
        _say(f"wrote {write_json(codes_record(done, left, seconds), file)}\n")
    except OSError as error:
        told = f"wanted to write {file}, and could not ({error.strerror or error})"
        raise UsageError(f"{told}; what was found is above; choose another file") from None


@contextmanager
def code_progress(
    console: Console, target: str
) -> Iterator[Callable[[Collected, dict[str, Any]], None]]:
    """A bar while one target is looked at; yields what to tell of each event."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(f"{target}: starting", total=None)
        begun = 0

        def tell(heard: Collected, event: dict[str, Any]) -> None:
            nonlocal begun
            if event["event"] != "begins":
                return
            method, law = heard.at
            begun += bool(law)
            what = " ".join(filter(None, (method, law))) or heard.does
            bar.update(
                task,
                total=heard.expected or None,
                completed=begun - 1 if law else begun,
                description=f"{target}: {what}",
            )

        yield tell
