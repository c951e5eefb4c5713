"""What the pages show of a record: counts, sentences, groups of measurements."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import get_args

from markupsafe import Markup, escape

from ..documents.document import short
from ..documents.evidence import ProvedEvidence, UseRecord, Verdict
from ..documents.verdict_line import clauses
from ..numeric.results import MeasuredEvidence, Number
from ..symbolic.latex import RELATIONS, membership, name_latex, sizes_latex
from ..symbolic.latex.statements import width
from ..theorem_runs.evidence_words import exact_lines
from ..theorem_runs.records import (
    ControlRecord,
    GivenRecord,
    LinkRecord,
    MeetingRecord,
    Results,
    TheoremRecord,
)
from .words import formula_html, greek

Statement = TheoremRecord | ControlRecord

SUBJECTS = {
    "permutation": "Permutations",
    "softmax": "Softmax",
    "rotation": "Rotations",
    "rotary": "Rotary encoding",
    "sinusoidal": "Sinusoids",
    "positions": "Positions",
    "constraint": "Scores that depend on the offset",
    "powers": "Powers of one matrix",
    "bias": "Biases of the scores",
    "masks": "Masks",
    "heads": "Several heads",
    "kernels": "Other score functions",
    "moments": "Expectations and variances",
    "regression": "Attention as a linear model",
    "architectures": "Other architectures",
    "references": "What programs are compared with",
    "conventions": "Conventions of the sources",
}
"""The subjects of the catalogue as headings, in the order in which one would teach them."""

_SAID = re.compile(r" (=|>|>=|is not) | nonzero$")
_WITH = r" \quad \text{with }"


def counts(results: Results) -> dict[str, int]:
    """Return how many theorems there are, by verdict and as expected, and how many measurements."""
    told = Counter(t.verdict for t in results.theorems)
    measurements = sum(
        isinstance(e, MeasuredEvidence) and e.status != "skipped"
        for t in results.theorems
        for s in (t, t.control)
        for e in s.evidence
    )
    return {
        "theorems": len(results.theorems),
        "ok": sum(t.ok for t in results.theorems),
        **{word: told[word] for word in get_args(Verdict)},
        "measured": measurements,
    }


def subjects(results: Results) -> list[tuple[str, list[TheoremRecord]]]:
    """Return the theorems by subject, in the order in which one would teach them.

    Other subjects (those of a user's own folder) come last, as recorded.
    """
    by_subject: dict[str, list[TheoremRecord]] = {}
    for theorem in results.theorems:
        by_subject.setdefault(theorem.subject, []).append(theorem)
    order = {subject: place for place, subject in enumerate(SUBJECTS)}
    return sorted(by_subject.items(), key=lambda pair: order.get(pair[0], len(order)))


def subject_title(subject: str) -> str:
    """Return a subject as a heading.

    >>> subject_title("rotary"), subject_title("my_own")
    ('Rotary encoding', 'My own')
    """
    told = subject.replace("_", " ")
    return SUBJECTS.get(subject, told[:1].upper() + told[1:])


def steps(statement: Statement) -> int:
    """Return the number of kernel steps of its proof."""
    return sum(e.steps for e in statement.evidence if e.kind == "proved")


@dataclass(frozen=True)
class Part:
    """Links that lead on from one term, each from where the previous one ended."""

    opens: str
    first: str
    links: tuple[LinkRecord, ...]

    @property
    def line(self) -> str:
        """One short link on one line; else empty."""
        whole = f"{self.first} {self.right(self.links[0])}"
        shown = re.sub(r"[{}\s^_]", "", re.sub(r"\\[A-Za-z]+|\\,", "x", whole))
        return whole if len(self.links) == 1 and len(shown) < 48 else ""

    @property
    def meeting(self) -> tuple[MeetingRecord, ...]:
        """The common normal form, if it is a single link."""
        return self.links[0].meeting if len(self.links) == 1 else ()

    def wide(self, link: LinkRecord) -> bool:
        """Whether a link needs the whole width of the page, with its reason below."""
        return width(self.line or self.right(link)) > 52

    def right(self, link: LinkRecord) -> str:
        """Return the right side of a link; the definition of a layer is shown when it changes."""
        place = self.links.index(link)
        before = self.links[place - 1].right.latex if place else self.first
        text, mark, told = link.right.latex.partition(_WITH)
        if told != before.partition(_WITH)[2]:
            text += mark + told
        return f"{RELATIONS[link.relation]} {text}"


@dataclass(frozen=True)
class Derivation:
    """The proof of one conclusion: what it rests on, and its parts."""

    says: str
    uses: tuple[UseRecord, ...]
    parts: tuple[Part, ...]


def derivations(statement: Statement) -> list[Derivation]:
    """Return the chain, split where a conclusion ends and where a part of a proof begins."""
    uses = {e.says: e.uses for e in statement.evidence if isinstance(e, ProvedEvidence)}
    found: list[Derivation] = []
    for says, links in groupby(statement.chain, key=lambda link: link.says):
        parts: list[list[LinkRecord]] = []
        for link in links:
            if not parts or link.opens or link.left.text != parts[-1][-1].right.text:
                parts.append([])
            parts[-1].append(link)
        told = tuple(Part(held[0].opens, held[0].left.latex, tuple(held)) for held in parts)
        found.append(Derivation(says, uses.get(says, ()), told))
    return found


@dataclass(frozen=True)
class Reason:
    """Why one link of a chain holds, without its formulas."""

    says: str
    opens: str
    text: str
    steps: int


def reasons(statement: Statement) -> list[Reason]:
    """Return the chain in words only."""
    found, says = [], None
    for link in statement.chain:
        told = link.reason or (
            "both sides have the same normal form" if link.proved else "not proved"
        )
        found.append(Reason(link.says if link.says != says else "", link.opens, told, link.steps))
        says = link.says
    return found


@dataclass(frozen=True)
class Measured:
    """Measurements that share their conclusion, device, sizes, seed and sample."""

    says: str
    conditions: Markup
    rows: tuple[MeasuredEvidence, ...]
    skipped: tuple[MeasuredEvidence, ...]

    @property
    def implementations(self) -> list[tuple[MeasuredEvidence, ...]]:
        """The rows, grouped by implementation."""
        groups = groupby(self.rows, key=lambda e: e.implementation)
        return [tuple(rows) for _, rows in groups]


def measured(statement: Statement, *, by_inputs: bool = False) -> list[Measured]:
    """Return the measurements of a statement, grouped by their conditions.

    ``by_inputs``: those for which other input distributions were tried form groups of their own.
    """
    groups: dict[tuple[str, Markup], list[MeasuredEvidence]] = {}
    for e in statement.evidence:
        if isinstance(e, MeasuredEvidence):
            groups.setdefault((e.says, _conditions(e, by_inputs)), []).append(e)
    return [
        Measured(
            says,
            told,
            tuple(e for e in held if e.status != "skipped"),
            tuple(e for e in held if e.status == "skipped"),
        )
        for (says, told), held in groups.items()
    ]


def _conditions(e: MeasuredEvidence, by_inputs: bool) -> Markup:
    if e.status == "skipped":
        return Markup("")
    sizes = Markup(", ").join(
        escape(f"{name}: {value}")  # in words, as "heads drawn"
        if " " in name
        else formula_html(f"{name_latex(name)} = {value}")
        for name, value in e.sizes.items()
    )
    told = by_inputs and e.distributions != ("normal",)
    drawn = f"inputs {', '.join(e.distributions)}" if told else ""
    parts = (sizes, e.sampled, drawn, e.device, f"seed {e.seed}")
    return Markup("; ").join(part for part in parts if part)


def distributions(e: MeasuredEvidence) -> str:
    """Return the input distribution that decided, and how many were tried."""
    tried = len(e.distributions)
    return f"{e.distribution}, of {tried}" if tried > 1 else e.distribution


def scientific(value: Number | None) -> Markup:
    """Format a number as people write it: 7.5 × 10⁻⁷."""
    text = short(value, "not measured")
    found = re.fullmatch(r"(.*)e([+-])0*(\d+)", text)
    if found is None:
        return escape(text)
    digits, sign, power = found.groups()
    minus = "−" if sign == "-" else ""
    return Markup(f'<span class="nowrap">{digits} × 10<sup>{minus}{power}</sup></span>')


def axis_latex(text: str) -> str:
    """Return an axis length of a record, ``2·B + 1``, as LaTeX."""
    named = re.sub(r"[A-Za-zα-ω_]\w*", lambda m: name_latex(m.group()), text)
    return named.replace("·", r"\,")


def given_html(given: GivenRecord) -> Markup:
    """Return what a given is, as a formula; a function only by name."""
    shape = [axis_latex(axis) for axis in given.shape]
    return formula_html(membership(given.name, given.kind, shape, axis_latex(given.below)))


def sizes_html(theorem: TheoremRecord) -> Markup:
    """Return the quantified sizes: n, ℓ ≥ 1."""
    return formula_html(sizes_latex(s.name for s in theorem.sizes))


def tally(statement: Statement) -> tuple[int, str]:
    """Return the kernel steps of a proof, or of an attempt, and the rules, most used first."""
    proofs = [e.rules for e in statement.evidence if isinstance(e, ProvedEvidence)]
    tried = [link.rules for link in statement.chain]
    rules = proofs if statement.verdict == "proved" else tried
    total = sum(map(Counter, rules), Counter[str]())
    return total.total(), ", ".join(f"{times} {rule}" for rule, times in total.most_common())


def assumptions(statement: Statement) -> list[str]:
    """Return what its proof used, each item once, with Greek letters for Greek names.

    The hypotheses are part of the statement and are not written out again.
    """
    used = [a for e in statement.evidence if e.kind == "proved" for a in e.assumptions]
    names = [a for a in used if not _SAID.search(a)]
    return greek([*names, *["the hypotheses above"] * (len(names) < len(used))])


def limits(statement: Statement) -> list[str]:
    """Return the clauses of its verdict: the conditions of the proof."""
    return greek(clauses(statement.conditions))


def readings(statement: Statement) -> list[str]:
    """Return how its divisors are to be read, in words."""
    return greek(r for e in statement.evidence if e.kind == "proved" for r in e.readings)


def statuses(statement: Statement) -> str:
    """Return the outcome of its measurements: 12 violated, 1 skipped, 2 exact: violated."""
    told = Counter(e.status for e in statement.evidence if isinstance(e, MeasuredEvidence))
    exact = Counter(line.status for line in exact_lines(statement.evidence))
    parts = [f"{count} {status}" for status, count in told.most_common()]
    parts += [f"{count} exact: {status}" for status, count in exact.most_common()]
    return ", ".join(parts)
