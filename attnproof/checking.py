"""Checking one theorem: its statement and its twin, through both sides, into one record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

from . import translate
from .catalogue import Source, failure
from .ill_typed import givens, written
from .judgement import against, opposite
from .records import (
    BrokenFile,
    Evidence,
    Expected,
    IllTypedEvidence,
    LinkRecord,
    TheoremRecord,
    TwinRecord,
    UndecidedEvidence,
    Verdict,
)  # fmt: skip

if TYPE_CHECKING:
    from .symbolic.array import AxisMismatch
    from .symbolic.statement import Statement, Theorem

__all__ = ["Options", "check"]

Scale = Literal["small", "default", "large"]
Found = tuple[Verdict, tuple[LinkRecord, ...], tuple[Evidence, ...]]


@dataclass(frozen=True)
class Options:
    """How a run is asked for; without ``numeric`` nothing is measured."""

    numeric: bool = True
    scale: Scale = "default"
    device: str = "auto"
    dtypes: tuple[str, ...] = ("float64", "float32", "bfloat16")
    seed: int = 0
    jobs: int = 1


def check(theorem: Theorem, source: Source, options: Options) -> TheoremRecord | BrokenFile:
    """One theorem and its twin.  A file whose statements cannot be built is broken."""
    try:
        return _record(theorem, source, options)
    except Exception as error:  # noqa: BLE001 (any failure belongs to this file and stops no other)
        return BrokenFile(file=source.label, error=failure(error, source.path))


def _record(theorem: Theorem, source: Source, options: Options) -> TheoremRecord:
    expected = cast("Expected", theorem.expected)
    claimed, error = _built(theorem)
    twin = theorem.twin
    verdict, chain, evidence = (
        _found(claimed, expected, options) if error is None else _ill_typed(error)
    )
    told = against(expected, verdict, evidence)
    other = opposite(expected)
    # A false statement shows itself at small sizes; scale is spent on the theorem.
    twin_options = options if error is not None else replace(options, scale="small")
    twin_verdict, twin_chain, twin_evidence = _found(twin, other, twin_options)
    twin_told = against(other, twin_verdict, twin_evidence)
    return TheoremRecord(
        id=source.id,
        title=theorem.title,
        subject=source.subject,
        file=source.label,
        claims=tuple(theorem.claims),
        sources=tuple(theorem.sources),
        says=theorem.words,
        statement=translate.statement(claimed) if error is None else written(error, source.path),
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
            assumed=translate.hypotheses(twin),
            chain=twin_chain,
            evidence=twin_evidence,
        ),
    )


def _built(theorem: Theorem) -> tuple[Statement, AxisMismatch | None]:
    """The statement; of one said to be ill-typed, its givens and why it cannot be built.

    Axes that disagree where that is not expected are an error of the file.
    """
    from .symbolic.array import AxisMismatch

    try:
        return theorem.statement, None
    except AxisMismatch as error:
        if theorem.expected != "ill-typed":
            raise
        return givens(theorem), error


def _ill_typed(error: AxisMismatch) -> Found:
    told = " ".join(str(error).split())
    return "ill-typed", (), (IllTypedEvidence(says="", error=told, seconds=0.0),)


def _found(claimed: Statement, expected: Expected, options: Options) -> Found:
    """Both sides' findings; a side that fails leaves its reason, and never a verdict."""
    verdict, chain, evidence = _decided(claimed)
    if not options.numeric:
        return verdict, chain, evidence
    numbers = _numbers(claimed, expected, options)
    return verdict, chain, (*evidence, *numbers, *_exact(claimed, options))


def _decided(claimed: Statement) -> Found:
    from .symbolic.prove import decide

    started = perf_counter()
    try:
        decision = decide(claimed)
    except Exception as error:  # noqa: BLE001 (a prover that fails has decided nothing)
        return "undecided", (), (_stopped("the prover", error, started),)
    return translate.verdict(decision), translate.chain(decision), translate.evidence(decision)


def _numbers(claimed: Statement, expected: Expected, options: Options) -> tuple[Evidence, ...]:
    """What was measured; what a statement is expected to be tells only how hard to look."""
    from .numeric.check import ReadingError, measure

    started = perf_counter()
    try:
        found = measure(
            claimed,
            scale=options.scale,
            device=options.device,
            dtypes=options.dtypes,
            seed=options.seed,
            expected=expected,
        )
    except ReadingError as error:
        kept = translate.measured(error.measurements)
        return (*kept, _stopped("the numbers", error, started))
    except Exception as error:  # noqa: BLE001 (numbers that fail leave the proof standing)
        return (_stopped("the numbers", error, started),)
    return translate.measured(found)


def _exact(claimed: Statement, options: Options) -> tuple[Evidence, ...]:
    """What was found in finite fields, where the statement has a meaning there."""
    from .numeric.residues.exact import exact

    started = perf_counter()
    try:
        found = exact(claimed, scale=options.scale, seed=options.seed)
    except Exception as error:  # noqa: BLE001 (a check that fails leaves the proof standing)
        return (_stopped("the finite fields", error, started),)
    return translate.exact(found)


def _stopped(side: str, error: Exception, started: float) -> UndecidedEvidence:
    text = " ".join(str(error).split())
    told = f"{side} stopped with {type(error).__name__}" + (f": {text}" if text else "")
    return UndecidedEvidence(says="", why=told, seconds=perf_counter() - started)
