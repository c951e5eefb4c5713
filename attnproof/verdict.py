"""From what was found to the verdict on a claim: one pure function, and nothing is rounded up.

=================================  ===============================================================
verdict                            when
=================================  ===============================================================
not checkable, undecided           the ledger gives the reason
true as written                    every printed statement and every other one named is proved,
                                   every demonstration is reproduced, and nothing disproves it
false as written                   a printed statement is refuted or ill-typed, or every disproof
                                   is proved, or a demonstration differs; and what is right, if
                                   the ledger says it, is proved
true under a stated correction     the same, where the correction mends a hypothesis, a type, a
                                   convention or the wording and is proved; or what is printed is
                                   no statement by itself, and what is meant is proved
undecided                          anything else
=================================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .claim_records import ClaimVerdict, Outcome
from .evidence import Verdict
from .ledger import ClaimEntry


@dataclass(frozen=True)
class Findings:
    """What the named statements and demonstrations turned out to be, by the ledger's names."""

    statements: Mapping[str, Verdict]
    demonstrations: Mapping[str, Outcome]


def derive(entry: ClaimEntry, findings: Findings) -> ClaimVerdict:
    """The verdict on a claim; see the table above.

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
