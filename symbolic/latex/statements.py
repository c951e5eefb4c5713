r"""The LaTeX of whole statements, and the notation that a reader must be told."""

from __future__ import annotations

from ..claim import Claim
from ..statement import Statement
from .claims import WIDE, broken, inline, rows, width
from .names import text_latex

__all__ = ["NOTATION", "statement_latex"]

WIDER = 78
"""The widest a row may be with its label beside it."""

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
    (r"\left(M^{i}\,x\right)_{i < n}", "the array whose row i is that, for i = 0, 1, …, n − 1"),
    (r"\sum_{j < n}", "the sum over j = 0, 1, …, n − 1; indices count from 0"),
    (r"m \in \mathbb{N}", "a natural number: 0, 1, 2, …"),
    (
        r"M^{m}",
        "the power of a matrix or a number: M⁰ is the identity, and M to m + 1 is M times M to m",
    ),
    (r"F^{m}(X)", "the function F applied m times to X, which is X itself for m = 0"),
    (
        r"\mathbb{E}\left[z_{a}\right]",
        "the expectation; the outcome on which a random number depends is not written",
    ),
    (r"e_{a}", "row a of the identity matrix, a basis vector"),
    (r"1_{n \times m}", "the matrix with a 1 in every entry"),
    (r"\operatorname{axes}_{0, 2, 1}(X)", "the axes of X in that order"),
    (r"\left[i = j\right]", "1 where the condition holds, else 0"),
    (r"A \odot B", "the product entry by entry"),
    (r"A \ne B", "for arrays: they differ in some entry"),
    (r"x_{0::2}", "the entries 0, 2, 4, … of the last axis"),
    (r"\operatorname{interleave}(A, B)", "the columns of A and B in turn, A first"),
    (r"\operatorname{reshape}_{n \times m}", "the same entries, row after row, in new axes"),
    (r"F_{t}", "layer t of a stack"),
    (r"\langle\text{cut}\rangle", "a part left out of a formula that is longer than a page"),
)


def statement_latex(statement: Statement) -> str:
    """Every claim of a statement, one under the other, after what it assumes."""
    assumed = [Claim("=", left, right) for left, right in statement.assume]
    assumed += [law.claim for law in statement.laws]
    found: list[str] = []
    for place, claim in enumerate(assumed):
        first, *more = rows(claim)
        found += [(r"\text{and } " if place else r"\text{if } ") + first, *more]
    then = r"\text{then }" if found else ""
    several = len(statement.claims) > 1
    for says, claim in statement.claims.items():
        first, *more = rows(claim)
        label = rf" && {text_latex(says)}" if says and several else ""
        found += [f"{then} {first}{label}".lstrip(), *more]
        then = ""
    if len(found) == 1 and width(found[0]) <= WIDE:
        return inline(found[0])
    labels = max((width(row.partition(" && ")[2]) for row in found), default=0)
    if any(width(row) > WIDE for row in found):
        parts = (broken(row) if width(row) > WIDE else (inline(row),) for row in found)
        found = [part for row in parts for part in row]
    if max(map(width, found)) + labels > WIDER:
        found = [part for row in found for part in _under_its_label(row)]
    aligned = (row if inline(row) != row else "& " + row for row in found)
    return r"\begin{align*} " + r" \\ ".join(aligned) + r" \end{align*}"


def _under_its_label(row: str) -> tuple[str, ...]:
    """A row below its label, both from the left."""
    body, gap, label = inline(row).partition(" && ")
    return (label.replace(r"\text{", r"\textit{"), rf"\quad {body}") if gap else (body,)
