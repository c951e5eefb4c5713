r"""The LaTeX of a term, at the level it was written: matrices and names, not index soup.

``sigma`` prints as σ, ``l`` as ℓ, ``dv`` as d with subscript v, ``WQ`` as W with subscript Q,
``d_prime`` as d′, and a longer word upright.

Where matrix notation would hide something (a vector added to every row, exp of every entry, a
difference of all pairs) the array is written through its entry, as in ``(p_{i} - p_{j})_{ij}``.
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
from .opening import core, folded, inner_axes, letter, needs_entries, opened, small

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
    r"""A Python name as mathematics.

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
    r"""Words inside a formula, with the signs that LaTeX reads as commands taken out of them.

    >>> text_latex("M^j x_i, 50%"), text_latex("a_name")
    ('\\text{M}^{\\text{j}}\\text{ x}_{\\text{i}}\\text{, 50 }', '\\text{a_name}')
    """
    words = re.sub(r"(?<=[\w)\]}])ᵀ", "^{T}", words).replace("ᵀ", "T")
    told, done = "", 0
    for found in _SCRIPT.finditer(words):
        if found[1] == "_" and re.search(r"[a-z]{2,}$", words[: found.start()]):
            continue  # the name of something, not an index
        told += _plain(words[done : found.start()])
        told += f"{found[1]}{{{_plain(found[2].strip('{}()'))}}}"
        done = found.end()
    return told + _plain(words[done:])


def _plain(words: str) -> str:
    plain = re.sub(r"[\\{}$&#~%<>]", " ", words)
    return rf"\text{{{plain}}}" if plain else ""


# How tightly a piece of LaTeX holds together, loosest first: a list or a relation, a sum, a
# product or a big operator, a function with its argument or a fraction, a single symbol.
LOOSE, SUM, FACTOR, TIGHT, ATOM = range(5)


@dataclass(frozen=True, slots=True)
class Piece:
    """LaTeX with its tightness; ``minus`` says that it begins with a minus sign.

    ``open`` marks a piece whose right end swallows what follows (Σ f), so that it needs
    brackets unless it stands last.
    """

    text: str
    level: int = ATOM
    minus: bool = False
    open: bool = False


_TALL = (r"\frac", r"\sum", r"\begin", r"\left", r"\sqrt")


def bracket(text: str) -> str:
    """The text in brackets that are as tall as it is."""
    return rf"\left({text}\right)" if any(mark in text for mark in _TALL) else f"({text})"


def wrap(piece: Piece, level: int, last: bool = True) -> str:
    """The piece where something at least that tight is needed."""
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
    """The power, its base in brackets unless it is one symbol without a superscript."""
    loose = base.level < ATOM or has_script(base.text, "^") or "'" in base.text
    return Piece(rf"{bracket(base.text) if loose else base.text}^{{{exponent}}}", TIGHT)


def number(value: Fraction) -> Piece:
    """A rational number; one that is only the image of a decimal prints as that decimal."""
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
    """Factors side by side, with the space or the dot that keeps them apart."""
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


# The LaTeX of a term, at the level it was written: matrices and names, not index soup


class BasePrinter:
    """Prints terms; ``layers`` collects the layer functions of the stacks it met.

    A ``strict`` one leaves nothing out: brackets of products, zeros that are added, tables that
    are read at once; at level 2 powers are told as stacks.
    """

    def __init__(self, strict: int = 0) -> None:
        self.layers: dict[Term, tuple[str, str, str]] = {}
        self.avoid: frozenset[Term] = frozenset()
        self.strict = strict

    def __call__(self, t: Term, level: int = LOOSE, last: bool = True) -> str:
        """The LaTeX of a term where something at least that tight is needed."""
        return wrap(self.piece(t), level, last)

    def piece(self, t: Term) -> Piece:
        """The LaTeX of a term with its tightness."""
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
        """An index whose letter is used neither there nor around it."""
        return make("index", (length,), letter(length, {*taken, *self.avoid}))

    @contextmanager
    def within(self, at: Iterable[Term]) -> Iterator[None]:
        """What is printed here stands inside the range of these indices."""
        outer = self.avoid
        self.avoid = outer.union(at)
        try:
            yield
        finally:
            self.avoid = outer

    def by_entries(self, t: Term, ones: Collection[int] = ()) -> Piece:
        """An array written through its entry; a dot is the index of an axis of length 1.

        A small matrix is written out.
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
        """A function with its arguments in brackets."""
        return Piece(name + bracket(", ".join(self(a) for a in args))) if args else Piece(name)

    def subscripts(self, at: Sequence[Term | None], whole: str = ":") -> str:
        """Indices side by side when each is one symbol, else with commas; None is a whole axis."""
        texts = [whole if i is None else self(i) for i in at]
        close = all(re.fullmatch(r"\\?[A-Za-z]+", text) for text in texts)
        return (" " if close else ", ").join(texts)

    def listed(self, at: Iterable[Term]) -> str:
        """Indices with commas between them."""
        return ", ".join(self(i) for i in at)

    def subscripted(self, array: Term, at: Sequence[Term | None]) -> Piece:
        """An array with indices; trailing whole axes are left out."""
        kept = list(at)
        while kept and kept[-1] is None:
            kept.pop()
        base = self.piece(array)
        text = wrap(base, ATOM)
        if has_script(text, "_") or (array.op == "var" and "mathrm" in text):
            text = bracket(text)
        return Piece(rf"{text}_{{{self.subscripts(kept)}}}") if kept else base
