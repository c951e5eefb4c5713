"""What the page says of a record: counts, sentences, groups of measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from ..records import (
    GivenRecord,
    LinkRecord,
    MeasuredEvidence,
    MeetingRecord,
    Number,
    Results,
    TheoremRecord,
    TwinRecord,
)  # fmt: skip
from ..symbolic.latex import membership, name_latex, sizes_latex
from .formula import formula_html

__all__ = [
    "SIGNS", "Derivation", "Measured", "assumptions", "axis_latex", "counts", "derivations",
    "given_html", "linked", "measured", "minus", "number", "paragraphs", "prose", "readings",
    "scientific", "sizes_html", "statuses", "steps", "subjects", "used_rules",
]  # fmt: skip

SIGNS = {
    "proved": "✓", "refuted": "✗", "undecided": "?", "held": "✓", "violated": "✗",
    "non-finite": "!", "skipped": "–", "measured": "≈",
}  # fmt: skip

Statement = TheoremRecord | TwinRecord

_WITH = r" \quad \text{with }"
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "psi": "ψ", "omega": "ω", "ell": "ℓ",
}  # fmt: skip


def counts(results: Results) -> dict[str, int]:
    """How many theorems have each verdict, and how many measurements each status."""
    told = Counter(t.verdict for t in results.theorems)
    measured_ = Counter(
        e.status for t in results.theorems for s in (t, t.twin) for e in s.evidence
        if isinstance(e, MeasuredEvidence)
    )  # fmt: skip
    return {
        "theorems": len(results.theorems),
        "ok": sum(t.ok for t in results.theorems),
        **{word: told[word] for word in ("proved", "refuted", "undecided")},
        "measured": sum(measured_.values()) - measured_["skipped"],
        **{word: measured_[word] for word in ("held", "violated", "non-finite", "skipped")},
        "steps": sum(steps(t) for t in results.theorems),
    }


def subjects(results: Results) -> list[tuple[str, list[TheoremRecord]]]:
    """The theorems by subject, in the order of the record."""
    by_subject: dict[str, list[TheoremRecord]] = {}
    for theorem in results.theorems:
        by_subject.setdefault(theorem.subject, []).append(theorem)
    return list(by_subject.items())


def steps(statement: Statement) -> int:
    """The kernel steps of its proof."""
    return sum(e.steps for e in statement.evidence if e.kind == "proved")


@dataclass(frozen=True)
class Derivation:
    """The links of one conclusion."""

    says: str
    first: str
    links: tuple[LinkRecord, ...]

    @property
    def line(self) -> str:
        """A conclusion of one short link on one line; else empty."""
        whole = f"{self.first} {self.right(self.links[0])}"
        shown = re.sub(r"[{}\s^_]", "", re.sub(r"\\[A-Za-z]+|\\,", "x", whole))
        return whole if len(self.links) == 1 and len(shown) < 48 else ""

    @property
    def meeting(self) -> tuple[MeetingRecord, ...]:
        """The common normal form, where the conclusion is proved in one link."""
        return self.links[0].meeting if len(self.links) == 1 else ()

    def right(self, link: LinkRecord) -> str:
        """The right side of a link; what a layer of a stack is, is told once, at the start."""
        told = self.first.partition(_WITH)[1:]
        text = link.right.latex.removesuffix("".join(told)) if told[0] else link.right.latex
        return f"{link.relation} {text}"


def derivations(chain: Sequence[LinkRecord]) -> list[Derivation]:
    """The chain, cut where one conclusion ends and the next begins."""
    found: list[Derivation] = []
    for says, links in groupby(chain, key=lambda link: link.says):
        held = tuple(links)
        found.append(Derivation(says, held[0].left.latex, held))
    return found


@dataclass(frozen=True)
class Measured:
    """Measurements that share their conclusion, device, sizes, seed and sample."""

    says: str
    told: Markup
    rows: tuple[MeasuredEvidence, ...]
    skipped: tuple[MeasuredEvidence, ...]

    @property
    def implementations(self) -> list[tuple[MeasuredEvidence, ...]]:
        """The rows, those of one implementation together."""
        groups = groupby(self.rows, key=lambda e: e.implementation)
        return [tuple(rows) for _, rows in groups]


def measured(statement: Statement) -> list[Measured]:
    """The measurements of a statement, in groups of like conditions."""
    groups: dict[tuple[str, Markup], list[MeasuredEvidence]] = {}
    for e in statement.evidence:
        if isinstance(e, MeasuredEvidence):
            groups.setdefault((e.says, _conditions(e)), []).append(e)
    return [
        Measured(
            says, told, tuple(e for e in held if e.status != "skipped"),
            tuple(e for e in held if e.status == "skipped"),
        )
        for (says, told), held in groups.items()
    ]  # fmt: skip


def _conditions(e: MeasuredEvidence) -> Markup:
    if e.status == "skipped":
        return Markup("")
    sizes = Markup(", ").join(
        formula_html(f"{name_latex(name)} = {value}") for name, value in e.sizes.items()
    )
    parts = (sizes, e.sampled, e.device, f"seed {e.seed}")
    return Markup("; ").join(part for part in parts if part)


def number(value: Number | None) -> str:
    """A number with two digits; a word where there is none."""
    return "not measured" if value is None else value if isinstance(value, str) else f"{value:.2g}"


def scientific(value: Number | None) -> Markup:
    """A number as a person writes it: 7.5 × 10⁻⁷."""
    text = number(value)
    found = re.fullmatch(r"(.*)e([+-])0*(\d+)", text)
    if found is None:
        return escape(text)
    digits, sign, power = found.groups()
    minus = "−" if sign == "-" else ""
    return Markup(f'<span class="nowrap">{digits} × 10<sup>{minus}{power}</sup></span>')


def axis_latex(text: str) -> str:
    """An axis length of a record, ``2·B + 1``, as LaTeX."""
    named = re.sub(r"[A-Za-zα-ω_]\w*", lambda m: name_latex(m.group()), text)
    return named.replace("·", r"\,")


def given_html(given: GivenRecord) -> Markup:
    """What a given is, as a formula; a function by its name alone."""
    shape = [axis_latex(axis) for axis in given.shape]
    return formula_html(membership(given.name, given.kind, shape, axis_latex(given.below)))


def sizes_html(theorem: TheoremRecord) -> Markup:
    """The quantified sizes: n, ℓ ≥ 1."""
    return formula_html(sizes_latex(s.name for s in theorem.sizes))


def used_rules(links: Iterable[LinkRecord]) -> str:
    """How often each kernel rule was used, most used first."""
    total = sum((Counter(link.rules) for link in links), Counter[str]())
    return ", ".join(f"{times} {rule}" for rule, times in total.most_common())


def prose(text: str) -> Markup:
    """Words in which u_i, W_Q^h and R_{n−m} have real indices, and <=, -> are one sign."""
    text = text.replace("<=", "≤").replace(">=", "≥").replace(" -> ", " → ").replace("``", "")
    index = r"(?<=(?<![\w])\w)_(\{[^{}]*\}|[^\W_](?!\w))(?:\^([^\W_])(?!\w))?"
    told, done = Markup(""), 0
    for found in re.finditer(index, text):
        told += escape(text[done : found.start()])
        told += Markup("<sub>{}</sub>").format(found[1].strip("{}"))
        told += Markup("<sup>{}</sup>").format(found[2]) if found[2] else Markup("")
        done = found.end()
    return told + escape(text[done:])


def paragraphs(text: str) -> list[Markup]:
    """Words cut at empty lines; other line ends are spaces."""
    return [prose(" ".join(part.split())) for part in re.split(r"\n\s*\n", text) if part.strip()]


def minus(text: str) -> str:
    """A hyphen that stands for a minus, as a minus."""
    return re.sub(r"(?<![\w)])-(?=\d)|(?<= )-(?= )", "−", text)


def assumptions(statement: Statement) -> list[str]:
    """What its proof used, each once, with Greek letters for Greek names."""
    return _greek(a for e in statement.evidence if e.kind == "proved" for a in e.assumptions)


def readings(statement: Statement) -> list[str]:
    """How its divisors are to be read, in words."""
    return _greek(r for e in statement.evidence if e.kind == "proved" for r in e.readings)


def _greek(told: Iterable[str]) -> list[str]:
    words = r"\b(" + "|".join(_GREEK) + r")\b"
    return [re.sub(words, lambda m: _GREEK[m.group()], a) for a in dict.fromkeys(told)]


def statuses(statement: Statement) -> str:
    """What its measurements came to: 12 violated, 1 skipped."""
    told = Counter(e.status for e in statement.evidence if isinstance(e, MeasuredEvidence))
    return ", ".join(f"{count} {status}" for status, count in told.most_common())


def linked(text: str) -> Markup:
    """Text in which an address of the web is a link."""
    parts = re.split(r"(https?://[^\s<>\"']+)", text)
    return Markup("").join(
        Markup('<a href="{0}">{0}</a>').format(part) if k % 2 else escape(part)
        for k, part in enumerate(parts)
    )
