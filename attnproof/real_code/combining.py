"""What all legs together say of a law; never more than the best of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .records import RAISED, FindingRecord, LawOfCodeRecord, LawVerdict

if TYPE_CHECKING:
    from ..numeric.programs.laws import CodeLaw

__all__ = ["combined"]

BEST = ("traced", "exact", "measured")
VERDICTS: dict[str, LawVerdict] = {"traced": "proved", "exact": "exact", "measured": "measured"}
NOBODY = "nothing here looks at it"
BREAKS = "breaks in floating point"
UNLIKE = "and not where it was run in {} (rounding, or a call that no proof is of)"
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
    if broken:
        return "broken", _breaks(broken[0], holding), broken[0]
    for leg in BEST:
        good = [one for one in holding if one.leg == leg]
        if good:
            measured = [one for one in holding if one.leg == "measured"]
            return VERDICTS[leg], _holds(good[0], doubtful), _worst(measured or good)
    if doubtful:
        return "undecided", _told(doubtful[0]), _worst(doubtful)
    ran = (one.why for one in findings if one.leg == "measured")  # other legs ask less
    return "not asked", next(ran, NOBODY), None


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
    if one.leg == "measured" and exactly:
        guards = "; ".join(_guards(exactly))
        where = f" where {guards}" if guards else ""
        finer = FORMATS[: FORMATS.index(one.dtype)] if one.dtype in FORMATS else ()
        if any(other.leg == "measured" and other.dtype in finer for other in holding):
            return f"holds in exact arithmetic{where}, {BREAKS} ({one.dtype}): {one.why}"
        return f"holds in exact arithmetic{where}, {UNLIKE.format(one.dtype)}: {one.why}"
    if one.leg != "measured" and any(other.leg == "measured" for other in holding):
        shown = isinstance(one.error, float) and isinstance(one.bound, float)
        if one.error == "non-finite" or (shown and one.error > one.bound):  # type: ignore[operator]
            return f"{SHOWN}: {one.why}"
        return f"broken in exact arithmetic, hidden by rounding where it was measured: {one.why}"
    return _told(one)


def _holds(one: FindingRecord, doubtful: Sequence[FindingRecord]) -> str:
    told = _told(one)
    others = [other for other in doubtful if other.leg != "traced"][:1]
    return told + "".join(f"; undecided {_in(other)}: {other.why}" for other in others)


def _told(one: FindingRecord) -> str:
    return one.why or f"{one.verdict} {_in(one)}"


def _in(one: FindingRecord) -> str:
    return {"traced": "in the proof", "exact": "in finite fields"}.get(one.leg, f"in {one.dtype}")


def _guards(findings: Sequence[FindingRecord]) -> tuple[str, ...]:
    proofs = (one for one in findings if one.leg == "traced" and one.verdict == "holds")
    return tuple(dict.fromkeys(guard for one in proofs for guard in one.assuming))


def _worst(findings: Sequence[FindingRecord]) -> FindingRecord:
    """The finding that uses up most of its bound."""

    def used(one: FindingRecord) -> float:
        if not isinstance(one.error, float) or not isinstance(one.bound, float):
            return -1.0 if one.error is None else float("inf")
        return one.error / one.bound if one.bound else float(one.error > 0)

    return max(findings, key=used)
