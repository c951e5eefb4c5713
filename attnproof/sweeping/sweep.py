"""A sweep: statements × implementations × dtypes × sizes × distributions × seeds × devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

from .. import __version__
from ..errors import broken_by
from ..theorem_runs.catalogue import Entry
from ..theorem_runs.judgement import opposite
from ..theorem_runs.records import Machine
from ..theorem_runs.run_store import RunStore, statement_digest, store_record, surroundings
from ..theorem_runs.store import Key, Store
from .engines import Engine, measured_batches
from .records import LOST, CellRecord, SweepRecord, UnusableRecord, is_against
from .work import Cell, Claimed, Grid, Measure, Terms, batches, cell_key, cells_of

if TYPE_CHECKING:
    from ..symbolic.statement import Statement
    from ..theorem_runs.records import Expected

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
