r"""The LaTeX of arrays made of others: reshaped, put together, stacked."""

from __future__ import annotations

from typing import Any

from ..terms import Term, free
from .layers import StackPrinter
from .names import SUM, Piece, bracket
from .opening import core

__all__ = ["BlockPrinter"]


class BlockPrinter(StackPrinter):
    """Prints blocks, and axes that are merged or split."""

    def op_reshape(self, t: Term) -> Piece:
        (x,) = t.args
        groups: Any = t.data
        merged = [before for before, after in groups if len(before) == 2 and len(after) == 1]
        last = merged == [(x.ndim - 2, x.ndim - 1)] and t.ndim == x.ndim - 1
        if last and x.op == "stack" and x.data == x.ndim - 1:
            return self.applied(r"\operatorname{interleave}", x.args)
        if last and x.op == "permute":
            order: Any = x.data
            if order[-2] == 0 and [a for a in order if a] == list(range(1, x.ndim)):
                return self._heads(x.args[0])
        lengths = r" \times ".join(self(n, SUM) for n in t.shape)
        return Piece(rf"\operatorname{{reshape}}_{{{lengths}}}{bracket(self(x))}")

    def _heads(self, x: Term) -> Piece:
        """Heads side by side: Concat over h of x_h."""
        h = self.fresh(x.shape[0], free(x))
        with self.within((h,)):
            head = self.subscripted(x, [h])
        span = f"{self(h)} < {self(x.shape[0])}"
        return Piece(rf"\operatorname{{Concat}}_{{{span}}}{bracket(head.text)}")

    def op_concat(self, t: Term) -> Piece:
        axis: Any = t.data
        between = " & " if axis == t.ndim - 1 and t.ndim > 1 else r" \\ "
        if t.ndim > 2 and axis < t.ndim - 2:
            return self.applied(r"\operatorname{concat}", t.args)
        return _block(between.join(self(a) for a in t.args))

    def op_stack(self, t: Term) -> Piece:
        axis: Any = t.data
        parts = [core(a) for a in t.args]
        inner = {(p.op, p.data) for p in parts}
        if inner == {("stack", t.ndim - 2)} and axis >= t.ndim - 2:
            cells = [[self(c) for c in p.args] for p in parts]
            if axis == t.ndim - 1:
                cells = [list(row) for row in zip(*cells, strict=True)]
            return _block(r" \\ ".join(" & ".join(row) for row in cells))
        if t.ndim > 1 and axis == t.ndim - 1:
            return _block(" & ".join(self(a) for a in t.args))
        return _block(r" \\ ".join(self(a) for a in t.args))


def _block(cells: str) -> Piece:
    return Piece(rf"\left(\begin{{matrix}}{cells}\end{{matrix}}\right)")
