"""The cells of a sweep, and what a worker does: measure those of a batch, and store each.

Cells that differ only in implementation and dtype share draws and exact values: they form a group,
which one worker measures.  A batch is some groups of one statement, so that a worker builds the
statement once.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, product
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from ..numeric.results import MeasuredEvidence, as_float
from ..symbolic.faults import fault_of
from ..theorem_runs.catalogue import Source
from ..theorem_runs.limits import OutOfTime, limited_memory, limited_time, spent_memory
from ..theorem_runs.run_store import (
    SOURCES_CHANGED,
    attached,
    code,
    statement_digest,
    store_record,
    surroundings,
)
from ..theorem_runs.store import Key
from .records import LOST, CellRecord, CellStatus

if TYPE_CHECKING:
    from ..numeric.check import Measuring
    from ..numeric.scale import Scale
    from ..symbolic.claim import Claim
    from ..symbolic.statement import Statement, Theorem


PARTS = 8
"""Number of batches per worker; with fewer, the others wait for the last worker."""
MAX_BATCH = 64
"""Largest number of cells in a batch, which is repeated if a worker on another machine dies."""


@dataclass(frozen=True)
class Claimed:
    """A statement of a sweep: its file, and whether it is the theorem or its negative control."""

    source: Source
    control: bool
    expected: str
    digest: str

    @property
    def name(self) -> str:
        """The theorem's id, with ``#control`` for its negative control."""
        return self.source.id + "#control" * self.control


@dataclass(frozen=True)
class Cell:
    """One statement in one implementation, dtype, size, distribution, seed and device."""

    claimed: Claimed
    scale: str
    tokens: int | None
    distribution: str
    seed: int
    device: str
    implementation: str
    dtype: str

    @property
    def group(self) -> tuple[object, ...]:
        """What cells that share draws and exact values have in common."""
        return self.claimed, self.scale, self.tokens, self.distribution, self.seed, self.device


@dataclass(frozen=True)
class Grid:
    """Everything that a statement is measured in, except implementations, which depend on it."""

    dtypes: tuple[str, ...]
    scales: tuple[str, ...] = ("small",)
    tokens: tuple[int | None, ...] = (None,)
    distributions: tuple[str, ...] = ("normal",)
    seeds: tuple[int, ...] = (0,)
    devices: tuple[str, ...] = ("cpu",)


@dataclass(frozen=True)
class Batch:
    """Cells of one statement, with their keys in the store, group by group."""

    claimed: Claimed
    cells: tuple[tuple[Cell, Key], ...]


def cells_of(claimed: Claimed, grid: Grid, implementations: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a statement, those of one group together."""
    sizes = product(grid.scales, grid.tokens, grid.distributions, grid.seeds, grid.devices)
    for scale, tokens, distribution, seed, device in sizes:
        for dtype, implementation in product(grid.dtypes, implementations):
            yield Cell(claimed, scale, tokens, distribution, seed, device, implementation, dtype)


def batches(cells: Sequence[tuple[Cell, Key]], jobs: int) -> list[Batch]:
    """Return the cells in batches of whole groups, enough of them for every worker."""
    wanted = min(MAX_BATCH, max(1, ceil(len(cells) / (jobs * PARTS))))
    found: list[Batch] = []
    for claimed, own in groupby(cells, lambda pair: pair[0].claimed):
        waiting: list[tuple[Cell, Key]] = []
        for _, group in groupby(own, lambda pair: pair[0].group):
            waiting += group
            if len(waiting) >= wanted:
                found.append(Batch(claimed, tuple(waiting)))
                waiting = []
        if waiting:
            found.append(Batch(claimed, tuple(waiting)))
    return found


Measure = Callable[["Statement", Cell], Sequence[MeasuredEvidence]]
ORDER = ("violated", "non-finite", "held", "skipped")


@dataclass(frozen=True)
class Terms:
    """How cells are measured: where each is stored, its limits, and what all must agree on.

    ``place`` is None if workers cannot reach the store; whoever sent them then writes to it.
    ``measure`` replaces the numeric side.
    """

    place: Path | None
    fresh: bool
    surroundings: dict[str, dict[str, object]]
    limit: float | None = None
    memory: float | None = None
    alone: bool = True
    measure: Measure | None = None


def cell_key(cell: Cell, around: dict[str, object]) -> Key:
    """Return the key of a cell."""
    claimed = cell.claimed
    told = {
        "statement": claimed.digest,
        "theorem": claimed.name,
        "expected": claimed.expected,
        "scale": cell.scale,
        "tokens": cell.tokens,
        "distribution": cell.distribution,
        "seed": cell.seed,
        "implementation": cell.implementation,
        "dtype": cell.dtype,
        **around,
    }
    where = f"{cell.implementation}, {cell.dtype}, {cell.distribution}, seed {cell.seed}"
    name = f"{claimed.name}, {where}"
    return Key("cell", name, json.dumps(told, sort_keys=True))


def work(batch: Batch, terms: Terms) -> list[tuple[Key, CellRecord, str]]:
    """Measure the cells of a batch; return each with its key, and why it could not be stored."""
    if terms.alone:
        import torch

        torch.set_num_threads(1)
    why, statement = _ready(batch, terms)
    done: list[tuple[Key, CellRecord, str]] = []
    for _, group in groupby(batch.cells, lambda pair: pair[0].group):
        shared: Measure | None = terms.measure
        for cell, key in group:
            if why or statement is None:
                record = record_of(cell, terms.surroundings, "failed", why)
            else:
                shared = shared or Shared()
                record = _limited(statement, cell, shared, terms)
            done.append((key, record, _store(key, record, terms)))
    return done


def _store(key: Key, record: CellRecord, terms: Terms) -> str:
    """Store a record, if this worker can; return why it could not be stored."""
    if terms.place is None or record.status in LOST:
        return ""
    if not code().unchanged:
        return SOURCES_CHANGED
    return store_record(attached(terms.place), key, record, fresh=terms.fresh)


def _ready(batch: Batch, terms: Terms) -> tuple[str, Statement | None]:
    """Return why this worker cannot measure what was meant, or else the statement."""
    for device in dict.fromkeys(cell.device for cell, _ in batch.cells):
        own, wanted = surroundings(device), terms.surroundings[device]
        differ = [name for name, value in wanted.items() if own[name] != value]
        if differ:
            told = "; ".join(f"{name}: {own[name]}, not {wanted[name]}" for name in differ)
            return f"this worker does not match the sweep's plan: {told}", None
    try:
        statement = _statement(batch.claimed)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (one file stops no other)
        return f"{type(error).__name__}: {error}", None
    if statement_digest(statement) != batch.claimed.digest:
        return "the statement changed while the sweep ran", None
    return "", statement


def _statement(claimed: Claimed) -> Statement:
    path = claimed.source.path
    stat = path.stat()
    theorem = _theorem(claimed.source, stat.st_mtime_ns, stat.st_size)
    return theorem.control if claimed.control else theorem.statement


@lru_cache(maxsize=64)
def _theorem(source: Source, *stamp: int) -> Theorem:
    """Return a theorem, loaded once per process while its file is unchanged."""
    del stamp
    return source.load()


def _limited(statement: Statement, cell: Cell, measure: Measure, terms: Terms) -> CellRecord:
    """Measure one cell within its limits."""
    started = perf_counter()

    def lost(status: CellStatus, why: str, traceback: str = "") -> CellRecord:
        return record_of(
            cell,
            terms.surroundings,
            status,
            why,
            seconds=perf_counter() - started,
            traceback=traceback,
        )

    try:
        with limited_memory(terms.memory), limited_time(terms.limit):
            found = list(measure(statement, cell))
    except OutOfTime:
        return lost("out of time", f"not finished after {terms.limit:g} s")
    except Exception as error:  # noqa: BLE001 (one cell stops no other)
        told = " ".join(f"{type(error).__name__}: {error}".split())
        if spent_memory(told):
            gc.collect()
            return lost("out of memory", told)
        fault = fault_of(error, (cell.claimed.source.path,))
        return (
            lost("failed", told)
            if fault is None
            else lost("failed", fault.message, fault.traceback)
        )
    short = next((m.reason for m in found if m.status == "skipped" and spent_memory(m.reason)), "")
    if short:
        return lost("out of memory", short)
    return _found(cell, found, terms, perf_counter() - started)


def _found(
    cell: Cell, found: Sequence[MeasuredEvidence], terms: Terms, seconds: float
) -> CellRecord:
    statuses = [m.status for m in found]
    status: CellStatus = next((s for s in ORDER if s in statuses), "skipped")
    reasons = dict.fromkeys(m.reason for m in found if m.status == "skipped")
    why = "; ".join(reasons) or "it implements no definition of this statement"
    ratio, policy, says = max(_ratios(found), key=lambda told: told[0], default=(None, "", ""))
    return record_of(
        cell,
        terms.surroundings,
        status,
        why if status == "skipped" else "",
        seconds=seconds,
        measured=tuple(found),
        policy=policy,
        says=says,
        ratio=ratio,
    )


def _ratios(found: Sequence[MeasuredEvidence]) -> Iterator[tuple[float, str, str]]:
    """Yield ratio, policy and conclusion of everything that was judged."""
    for m in found:
        if m.status == "skipped":
            continue
        applied = [(as_float(j.ratio), j.policy) for j in m.policies if j.status != "skipped"]
        for ratio, policy in applied or [(m.ratio, "deterministic")]:
            yield math.inf if math.isnan(ratio) else ratio, policy, m.says


def record_of(
    cell: Cell,
    around: dict[str, dict[str, object]],
    status: CellStatus,
    reason: str = "",
    **more: object,
) -> CellRecord:
    """Return the record of a cell."""
    told = {"ratio": None, "policy": "", "says": "", "measured": (), "seconds": 0.0, **more}
    return CellRecord.of(
        cell,
        theorem=cell.claimed.source.id,
        control=cell.claimed.control,
        device=str(around[cell.device]["device"]),
        status=status,
        reason=reason,
        **told,
    )


LENGTH_RATIOS = (1.0, 5 / 8, 5 / 16, 3 / 16)
"""Lengths of the axes of tokens, relative to the requested number, about as in the scales."""


@dataclass
class Shared:
    """Measures the cells of one group, each as ``measure`` would by itself.

    Parts and tasks are kept: inputs are drawn once, and the exact value of a side is computed
    once for each dtype, whatever implementation is compared with it.
    """

    kept: tuple[list[tuple[str, Claim, Statement]], Measuring] | None = None

    def __call__(self, statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
        """Measure one cell.  Raises ``ReadingError`` if a reading failed."""
        from ..numeric.check import ReadingError, implementations_for
        from ..numeric.devices import dtype_named
        from ..numeric.implementations import implementations_named
        from ..numeric.task import parts_of

        if self.kept is None:
            self.kept = list(parts_of(statement)), _measuring(cell)
        parts, measuring = self.kept
        measuring.results, measuring.failed = [], []
        (one,) = implementations_named([cell.implementation], measuring.device)
        asked = [(says, part, implementations_for(claim, [one])) for says, claim, part in parts]
        measuring.claims([claim for claim in asked if claim[2]], [dtype_named(cell.dtype)])
        if measuring.failed:
            says, cause = measuring.failed[0]
            told = f"{says or 'the claim'}: {cause!r}"
            raise ReadingError(told, measuring.results) from cause
        return measuring.results


def _measuring(cell: Cell) -> Measuring:
    from ..numeric.check import Measuring
    from ..numeric.devices import chosen
    from ..numeric.distributions import distributions_named

    scale, where = scaled(cell.scale, cell.tokens), chosen(cell.device)
    distributions = distributions_named([cell.distribution])
    return Measuring(scale, where, cell.seed, cell.claimed.expected, None, distributions, True)


def scaled(name: str, tokens: int | None) -> Scale:
    """Return a scale, with so many tokens if they are given."""
    from ..numeric.scale import scale_named

    scale = scale_named(name)
    if tokens is None:
        return scale
    lengths = tuple(max(2, int(tokens * part)) for part in LENGTH_RATIOS)
    return replace(scale, lengths=scale.lengths | {"tokens": lengths})
