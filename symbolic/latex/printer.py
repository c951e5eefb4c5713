r"""LaTeX of terms as they were written: matrices and names rather than indices.

``sigma`` prints as σ, ``l`` as ℓ, ``dv`` as d with subscript v, ``WQ`` as W with subscript Q,
``d_prime`` as d′, and a longer word upright.

If matrix notation would hide something (a vector added to every row, exp of every entry, a
difference of all pairs), the array is written by its entries, as in ``(p_{i} - p_{j})_{ij}``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from ..givens import GREEK
from ..scalars import num, number_of
from ..terms import Term, free, instantiate, make
from .general_entries import core, folded, inner_axes, letter, needs_entries, opened, small

# Names, numbers and brackets in LaTeX

_LETTERS = {letter: name for name, letter in GREEK.items()}
_SPECIAL = {
    "l": r"\ell",
    "ell": r"\ell",
    "lam": r"\lambda",
    "phi": r"\varphi",
    "epsilon": r"\varepsilon",
}
_SUBSCRIPTED = re.compile(r"([dnlrmWbwHx])([A-Za-z])$")
_NUMBERED = re.compile(r"([A-Za-z]+?)_?(\d+)([a-z]*)$")


def name_latex(name: str) -> str:
    r"""Return a Python name in mathematical notation.

    >>> [name_latex(n) for n in ("Q", "sigma", "l", "dv", "W_Q", "theta1", "d_prime", "keep")]
    ['Q', '\\sigma', '\\ell', 'd_{v}', 'W_{Q}', '\\theta_{1}', "d'", '\\mathrm{keep}']
    """
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name in GREEK:
        return "\\" + name
    if len(name) == 1:
        stem = _LETTERS.get(name)
        return name_latex(stem) if stem else name if name != "_" else r"\square"
    if name.endswith(("prime", "'", "′")):
        stem = re.sub(r"_?prime$|['′]$", "", name)
        return name_latex(stem or "x") + "'"
    if (numbered := _NUMBERED.fullmatch(name)) is not None:
        stem, digits, tail = numbered.groups()
        return f"{name_latex(stem)}_{{{digits}{tail}}}"
    stem, _, rest = name.partition("_")
    if stem and rest:
        return f"{name_latex(stem)}_{{{name_latex(rest)}}}"
    if not stem:
        return rf"\square_{{{rest}}}"
    if _SUBSCRIPTED.fullmatch(name) is not None:
        return f"{name_latex(name[0])}_{{{name_latex(name[1])}}}"
    return rf"\mathrm{{{name}}}"


_SCRIPT = re.compile(r"(?<=[\w)\]])([_^])(\{[^{}]*\}|\([^()]*\)|[^\W_](?![A-Za-z0-9_]))")


def text_latex(words: str) -> str:
    r"""Return words for use inside a formula, with LaTeX's special characters removed.

    >>> text_latex("M^j x_i, 50%"), text_latex("a_name")
    ('\\text{M}^{\\text{j}}\\text{ x}_{\\text{i}}\\text{, 50 }', '\\text{a_name}')
    """
    words = re.sub(r"(?<=[\w)\]}])ᵀ", "^{T}", words).replace("ᵀ", "T")
    text, done = "", 0
    for found in _SCRIPT.finditer(words):
        if found[1] == "_" and re.search(r"[a-z]{2,}$", words[: found.start()]):
            continue  # the name of something, not an index
        text += _plain(words[done : found.start()])
        text += f"{found[1]}{{{_plain(found[2].strip('{}()'))}}}"
        done = found.end()
    return text + _plain(words[done:])


def _plain(words: str) -> str:
    plain = re.sub(r"[\\{}$&#~%<>]", " ", words)
    return rf"\text{{{plain}}}" if plain else ""


# Precedence levels of LaTeX, loosest first: a list or a relation, a sum, a product or a big
# operator, a function with its argument or a fraction, a single symbol.
LOOSE, SUM, FACTOR, TIGHT, ATOM = range(5)


@dataclass(frozen=True, slots=True)
class Piece:
    """LaTeX with its precedence; ``minus`` says that it begins with a minus sign.

    ``open`` marks a piece that extends to the right (Σ f), so that it needs brackets unless it
    comes last.
    """

    text: str
    level: int = ATOM
    minus: bool = False
    open: bool = False


_TALL = (r"\frac", r"\sum", r"\begin", r"\left", r"\sqrt")


def bracket(text: str) -> str:
    """Return the text in brackets of matching height."""
    return rf"\left({text}\right)" if any(mark in text for mark in _TALL) else f"({text})"


def wrap(piece: Piece, level: int, last: bool = True) -> str:
    """Return the piece where at least that precedence is needed, in brackets if necessary."""
    if piece.level >= level and (last or not piece.open):
        return piece.text
    return bracket(piece.text)


def has_script(text: str, mark: str) -> bool:
    """Whether the text carries a subscript (``_``) or a superscript (``^``) of its own.

    >>> has_script("M_{i}", "^"), has_script("M^{t}", "^"), has_script("f(x^{2})", "^")
    (False, True, False)
    """
    depth = 0
    for sign in text:
        depth += (sign in "({[") - (sign in ")}]")
        if sign == mark and not depth:
            return True
    return False


def raised(base: Piece, exponent: str) -> Piece:
    """Return a power, its base in brackets unless it is one symbol without a superscript."""
    loose = base.level < ATOM or has_script(base.text, "^") or "'" in base.text
    return Piece(rf"{bracket(base.text) if loose else base.text}^{{{exponent}}}", TIGHT)


def number(value: Fraction) -> Piece:
    """Return a rational number; the exact value of a float is printed as a decimal."""
    sign, size = "-" if value < 0 else "", abs(value)
    if size.denominator == 1:
        return Piece(f"{sign}{size}", ATOM if not sign else SUM, bool(sign))
    if size.denominator > 10_000 and Fraction(float(size)) == size:
        return Piece(f"{sign}{float(size):.12g}", ATOM if not sign else SUM, bool(sign))
    text = rf"{sign}\frac{{{size.numerator}}}{{{size.denominator}}}"
    return Piece(text, TIGHT if not sign else SUM, bool(sign))


_NAMED = (
    r"\operatorname",
    r"\mathrm",
    r"\left",
    r"\sum",
    r"\cos",
    r"\sin",
    r"\log",
    r"\tanh",
    r"\exp",
    r"\max",
)


def joined(factors: list[str]) -> str:
    """Join factors, with a space or a dot between them where needed."""
    text = ""
    for factor in factors:
        if not text:
            text = factor
        elif factor[0].isdigit() or factor.startswith("-") or text == "0":
            text += r" \cdot " + factor
        elif text.endswith((")", "}", "]")) or factor.startswith(_NAMED):
            text += r"\," + factor
        else:
            text += " " + factor
    return text


# LaTeX of terms


class BasePrinter:
    """Prints terms; ``layers`` collects the layer functions of the stacks it printed.

    A ``strict`` printer leaves nothing out: brackets of products, added zeros, tables that are
    indexed directly; at level 2 powers are printed as stacks.
    """

    def __init__(self, strict: int = 0) -> None:
        self.layers: dict[Term, tuple[str, str, str]] = {}
        self.avoid: frozenset[Term] = frozenset()
        self.strict = strict

    def __call__(self, t: Term, level: int = LOOSE, last: bool = True) -> str:
        """Return the LaTeX of a term where at least that precedence is needed."""
        return wrap(self.piece(t), level, last)

    def piece(self, t: Term) -> Piece:
        """Return the LaTeX of a term with its precedence."""
        if t.loose:
            holes = (make("var", (), (f"_{k}", "real"), ()) for k in range(t.loose))
            t = instantiate(t, *holes)
        between = inner_axes(t)
        if between:
            return self.by_entries(t, between)
        t = core(t)
        if needs_entries(t):
            return self.by_entries(t)
        method = getattr(self, "op_" + t.op.replace(" ", "_"), None)
        if method is not None:
            result = method(t)
            assert isinstance(result, Piece)
            return result
        return self.applied(rf"\operatorname{{{t.op}}}", t.args)

    def fresh(self, length: Term, taken: Iterable[Term]) -> Term:
        """Return an index whose letter is used neither in ``taken`` nor around it."""
        return make("index", (length,), letter(length, {*taken, *self.avoid}))

    @contextmanager
    def within(self, at: Iterable[Term]) -> Iterator[None]:
        """Print inside the scope of these indices, avoiding their letters."""
        outer = self.avoid
        self.avoid = outer.union(at)
        try:
            yield
        finally:
            self.avoid = outer

    def by_entries(self, t: Term, ones: Collection[int] = ()) -> Piece:
        """Return an array written by its general entry; a small matrix is written out.

        A dot is the index of an axis of length 1.
        """
        if small(t):
            counts = [range(int(number_of(n) or 0)) for n in t.shape]
            rows = ([(i, *j) for j in product(*counts[1:])] for i in counts[0])
            cells = r" \\ ".join(
                " & ".join(self(folded(opened(t, [*map(num, at)]))) for at in row) for row in rows
            )
            return Piece(rf"\left(\begin{{matrix}}{cells}\end{{matrix}}\right)")
        at: list[Term] = []
        for axis, length in enumerate(t.shape):
            like = t.shape[axis + 1] if axis in ones else length
            at.append(self.fresh(like, free(t) | set(at)))
        with self.within(at):
            body = self(opened(t, at))
        shown = [None if axis in ones else i for axis, i in enumerate(at)]
        places = self.subscripts(shown, r"\cdot")
        return Piece(rf"\left[{body}\right]" + (f"_{{{places}}}" if places else ""))

    def applied(self, name: str, args: Sequence[Term]) -> Piece:
        """Return a function with its arguments in brackets."""
        return Piece(name + bracket(", ".join(self(a) for a in args))) if args else Piece(name)

    def subscripts(self, at: Sequence[Term | None], whole: str = ":") -> str:
        """Return indices, with commas unless all are single symbols; None is a whole axis."""
        texts = [whole if i is None else self(i) for i in at]
        close = all(re.fullmatch(r"\\?[A-Za-z]+", text) for text in texts)
        return (" " if close else ", ").join(texts)

    def listed(self, at: Iterable[Term]) -> str:
        """Return indices with commas between them."""
        return ", ".join(self(i) for i in at)

    def subscripted(self, array: Term, at: Sequence[Term | None]) -> Piece:
        """Return an array with indices; trailing whole axes are left out."""
        kept = list(at)
        while kept and kept[-1] is None:
            kept.pop()
        base = self.piece(array)
        text = wrap(base, ATOM)
        if has_script(text, "_") or (array.op == "var" and "mathrm" in text):
            text = bracket(text)
        return Piece(rf"{text}_{{{self.subscripts(kept)}}}") if kept else base
