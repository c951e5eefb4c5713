"""Run the catalogue and the ledger: theorems, demonstrations and claims, into one record."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import broken_by
from .catalogue import Catalogue, Entry, Source
from .checking import Options, check
from .claims import decide_claims, with_known_conclusions
from .definitions_used import definitions
from .demonstrations import demonstrate
from .ledger import Ledger
from .limits import keep_memory, keep_worker
from .records import BrokenFile, DemonstrationRecord, Machine, OptionsRecord, Results, TheoremRecord

if TYPE_CHECKING:
    from .run_store import RunStore, Writer

Outcome = TheoremRecord | DemonstrationRecord | BrokenFile


def _one(
    entry: Entry, proved: TheoremRecord | None, options: Options, run_store: RunStore | None
) -> TheoremRecord | BrokenFile:
    """Return the record of one theorem: from the store, or checked now and stored."""
    if run_store is None:
        return check(entry.theorem, entry.source, options, proved)
    from .run_store import theorem_key

    try:
        key, files = theorem_key(entry, options)
    except Exception:  # noqa: BLE001 (its statements cannot be built; its check will say so)
        return check(entry.theorem, entry.source, options, proved)
    record = run_store.get(key, TheoremRecord)
    if record is not None:
        return record
    outcome = check(entry.theorem, entry.source, options, proved)
    if isinstance(outcome, TheoremRecord):
        run_store.tell(run_store.writer.store(key, files, outcome))
    return outcome


def _in_worker(
    source: Source, proved: TheoremRecord | None, options: Options, writer: Writer | None
) -> tuple[TheoremRecord | BrokenFile, list[str]]:
    """Check one theorem in a worker process, which imports the file itself; return messages too."""
    keep_worker()
    try:
        entry = Entry(source, source.load())
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return BrokenFile(file=source.label, **broken_by(error, source.path)), []
    if options.numeric:
        import torch

        torch.set_num_threads(1)
        keep_memory()
    _set_apart(options)
    run_store = None if writer is None else writer.here()
    return _one(entry, proved, options, run_store), [] if run_store is None else run_store.messages


def _set_apart(options: Options) -> None:
    """Hide the objects that exist before each proof from the garbage collector.

    Terms are kept forever, and walking through all of them would take a second of the little time
    that SymPy has.
    """
    if not options.numeric:
        gc.freeze()


@contextmanager
def workers_loading(jobs: int) -> Iterator[None]:
    """Let worker processes load what proofs need while this process loads its own part."""
    if jobs < 2:
        yield
        return
    from joblib import Parallel, delayed

    loading = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
        delayed(_load)() for _ in range(jobs)
    )
    try:
        yield
    finally:
        for _ in loading:  # leaving them halfway would print to standard error
            pass


def _load() -> None:
    """Import what every proof needs."""
    keep_worker()
    for part in ("symbolic.prove", "symbolic.refute", "symbolic.expressions.deriving"):
        import_module(f"attnproof.{part}")


def _build(entries: Sequence[Entry]) -> None:
    """Build the statements, which the record reads at the end, while workers measure."""
    for entry in entries:
        _ = entry.statements


def _silent(outcome: Outcome) -> None:
    del outcome


def _outcomes(
    work: Sequence[tuple[Entry, TheoremRecord | None]], options: Options, run_store: RunStore | None
) -> Iterator[TheoremRecord | BrokenFile]:
    """Return the outcomes of the entries, in order, as they come; stored ones are not checked.

    Several processes start at once, while this one goes on.
    """
    if options.jobs == 1 or len(work) < 2:
        return _one_by_one(work, options, run_store)
    from joblib import Parallel, delayed

    writer = None if run_store is None else run_store.writer
    jobs = (delayed(_in_worker)(entry.source, proved, options, writer) for entry, proved in work)
    found = Parallel(n_jobs=options.jobs, return_as="generator", batch_size=1)(jobs)
    return _with_messages(found, run_store)


def _one_by_one(
    work: Sequence[tuple[Entry, TheoremRecord | None]], options: Options, run_store: RunStore | None
) -> Iterator[TheoremRecord | BrokenFile]:
    try:
        for entry, proved in work:
            _set_apart(options)
            yield _one(entry, proved, options, run_store)
    finally:
        gc.unfreeze()  # the process may have other work


def _with_messages(
    found: Iterator[tuple[TheoremRecord | BrokenFile, list[str]]], run_store: RunStore | None
) -> Iterator[TheoremRecord | BrokenFile]:
    """Yield what workers found, and pass on their messages."""
    for outcome, told in found:
        for line in told:
            if run_store is not None:
                run_store.tell(line)
        yield outcome


def _demonstrated(
    files: Mapping[str, Path], run_store: RunStore | None
) -> Iterator[DemonstrationRecord]:
    """Yield the record of each demonstration, in order; those in the store are not run."""
    if run_store is None:
        yield from demonstrate(files)
        return
    from .run_store import demonstration_keys

    keys = demonstration_keys(files)
    found = {name: run_store.get(key, DemonstrationRecord) for name, (key, _) in keys.items()}
    coming = demonstrate({name: path for name, path in files.items() if found[name] is None})
    for name, (key, beside) in keys.items():
        record = found[name]
        if record is None:
            record = next(coming)
            run_store.tell(run_store.writer.store(key, beside, record))
        yield record


def run(
    catalogue: Catalogue,
    options: Options,
    selection: tuple[str, ...] = (),
    tell: Callable[[Outcome], None] | None = None,
    ledger: Ledger | None = None,
    run_store: RunStore | None = None,
) -> Results:
    """Check every entry, and derive the claims of ``ledger`` from what is found.

    The catalogue holds the theorems that the claims rest on, each of which is checked once.  Proofs
    come first, then the numbers.  ``tell`` is called with each outcome as it comes: broken files,
    then theorems and demonstrations in order, and each theorem once more when its numbers are
    there.  An interrupt (Ctrl-C) ends the run early: what was finished is in the results,
    ``unfinished`` names the rest, and claims that rest on it are undecided.  Records are taken from
    ``run_store`` if it has them, and finished ones are stored there at once.
    """
    started = perf_counter()
    tell, ledger = tell or _silent, ledger or Ledger()
    broken = [BrokenFile.of(b, file=b.source.label) for b in catalogue.broken]
    broken += map(BrokenFile.of, ledger.broken)
    for file in broken:
        tell(file)
    proved: dict[str, TheoremRecord] = {}
    checked: dict[str, TheoremRecord] = {}
    shown: list[DemonstrationRecord] = []
    absent = {b.id: f"its file is broken: {b.error}" for b in catalogue.broken}

    def take(
        entry: Entry, outcome: TheoremRecord | BrokenFile, into: dict[str, TheoremRecord]
    ) -> None:
        if isinstance(outcome, TheoremRecord):
            into[entry.id] = outcome
        else:
            broken.append(outcome)
            absent[entry.id] = f"its file is broken: {outcome.error}"
        tell(outcome)

    try:
        entries, proofs = catalogue.entries, replace(options, numeric=False)
        found = _outcomes([(entry, None) for entry in entries], proofs, run_store)
        for entry, outcome in zip(entries, found, strict=True):
            take(entry, outcome, proved if options.numeric else checked)
        entries = tuple(entry for entry in entries if entry.id in proved)
        found = _outcomes([(entry, proved[entry.id]) for entry in entries], options, run_store)
        for record in _demonstrated(ledger.demonstrations, run_store):
            shown.append(record)
            tell(record)
        _build(entries)
        for entry, outcome in zip(entries, found, strict=True):
            take(entry, outcome, checked)
    except KeyboardInterrupt:
        pass
    ended = {*checked, *absent, *(record.id for record in shown)}
    every = (*(entry.id for entry in catalogue.entries), *ledger.demonstrations)
    unfinished = tuple(name for name in every if name not in ended)
    whole = [entry for entry in catalogue.entries if entry.id in checked]
    known = {entry.id: entry.theorem for entry in whole}
    ledger, faults = with_known_conclusions(ledger, known)
    broken += faults
    theorems = tuple(checked[entry.id] for entry in whole)
    claims = decide_claims(ledger.claims, theorems, shown, absent)
    return Results(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        machine=Machine.here(numeric=options.numeric),
        options=OptionsRecord(selection=selection, **asdict(options)),
        definitions=definitions(s for entry in whole for s in entry.statements),
        theorems=theorems,
        documents=ledger.documents,
        claims=claims,
        demonstrations=tuple(shown),
        broken=tuple(broken),
        unfinished=unfinished,
        ok=not broken
        and not unfinished
        and all(t.ok for t in theorems)
        and all(c.ok for c in claims)
        and all(d.ok for d in shown),
    )
