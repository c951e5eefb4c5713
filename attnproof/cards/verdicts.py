"""Decide one law of one encoding from the encoding's code alone, and measure it beside that.

A cell that is proved or refuted keeps its verdict; one that is undecided and holds wherever it was
measured becomes *measured*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, cast

from ..documents.evidence import (
    Evidence,
    Formula,
    InternalErrorEvidence,
    ProvedEvidence,
    RefutedEvidence,
    UndecidedEvidence,
    WitnessRecord,
)
from ..encoding.applicability import most_of, ways
from ..encoding.base import Encoding
from ..encoding.law import Answer, EncodingLaw
from ..encoding.names import letters
from ..numeric.results import ExactEvidence, MeasuredEvidence
from ..symbolic.budget import OutOfTime, check_time, within
from ..symbolic.decision import Decision
from ..symbolic.gate import Misread
from ..symbolic.prove import Effort, decide
from ..symbolic.statement import Statement
from ..theorem_runs import translation
from .records import KERNEL, CellRecord, CellVerdict

LIMIT = 20.0  # seconds of the thread that a law may take
PROOF, WITNESS = 0.5, 0.1  # shares of the limit for one proof, and for one witness
BRIEF = 1.0  # seconds for a proof, before a witness is sought elsewhere
SAME = "for all sizes: both sides are the same expression"
IN_A_ROW = "consecutive integer positions"
DRAWN = "integer positions"  # which numeric/sample.py draws for any real ones
UNKNOWN = "; whether it holds without the hypothesis is open"
NEITHER = "; it is undecided without the hypothesis too"
ENCODED, SCORED = "encoded tokens", "the scores"
ON_TOKENS = ("add", "rotate", "query", "key")
ON_SCORES = (*ON_TOKENS, "relate", "bias", "sees", "scores")
NOT_ENCODED = "it does not change tokens, and acts elsewhere"
NOT_SCORED = "it does not change scores, and acts elsewhere"


def decided(kind: type[Encoding], law: EncodingLaw, *, limit_seconds: float = LIMIT) -> CellRecord:
    """Return the cell of an encoding and a law, decided in so many seconds of the thread.

    A law that needs no hypothesis is reported without one.  A law that fails is tried under those
    that the author declared.  It is then refuted by values that obey them, as many as can hold
    together, or else it is undecided under them.  Nothing is proved or refuted for a misread
    encoding.  The seconds are for everything: facts of the encoding, the law and its witness, and
    each hypothesis.  Raises what the encoding's own code raises.
    """
    start = perf_counter()
    with within(limit_seconds):
        try:
            found = _within(kind, law, limit_seconds)
        except Misread as misread:
            part = translation.misread(misread.found)
            error = str(misread).removeprefix(f"{kind.__name__}.")
            found = _made(kind, law, "misread", str(misread), error=error, evidence=(part,))
        except OutOfTime:
            told = f"it was not decided within {limit_seconds:g} s"
            none = UndecidedEvidence(says="", why=told, seconds=perf_counter() - start)
            found = _made(kind, law, "undecided", told, evidence=(none,))
    return found.model_copy(update={"seconds": perf_counter() - start})


def _made(
    kind: type[Encoding], law: EncodingLaw, verdict: str, why: str, **more: Any
) -> CellRecord:
    known = cast("CellVerdict", verdict)
    return CellRecord(encoding=kind.id(), law=law.id, verdict=known, why=why, seconds=0.0, **more)


def _within(kind: type[Encoding], law: EncodingLaw, limit_seconds: float) -> CellRecord:
    why_not = idle(kind, law.group) or law.applies(kind)
    if why_not:
        return _made(kind, law, "does not apply", why_not)
    start, encoding = perf_counter(), kind()
    asked = law.statement(encoding)
    if isinstance(asked, Answer):
        return _answered(kind, law, asked, perf_counter() - start)
    witness = WITNESS * limit_seconds
    effort = Effort(limit=witness, prove=PROOF * limit_seconds, glance=6)
    proving = replace(effort, refuting=False, shrinking=0, prove=witness)
    brief = replace(proving, shrinking=effort.shrinking, prove=min(BRIEF, witness))
    first = settled(law, encoding, (), brief)
    if first.found.verdict == "proved" and not first.in_a_row:  # it may be false elsewhere
        return _cell(kind, law, first)
    tried = tuple(ways(encoding, law))
    every = most_of(tried)
    if first.found.verdict != "refuted" and len(every) == 1:  # false under all, hence under fewer
        under_all = settled(law, encoding, every[0], brief)
        if under_all.found.verdict == "refuted":
            return _cell(kind, law, under_all, tried=tried)
    if first.found.verdict != "refuted":
        first = settled(law, encoding, (), effort)
        if first.found.verdict == "proved":
            return _cell(kind, law, first)
    return _under_hypotheses(kind, law, first, tried, (brief, proving, effort))


def _under_hypotheses(
    kind: type[Encoding],
    law: EncodingLaw,
    first: Settled,
    tried: tuple[tuple[str, ...], ...],
    efforts: tuple[Effort, Effort, Effort],
) -> CellRecord:
    """Decide a law that is not proved without one; refuted means under all that can hold."""
    encoding, every, (brief, proving, effort) = kind(), most_of(tried), efforts
    for under in tried:
        found = settled(law, encoding, under, proving)
        if found.found.verdict == "proved" and not (law.some and found.in_a_row):
            return _cell(kind, law, found, without=first)
        check_time()
    if first.found.verdict == "refuted":
        for under in every:
            check_time()
            first_under = settled(law, encoding, under, brief)
            if first_under.found.verdict != "refuted":
                first_under = settled(law, encoding, under, effort)
            if first_under.found.verdict != "refuted":
                return _cell(kind, law, first_under, without=first)
            first = first_under
    elif tried and first.found.verdict == "undecided":
        check_time()
        first = settled(law, encoding, every[0], effort)
    return _cell(kind, law, first, tried=tried)


@dataclass(frozen=True)
class Settled:
    """What was asked, under which hypotheses and for which positions, and what was found."""

    asked: Statement
    found: Decision
    under: tuple[str, ...] = ()
    in_a_row: bool = False


def settled(
    law: EncodingLaw, encoding: Encoding, under: tuple[str, ...], effort: Effort
) -> Settled:
    """Decide a law under hypotheses: for all positions, or else for consecutive whole ones.

    A witness with consecutive positions is one for all positions.
    """

    def ask(effort: Effort, *, in_a_row: bool = False) -> Settled:
        asked = law.statement(encoding, under, in_a_row=in_a_row)
        assert not isinstance(asked, Answer)
        return Settled(asked, decide(asked, effort=effort), under, in_a_row)

    if not law.places_tokens(type(encoding)):
        return ask(effort)
    proving = replace(effort, refuting=False, shrinking=0)
    anywhere = ask(proving)
    if anywhere.found.verdict == "proved":
        return anywhere
    row = ask(effort, in_a_row=True)
    if row.found.verdict == "refuted" or not effort.refuting:
        return row
    anywhere = ask(effort)
    return anywhere if anywhere.found.verdict == "refuted" else row


def idle(kind: type[Encoding], group: str) -> str:
    """Return why the laws of a group say nothing about an encoding that acts elsewhere, or "".

    An encoding that acts nowhere is asked: these laws find that it does nothing.
    """
    elsewhere = bool(kind.acts())
    if group == ENCODED and elsewhere and not kind.acts(*ON_TOKENS):
        return NOT_ENCODED
    if group == SCORED and elsewhere and not kind.acts(*ON_SCORES):
        return NOT_SCORED
    return ""


OPPOSITE = {"proved": "refuted", "refuted": "proved"}


def _cell(
    kind: type[Encoding],
    law: EncodingLaw,
    told: Settled,
    *,
    without: Settled | None = None,
    tried: tuple[tuple[str, ...], ...] | None = None,
) -> CellRecord:
    """Return the cell of what was settled.

    ``tried``: the hypotheses that values obey, if none of them decides; else None.
    """
    found = told.found
    evidence = translation.evidence(found)
    needed = None if without is None else _refutation(translation.evidence(without.found))
    seen = needed or _refutation(evidence)
    words = kind.hypotheses()
    under = tuple(words[name] for name in told.under)
    obeyed = found.verdict == "refuted"
    open_ = UNKNOWN if found.verdict == "proved" else NEITHER
    return _made(
        kind,
        law,
        OPPOSITE.get(found.verdict, found.verdict) if law.some else found.verdict,
        _why(law, found.verdict, evidence)
        + open_ * (bool(under) and needed is None and not obeyed)
        + ("" if tried is None else _untried(kind, law, tried)),
        under=() if obeyed else under,
        obeyed=under if obeyed else (),
        places=IN_A_ROW if found.verdict == "proved" and told.in_a_row else "",
        assumed=translation.hypotheses(told.asked),
        needed=needed,
        statement=translation.statement(told.asked),
        chain=translation.chain(found, kernel=KERNEL),
        evidence=evidence,
        witness=seen.witness.text if seen is not None else "",
    )


def _untried(kind: type[Encoding], law: EncodingLaw, tried: tuple[tuple[str, ...], ...]) -> str:
    """Return, in words, the hypotheses on what the law is about that were not tried."""
    words = kind.hypotheses()
    return "".join(
        f"; not tried, as no values are known that satisfy it: {words[name]}"
        for name in words
        if set(letters(kind(), name)) <= set(law.letters)
        and not any(name in under for under in tried)
    )


def _refutation(evidence: tuple[Evidence, ...]) -> RefutedEvidence | None:
    return next((part for part in evidence if isinstance(part, RefutedEvidence)), None)


def _why(law: EncodingLaw, verdict: str, evidence: tuple[Evidence, ...]) -> str:
    """Return how it is known, in one line."""
    if verdict == "proved":
        steps = sum(part.steps for part in evidence if isinstance(part, ProvedEvidence))
        told = f"for all sizes, {steps} kernel steps" if steps else SAME
        return f"its negation is proved: {told}" if law.some else told
    if verdict == "refuted":
        part = _refutation(evidence)
        assert part is not None
        return f"{part.says}: {part.witness.text}" if part.says else part.witness.text
    kinds = UndecidedEvidence | InternalErrorEvidence
    open_ = next(part for part in evidence if isinstance(part, kinds))
    return f"{open_.says}: {open_.why}" if open_.says else open_.why


def _answered(kind: type[Encoding], law: EncodingLaw, answer: Answer, seconds: float) -> CellRecord:
    part: Evidence
    if answer.verdict == "proved":
        part = ProvedEvidence(
            says=answer.certified_by,
            steps=sum(answer.rules.values()),
            rules=dict(answer.rules),
            assumptions=(),
            readings=answer.readings,
            seconds=seconds,
        )
    elif answer.verdict == "refuted":
        witness = WitnessRecord(
            sizes={},
            values={},
            text=answer.how,
            place=(),
            left="",
            right="",
            gap="0",
            certified_by=answer.certified_by,
        )
        part = RefutedEvidence(says="", witness=witness, seconds=seconds)
    else:
        part = UndecidedEvidence(says="", why=answer.how, seconds=seconds)
    return _made(
        kind,
        law,
        answer.verdict,
        answer.how,
        statement=Formula(latex="", text=answer.claimed),
        evidence=(part,),
        witness=answer.how if answer.verdict == "refuted" else "",
        under=answer.under,
        obeyed=answer.obeyed,
    )


DTYPES = ("float64", "float32", "bfloat16")
SHOWN = "its witness has a certified gap, which says more than a random draw"
FORM = "it is decided by the form of what the encoding computes, not by an equation to measure"
SOME = "it claims a difference for some inputs, which no random draw refutes"
UNDEFINED = (
    "the exact value is not a number either: every key of a row is hidden, or it is too large "
    "for float64 even at small positions"
)


def measured(
    kind: type[Encoding], law: EncodingLaw, cell: CellRecord, *, seed: int = 0
) -> CellRecord:
    """Return the cell with measurements at small sizes; needs torch.

    A method that has nothing to say gives the reason: the witness of a refuted cell, whose gap is
    certified, says more than a random draw, and what is shown by its form is not an equation to
    compute.
    """
    if cell.verdict == "does not apply" or cell.error:
        return cell
    if cell.verdict != ("refuted" if law.some else "proved") and cell.verdict != "undecided":
        return _without(cell, SHOWN)
    under = [name for name, says in kind.hypotheses().items() if says in cell.under]
    asked = law.statement(kind(), under, in_a_row=bool(cell.places))
    if isinstance(asked, Answer):
        return _without(cell, FORM)
    if law.some and cell.verdict == "undecided":
        return _without(cell, SOME)
    from ..numeric.check import ReadingError, measure

    told = ""
    try:
        numbers = measure(
            asked, scale="small", device="cpu", dtypes=DTYPES, seed=seed, limit_seconds=LIMIT
        )
    except ReadingError as error:
        numbers, told = error.measurements, str(error)
    found = tuple(map(_defined, numbers))
    judged = cell.model_copy(update=_judged(cell, found, told, _exact(asked, seed)))
    if judged.verdict == "measured" and any(g.kind == "position" for g in asked.givens.values()):
        return judged.model_copy(update={"places": DRAWN})
    return judged


def _exact(asked: Statement, seed: int) -> tuple[ExactEvidence, ...]:
    """Return what finite fields say about it, at small sizes."""
    from ..numeric.residues.exact import exact

    return tuple(exact(asked, scale="small", seed=seed))


def _defined(part: MeasuredEvidence) -> MeasuredEvidence:
    """Return a measurement; skipped if the definition itself gave no finite number."""
    if part.status != "non-finite" or "float64 reference" not in part.reason:
        return part
    reason = f"{UNDEFINED} (entry {', '.join(map(str, part.worst))})"
    return replace(part, status="skipped", reason=reason)


def _without(cell: CellRecord, reason: str) -> CellRecord:
    """Return the cell with a skipped measurement of both kinds, which give this reason."""
    measured_ = MeasuredEvidence.of_nothing(
        reason, implementation="no implementation", dtype="float64"
    )
    exact_ = ExactEvidence.of_nothing(reason)
    return cell.model_copy(update={"evidence": (*cell.evidence, measured_, exact_)})


def _judged(
    cell: CellRecord,
    found: tuple[MeasuredEvidence, ...],
    failed: str,
    exact: tuple[ExactEvidence, ...] = (),
) -> dict[str, object]:
    """Return what measurements change in a cell; they never raise a verdict to proved."""
    evidence = (*cell.evidence, *found, *exact)
    held = [part for part in found if part.status == "held"]
    against = [part for part in found if part.status == "violated"]
    beyond = [part for part in found if part.status == "non-finite"]
    said = f"; a measurement contradicts it ({against[0].dtype})" if against else ""
    said += f"; a measurement overflowed ({beyond[0].dtype})" if beyond else ""
    wrong = any(part.status == "violated" for part in exact)
    said += "; it fails in a finite field" if wrong else ""
    said += f"; measuring failed: {failed}" if failed else ""
    if cell.verdict == "undecided" and held and not said:
        dtypes = ", ".join(dict.fromkeys(part.dtype for part in held))
        most = max((n for part in held for n in part.sizes.values()), default=1)
        where = f"at random inputs of sizes up to {most}"
        why = f"held within the rounding bound in {dtypes}, {where}; not proved: {cell.why}"
        return {"verdict": "measured", "why": why, "evidence": evidence}
    return {"why": cell.why + said, "evidence": evidence}
