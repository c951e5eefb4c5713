"""Running the catalogue: every statement and its twin, through both sides, into one record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

from . import __version__, translate
from .catalogue import Catalogue, Entry, Source, failure
from .defined import definitions
from .judgement import against, opposite
from .machine import machine
from .records import (
    BrokenFile,
    Evidence,
    Expected,
    LinkRecord,
    OptionsRecord,
    Results,
    TheoremRecord,
    TwinRecord,
    UndecidedEvidence,
    Verdict,
)  # fmt: skip

if TYPE_CHECKING:
    from .symbolic.statement import Statement, Theorem

__all__ = ["Options", "check", "run"]

Scale = Literal["small", "default", "large"]
Outcome = TheoremRecord | BrokenFile


@dataclass(frozen=True)
class Options:
    """How a run is asked for; without ``numeric`` nothing is measured."""

    numeric: bool = True
    scale: Scale = "default"
    device: str = "auto"
    dtypes: tuple[str, ...] = ("float64", "float32", "bfloat16")
    seed: int = 0
    jobs: int = 1


def check(theorem: Theorem, source: Source, options: Options) -> Outcome:
    """One theorem and its twin.  A file whose statements cannot be built is broken."""
    try:
        claimed, twin = theorem.statement, theorem.twin
        return _record(theorem, source, options, claimed, twin)
    except Exception as error:  # noqa: BLE001 (any failure belongs to this file and stops no other)
        return BrokenFile(file=source.label, error=failure(error, source.path))


def _record(
    theorem: Theorem, source: Source, options: Options, claimed: Statement, twin: Statement
) -> TheoremRecord:
    expected = cast("Expected", theorem.expected)
    verdict, chain, evidence = _found(claimed, options)
    told = against(expected, verdict, evidence)
    other = opposite(expected)
    # A false statement shows itself at small sizes; scale is spent on the theorem.
    twin_verdict, twin_chain, twin_evidence = _found(twin, replace(options, scale="small"))
    twin_told = against(other, twin_verdict, twin_evidence)
    return TheoremRecord(
        id=source.id,
        title=theorem.title,
        subject=source.subject,
        file=source.label,
        claims=tuple(theorem.claims),
        sources=tuple(theorem.sources),
        says=theorem.words,
        statement=translate.statement(claimed),
        sizes=translate.sizes(claimed),
        givens=translate.givens(claimed),
        assumed=translate.hypotheses(claimed),
        verdict=verdict,
        expected=expected,
        ok=not told and not twin_told,
        why=(*told, *(f"its twin: {line}" for line in twin_told)),
        chain=chain,
        evidence=evidence,
        twin=TwinRecord(
            says=theorem.twin_says,
            statement=translate.statement(twin),
            verdict=twin_verdict,
            expected=other,
            ok=not twin_told,
            why=twin_told,
            chain=twin_chain,
            evidence=twin_evidence,
        ),
    )


def _found(
    claimed: Statement, options: Options
) -> tuple[Verdict, tuple[LinkRecord, ...], tuple[Evidence, ...]]:
    """Both sides' findings; a side that fails leaves its reason, and never a verdict."""
    verdict, chain, evidence = _decided(claimed)
    return verdict, chain, (*evidence, *(_numbers(claimed, options) if options.numeric else ()))


def _decided(
    claimed: Statement,
) -> tuple[Verdict, tuple[LinkRecord, ...], tuple[Evidence, ...]]:
    from .symbolic.prove import decide

    started = perf_counter()
    try:
        decision = decide(claimed)
    except Exception as error:  # noqa: BLE001 (a prover that fails has decided nothing)
        return "undecided", (), (_stopped("the prover", error, started),)
    return translate.verdict(decision), translate.chain(decision), translate.evidence(decision)


def _numbers(claimed: Statement, options: Options) -> tuple[Evidence, ...]:
    from .numeric.check import ReadingError, measure

    started = perf_counter()
    try:
        found = measure(
            claimed,
            scale=options.scale,
            device=options.device,
            dtypes=options.dtypes,
            seed=options.seed,
        )
    except ReadingError as error:
        kept = translate.measured(error.measurements)
        return (*kept, _stopped("the numbers", error, started))
    except Exception as error:  # noqa: BLE001 (numbers that fail leave the proof standing)
        return (_stopped("the numbers", error, started),)
    return translate.measured(found)


def _stopped(side: str, error: Exception, started: float) -> UndecidedEvidence:
    text = " ".join(str(error).split())
    told = f"{side} stopped with {type(error).__name__}" + (f": {text}" if text else "")
    return UndecidedEvidence(says="", why=told, seconds=perf_counter() - started)


def _in_worker(source: Source, options: Options) -> Outcome:
    """One theorem in a process of its own, which imports the file by itself."""
    try:
        theorem = source.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return BrokenFile(file=source.label, error=failure(error, source.path))
    if options.numeric:
        import torch

        torch.set_num_threads(1)
    return check(theorem, source, options)


def _silent(outcome: Outcome) -> None:
    del outcome


def _outcomes(entries: tuple[Entry, ...], options: Options) -> Iterator[Outcome]:
    """The outcome of each entry, in order, as they come."""
    if options.jobs == 1 or len(entries) < 2:
        for entry in entries:
            yield check(entry.theorem, entry.source, options)
        return
    from joblib import Parallel, delayed

    work = (delayed(_in_worker)(entry.source, options) for entry in entries)
    yield from Parallel(n_jobs=options.jobs, return_as="generator", batch_size=1)(work)


def _statements(entries: list[Entry]) -> Iterator[Statement]:
    """The statements and twins of entries that were checked, and so can be built."""
    for entry in entries:
        yield entry.theorem.statement
        yield entry.theorem.twin


def run(
    catalogue: Catalogue,
    options: Options,
    selection: tuple[str, ...] = (),
    tell: Callable[[Outcome], None] | None = None,
) -> Results:
    """Check every entry.  ``tell`` hears of each outcome as it comes, in the catalogue's order.

    An interrupt (Ctrl-C) ends the run early: what was finished is in the results, and the rest
    is named in ``unfinished``.
    """
    started = perf_counter()
    theorems: list[TheoremRecord] = []
    broken = [BrokenFile(file=b.source.label, error=b.error) for b in catalogue.broken]
    tell = tell or _silent
    for file in broken:
        tell(file)
    done, checked = 0, list[Entry]()
    try:
        for outcome in _outcomes(catalogue.entries, options):
            if isinstance(outcome, TheoremRecord):
                theorems.append(outcome)
                checked.append(catalogue.entries[done])
            else:
                broken.append(outcome)
            done += 1
            tell(outcome)
    except KeyboardInterrupt:
        pass
    unfinished = tuple(entry.id for entry in catalogue.entries[done:])
    return Results(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        machine=machine(numeric=options.numeric),
        options=OptionsRecord(
            selection=selection,
            numeric=options.numeric,
            scale=options.scale,
            device=options.device,
            dtypes=options.dtypes,
            seed=options.seed,
            jobs=options.jobs,
        ),
        definitions=definitions(_statements(checked)),
        theorems=tuple(theorems),
        broken=tuple(broken),
        unfinished=unfinished,
        ok=all(t.ok for t in theorems) and not broken and not unfinished,
    )
