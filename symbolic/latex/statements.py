r"""LaTeX of statements: their givens, claims and hypotheses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from ..claim import Claim, Instance, name_of
from ..scalars import index
from ..statement import Statement
from ..terms import Term, bind, instantiate, make, substitute
from .arrays import Printer
from .general_entries import core, letter, names_in, needs_entries, opened, small
from .printer import SUM, name_latex, text_latex

# Formulas longer than a page are cut before their text is built: terms share parts, but a text
# repeats them (eight nested functions give 200 kB).

MAX_PARTS = 800  # parts: about a page; no side of an equation of the catalogue has more than 136
MAX_DEPTH = 60  # parts within parts; the catalogue has 15
_LISTS = frozenset(("add", "mul", "and", "or"))  # variadic: the first arguments can be kept


def shortened(term: Term, most: int = MAX_PARTS) -> Term:
    """Return the term or, if it is long, its outermost parts with *cut* in place of the others.

    The result is for printing only.

    >>> from attnproof.symbolic.scalars import add, mul, num, size
    >>> n = size("n")
    >>> shortened(add(n, mul(n, n)), 4)
    n + ⟨cut⟩
    >>> shortened(add(n, num(1)), 4)
    n + 1
    """
    if _fits(term, most):
        return term
    found: list[tuple[Term, int]] = [(term, 0)]
    parts: dict[int, list[int | Term]] = {}
    for place, (t, depth) in enumerate(found):  # breadth first: ``found`` grows in the loop
        unseen = list[int | Term](t.args[:1] if t.op == "named" else ())
        seen = t.args[len(unseen) :]
        room = 0 if depth >= MAX_DEPTH else max(0, most - len(found))
        if len(seen) > room:
            if t.op not in _LISTS or room < 2:
                continue
            seen = seen[: room - 1]
            unseen.append(_cut(t))
        ends = len(found)
        found.extend((part, depth + 1) for part in seen)
        more = list(range(ends, len(found)))
        parts[place] = [*more, *unseen] if t.op in _LISTS else [*unseen, *more]
    made: list[Term] = [t for t, _ in found]
    for place in reversed(range(len(found))):
        t = made[place]
        if place in parts:
            args = tuple(p if isinstance(p, Term) else made[p] for p in parts[place])
            made[place] = make(t.op, args, t.data, t.shape)
        elif t.args:
            made[place] = _cut(t)
    return made[0]


def _fits(term: Term, most: int) -> bool:
    """Whether a term has at most so many parts, none too deep; bodies of names do not count."""
    level, depth = [term], 0
    while level and most > 0 and depth <= MAX_DEPTH:
        most -= len(level)
        level = [part for t in level for part in t.args[t.op == "named" :]]
        depth += 1
    return not level and most >= 0


def _cut(t: Term) -> Term:
    return make("cut", (), None, t.shape)


# LaTeX of givens: Q ∈ ℝ^{n×ℓ}, σ ∈ S_n, g ∈ O(ℓ)

_REAL = r"\mathbb{R}"
_SETS = {
    "positive": r"\mathbb{R}_{>0}",
    "nonnegative": r"\mathbb{R}_{\ge 0}",
    "natural": r"\mathbb{N}",
    "boolean": r"\{\text{T}, \text{F}\}",
}


def membership(name: str, kind: str, shape: Iterable[str], below: str = "") -> str:
    r"""Return the membership of a given, such as Q ∈ ℝ^{n×ℓ} or σ ∈ S_n; axis lengths in LaTeX.

    >>> membership("c", "positive", [r"\ell"])
    'c \\in \\mathbb{R}_{>0}^{\\ell}'
    """
    letter, axes = name_latex(name), list(shape)
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
    if kind == "function":
        return letter
    joined = r" \times ".join(axes[1:] if kind == "standard" else axes)
    power = f"^{{{joined}}}" if joined else ""
    if kind == "standard":
        return rf"{letter} \colon\; {axes[0]} \to \mathbb{{R}}{power}"
    return rf"{letter} \in {_SETS.get(kind, _REAL)}{power}"


def sizes_latex(names: Iterable[str]) -> str:
    """Return the quantified sizes: n, ℓ ≥ 1."""
    return ", ".join(name_latex(name) for name in names) + r" \ge 1"


# LaTeX of claims: a conclusion, a hypothesis, a fact that a proof uses

RELATIONS = {"=": "=", ">": ">", ">=": r"\ge", "!=": r"\ne"}
_MARK = re.compile(r" &(?=(?:=|>|\\ge|\\ne) )")
_TAIL = re.compile(r" \\quad \\text\{for ")
MAX_WIDTH, STRICT = 66, (1, 2)


def latex(term: Term, avoid: Iterable[Term] = ()) -> str:
    """Return the LaTeX of a term; a stack of layers is followed by the definition of its layer.

    Letters of bound indices differ from all names in the term and in ``avoid``.
    """
    printer = Printer()
    printer.avoid = names_in(term).union(avoid)
    return _with_layers(printer, printer(shortened(term)))


def latex_pair(left: Term, right: Term) -> tuple[str, str]:
    """Return the LaTeX of two terms, in strict form if different terms would print equally."""
    pair = latex(left), latex(right)
    if left is right or pair[0] != pair[1]:
        return pair
    for level in STRICT:
        strict: list[str] = []
        for term in (left, right):
            printer = Printer(level)
            printer.avoid = names_in(left, right)
            strict.append(_with_layers(printer, printer(shortened(term))))
        if strict[0] != strict[1]:
            return strict[0], strict[1]
    return pair


def unfolded_latex(term: Term) -> str:
    """Return the LaTeX of a term with its outermost definition unfolded."""
    t = core(term)
    return latex(t.args[0] if t.op == "named" else t)


def _with_layers(printer: Printer, text: str) -> str:
    layers = [layer for *_, layer in printer.layers.values() if layer]
    return text + "".join(rf" \quad \text{{with }} {layer}" for layer in layers)


def _by_entries(terms: Iterable[Term], relation: str) -> bool:
    """Whether the sides should be printed entry by entry."""
    return relation in (">", ">=") or any(
        (needs_entries(core(t)) or (core(t).op == "reduce" and t.ndim)) and not small(t)
        for t in terms
    )


def _sides(terms: list[Term], relation: str, printer: Printer) -> tuple[list[str], str]:
    """Return the LaTeX of arrays of equal shape, and their common indices if printed by entries.

    The strict form is used if two different neighbours would print equally.
    """
    found = _printed(terms, relation, printer)
    alike = any(a == b for a, b in pairwise(found[0]))
    if not alike or printer.strict or all(a is b for a, b in pairwise(terms)):
        return found
    for level in STRICT:
        strict = Printer(level)
        printed = _printed(terms, relation, strict)
        if not any(a == b for a, b in pairwise(printed[0])):
            printer.strict, printer.layers, printer.avoid = level, strict.layers, strict.avoid
            return printed
    return found


def _printed(terms: list[Term], relation: str, printer: Printer) -> tuple[list[str], str]:
    printer.avoid = names_in(*terms)
    terms = [shortened(t) for t in terms]
    shape = terms[0].shape
    if not shape or not _by_entries(terms, relation):
        return [printer(t, SUM) for t in terms], ""
    at: list[Term] = []
    for length in shape:
        at.append(printer.fresh(length, at))
    printer.avoid |= set(at)
    return [printer(opened(t, at), SUM) for t in terms], printer.listed(at)


def claim_latex(claim: Claim) -> str:
    """Return a claim on one line: its two ends and the relation between them."""
    return r" \quad ".join(inline(row) for row in rows(claim))


def at_values(fact: Instance) -> tuple[Claim, tuple[Term, ...]]:
    """Return the claim of a law at the values of a fact, and the indices of its family."""
    claim = fact.law.claim
    own = [given.named(name).term for name, given in claim.variables]
    sides = list(claim.sides)
    terms = [instantiate(bind(t, *own), *fact.values) if own else t for t in sides]
    family: list[Term] = []
    for old in fact.indices:
        taken = names_in(*terms).union(family) - {old}
        new = index(letter(old.args[0], taken), old.args[0])
        terms = [substitute(t, old, new) for t in terms]
        family.append(new)
    return Claim(claim.relation, terms[0], terms[1] if len(terms) > 1 else None), tuple(family)


def fact_latex(fact: Instance) -> str:
    """Return a law at the values at which a proof uses it: f(m + 1) = f(m) f(1)."""
    claim, family = at_values(fact)
    text, printer = claim_latex(claim), Printer()
    if not family:
        return text
    ranges = ", ".join(rf"{printer(i)} < {printer(i.args[0])}" for i in family)
    return text + (", " if r"\text{for all }" in text else r" \quad \text{for all } ") + ranges


def rows(claim: Claim) -> list[str]:
    """Return a claim as rows of aligned equations: the claim, its witness, its layers."""
    printer = Printer()
    ends = list(claim.sides)
    sides, indices = _sides(ends, claim.compared, printer)
    right = sides[1] if len(sides) > 1 else "0"
    some = rf" \quad \text{{for some }} {indices}" if indices and claim.compared == "!=" else ""
    every = [indices] if indices and not some else []
    variables = [
        membership(
            name,
            given.kind,
            [printer(n) for n in given.shape],
            "" if given.below is None else printer(given.below),
        )
        for name, given in claim.variables
    ]
    row = f"{sides[0]} &{RELATIONS[claim.compared]} {right}{some}"
    if claim.relation == "exists" and claim.variable is not None:
        row = _exists(claim, printer) + inline(row)
        if variables:
            row = rf"\text{{for all }} {', '.join(variables)}:\quad {row}"
        every, variables = [], []
    if every or variables:
        row += rf" \quad \text{{for all }} {', '.join(every + variables)}"
    found = [row]
    if claim.relation == "exists" and claim.variable is not None and claim.witness is not None:
        named = f"{printer(claim.variable)} = {printer(shortened(claim.witness))}"
        found.append(rf"\text{{namely }} {named}")
    layers = [layer.replace(" = ", " &= ", 1) for *_, layer in printer.layers.values() if layer]
    return found + [rf"\text{{with }} {layer}" for layer in layers]


def _exists(claim: Claim, printer: Printer) -> str:
    assert claim.variable is not None
    variable = claim.variable
    kind = "index" if variable.op == "index" else variable.data[1]
    shape = [printer(n) for n in variable.shape]
    below = printer(variable.args[0]) if variable.args else ""
    text = rf"\exists\, {membership(name_of(variable), kind, shape, below)}"
    if claim.free_of:
        text += rf" \text{{ independent of }} {', '.join(printer(t) for t in claim.free_of)}"
    return text + r":\quad "


def inline(row: str) -> str:
    """Return a row without its alignment mark."""
    return _MARK.sub(" ", row)


def width(row: str) -> int:
    """Return the approximate width of a row in letters, without its label."""
    body, _, _ = row.partition(" && ")
    body = re.sub(r"\\(begin|end)\{[a-z]+\}|\\(left|right|operatorname|frac|text)\b", "", body)
    return len(re.sub(r"[{}\s&_^]|\\,", "", re.sub(r"\\[A-Za-z]+", "x", body)))


def broken(row: str) -> tuple[str, ...]:
    """Return a wide row, broken before its relation and, if still too wide, before its range."""
    body, gap, label = row.partition(" && ")
    mark = _MARK.search(body)
    if mark is None:
        return (row,)
    left, right = body[: mark.start()], body[mark.end() :]
    tail = _TAIL.search(right)
    if tail is None or width(right) <= MAX_WIDTH:
        return f"{left}{gap}{label}", rf"\qquad {right}"
    after = right[tail.start() :].removeprefix(r" \quad ")
    return f"{left}{gap}{label}", rf"\qquad {right[: tail.start()]}", rf"\qquad {after}"


# LaTeX of whole statements, and the notation that is explained to readers

MAX_LABELLED_WIDTH = 78
"""The largest width of a row with its label beside it."""

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
    (r"f(\sigma Y, t) = \sigma f(Y, t)", "the property of an equivariant function f"),
    (r"\left[a_{i} - b_{j}\right]_{i j}", "the array with this entry at (i, j)"),
    (r"\left[m_{h}\,j\right]_{h \cdot j}", "the dot is the only index of an axis of length 1"),
    (
        r"\left(M^{i}\,x\right)_{i < n}",
        "the array whose row i is this expression, for i = 0, 1, …, n − 1",
    ),
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
    (r"\operatorname{stack}_{0}(A, B)", "A and B joined along a new axis, here the first"),
    (r"\operatorname{concat}_{0}(A, B)", "A and B joined along an axis, here the first"),
    (r"\operatorname{interleave}(A, B)", "the columns of A and B in turn, A first"),
    (r"\operatorname{reshape}_{n \times m}", "the same entries, row after row, in new axes"),
    (r"F_{t}", "layer t of a stack"),
    (r"\langle\text{cut}\rangle", "a part left out of a formula that is longer than a page"),
)


def statement_latex(statement: Statement) -> str:
    """Return the hypotheses and then the claims of a statement, one below the other."""
    found: list[str] = []
    for place, claim in enumerate(statement.hypotheses):
        first, *more = rows(claim)
        found += [(r"\text{and } " if place else r"\text{if } ") + first, *more]
    then = r"\text{then }" if found else ""
    several = len(statement.claims) > 1
    for says, claim in statement.claims.items():
        first, *more = rows(claim)
        label = rf" && {text_latex(says)}" if says and several else ""
        found += [f"{then} {first}{label}".lstrip(), *more]
        then = ""
    if len(found) == 1 and width(found[0]) <= MAX_WIDTH:
        return inline(found[0])
    labels = max((width(row.partition(" && ")[2]) for row in found), default=0)
    if any(width(row) > MAX_WIDTH for row in found):
        parts = (broken(row) if width(row) > MAX_WIDTH else (inline(row),) for row in found)
        found = [part for row in parts for part in row]
    if max(map(width, found)) + labels > MAX_LABELLED_WIDTH:
        found = [part for row in found for part in _under_its_label(row)]
    aligned = (row if inline(row) != row else "& " + row for row in found)
    return r"\begin{align*} " + r" \\ ".join(aligned) + r" \end{align*}"


def _under_its_label(row: str) -> tuple[str, ...]:
    """Return a row below its label, both left-aligned."""
    body, gap, label = inline(row).partition(" && ")
    return (label.replace(r"\text{", r"\textit{"), rf"\quad {body}") if gap else (body,)
