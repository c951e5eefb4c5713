"""Check one theorem, its statement and its negative control, by all methods, into a record."""

from __future__ import annotations

import ast
import traceback
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar, cast

from .. import __version__
from ..documents.evidence import (
    Evidence,
    Formula,
    IllTypedEvidence,
    InternalErrorEvidence,
    UndecidedEvidence,
    Verdict,
)
from ..errors import broken_by
from ..symbolic.array import AxisMismatch
from ..symbolic.decision import Decision
from ..symbolic.faults import fault_of
from ..symbolic.statement import Statement, Theorem
from . import translation
from .catalogue import Source
from .definitions_used import named
from .judgement import against, opposite
from .records import (
    BrokenFile,
    Checked,
    ControlRecord,
    Expected,
    LinkRecord,
    ProofRecord,
    TheoremRecord,
)

LIMIT = 60.0  # seconds of the thread for a statement: all conclusions, proofs and witnesses
Scale = Literal["small", "default", "large"]
LOOKED_FOR = 0.25  # seconds of the thread
VACUOUS = "some values satisfy the hypotheses (none were found)"


@dataclass(frozen=True)
class Options:
    """The options of a run; without ``numeric`` nothing is measured."""

    numeric: bool = True
    scale: Scale = "default"
    device: str = "auto"
    dtypes: tuple[str, ...] = ("float64", "float32", "bfloat16")
    seed: int = 0
    jobs: int = 1


class Found(NamedTuple):
    """What was found about one statement; ``decision`` is the result of the symbolic side."""

    verdict: Verdict
    chain: tuple[LinkRecord, ...]
    evidence: tuple[Evidence, ...]
    decision: Decision | None = None


def check(
    theorem: Theorem, source: Source, options: Options, proved: TheoremRecord | None = None
) -> TheoremRecord | BrokenFile:
    """Check one theorem and its negative control; broken if its statements cannot be built.

    If it was ``proved`` before, only the numbers are added.
    """
    try:
        record = proved or _record(theorem, source)
        return measured(record.model_copy(update={"stored": None}), theorem, options)
    except Exception as error:  # noqa: BLE001 (any failure belongs to this file and stops no other)
        return BrokenFile(file=source.label, **broken_by(error, source.path))


def _record(theorem: Theorem, source: Source) -> TheoremRecord:
    expected = cast("Expected", theorem.expected)
    claimed, error = _built(theorem)
    if error is None:
        own = _side(translation.statement(claimed), claimed, expected, _found(claimed, source.path))
    else:
        own = _side(written(error, source.path), claimed, expected, _ill_typed(error))
    control = _control(theorem, source.path)
    return TheoremRecord(
        id=source.id,
        title=theorem.title,
        subject=source.subject,
        file=source.label,
        claims=tuple(theorem.claims),
        sources=tuple(theorem.sources),
        says=theorem.words,
        sizes=translation.sizes(claimed),
        givens=translation.givens(claimed),
        control=control,
        code=code(theorem),
        uses=named((claimed if error is None else theorem.control,)),
        **_with(own, control),
    )


def asked(theorem: Theorem, options: Options, limit: float) -> tuple[ProofRecord, Decision | None]:
    """Check one statement like any theorem, except that it may have no control.

    Raises what its code raises if that cannot be built or does not run.
    """
    started, path = perf_counter(), theorem.path
    expected = cast("Expected", theorem.expected)
    claimed = theorem.statement
    found = _found(claimed, path, limit)
    own = _side(translation.statement(claimed), claimed, expected, found)
    control = None if theorem.control_body is None else _control(theorem, path)
    record = ProofRecord(
        title=theorem.title,
        says=theorem.words,
        sizes=translation.sizes(claimed),
        givens=translation.givens(claimed),
        control=control,
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=0.0,
        **_with(own, control),
    )
    record = measured(record, theorem, options)
    return record.model_copy(update={"seconds": perf_counter() - started}), found.decision


def _control(theorem: Theorem, path: Path) -> ControlRecord:
    control, expected = theorem.control, opposite(cast("Expected", theorem.expected))
    told = _side(translation.statement(control), control, expected, _found(control, path))
    return ControlRecord(says=theorem.control_says, **told)


R = TypeVar("R", TheoremRecord, ProofRecord)


def measured(record: R, theorem: Theorem, options: Options) -> R:
    """Return the record of a theorem with what measurements and finite fields say about it."""
    if not options.numeric:
        return record
    own = _said(record, record.evidence)
    if record.verdict != "ill-typed":
        own = _measured(record, theorem.statement, options, theorem.path)
        options = replace(options, scale="small")  # what is false shows at small sizes
    control = record.control
    if control is not None:
        told = _measured(control, theorem.control, options, theorem.path)
        control = control.model_copy(update=told)
    return record.model_copy(update={**_with(own, control), "control": control})


def _measured(found: Checked, claimed: Statement, options: Options, path: Path) -> dict[str, Any]:
    """Return the evidence of a statement with its measurements; a misread statement has none."""
    numbers: tuple[Evidence, ...] = ()
    if found.verdict != "misread":
        numbers = _numbers(claimed, found.expected, options, path)
        numbers = (*numbers, *_exact(claimed, options, path))
    return _said(found, (*found.evidence, *numbers))


def _said(found: Checked, evidence: tuple[Evidence, ...]) -> dict[str, Any]:
    """Return the evidence of a statement, and what in it speaks against the statement."""
    why = against(found.expected, found.verdict, evidence)
    return {"evidence": evidence, "ok": not why, "why": why}


def _with(own: dict[str, Any], control: ControlRecord | None) -> dict[str, Any]:
    """Return what was found about a statement, which is ok only if its negative control is too."""
    beside = () if control is None else control.why
    why = (*own["why"], *(f"its negative control: {line}" for line in beside))
    return {**own, "ok": not why, "why": why}


def _side(told: Formula, claimed: Statement, expected: Expected, found: Found) -> dict[str, Any]:
    """Return what the records of a theorem and of its negative control have in common."""
    why = against(expected, found.verdict, found.evidence)
    return {
        "statement": told,
        "verdict": found.verdict,
        "expected": expected,
        "ok": not why,
        "why": why,
        "assumed": translation.hypotheses(claimed),
        "chain": found.chain,
        "evidence": found.evidence,
    }


def _built(theorem: Theorem) -> tuple[Statement, AxisMismatch | None]:
    """Return the statement; for an ill-typed one, its givens and why it cannot be built.

    Axes that disagree where this is not expected are an error of the file.
    """
    try:
        return theorem.statement, None
    except AxisMismatch as error:
        if theorem.expected != "ill-typed":
            raise
        return givens(theorem), error


def _ill_typed(error: AxisMismatch) -> Found:
    told = " ".join(str(error).split())
    return Found("ill-typed", (), (IllTypedEvidence(says="", error=told, seconds=0.0),))


def _found(claimed: Statement, path: Path, limit: float = LIMIT) -> Found:
    """Return what is proved and derived; a side that fails leaves its reason, and never a verdict.

    Nothing is derived from a statement that is misread.
    """
    found = _decided(claimed, path, limit)
    if found.verdict == "misread":
        return found
    return found._replace(evidence=(*found.evidence, *_derived(claimed, path)))


def _decided(claimed: Statement, path: Path, limit: float) -> Found:
    """Return the result of the symbolic side.  Raises ``NotRun`` if the file's code cannot run."""
    from ..symbolic.comparison import NotRun
    from ..symbolic.prove import Effort, decide

    started = perf_counter()
    try:
        decision = decide(claimed, effort=Effort(whole=limit))
    except NotRun:
        raise
    except Exception as error:  # noqa: BLE001 (a prover that fails has decided nothing)
        stopped = _stopped("the prover", error, started, path)
        return Found(stopped.kind, (), (stopped,))
    evidence = translation.evidence(decision)
    if decision.verdict == "proved" and not _satisfied(claimed):
        evidence = tuple(
            e.model_copy(update={"readings": (*e.readings, VACUOUS)}) if e.kind == "proved" else e
            for e in evidence
        )
    chain = translation.chain(decision, kernel=translation.KERNEL)
    return Found(translation.verdict(decision), chain, evidence, decision)


def _satisfied(claimed: Statement) -> bool:
    """Whether exact values were found that obey all hypotheses; true if there are none."""
    return not (claimed.assume or claimed.laws) or claimed.example(LOOKED_FOR) is not None


def _derived(claimed: Statement, path: Path) -> tuple[Evidence, ...]:
    """Return what SymPy derives from the code, independently of the kernel."""
    from ..symbolic.expressions.deriving import derive

    if claimed.code is None:
        return ()
    started = perf_counter()
    try:
        found = derive(claimed, claimed.code)
    except Exception as error:  # noqa: BLE001 (a derivation that fails leaves the proof standing)
        return (_stopped("SymPy", error, started, path),)
    return (translation.derived(found),)


def _numbers(
    claimed: Statement, expected: Expected, options: Options, path: Path
) -> tuple[Evidence, ...]:
    """Return what was measured; what is expected of a statement only decides how hard to look."""
    from ..numeric.check import ReadingError, measure

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
        return (*error.measurements, _stopped("the numbers", error, started, path))
    except Exception as error:  # noqa: BLE001 (numbers that fail leave the proof standing)
        return (_stopped("the numbers", error, started, path),)
    return tuple(found)


def _exact(claimed: Statement, options: Options, path: Path) -> tuple[Evidence, ...]:
    """Return what was found in finite fields, if the statement has a meaning there."""
    from ..numeric.residues.exact import exact

    started = perf_counter()
    try:
        found = exact(claimed, scale=options.scale, seed=options.seed)
    except Exception as error:  # noqa: BLE001 (a check that fails leaves the proof standing)
        return (_stopped("the finite fields", error, started, path),)
    return tuple(found)


def _stopped(
    side: str, error: Exception, started: float, path: Path
) -> UndecidedEvidence | InternalErrorEvidence:
    """Return why a side did not finish: what the file raised, or an error of attnproof."""
    seconds = perf_counter() - started
    fault = fault_of(error, (path,))
    if fault is not None:
        told = f"{side}: {fault.message}"
        return InternalErrorEvidence(says="", why=told, traceback=fault.traceback, seconds=seconds)
    text = " ".join(str(error).split())
    told = f"{side} stopped with {type(error).__name__}" + (f": {text}" if text else "")
    return UndecidedEvidence(says="", why=told, seconds=seconds)


def code(theorem: Theorem) -> str:
    """Return the source of the functions that state a theorem and its negative control."""
    bodies = (theorem.body, theorem.control_body)
    return "\n\n".join(filter(None, (translation.as_written(body) for body in bodies if body)))


def givens(theorem: Theorem) -> Statement:
    """Return a statement with only the givens, and no conclusions."""
    from inspect import signature

    return Statement({name: theorem.given[name] for name in signature(theorem.body).parameters}, {})


def written(error: AxisMismatch, path: Path) -> Formula:
    """Return the line of the theorem file in which the axes meet; it has no LaTeX.

    A returned expression is given without ``return``, and a definition as it is.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve() and f.lineno]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.FunctionDef)
        and lines
        and node.lineno <= lines[-1] <= (node.end_lineno or node.lineno)
    ]
    if not found:
        return Formula(latex="", text="")
    inner: ast.AST = found[-1]
    if isinstance(inner, ast.Return) and inner.value is not None:
        inner = inner.value
    return Formula(latex="", text=ast.unparse(inner))
