"""What all legs together say of a law; never more than the best of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..programs.finding import NOT_MEASURED, UNLIKE
from ..verdict_line import Condition, clauses, verdict_line
from .records import RAISED, ConditionRecord, FindingRecord, LawOfCodeRecord, LawVerdict

if TYPE_CHECKING:
    from ..theorems.laws import Law as CodeLaw

BEST = ("traced", "exact", "measured")
VERDICTS: dict[str, LawVerdict] = {"traced": "proved", "exact": "exact", "measured": "measured"}
NOBODY = "nothing here looks at it"
BREAKS = "breaks in floating point"
ELSEWHERE = "and not where it was run in {} (rounding, or a call that no proof is of)"
FORMATS = ("float64", "float32", "float16", "bfloat16")  # the finer first
SHOWN = "broken in exact arithmetic and in floating point, at other inputs than were measured"


def combined(
    law: CodeLaw, findings: Sequence[FindingRecord], again: str, *, named: bool = False
) -> LawOfCodeRecord:
    """The verdict of a law: broken in any leg, else the best way in which it holds, else open.

    A law that correct code may break, and that was not ``named``, is asked only where the leg that
    reads declarations says that it applies: what another leg finds of it is kept, and no fault.
    """
    verdict, why, shown = _judged(findings)
    if not (law.always or named) and verdict in ("broken", "undecided") and not _applies(findings):
        verdict, why, shown = "not asked", _unasked(law, findings), None
    return LawOfCodeRecord(
        law=law.id, says=law.says, group=law.group, always=law.always, verdict=verdict, why=why,
        error=shown.error if shown else None, bound=shown.bound if shown else None,
        assuming=_guards(findings) if verdict == "proved" else (),
        findings=tuple(findings), again=again,
    )  # fmt: skip


def _judged(findings: Sequence[FindingRecord]) -> tuple[LawVerdict, str, FindingRecord | None]:
    """Verdict, reason, and the finding whose numbers are shown."""
    broken = [one for one in findings if one.verdict == "broken"]
    holding = [one for one in findings if one.verdict == "holds"]
    doubtful = [one for one in findings if one.verdict == "undecided"]
    stopped = [one for one in findings if one.verdict == "internal error"]
    lost = next((one for one in doubtful if one.why.startswith(NOT_MEASURED)), None)
    if broken:
        return "broken", _breaks(broken[0], holding), broken[0]
    if lost is not None:  # what is shown in exact arithmetic is not what the code gives
        return "undecided", _not_measured(lost, holding), None
    for leg in BEST:
        good = [one for one in holding if one.leg == leg]
        if good:
            measured = [one for one in holding if one.leg == "measured"]
            return VERDICTS[leg], _holds(good, doubtful), _worst(measured or good)
    if stopped:
        return "internal error", _told(stopped[0]), stopped[0]
    if doubtful:
        return "undecided", _told(doubtful[0]), _worst(doubtful)
    ran = (one.why for one in findings if one.leg == "measured")  # other legs ask less
    return "not asked", next(ran, NOBODY), None


def _not_measured(lost: FindingRecord, holding: Sequence[FindingRecord]) -> str:
    """That NaN came back, and what other legs, which see none, say of the law."""
    known = next((VERDICTS[leg] for leg in ("traced", "exact")
                  if any(one.leg == leg for one in holding)), "")  # fmt: skip
    return lost.why + (f"; {known} in exact arithmetic" if known == "proved" else "")


def _applies(findings: Sequence[FindingRecord]) -> bool:
    """Whether a run of the code was judged by the law, or failed on its own."""
    ran = [one for one in findings if one.leg == "measured"]
    return any(one.verdict in ("holds", "broken") or one.why.startswith(RAISED) for one in ran)


def _unasked(law: CodeLaw, findings: Sequence[FindingRecord]) -> str:
    ran = [one.why for one in findings if one.leg == "measured"]
    why = ran[0] if ran else "nothing says that it should hold"
    broken = any(one.verdict == "broken" for one in findings)
    return f"it does not hold, which is no fault ({why}); --law {law.id} asks it" if broken else why


def _breaks(one: FindingRecord, holding: Sequence[FindingRecord]) -> str:
    """Why it is broken, and what other legs say to that."""
    exactly = [other for other in holding if other.leg in ("traced", "exact")]
    if UNLIKE in one.why:
        return one.why
    if one.leg == "measured" and exactly:
        told = ", ".join(("", *clauses(map(_condition, _guards(exactly)))))
        where = told.replace(", ", " ", 1)
        finer = FORMATS[: FORMATS.index(one.dtype)] if one.dtype in FORMATS else ()
        if any(other.leg == "measured" and other.dtype in finer for other in holding):
            return f"holds in exact arithmetic{where}, {BREAKS} ({one.dtype}): {one.why}"
        return f"holds in exact arithmetic{where}, {ELSEWHERE.format(one.dtype)}: {one.why}"
    if one.leg != "measured" and any(other.leg == "measured" for other in holding):
        shown = isinstance(one.error, float) and isinstance(one.bound, float)
        if one.error == "non-finite" or (shown and one.error > one.bound):  # type: ignore[operator]
            return f"{SHOWN}: {one.why}"
        return f"broken in exact arithmetic, hidden by rounding where it was measured: {one.why}"
    return _told(one)


def _holds(good: Sequence[FindingRecord], doubtful: Sequence[FindingRecord]) -> str:
    """How it is known; of a proof the line of its verdict, with every condition."""
    told = _told(good[0])
    if good[0].leg == "traced":
        told = verdict_line("proved", map(_condition, _guards(good)))
    unlike = [other for other in doubtful if UNLIKE in other.why][:1]
    others = [other for other in doubtful if other.leg != "traced"][:1]
    return told + "".join(f"; undecided {_in(other)}: {other.why}" for other in others) + "".join(
        f"; not proved: {other.why}" for other in unlike)  # fmt: skip


def _told(one: FindingRecord) -> str:
    return one.why or f"{one.verdict} {_in(one)}"


def _in(one: FindingRecord) -> str:
    return {"traced": "in the proof", "exact": "in finite fields"}.get(one.leg, f"in {one.dtype}")


def _condition(one: ConditionRecord) -> Condition:
    return Condition(one.text, one.kind)


def _guards(findings: Sequence[FindingRecord]) -> tuple[ConditionRecord, ...]:
    proofs = (one for one in findings if one.leg == "traced" and one.verdict == "holds")
    return tuple(dict.fromkeys(guard for one in proofs for guard in one.assuming))


def _worst(findings: Sequence[FindingRecord]) -> FindingRecord:
    """The finding that uses up most of its bound."""

    def used(one: FindingRecord) -> float:
        if not isinstance(one.error, float) or not isinstance(one.bound, float):
            return -1.0 if one.error is None else float("inf")
        return one.error / one.bound if one.bound else float(one.error > 0)

    return max(findings, key=used)
