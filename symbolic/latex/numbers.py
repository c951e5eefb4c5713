r"""The LaTeX of a term, at the level it was written: matrices and names, not index soup.

Where matrix notation would hide something (a vector added to every row, exp of every entry, a
difference of all pairs) the array is written through its entry, as in ``(p_{i} - p_{j})_{ij}``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..scalars import add, integer, mul, num, number_of
from ..terms import Term, free, instantiate, make
from .names import (
    ATOM,
    FACTOR,
    LOOSE,
    SUM,
    TIGHT,
    Piece,
    bracket,
    joined,
    name_latex,
    number,
    wrap,
)  # fmt: skip
from .opening import core, inner_axes, letter, needs_entries, opened, scalar

__all__ = ["NumberPrinter"]

_FUNCTIONS = {"cos": r"\cos", "sin": r"\sin", "log": r"\log", "tanh": r"\tanh"}


class NumberPrinter:
    """Prints terms; ``layers`` collects the layer functions of the stacks it met."""

    def __init__(self, unfold: frozenset[str] = frozenset()) -> None:
        self.unfold = unfold
        self.layers: dict[Term, tuple[str, str]] = {}
        self.avoid: frozenset[Term] = frozenset()

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
        """An array written through its entry; a dot is the index of an axis of length 1."""
        at: list[Term] = []
        for axis, length in enumerate(t.shape):
            like = t.shape[axis + 1] if axis in ones else length
            at.append(self.fresh(like, free(t) | set(at)))
        with self.within(at):
            body = self(opened(t, at))
        shown = [None if axis in ones else i for axis, i in enumerate(at)]
        places = self.subscripts(shown, r"\cdot")
        return Piece(rf"\left[{body}\right]_{{{places}}}")

    def applied(self, name: str, args: Sequence[Term]) -> Piece:
        """A function with its arguments in brackets."""
        return Piece(name + bracket(", ".join(self(a) for a in args))) if args else Piece(name)

    def subscripts(self, at: Sequence[Term | None], whole: str = ":") -> str:
        """Indices side by side when each is one symbol, else with commas; None is a whole axis."""
        texts = [whole if i is None else self(i) for i in at]
        close = all(re.fullmatch(r"\\?[A-Za-z]+", text) for text in texts)
        return (" " if close else ", ").join(texts)

    def subscripted(self, array: Term, at: Sequence[Term | None]) -> Piece:
        """An array with indices; trailing whole axes are left out."""
        kept = list(at)
        while kept and kept[-1] is None:
            kept.pop()
        base = self.piece(array)
        text = wrap(base, ATOM)
        if array.op == "var" and ("_" in text or "mathrm" in text):
            text = bracket(text)
        return Piece(rf"{text}_{{{self.subscripts(kept)}}}") if kept else base

    # leaves

    def op_num(self, t: Term) -> Piece:
        value = number_of(t)
        assert value is not None
        return number(value)

    def op_var(self, t: Term) -> Piece:
        return Piece(name_latex(t.data[0]))

    op_size = op_var

    def op_index(self, t: Term) -> Piece:
        return Piece(name_latex(str(t.data)))

    def op_pi(self, _: Term) -> Piece:
        return Piece(r"\pi")

    def op_minus_infinity(self, _: Term) -> Piece:
        return Piece(r"-\infty", SUM, minus=True)

    def op_arange(self, t: Term) -> Piece:
        end = self(integer(add(t.args[0], num(-1))))
        return Piece(rf"(0, 1, \dots, {end})")

    def op_eye(self, t: Term) -> Piece:
        return Piece(rf"I_{{{self(t.args[0])}}}", TIGHT)

    def op_inverse(self, t: Term) -> Piece:
        return Piece(rf"{self(t.args[0], ATOM)}^{{-1}}", TIGHT)

    # arithmetic

    def op_add(self, t: Term) -> Piece:
        text, minus = "", False
        args = (*t.args[1:], t.args[0]) if _counted(t) else t.args
        for place, arg in enumerate(args):
            shown = wrap(self.piece(arg), SUM, last=place == len(args) - 1)
            if not text:
                text, minus = shown, shown.startswith("-")
            elif shown.startswith("-"):
                text += f" - {shown[1:]}"
            else:
                text += f" + {shown}"
        return Piece(text, SUM, minus)

    def op_mul(self, t: Term) -> Piece:
        coefficient, above, below = num(1).data, list[Term](), list[Term]()
        assert not isinstance(coefficient, int)
        for arg in _factors(t):
            value = number_of(arg)
            if value is not None:
                coefficient *= value
            elif arg.op == "power" and arg.data < 0:
                below.append(_power(arg.args[0], -arg.data))
            else:
                above.append(arg)
        return self.quotient(coefficient, above, below)

    def quotient(self, coefficient: Any, above: list[Term], below: list[Term]) -> Piece:
        """A product over a product, with the sign in front and the fewest brackets."""
        sign, size = ("-" if coefficient < 0 else ""), abs(coefficient)
        arrays = [a for a in above if not scalar(a)]
        above = [a for a in above if scalar(a)] + arrays if len(arrays) < len(above) else above
        whole = [str(size.numerator)] * (size.numerator != 1)
        alone = len(above) + len(whole) == 1
        parts = [self.piece(a) for a in above]
        level = SUM if alone and (below or size.denominator != 1) else FACTOR
        factors = [wrap(p, level, last=k == len(parts) - 1) for k, p in enumerate(parts)]
        if len(arrays) > 1:
            scalars, rest = factors[: -len(arrays)], factors[-len(arrays) :]
            factors = [*scalars, r" \odot ".join(rest)]
        under = [str(size.denominator)] * (size.denominator != 1)
        under += [self(b, FACTOR if len(below) + len(under) > 1 else LOOSE) for b in below]
        if not under:
            text = joined(whole + factors) or "1"
            opens = any(p.open for p in parts)
            return Piece(sign + text, SUM if sign else FACTOR, bool(sign), opens)
        top = joined(whole + factors)
        if any(p.open for p in parts) or len(top) > 70 or r"\begin" in top:
            spread = [wrap(p, FACTOR, last=k == len(parts) - 1) for k, p in enumerate(parts)]
            text = joined([rf"\frac{{{joined(whole) or 1}}}{{{joined(under)}}}", *spread])
            return Piece(sign + text, SUM if sign else FACTOR, bool(sign), True)
        text = rf"{sign}\frac{{{top or 1}}}{{{joined(under)}}}"
        return Piece(text, SUM if sign else TIGHT, bool(sign))

    def op_power(self, t: Term) -> Piece:
        exponent: Any = t.data
        if exponent < 0:
            return self.quotient(num(1).data, [], [_power(core(t.args[0]), -exponent)])
        base = core(t.args[0])
        if base.op in ("cos", "sin"):
            return Piece(rf"{_FUNCTIONS[base.op]}^{{{exponent}}}{self.argument(base)}", TIGHT)
        return Piece(rf"{self(base, ATOM)}^{{{exponent}}}", TIGHT)

    def argument(self, t: Term) -> str:
        """The argument of cos, sin, log, tanh: in brackets unless it is one symbol."""
        inner = self.piece(t.args[0])
        plain = inner.level == ATOM and "(" not in inner.text
        return (" " if plain else "") + (inner.text if plain else bracket(inner.text))

    def op_cos(self, t: Term) -> Piece:
        return Piece(_FUNCTIONS[t.op] + self.argument(t), TIGHT)

    op_sin = op_log = op_tanh = op_cos

    def op_exp(self, t: Term) -> Piece:
        inner = self(t.args[0])
        if len(inner) > 40 or any(mark in inner for mark in (r"\frac", r"\sum", r"\begin")):
            return Piece(r"\exp" + bracket(inner))
        return Piece(rf"e^{{{inner}}}", TIGHT)

    def op_sqrt(self, t: Term) -> Piece:
        return Piece(rf"\sqrt{{{self(t.args[0])}}}", TIGHT)

    def op_abs(self, t: Term) -> Piece:
        return Piece(rf"\left|{self(t.args[0])}\right|")

    def op_maximum(self, t: Term) -> Piece:
        return self.applied(r"\max", t.args)

    def op_floor_divide(self, t: Term) -> Piece:
        a, b = t.args
        return Piece(rf"\left\lfloor {self(mul(a, make('power', (b,), -1)))} \right\rfloor")

    def op_remainder(self, t: Term) -> Piece:
        return Piece(rf"{self(t.args[0], FACTOR)} \bmod {self(t.args[1], FACTOR)}", SUM)


def _factors(t: Term) -> Iterator[Term]:
    """The factors of a product, products of numbers inside it opened."""
    for arg in (core(a) for a in t.args):
        if arg.op == "mul" and not arg.ndim:
            yield from _factors(arg)
        else:
            yield arg


def _counted(t: Term) -> bool:
    """Whether it is a number plus an index: printed as 2b + 1, not 1 + 2b."""
    rest = [a for arg in t.args[1:] for a in (arg.args if arg.op == "mul" else (arg,))]
    return t.args[0].op == "num" and all(a.op in ("num", "index", "size") for a in rest)


def _power(base: Term, exponent: int) -> Term:
    return base if exponent == 1 else make("power", (base,), exponent, base.shape)
