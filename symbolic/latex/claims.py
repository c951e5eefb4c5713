r"""The LaTeX of claims and statements, and of what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..givens import Given
from ..statement import Claim, Statement
from ..terms import Term, make
from .arrays import Printer
from .names import SUM, bracket, name_latex, text_latex
from .opening import core, letter, names_in, needs_entries, opened

__all__ = [
    "NOTATION", "chain_latex", "claim_latex", "givens_latex", "latex", "membership", "sizes_latex",
    "statement_latex", "unfolded_latex",
]  # fmt: skip

NOTATION: tuple[tuple[str, str], ...] = (
    (
        r"\sigma X",
        (
            "the rows of X moved by σ: its row i is row σ(i) of X. So σ is the inverse of the "
            "permutation in a left action; every theorem is for all σ, and the two say the same"
        ),
    ),
    (r"S\,\sigma^{\top}", "the columns of S moved by σ: its column j is column σ(j) of S"),
    (r"e X", "for an injection e: the rows e(0), e(1), … of X"),
    (r"f(\sigma Y, t) = \sigma f(Y, t)", "what is said of a function f that is equivariant"),
    (r"\left[a_{i} - b_{j}\right]_{i j}", "the array with that entry at (i, j)"),
    (r"\left[m_{h}\,j\right]_{h \cdot j}", "the dot is the only index of an axis of length 1"),
    (r"\sum_{j < n}", "the sum over j = 0, 1, …, n − 1; indices count from 0"),
    (r"\left[i = j\right]", "1 where the condition holds, else 0"),
    (r"A \odot B", "the product entry by entry"),
    (r"x_{0::2}", "the entries 0, 2, 4, … of the last axis"),
    (r"\operatorname{interleave}(A, B)", "the columns of A and B in turn, A first"),
    (r"\operatorname{reshape}_{n \times m}", "the same entries, row after row, in new axes"),
    (r"F_{t}", "layer t of a stack"),
)


def latex(term: Term, avoid: Iterable[Term] = ()) -> str:
    """The LaTeX of a term; a stack of layers is followed by what one layer is.

    No bound index gets the letter of a name in the term, nor of one in ``avoid``.
    """
    printer = Printer()
    printer.avoid = names_in(term).union(avoid)
    return _told(printer, printer(term))


def unfolded_latex(term: Term) -> str:
    """The LaTeX of a term with its outermost definition written out."""
    t = core(term)
    return latex(t.args[0] if t.op == "named" else t)


def _told(printer: Printer, text: str) -> str:
    layers = [told for _, told in printer.layers.values()]
    return text + "".join(rf" \quad \text{{with }} {told}" for told in layers)


def _by_entries(terms: Iterable[Term], relation: str) -> bool:
    """Whether both sides read better entry by entry."""
    return relation == ">" or any(
        needs_entries(core(t)) or (core(t).op == "reduce" and t.ndim) for t in terms
    )


def _sides(claim: Claim, printer: Printer) -> tuple[list[str], str]:
    """The terms of a chain, in order, and the range of the indices they share."""
    terms = [claim.left, *(link.term for link in claim.links)]
    if claim.right is not None and not claim.links:
        terms.append(claim.right)
    printer.avoid = taken = names_in(*terms)
    if not claim.left.ndim or not _by_entries(terms, claim.relation):
        return [printer(t, SUM) for t in terms], ""
    at: list[Term] = []
    for length in claim.left.shape:
        at.append(make("index", (length,), letter(length, taken | set(at))))
    printer.avoid = taken.union(at)
    return [printer(opened(t, at), SUM) for t in terms], ", ".join(printer(i) for i in at)


def chain_latex(claim: Claim) -> tuple[str, ...]:
    """The terms of a claim in order, first to last, as they stand in its chain."""
    printer = Printer()
    return tuple(_told(printer, side) for side in _sides(claim, printer)[0])


def claim_latex(claim: Claim) -> str:
    """A claim on one line: its two ends and the relation between them."""
    return r" \quad ".join(_rows(claim)).replace(" &= ", " = ")


def _rows(claim: Claim) -> list[str]:
    printer = Printer()
    sides, indices = _sides(claim, printer)
    tail = rf" \quad \text{{for all }} {indices}" if indices else ""
    if claim.relation == ">":
        rows = [rf"{sides[0]} > 0{tail}"]
    else:
        rows = [rf"{sides[0]} &= {sides[-1]}{tail}"]
    if claim.relation == "exists" and claim.variable is not None:
        rows = [_exists(claim, printer) + rows[0].replace(" &= ", " = ")]
        if claim.witness is not None:
            rows.append(rf"\text{{namely }} {printer(claim.variable)} = {printer(claim.witness)}")
    layers = (told.replace(" = ", " &= ", 1) for _, told in printer.layers.values())
    return rows + [rf"\text{{with }} {told}" for told in layers]


def _exists(claim: Claim, printer: Printer) -> str:
    assert claim.variable is not None
    kind = claim.variable.data[1]
    shape = [printer(n) for n in claim.variable.shape]
    text = rf"\exists\, {membership(claim.variable.data[0], kind, shape)}"
    if claim.free_of:
        text += rf" \text{{ independent of }} {', '.join(printer(t) for t in claim.free_of)}"
    return text + r":\quad "


def statement_latex(statement: Statement) -> str:
    """Every claim of a statement, one under the other, after what it assumes."""
    rows = [rf"\text{{if }} {_equation(a, b)}" for a, b in statement.assume]
    for says, claim in statement.claims.items():
        first, *more = _rows(claim)
        label = rf" && {text_latex(says)}" if says and len(statement.claims) > 1 else ""
        rows += [first + label, *more]
    if any(_width(row) > 66 for row in rows):
        rows = [broken for row in rows for broken in _broken(row)]
    if len(rows) == 1:
        return rows[0].replace(" &= ", " = ")
    aligned = (row if " &= " in row else "& " + row for row in rows)
    return r"\begin{align*} " + r" \\ ".join(aligned) + r" \end{align*}"


def _width(row: str) -> int:
    """About how many letters wide a row is, with its label left out."""
    body, _, _ = row.partition(" && ")
    body = re.sub(r"\\(begin|end)\{[a-z]+\}|\\(left|right|operatorname|frac|text)\b", "", body)
    return len(re.sub(r"[{}\s&_^]|\\,", "", re.sub(r"\\[A-Za-z]+", "x", body)))


def _broken(row: str) -> tuple[str, ...]:
    """A row on two lines: what is too wide for a page breaks before its relation."""
    body, gap, label = row.partition(" && ")
    left, relation, right = body.partition(" &= ")
    if not relation:
        return (row,)
    return f"{left}{gap}{label}", rf"\qquad = {right}"


def _equation(left: Term, right: Term) -> str:
    printer = Printer()
    printer.avoid = names_in(left, right)
    return f"{printer(left, SUM)} &= {printer(right, SUM)}"


def sizes_latex(names: Iterable[str]) -> str:
    """The quantified sizes: n, ℓ ≥ 1."""
    return ", ".join(name_latex(name) for name in names) + r" \ge 1"


def membership(name: str, kind: str, shape: Iterable[str], below: str = "") -> str:
    r"""What a given is, as in Q ∈ ℝ^{n×ℓ} or σ ∈ S_n; axis lengths in LaTeX."""
    letter, axes = name_latex(name), list(shape)
    joined = r" \times ".join(axes)
    power = f"^{{{joined}}}" if axes else ""
    if kind == "permutation":
        return rf"{letter} \in S_{{{axes[0]}}}"
    if kind == "orthogonal":
        return rf"{letter} \in \operatorname{{O}}({axes[0]})"
    if kind in ("injection", "index map"):
        arrow = r"\hookrightarrow" if kind == "injection" else r"\to"
        count = rf"\{{0, \dots, {axes[0]} - 1\}}"
        end = rf"\{{0, \dots, {below} - 1\}}" if below else r"\mathbb{N}"
        return rf"{letter} \colon\; {count} {arrow} {end}"
    if kind == "index":
        return rf"{letter} \in \{{0, \dots, {below} - 1\}}" if below else letter
    if kind == "boolean":
        return rf"{letter} \in \{{\text{{T}}, \text{{F}}\}}{power}"
    if kind == "positive":
        return rf"{letter} \in \mathbb{{R}}_{{>0}}{power}"
    if kind == "function":
        return letter
    return rf"{letter} \in \mathbb{{R}}{power}"


def givens_latex(givens: Mapping[str, Given]) -> dict[str, str]:
    """What each given of a statement is, by name."""
    printer = Printer()
    told: dict[str, str] = {}
    for name, given in givens.items():
        below = printer(given.below) if given.below is not None else ""
        if given.kind == "function":
            dots = ", ".join(r"\cdot" for _ in given.core)
            told[name] = f"{name_latex(name)}{bracket(dots)}"
        else:
            told[name] = membership(name, given.kind, [printer(n) for n in given.shape], below)
    return told
