"""Claims of the documents: the verdict on each, derived from the results of its statements.

Nothing is rounded up:

=================================  ===============================================================
verdict                            when
=================================  ===============================================================
not checkable, undecided           the ledger gives the reason
true as written                    every printed statement and every other one named is proved,
                                   every demonstration is reproduced, and nothing disproves it
false as written                   a printed statement is refuted or ill-typed, or every disproof
                                   is proved, or a demonstration differs; and what is right, if
                                   the ledger says it, is proved
true under a stated correction     the same, if the correction changes a hypothesis, a type, a
                                   convention or the wording and is proved; or what is printed is
                                   not a statement by itself, and what is meant is proved
undecided                          anything else
=================================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING

from ..documents.evidence import Evidence, Verdict, limits
from ..documents.verdict_line import clauses
from ..numeric.results import ExactEvidence, MeasuredEvidence
from .judgement import against
from .ledger import ClaimEntry, ClaimVerdict, Ledger, Reference, nearest
from .records import (
    BrokenFile,
    ClaimRecord,
    ControlRecord,
    DecidingRecord,
    DemonstrationRecord,
    Outcome,
    TheoremRecord,
)

if TYPE_CHECKING:
    from ..symbolic.statement import Theorem


@dataclass(frozen=True)
class Findings:
    """The results of the named statements and demonstrations, by their names in the ledger."""

    statements: Mapping[str, Verdict]
    demonstrations: Mapping[str, Outcome]


def derive(entry: ClaimEntry, findings: Findings) -> ClaimVerdict:
    """Return the verdict on a claim; see the table above.

    >>> entry = ClaimEntry("003", "G2.1", "Lemma 2.1", "document", "theorem", "..",
    ...     expected="true as written", printed=("a-theorem",))
    >>> derive(entry, Findings({"a-theorem": "proved"}, {}))
    'true as written'
    >>> derive(entry, Findings({"a-theorem": "undecided"}, {}))
    'undecided'
    """
    if entry.not_checkable:
        return "not checkable"
    if entry.undecided:
        return "undecided"
    outcomes = [findings.demonstrations[name] for name in entry.demonstrations]
    printed = [findings.statements[text] for text in entry.printed]
    disproved = _proved(entry.disproof, findings)
    right = _proved(entry.corrected, findings)
    if "failed" in outcomes or not disproved or not right:
        return "undecided"
    differs = "differs" in outcomes
    if entry.unstated:
        stands = (entry.corrected or outcomes) and not differs
        return "true under a stated correction" if stands else "undecided"
    if differs or entry.disproof or "refuted" in printed or "ill-typed" in printed:
        if not entry.mends:
            return "false as written"
        return "true under a stated correction" if entry.corrected else "undecided"
    decided = bool(printed or outcomes) and set(printed) <= {"proved"}
    return "true as written" if decided else "undecided"


def _proved(names: Sequence[str], findings: Findings) -> bool:
    return all(findings.statements[name] == "proved" for name in names)


NEEDED: dict[str, tuple[str, ...]] = {
    "printed": ("proved", "refuted", "ill-typed"),
    "disproof": ("proved",),
    "corrected": ("proved",),
}


def decide_claims(
    entries: Sequence[ClaimEntry],
    theorems: Sequence[TheoremRecord],
    demonstrations: Sequence[DemonstrationRecord],
    absent: Mapping[str, str],
) -> tuple[ClaimRecord, ...]:
    """Return the record of each claim; ``absent`` says why a theorem has none."""
    known = {record.id: record for record in theorems}
    shown = {record.id: record for record in demonstrations}
    return tuple(_claim(entry, known, shown, absent) for entry in entries)


def with_known_conclusions(
    ledger: Ledger, known: Mapping[str, Theorem]
) -> tuple[Ledger, list[BrokenFile]]:
    """Return the ledger without claims that name an unknown conclusion, and their mistakes."""
    claims: list[ClaimEntry] = []
    broken: list[BrokenFile] = []
    for claim in ledger.claims:
        faults = [
            BrokenFile(file=f"claims/{claim.document}.toml", error=f"{claim.id}: {role}: {fault}")
            for role, text in claim.references
            if (reference := Reference.of(text)).theorem in known
            and (fault := _no_such_conclusion(reference, known[reference.theorem]))
        ]
        broken += faults
        claims += [] if faults else [claim]
    return replace(ledger, claims=tuple(claims)), broken


def _no_such_conclusion(reference: Reference, theorem: Theorem) -> str:
    if not reference.conclusion:
        return ""
    if theorem.expected == "ill-typed" and not reference.control:
        return f"{reference.theorem} is ill-typed and has no conclusions; name it as a whole"
    statement = theorem.control if reference.control else theorem.statement
    if reference.conclusion in statement.claims:
        return ""
    names = [name for name in statement.claims if name]
    told = nearest(reference.conclusion, names) if names else "it has one, without a name"
    return (
        f"wanted a conclusion of {reference.theorem}"
        f"{' (its negative control)' * reference.control}, "
        f"got {reference.conclusion!r}; {told}"
    )


def _claim(
    entry: ClaimEntry,
    known: Mapping[str, TheoremRecord],
    shown: Mapping[str, DemonstrationRecord],
    absent: Mapping[str, str],
) -> ClaimRecord:
    statements = tuple(_deciding(role, text, known, absent) for role, text in entry.references)
    examples = {name: shown.get(name) for name in entry.demonstrations}
    verdict = derive(
        entry,
        Findings(
            {name_of(record): record.verdict for record in statements},
            {name: found.outcome if found else "failed" for name, found in examples.items()},
        ),
    )
    expected = entry.expected
    why = [] if verdict == expected else [f"expected {expected}, is {verdict}"]
    if verdict == "undecided" and not entry.undecided:
        why += _in_the_way(statements, examples)
    for text in dict.fromkeys(text for _, text in entry.references):
        reference = Reference.of(text)
        if reference.theorem in known:
            why += [f"{text}: {line}" for line in _doubts(reference, known[reference.theorem])]
    why += [f"{name}: {line}" for name, found in examples.items() if found for line in found.why]
    reason = entry.not_checkable or entry.undecided
    return ClaimRecord.of(
        entry,
        verdict=verdict,
        ok=not why,
        why=tuple(dict.fromkeys(why)),
        evidence=reason or _evidence(entry, statements, examples, _measured(entry, known)),
        statements=statements,
        reason=reason,
    )


def _deciding(
    role: str, text: str, known: Mapping[str, TheoremRecord], absent: Mapping[str, str]
) -> DecidingRecord:
    """Return the result of a statement; one without a record is undecided."""
    reference = Reference.of(text)
    record = known.get(reference.theorem)
    under: list[str] = []
    if record is None:
        verdict: Verdict = "undecided"
        told = absent.get(reference.theorem, "the run did not reach it")
    else:
        side, _, verdict, evidence = _meant(reference, record)
        told = _known(verdict, evidence)
        under = clauses(limits(evidence, side.assumed)) if verdict == "proved" else []
    return DecidingRecord.of(
        reference,
        id=reference.theorem,
        role=role,
        verdict=verdict,
        known=told,
        conditions=tuple(under),
    )


Side = TheoremRecord | ControlRecord


def _meant(
    reference: Reference, record: TheoremRecord
) -> tuple[Side, Side, Verdict, list[Evidence]]:
    """Return the side of a record that is meant, the other, and the verdict and its evidence.

    These are of the conclusion that is named, or of the whole.
    """
    sides: tuple[Side, Side] = (record, record.control)
    side, other = reversed(sides) if reference.control else sides
    wanted = reference.conclusion
    evidence = [e for e in side.evidence if e.says == wanted or not wanted or e.kind == "misread"]
    return side, other, _verdict(evidence) if wanted else side.verdict, evidence


def _verdict(evidence: Sequence[Evidence]) -> Verdict:
    kinds = {e.kind for e in evidence}
    if "misread" in kinds:
        return "misread"
    return "refuted" if "refuted" in kinds else "proved" if "proved" in kinds else "undecided"


def _known(verdict: Verdict, evidence: Sequence[Evidence]) -> str:
    """Return how a verdict is known, in one line."""
    if verdict == "proved":
        steps = sum(e.steps for e in evidence if e.kind == "proved")
        return f"{steps} kernel step{'s' * (steps != 1)}"
    told = {
        "refuted": [e.witness.text for e in evidence if e.kind == "refuted"],
        "ill-typed": [e.error for e in evidence if e.kind == "ill-typed"],
        "misread": [e.text for e in evidence if e.kind == "misread"],
        "undecided": [e.why for e in evidence if e.kind == "undecided" and e.why],
        "internal error": [e.why for e in evidence if e.kind == "internal error"],
    }
    return shorten("; ".join(told[verdict]), 300, placeholder=" …")


def _doubts(reference: Reference, record: TheoremRecord) -> Iterator[str]:
    """Yield what speaks against relying on a statement: its measurements, and its other side."""
    _, other, verdict, evidence = _meant(reference, record)
    measured = [e for e in evidence if isinstance(e, MeasuredEvidence | ExactEvidence)]
    if verdict in ("proved", "refuted"):
        yield from against(verdict, verdict, measured)
    if other.verdict != other.expected:
        name = "the theorem" if reference.control else "its negative control"
        yield f"{name}: expected {other.expected}, is {other.verdict}"


def _in_the_way(
    statements: Sequence[DecidingRecord], examples: Mapping[str, DemonstrationRecord | None]
) -> Iterator[str]:
    """Yield the named statements and demonstrations that keep a claim undecided."""
    for record in statements:
        if record.verdict not in NEEDED[record.role]:
            yield f"{name_of(record)} ({record.role}) is {record.verdict}: {record.known}"
    for name, found in examples.items():
        if found is None:
            yield f"{name}: the run did not reach it"


def _measured(entry: ClaimEntry, known: Mapping[str, TheoremRecord]) -> str:
    """Return how many measurements of its statements fit the verdicts; empty if there are none."""
    wanted = {"proved": ("held",), "refuted": ("violated", "non-finite")}
    found: list[bool] = []
    for text in dict.fromkeys(text for _, text in entry.references):
        reference = Reference.of(text)
        if reference.theorem in known:
            _, _, verdict, evidence = _meant(reference, known[reference.theorem])
            found += [
                e.status in wanted.get(verdict, ())
                for e in evidence
                if isinstance(e, MeasuredEvidence) and e.status != "skipped"
            ]
    return f"{sum(found)} of {len(found)} as required" if found else ""


def name_of(record: DecidingRecord) -> str:
    """Return the statement as the ledger names it."""
    parts = (record.id, "control" * record.control, record.conclusion)
    return "#".join(part for part in parts if part)


def _evidence(
    entry: ClaimEntry,
    statements: Sequence[DecidingRecord],
    examples: Mapping[str, DemonstrationRecord | None],
    measured: str,
) -> str:
    """Return how the verdict is known, in one line."""
    parts: dict[str, list[str]] = {}
    for record in statements:
        words = {"printed": "", "disproof": "disproof ", "corrected": "correction "}[record.role]
        under = "".join(f", {clause}" for clause in record.conditions)
        parts.setdefault(f"{words}{record.verdict}", []).append(f"{name_of(record)}{under}")
    for name, found in examples.items():
        parts.setdefault(found.outcome if found else "undecided", []).append(name)
    told = [f"not a statement by itself: {entry.unstated}"] * bool(entry.unstated)
    told += [f"{words}: {', '.join(names)}" for words, names in parts.items()]
    return "; ".join(told + [f"numbers: {measured}"] * bool(measured))
