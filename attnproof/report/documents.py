"""The documents in a report: each claim with what decides it, and the page of each document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..documents.document import counts
from ..documents.evidence import Evidence, IllTypedEvidence, RefutedEvidence
from ..symbolic.latex import RELATIONS
from ..theorem_runs.ledger import VERDICTS, Document
from ..theorem_runs.records import (
    ClaimRecord,
    ControlRecord,
    DecidingRecord,
    DemonstrationRecord,
    Results,
    TheoremRecord,
)
from .view import statuses

ERRATA = ("false as written", "true under a stated correction")

KINDS = {"numeric-demo": "numerical demonstration", "heuristic": "rule of thumb"}
ORIGINS = {
    "document": "",
    "extension": "not in the document; added here",
    "cross": "comparison with another document",
}
MENDS = {
    "": "",
    "hypothesis": "The correction adds or changes a hypothesis.",
    "type": "The correction changes what something is: a shape, a set.",
    "convention": "The correction fixes a convention.",
    "wording": "The correction changes the wording.",
}


@dataclass(frozen=True)
class Deciding:
    """A statement that decides a claim, with its theorem, if the run reached that."""

    record: DecidingRecord
    theorem: TheoremRecord | None

    @property
    def side(self) -> TheoremRecord | ControlRecord | None:
        """The theorem, or its negative control if that is meant."""
        return self.theorem.control if self.theorem and self.record.control else self.theorem

    @property
    def evidence(self) -> list[Evidence]:
        """The evidence for the conclusion that is meant."""
        wanted = self.record.conclusion
        found = self.side.evidence if self.side else ()
        return [e for e in found if not wanted or e.says == wanted]

    @property
    def latex(self) -> str:
        """The conclusion that is meant, or the whole statement; empty if it is not known."""
        if self.side is None:
            return ""
        links = [link for link in self.side.chain if link.says == self.record.conclusion]
        if not self.record.conclusion or not links or any(link.opens for link in links):
            return self.side.statement.latex
        relation = RELATIONS[links[-1].relation]
        return f"{links[0].left.latex} {relation} {links[-1].right.latex}"

    @property
    def steps(self) -> int:
        """The kernel steps of its proof."""
        return sum(e.steps for e in self.evidence if e.kind == "proved")

    @property
    def witnesses(self) -> list[RefutedEvidence]:
        """Where it fails, if it does."""
        return [e for e in self.evidence if isinstance(e, RefutedEvidence)]

    @property
    def errors(self) -> list[IllTypedEvidence]:
        """Where its shapes do not fit, if they do not."""
        return [e for e in self.evidence if isinstance(e, IllTypedEvidence)]

    @property
    def measured(self) -> str:
        """The outcome of the statement's measurements: 12 held."""
        return statuses(self.side) if self.side else ""


@dataclass(frozen=True)
class Group:
    """Conclusions of one theorem that have the same role and the same verdict."""

    parts: tuple[Deciding, ...]

    @property
    def first(self) -> Deciding:
        """Any of them, for what they share."""
        return self.parts[0]

    @property
    def conclusions(self) -> list[str]:
        """Their names."""
        return [d.record.conclusion for d in self.parts if d.record.conclusion]

    @property
    def steps(self) -> int:
        """The kernel steps of their proofs."""
        return sum(d.steps for d in self.parts)


@dataclass(frozen=True)
class Entry:
    """A claim, with the statements and demonstrations that decide it."""

    claim: ClaimRecord
    deciding: tuple[Deciding, ...]
    demonstrations: tuple[DemonstrationRecord, ...]

    @property
    def groups(self) -> list[Group]:
        """The statements; those of one theorem that read the same are grouped."""
        found = groupby(self.deciding, key=_alike)
        return [Group(tuple(parts)) for _, parts in found]

    def role(self, role: str) -> list[Group]:
        """Return the statements with this role: printed, disproof, corrected."""
        return [group for group in self.groups if group.first.record.role == role]

    def _printed(self) -> list[Deciding]:
        return [d for d in self.deciding if d.record.role == "printed"]

    @property
    def counterexamples(self) -> list[Deciding]:
        """The printed statements that fail at certain inputs."""
        return [d for d in self._printed() if d.witnesses]

    @property
    def ill_typed(self) -> list[Deciding]:
        """The printed statements that have no meaning, as their shapes do not fit."""
        return [d for d in self._printed() if d.errors]

    @property
    def differing(self) -> list[DemonstrationRecord]:
        """The demonstrations in which our numbers differ from the printed ones."""
        return [d for d in self.demonstrations if d.outcome == "differs"]

    @property
    def kind(self) -> str:
        """The kind of claim, and where it comes from."""
        kind = KINDS.get(self.claim.kind, self.claim.kind)
        origin = ORIGINS[self.claim.origin]
        return f"{kind}; {origin}" if origin else kind


def _alike(d: Deciding) -> tuple[object, ...]:
    """Return what grouped statements have in common; those without a proof stand alone."""
    told = "" if d.record.verdict == "proved" else d.record.conclusion
    return d.record.role, d.record.id, d.record.control, d.record.verdict, told


@dataclass(frozen=True)
class Page:
    """A document with its claims, in order."""

    document: Document
    entries: tuple[Entry, ...]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many claims have each verdict."""
        return ledger([self])

    @property
    def errata(self) -> list[Entry]:
        """The claims that are not true as written."""
        return [entry for entry in self.entries if entry.claim.verdict in ERRATA]

    @property
    def not_decided(self) -> list[Entry]:
        """The claims without a decision."""
        return [e for e in self.entries if e.claim.verdict not in (*ERRATA, VERDICTS[0])]

    @property
    def unexpected(self) -> list[Entry]:
        """The claims that something speaks against."""
        return [entry for entry in self.entries if not entry.claim.ok]

    @cached_property
    def homes(self) -> dict[str, str]:
        """For each demonstration, the first claim that it is shown with."""
        found: dict[str, str] = {}
        for entry in self.entries:
            for shown in entry.demonstrations:
                found.setdefault(shown.id, entry.claim.id)
        return found


def document_pages(results: Results) -> Iterator[Page]:
    """Yield a page for each document that has claims in the run."""
    theorems = {theorem.id: theorem for theorem in results.theorems}
    shown = {demonstration.id: demonstration for demonstration in results.demonstrations}
    for document in results.documents:
        claims = [claim for claim in results.claims if claim.document == document.id]
        if claims:
            yield Page(
                document,
                tuple(
                    Entry(
                        claim,
                        tuple(Deciding(d, theorems.get(d.id)) for d in claim.statements),
                        tuple(shown[name] for name in claim.demonstrations if name in shown),
                    )
                    for claim in claims
                ),
            )


def ledger(found: Sequence[Page]) -> list[tuple[str, int]]:
    """Return how many claims of all documents have each verdict."""
    return counts((entry.claim.verdict for page in found for entry in page.entries), VERDICTS)
