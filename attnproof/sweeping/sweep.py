"""A sweep: statements × implementations × dtypes × sizes × distributions × seeds × devices.

Batches are sent to workers: processes, threads or a Ray cluster, through one call of joblib.  A
process that dies takes its pool with it.  What was sent and did not come back is then sent again in
ever smaller parts, in the end cell by cell, each alone: this identifies the cell that kills its
worker, and no other is lost.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import __version__
from ..errors import broken_by
from ..theorem_runs.catalogue import Entry
from ..theorem_runs.judgement import opposite
from ..theorem_runs.limits import TIMEOUT_EXIT, given_up
from ..theorem_runs.records import Machine
from ..theorem_runs.run_store import RunStore, statement_digest, store_record, surroundings
from ..theorem_runs.store import Key, Store
from .cells import (
    Batch,
    Cell,
    Claimed,
    Grid,
    Measure,
    Terms,
    batches,
    cell_key,
    cells_of,
    record_of,
    work,
)
from .records import LOST, CellRecord, CellStatus, SweepRecord, UnusableRecord, is_against

if TYPE_CHECKING:
    from ..symbolic.statement import Statement
    from ..theorem_runs.records import Expected


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


Tell = Callable[[CellRecord], None]


@dataclass(frozen=True)
class SweepRequest:
    """The request for a sweep; without ``implementations``, all that serve a statement."""

    grid: Grid
    implementations: tuple[str, ...] = ()
    controls: bool = False
    engine: Engine = field(default_factory=Engine)
    limit: float | None = None
    memory: float | None = None
    fresh: bool = False


@dataclass
class Plan:
    """Every cell of a sweep with its key, and the statements that have none."""

    cells: list[tuple[Cell, Key]] = field(default_factory=list)
    unusable: list[UnusableRecord] = field(default_factory=list)
    expected: dict[str, Literal["proved", "refuted"]] = field(default_factory=dict)
    surroundings: dict[str, dict[str, object]] = field(default_factory=dict)


def planned(entries: Iterable[Entry], asked: SweepRequest) -> Plan:
    """Return the cells of a request; raises what the numeric side raises for an absent device."""
    plan = Plan(surroundings={device: surroundings(device) for device in asked.grid.devices})
    for entry in entries:
        expected = cast("Expected", entry.theorem.expected)
        for control in (False, True)[: 1 + asked.controls]:
            if expected == "ill-typed" and not control:
                why = "it is declared ill-typed, so there is nothing to measure"
                plan.unusable.append(
                    UnusableRecord(theorem=entry.id, control=control, why=why, broken=False)
                )
                continue
            try:
                statement = entry.theorem.control if control else entry.theorem.statement
                digest = statement_digest(statement)
            except Exception as error:  # noqa: BLE001 (one file stops no other)
                broken = broken_by(error, entry.source.path)
                told = {"why": broken["error"], "traceback": broken["traceback"]}
                plan.unusable.append(
                    UnusableRecord(theorem=entry.id, control=control, broken=True, **told)
                )
                continue
            is_expected = opposite(expected) if control else expected
            claimed = Claimed(entry.source, control, is_expected, digest)
            if not control:
                plan.expected[entry.id] = cast("Literal['proved', 'refuted']", is_expected)
            serving = _serving(statement, asked)
            for cell in cells_of(claimed, asked.grid, serving):
                plan.cells.append((cell, cell_key(cell, plan.surroundings[cell.device])))
    return plan


def _serving(statement: Statement, asked: SweepRequest) -> list[str]:
    """Return the implementations that compute a definition in a statement, or are that."""
    from ..numeric.devices import chosen
    from ..numeric.implementations import implementations_named
    from ..numeric.task import definitions_of

    claims = statement.claims.values()
    used = {name for claim in claims for name in definitions_of(claim.at_witness())}
    wanted = asked.implementations or None
    every = [
        i for device in asked.grid.devices for i in implementations_named(wanted, chosen(device))
    ]
    return list(dict.fromkeys(i.name for i in every if not i.replaced or i.serves(used)))


def sweep(
    plan: Plan,
    asked: SweepRequest,
    store: Store | None = None,
    tell: Tell | None = None,
    report: Callable[[str], None] = lambda _: None,
    measure: Measure | None = None,
) -> SweepRecord:
    """Measure every cell that the store does not hold, and return the record.

    ``tell`` is called with each cell as it comes, ``report`` with messages for the user.  An
    interrupt ends it early; what was finished is in the record and in the store.
    """
    started = perf_counter()
    tell = tell or (lambda _: None)
    found: dict[Key, CellRecord] = {}
    engine = asked.engine
    reaches = store is not None and engine.name != "ray"
    terms = Terms(
        store.place if store is not None and reaches else None,
        asked.fresh,
        plan.surroundings,
        asked.limit,
        asked.memory,
        engine.alone,
        measure,
    )

    home = RunStore(store, asked.fresh) if store is not None else None

    def stored(key: Key) -> CellRecord | None:
        return None if home is None else home.get(key, CellRecord)

    try:
        for _, key in plan.cells:
            record = stored(key)
            if record is not None:
                found[key] = record
                tell(record)
        rest = [pair for pair in plan.cells if pair[1] not in found]
        if rest:
            engine.start()
        with closing(measured_batches(batches(rest, engine.jobs), engine, terms, stored)) as coming:
            for key, record, told in chain.from_iterable(coming if rest else ()):
                lines = [told]
                if store is not None and not reaches and record.status not in LOST:
                    lines.append(store_record(store, key, record, fresh=asked.fresh))
                for line in filter(None, lines):
                    report(line)
                found[key] = record
                tell(record)
    except KeyboardInterrupt:
        pass
    finally:
        engine.stop()
        for line in home.messages if home is not None else ():
            report(line)
    cells = tuple(found[key] for _, key in plan.cells if key in found)
    unfinished = len(plan.cells) - len(cells)
    broken = any(statement.broken for statement in plan.unusable)
    return SweepRecord(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        machine=Machine.here(),
        engine=engine.name,
        jobs=engine.jobs,
        limit=asked.limit,
        memory=asked.memory,
        expected=plan.expected,
        cells=cells,
        unusable=tuple(plan.unusable),
        unfinished=unfinished,
        ok=not (unfinished or broken or any(is_against(plan.expected, one) for one in cells)),
    )
