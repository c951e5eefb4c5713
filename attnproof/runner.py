"""Running the catalogue and the ledger: theorems, demonstrations and claims, into one record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from . import __version__
from .catalogue import Catalogue, Entry, Source
from .checking import Options, check
from .claims import decide_claims, with_known_conclusions
from .definitions_used import definitions
from .demonstrations import demonstrate
from .faults import broken_by
from .ledger import Ledger
from .records import (
    BrokenFile,
    DemonstrationRecord,
    Machine,
    OptionsRecord,
    Results,
    TheoremRecord,
)

if TYPE_CHECKING:
    from .sweeping.kept import Kept, Writer

Outcome = TheoremRecord | DemonstrationRecord | BrokenFile


def _one(entry: Entry, options: Options, kept: Kept | None) -> TheoremRecord | BrokenFile:
    """The record of one theorem: from the store, or checked now and left there."""
    if kept is None:
        return check(entry.theorem, entry.source, options)
    from .sweeping.kept import theorem_key

    try:
        key, files = theorem_key(entry, options)
    except Exception:  # noqa: BLE001 (its statements cannot be built; its check will tell)
        return check(entry.theorem, entry.source, options)
    record = kept.found(key, TheoremRecord)
    if record is not None:
        return record
    outcome = check(entry.theorem, entry.source, options)
    if isinstance(outcome, TheoremRecord):
        kept.tell(kept.writer.keep(key, files, outcome))
    return outcome


def _in_worker(
    source: Source, options: Options, writer: Writer | None
) -> tuple[TheoremRecord | BrokenFile, list[str]]:
    """One theorem in a process of its own, which imports the file by itself; what to tell."""
    try:
        entry = Entry(source, source.load())
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return BrokenFile(file=source.label, **broken_by(error, source.path)), []
    if options.numeric:
        import torch

        torch.set_num_threads(1)
    kept = None if writer is None else writer.here()
    return _one(entry, options, kept), [] if kept is None else kept.told


def _silent(outcome: Outcome) -> None:
    del outcome


def _outcomes(
    entries: tuple[Entry, ...], options: Options, kept: Kept | None
) -> Iterator[TheoremRecord | BrokenFile]:
    """The outcome of each entry, in order, as they come; those in the store are not checked."""
    if options.jobs == 1 or len(entries) < 2:
        for entry in entries:
            yield _one(entry, options, kept)
        return
    from joblib import Parallel, delayed

    writer = None if kept is None else kept.writer
    work = (delayed(_in_worker)(entry.source, options, writer) for entry in entries)
    found = Parallel(n_jobs=options.jobs, return_as="generator", batch_size=1)(work)
    for outcome, told in found:
        for line in told:
            if kept is not None:
                kept.tell(line)
        yield outcome


def _demonstrated(files: Mapping[str, Path], kept: Kept | None) -> Iterator[DemonstrationRecord]:
    """The record of each demonstration, in order; those in the store are not run."""
    if kept is None:
        yield from demonstrate(files)
        return
    from .sweeping.kept import demonstration_keys

    keys = demonstration_keys(files)
    found = {name: kept.found(key, DemonstrationRecord) for name, (key, _) in keys.items()}
    coming = demonstrate({name: path for name, path in files.items() if found[name] is None})
    for name, (key, beside) in keys.items():
        record = found[name]
        if record is None:
            record = next(coming)
            kept.tell(kept.writer.keep(key, beside, record))
        yield record


def run(
    catalogue: Catalogue,
    options: Options,
    selection: tuple[str, ...] = (),
    tell: Callable[[Outcome], None] | None = None,
    ledger: Ledger | None = None,
    kept: Kept | None = None,
) -> Results:
    """Check every entry, and derive the claims of ``ledger`` from what is found.

    The catalogue holds the theorems that the claims rest on, each of which is checked once.
    ``tell`` hears of each outcome as it comes: broken files, then theorems and demonstrations in
    their order.  An interrupt (Ctrl-C) ends the run early: what was finished is in the results,
    the rest is named in ``unfinished``, and claims that rest on it are undecided.  With ``kept``,
    what the store holds is taken from it, and what is finished is left there at once.
    """
    started = perf_counter()
    tell, ledger = tell or _silent, ledger or Ledger()
    broken = [
        BrokenFile(file=b.source.label, error=b.error, traceback=b.traceback)
        for b in catalogue.broken
    ]
    broken += [BrokenFile(file=b.file, error=b.error) for b in ledger.broken]
    for file in broken:
        tell(file)
    checked: list[tuple[Entry, TheoremRecord]] = []
    shown: list[DemonstrationRecord] = []
    absent = {b.id: f"its file is broken: {b.error}" for b in catalogue.broken}
    done = 0
    try:
        for outcome in _outcomes(catalogue.entries, options, kept):
            entry = catalogue.entries[done]
            if isinstance(outcome, TheoremRecord):
                checked.append((entry, outcome))
            else:
                broken.append(outcome)
                absent[entry.id] = f"its file is broken: {outcome.error}"
            done += 1
            tell(outcome)
        for record in _demonstrated(ledger.demonstrations, kept):
            shown.append(record)
            tell(record)
    except KeyboardInterrupt:
        pass
    left = [name for name in ledger.demonstrations if name not in {r.id for r in shown}]
    unfinished = (*(entry.id for entry in catalogue.entries[done:]), *left)
    known = {entry.id: entry.theorem for entry, _ in checked}
    ledger, faults = with_known_conclusions(ledger, known)
    broken += faults
    theorems = tuple(record for _, record in checked)
    claims = decide_claims(ledger.claims, theorems, shown, absent)
    return Results(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        machine=Machine.here(numeric=options.numeric),
        options=OptionsRecord(selection=selection, **asdict(options)),
        definitions=definitions(s for entry, _ in checked for s in entry.statements),
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
