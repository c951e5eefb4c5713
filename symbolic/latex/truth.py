r"""The LaTeX of truth values: comparisons, connectives, indicators, cases."""

from __future__ import annotations

from ..terms import Term
from .names import ATOM, FACTOR, LOOSE, SUM, Piece
from .numbers import NumberPrinter
from .opening import core

__all__ = ["TruthPrinter"]

_RELATIONS = {"equal": "=", "less": "<", "less_equal": r"\le"}
_NEGATED = {"equal": r"\ne", "less": r"\ge", "less_equal": ">"}


class TruthPrinter(NumberPrinter):
    """Prints conditions and what depends on them."""

    def op_equal(self, t: Term) -> Piece:
        left, right = (self(a, SUM) for a in t.args)
        return Piece(f"{left} {_RELATIONS[t.op]} {right}", LOOSE)

    op_less = op_less_equal = op_equal

    def op_not(self, t: Term) -> Piece:
        inner = t.args[0]
        if inner.op in _NEGATED:
            left, right = (self(a, SUM) for a in inner.args)
            return Piece(f"{left} {_NEGATED[inner.op]} {right}", LOOSE)
        return Piece(rf"\lnot {self(inner, ATOM)}", FACTOR)

    def op_and(self, t: Term) -> Piece:
        return Piece(r" \land ".join(self(a, SUM) for a in t.args), LOOSE)

    def op_or(self, t: Term) -> Piece:
        return Piece(r" \lor ".join(self(a, SUM) for a in t.args), LOOSE)

    def op_isin(self, t: Term) -> Piece:
        index, places = self(t.args[0], SUM), self(t.args[1], ATOM)
        return Piece(rf"{index} \in \operatorname{{im}}\,{places}", LOOSE)

    op_is_in = op_isin

    def op_indicator(self, t: Term) -> Piece:
        return Piece(rf"\left[{self(t.args[0])}\right]")

    def op_where(self, t: Term) -> Piece:
        rows, rest = list[str](), t
        while rest.op == "where":
            rows.append(rf"{self(rest.args[1])} & \text{{if }} {self(rest.args[0])}")
            rest = core(rest.args[2])
        rows.append(rf"{self(rest)} & \text{{otherwise}}")
        return Piece(r"\begin{cases}" + r" \\ ".join(rows) + r"\end{cases}", LOOSE)
