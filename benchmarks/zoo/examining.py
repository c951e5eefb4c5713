"""Apply every method to every subject, each in a separate process, so that failures are isolated.

A library is a file ``subjects_<library>.py`` in this folder that defines ``subjects()``: an
iterator of (name, maker), where maker() returns the `Subject`, and may raise or never end.
``PACKAGES`` names the distributions whose versions are on the page.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.subjects import Layer, Rotary, Subject
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.records import CodeRecord
from attnproof.real_code.request import CodeRequest, raised

Maker = Callable[[], Subject]
METHODS = ("identity", "measured", "exact", "traced")  # what a class is, first: it costs least
WAIT = 0.5


@dataclass
class _Running:
    """A running subject: its process, and the events received from it."""

    heard: Collected
    process: BaseProcess
    listening: Connection
    began: float


def examined(
    subjects: Iterable[tuple[str, Maker]],
    *,
    limit: float = 60.0,
    jobs: int = 1,
    methods: Sequence[str] = METHODS,
) -> Iterator[CodeRecord]:
    """Yield the record of each subject when it is complete, each within ``limit`` seconds.

    A maker that raises, a process that crashes and code that never ends are stated in the record:
    ``why`` if nothing could be run, ``stopped`` if there are partial results.
    """
    _loaded(tuple(methods))
    waiting, at_work = iter(subjects), list[_Running]()
    try:
        while True:
            while len(at_work) < jobs and (one := next(waiting, None)) is not None:
                at_work.append(_begun(*one, tuple(methods)))
            if not at_work:
                return
            for one_running in _over(at_work, limit):
                at_work.remove(one_running[0])
                yield _record(*one_running)
    finally:
        for running in at_work:
            running.process.kill()


def _loaded(methods: tuple[str, ...]) -> None:
    """Load everything that children need, by applying every method to something small."""
    small = Layer(name="small", call=lambda x: torch.softmax(x @ x.mT, -1) @ x, embed=2)
    rotated = Rotary(name="small", rotate=lambda x, p: x * (p[:, None, :, None] + 1.0), width=2)
    for subject in (small, rotated):
        look(subject, CodeRequest(target="small", methods=methods), lambda _: None)


def _begun(name: str, maker: Maker, methods: tuple[str, ...]) -> _Running:
    asked = CodeRequest(target=name, methods=methods)
    there, here = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")  # makers need not be pickled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads: the child starts its own
        process = context.Process(target=_child, args=(name, maker, asked, here), daemon=True)
        process.start()
    here.close()
    return _Running(Collected(asked), process, there, monotonic())


def _child(name: str, maker: Maker, asked: CodeRequest, told: Connection) -> None:
    """Check one subject; its output is discarded."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        told.send({"event": "ready", "torch": torch.__version__})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = maker()
        told.send(
            {
                "event": "adapted",
                "name": name,
                "kind": subject.kind,
                "adapted": without_places(subject.adapted),
                "file": "",
            }
        )
        look(subject, asked, lambda event: told.send(_cleaned(event)))
    except BaseException as error:  # noqa: BLE001 (any code may raise anything)
        told.send({"event": "refused", "why": without_places(_refusal(error))})
    told.send({"event": "ended"})
    told.close()
    os._exit(0)


def _refusal(error: BaseException) -> str:
    """Return why there is no subject, with the attempts of adapters in one line."""
    tried = getattr(error, "tried", None)
    if not tried:
        return raised(error)
    return "no adapter fits: " + "; ".join(f"{kind}: {why}" for kind, why in tried.items())


def _over(at_work: list[_Running], limit: float) -> Iterator[tuple[_Running, str]]:
    """Receive events; yield the subjects that have ended, and why if they were stopped."""
    ready = wait([one.listening for one in at_work], WAIT)
    for one in list(at_work):
        why = ""
        if one.listening in ready:
            try:
                one.heard.receive(one.listening.recv())
            except EOFError:
                one.process.join(5)
                why = f"its process ended with exit code {one.process.exitcode}"
        if one.heard.ended or why:
            yield one, why
        elif monotonic() - one.began > limit:
            yield one, f"it had not ended after {limit:g} s"


def _record(one: _Running, why: str) -> CodeRecord:
    one.process.kill()
    one.process.join()
    one.listening.close()
    heard = one.heard
    if why:
        method = heard.at[0]
        heard.lost(why)
        if heard.kind and method not in ("", "measured"):
            heard.receive({"event": "method", "method": method, "why": why, "seconds": 0.0})
            why = ""  # the others are complete
        elif not heard.kind:
            heard.why, why = f"it could not be built: {why}", ""
    return heard.record(monotonic() - one.began, stopped=why)


def _cleaned(value: Any) -> Any:
    """Return an event without local paths."""
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, dict):
        return {name: _cleaned(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return value


def without_places(text: str) -> str:
    """Return a text with file paths relative to the folder that has the package."""
    for place in _places():
        text = text.replace(place, "")
    return text


@cache
def _places() -> tuple[str, ...]:
    """Return the folders that have packages, longest first."""
    return tuple(sorted((f"{p.rstrip('/')}/" for p in sys.path if len(p) > 1), key=len)[::-1])


# Calls, at arbitrary positions, of code that takes a start or a whole grid.

Call = Callable[[Tensor, Tensor], Tensor]


def runs_of(row: Tensor) -> Iterator[tuple[int, int]]:
    """Yield the beginnings and ends of runs of consecutive positions: (T,) -> pairs.

    >>> list(runs_of(torch.tensor([3, 4, 9])))
    [(0, 2), (2, 3)]
    """
    breaks = [0, *((row.diff() != 1).nonzero().flatten() + 1).tolist(), len(row)]
    yield from ((a, b) for a, b in pairwise(breaks) if b > a)


def in_runs(rotate_run: Callable[[Tensor, int], Tensor]) -> Call:
    """Return a function that calls code, which takes a start, once for each run of positions."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        rows = []
        for one, row in zip(x, positions, strict=True):
            parts = [rotate_run(one[None, :, a:b], int(row[a])) for a, b in runs_of(row)]
            rows.append(torch.cat(parts, -2))
        return torch.cat(rows)

    return rotate


def at_places(rotate: Callable[[Tensor, Tensor], Tensor]) -> Call:
    """Return a function that calls code for one row, at (T,) or (T, axes), for every row."""

    def rows(x: Tensor, positions: Tensor) -> Tensor:
        return torch.cat([rotate(x[b : b + 1], positions[b]) for b in range(len(x))])

    return rows
