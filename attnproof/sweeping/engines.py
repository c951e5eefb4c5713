"""Send batches to workers: processes, threads or a Ray cluster, through one call of joblib.

A process that dies takes its pool with it.  What was sent and did not come back is then sent again
in ever smaller parts, in the end cell by cell, each alone: this identifies the cell that kills its
worker, and no other is lost.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal

from ..theorem_runs.limits import TIMEOUT_EXIT, given_up
from ..theorem_runs.store import Key
from .records import CellRecord, CellStatus
from .work import Batch, Terms, record_of, work

EngineName = Literal["loky", "threading", "ray"]
Found = tuple[Key, CellRecord, str]
WAVE = 8
"""Number of batches per worker that are sent to a Ray cluster at once."""


@dataclass(frozen=True)
class Engine:
    """Where batches are measured.

    ``address`` is that of a Ray cluster; without one, Ray is started on this machine.
    """

    name: EngineName = "loky"
    jobs: int = 2
    address: str = ""
    gpus: bool = False

    @property
    def alone(self) -> bool:
        """Whether each worker is a process of its own."""
        return self.name != "threading"

    def start(self) -> None:
        """Prepare the engine; raises ``ImportError`` if Ray is not installed."""
        if self.name != "ray":
            return
        import ray
        from ray.util.joblib import register_ray

        if not ray.is_initialized():
            local: dict[str, Any] = {"num_cpus": self.jobs, "include_dashboard": False}
            where = {"address": self.address} if self.address else local
            ray.init(**where, log_to_driver=False, configure_logging=False)
        register_ray()

    def stop(self) -> None:
        """Release what was started."""
        if self.name == "ray":
            import ray

            ray.shutdown()

    def sent(self, batches: Iterator[Batch], terms: Terms) -> Generator[list[Found]]:
        """Yield what was found in each batch, as it comes; from a Ray cluster, wave by wave.

        Even a single worker is a process of its own: the sweep's process must not die with a cell.
        """
        from joblib import Parallel, delayed, parallel_config

        more: dict[str, Any] = {}
        if self.name == "ray" and self.gpus:
            more["ray_remote_args"] = {"num_gpus": 1}
        jobs = max(2, self.jobs) if self.alone else self.jobs
        with parallel_config(self.name, n_jobs=jobs, **more):
            if self.name == "ray":  # joblib returns its results only when all are there
                while wave := list(islice(batches, WAVE * self.jobs)):
                    yield from Parallel(batch_size=1)(delayed(work)(b, terms) for b in wave)
                return
            ahead = self.jobs if self.jobs == 1 else 2 * self.jobs
            parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=ahead)
            results = parallel(delayed(work)(batch, terms) for batch in batches)
            try:
                for found in results:  # noqa: UP028 (they are closed below)
                    yield found
            finally:
                with warnings.catch_warnings():  # unfinished work is reported elsewhere
                    warnings.simplefilter("ignore", UserWarning)
                    results.close()


def measured_batches(
    batches: Sequence[Batch],
    engine: Engine,
    terms: Terms,
    stored: Callable[[Key], CellRecord | None],
) -> Generator[list[Found]]:
    """Yield what was found in each cell, as it comes; ``stored`` looks up what workers stored."""
    waiting = [list(batches)]
    while waiting:
        coming = waiting.pop()
        out: list[Batch] = []
        back: set[Key] = set()
        started = perf_counter()
        try:
            with closing(engine.sent(_noting(coming, out), terms)) as results:
                for found in results:
                    back.update(key for key, _, _ in found)
                    yield found
        except Exception as error:
            if not _died(error):
                raise
            lost = [batch for batch in out if batch.cells[0][1] not in back]
            if [len(batch.cells) for batch in coming] == [1] and lost:
                seconds = perf_counter() - started
                yield [(*_convicted(coming[0], error, terms, seconds), "")]
                continue
            waiting.append(coming[len(out) :])
            left = []
            for batch in lost:
                found, rest = _left_over(batch, stored)
                yield found
                left += rest
            waiting += _parts(left, engine.jobs)
            waiting = [part for part in waiting if part]


def _noting(coming: Iterable[Batch], out: list[Batch]) -> Iterator[Batch]:
    """Yield the batches, noting each as it is sent."""
    for batch in coming:
        out.append(batch)
        yield batch


def _left_over(
    batch: Batch, stored: Callable[[Key], CellRecord | None]
) -> tuple[list[Found], list[Batch]]:
    """Return what a worker stored before it died, and the batch without that."""
    records = [(cell, key, stored(key)) for cell, key in batch.cells]
    found = [(key, record, "") for _, key, record in records if record is not None]
    rest = tuple((cell, key) for cell, key, record in records if record is None)
    return found, [Batch(batch.claimed, rest)] if rest else []


def _parts(lost: list[Batch], jobs: int) -> list[list[Batch]]:
    """Return what is sent again by itself: halves of many batches, each of some, or each cell."""
    if len(lost) > 2 * jobs:
        half = len(lost) // 2
        return [lost[half:], lost[:half]]
    if len(lost) == 1:
        return [[Batch(lost[0].claimed, (pair,))] for pair in reversed(lost[0].cells)]
    return [[batch] for batch in reversed(lost)]


def _convicted(
    batch: Batch, error: Exception, terms: Terms, seconds: float
) -> tuple[Key, CellRecord]:
    """Return the record of the cell that was alone with the worker that died."""
    ((cell, key),) = batch.cells
    status, why = _cause(error, terms, seconds)
    return key, record_of(cell, terms.surroundings, status, why, seconds=seconds)


def _died(error: Exception) -> bool:
    """Whether an error says that a worker is gone."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names
        & {
            "BrokenProcessPool",
            "TerminatedWorkerError",
            "RayActorError",
            "WorkerCrashedError",
            "OutOfMemoryError",
            "NodeDiedError",
        }
    )


def _cause(error: Exception, terms: Terms, seconds: float) -> tuple[CellStatus, str]:
    """Return how the worker of one cell ended."""
    codes = re.search(r"exit codes of the workers are \{([^}]*)\}", str(error))
    told = codes.group(1) if codes else " ".join(str(error).split())[:300]
    if terms.limit is not None and f"({TIMEOUT_EXIT})" in told:
        return "out of time", f"a kernel did not return within {given_up(terms.limit):g} s"
    if type(error).__name__ == "OutOfMemoryError":
        return "out of memory", told
    hint = "; the system may have killed it for its memory" if "SIGKILL" in told else ""
    if terms.limit is not None and seconds >= given_up(terms.limit) and not codes:
        hint = f"; a kernel may not have returned within {given_up(terms.limit):g} s"
    return "died", f"its worker ended with {told}{hint}"
