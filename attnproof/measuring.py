"""Numbers for cells: what torch measures of a law's statement, beside its verdict.

A cell that is proved or refuted keeps its verdict; one that is undecided and holds wherever it
was measured becomes *measured*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .card_records import CellRecord
from .encoding import Encoding
from .encoding_law import Answer, EncodingLaw
from .evidence import ExactEvidence, MeasuredEvidence

if TYPE_CHECKING:
    from .symbolic.statement import Statement

DTYPES = ("float64", "float32", "bfloat16")
LIMIT = 20.0  # seconds
WITNESS = "its witness, whose gap is certified, says more than a draw"
FORM = "it is decided by the form of what the encoding makes, which is no equation to compute"
SOME = "it claims a difference for some inputs, which no draw refutes"
UNDEFINED = (
    "the exact value is no number there either: every key of a row is hidden, or it is too large "
    "for float64 even at small positions"
)


def measured(
    kind: type[Encoding], law: EncodingLaw, cell: CellRecord, *, seed: int = 0
) -> CellRecord:
    """The cell with measurements at small sizes; needs torch.

    Where a leg has nothing to say, it says why: the witness of a refuted cell, whose gap is
    certified, says more than a draw, and what is shown by its form is no equation to compute.
    """
    if cell.verdict == "does not apply" or cell.error:
        return cell
    if cell.verdict != ("refuted" if law.some else "proved") and cell.verdict != "undecided":
        return _without(cell, WITNESS)
    under = [name for name, says in kind.hypotheses().items() if says in cell.under]
    asked = law.statement(kind(), under, in_a_row=bool(cell.places))
    if isinstance(asked, Answer):
        return _without(cell, FORM)
    if law.some and cell.verdict == "undecided":
        return _without(cell, SOME)
    from . import translate
    from .numeric.check import ReadingError, measure

    told = ""
    try:
        numbers = measure(
            asked, scale="small", device="cpu", dtypes=DTYPES, seed=seed, limit_seconds=LIMIT
        )
    except ReadingError as error:
        numbers, told = error.measurements, str(error)
    found = tuple(_defined(part) for part in translate.measured(numbers))
    return cell.model_copy(update=_judged(cell, found, told, _exact(asked, seed)))


def _exact(asked: Statement, seed: int) -> tuple[ExactEvidence, ...]:
    """What finite fields say of it, at small sizes."""
    from . import translate
    from .numeric.residues.exact import exact

    return translate.exact(exact(asked, scale="small", seed=seed))


def _defined(part: MeasuredEvidence) -> MeasuredEvidence:
    """A measurement; one that met no number in the definition itself says nothing."""
    if part.status != "non-finite" or "float64 reference" not in part.reason:
        return part
    return part.model_copy(update={
        "status": "skipped", "error": None, "tolerance": None,
        "reason": f"{UNDEFINED} (entry {', '.join(map(str, part.worst))})",
    })  # fmt: skip


def _without(cell: CellRecord, reason: str) -> CellRecord:
    """The cell with both legs, which say why they have nothing to say."""
    measured_ = MeasuredEvidence(
        says="", implementation="no implementation", device="cpu", dtype="float64", sizes={},
        seed=0, sampled="nothing", error=None, tolerance=None, worst=(), seconds=0.0,
        status="skipped", reason=reason,
    )  # fmt: skip
    exact_ = ExactEvidence(
        says="", primes=(), sizes={}, seed=0, compared=0, undefined=0, status="skipped", error="",
        argument="", reason=reason, seconds=0.0,
    )  # fmt: skip
    return cell.model_copy(update={"evidence": (*cell.evidence, measured_, exact_)})


def _judged(
    cell: CellRecord, found: tuple[MeasuredEvidence, ...], failed: str,
    exact: tuple[ExactEvidence, ...] = (),
) -> dict[str, object]:  # fmt: skip
    """What measurements make of a cell; a number never raises a verdict to proved."""
    evidence = (*cell.evidence, *found, *exact)
    held = [part for part in found if part.status == "held"]
    against = [part for part in found if part.status == "violated"]
    beyond = [part for part in found if part.status == "non-finite"]
    said = f"; a number speaks against it ({against[0].dtype})" if against else ""
    said += f"; a number overflowed ({beyond[0].dtype})" if beyond else ""
    wrong = any(part.status == "violated" for part in exact)
    said += "; a finite field speaks against it" if wrong else ""
    said += f"; measuring failed: {failed}" if failed else ""
    if cell.verdict == "undecided" and held and not said:
        dtypes = ", ".join(dict.fromkeys(part.dtype for part in held))
        why = f"held within the rounding bound in {dtypes}; not proved: {cell.why}"
        return {"verdict": "measured", "why": why, "evidence": evidence}
    return {"why": cell.why + said, "evidence": evidence}
