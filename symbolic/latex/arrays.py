r"""The LaTeX of matrices: products, transposes, moved rows, blocks, sums, functions, stacks.

A map of indices stands for its matrix: row i of σX is row σ(i) of X, column j of Sσᵀ is column
σ(j) of S.  So σ(τX) and (στ)X agree, and no brackets are needed.
"""

from __future__ import annotations

from typing import Any

from ..definition import DEFINITIONS
from ..scalars import ONE, add, entry, integer, mul, num
from ..terms import Term, free, instantiate, make
from .names import ATOM, FACTOR, SUM, Piece, bracket, joined, name_latex, wrap
from .opening import core, needs_entries, opened
from .truth import TruthPrinter

__all__ = ["Printer"]

_MAPS = ("permutation", "injection", "index map")


class Printer(TruthPrinter):
    """Prints every term, arrays included."""

    def op_named(self, t: Term) -> Piece:
        (name,) = t.data
        if name in self.unfold:
            return self.piece(t.args[0])
        known = DEFINITIONS.get(name)
        return self.applied(known.latex if known else name_latex(name), t.args[1:])

    def op_call(self, t: Term) -> Piece:
        return self.applied(name_latex(t.data[0]), t.args)

    def op_matmul(self, t: Term) -> Piece:
        left, right = t.args
        part = self.piece(right)
        close = ATOM if left.op == "gather" else FACTOR  # (σX)W is not σ(XW)
        row = rf"{self(left, ATOM)}^{{\top}}" if left.ndim == 1 else self(left, close, last=False)
        return Piece(joined([row, wrap(part, FACTOR)]), FACTOR, open=part.open)

    def op_permute(self, t: Term) -> Piece:
        order: Any = t.data
        if order[-2:] == (t.ndim - 1, t.ndim - 2) and order[:-2] == tuple(range(t.ndim - 2)):
            return Piece(rf"{self(t.args[0], ATOM)}^{{\top}}")
        places = ", ".join(str(axis) for axis in order)
        return Piece(rf"\operatorname{{axes}}_{{{places}}}{bracket(self(t.args[0]))}")

    def op_gather(self, t: Term) -> Piece:
        x, moved = t.args
        axis: Any = t.data
        if axis == max(0, t.ndim - 2):
            part = self.piece(x)
            text = wrap(part, ATOM if x.op == "matmul" else FACTOR)
            return Piece(joined([self(moved, ATOM), text]), FACTOR, open=part.open)
        if axis == t.ndim - 1:
            sigma = self.piece(moved)
            up = sigma.text.replace("^{-1}", r"^{-\top}") if moved.op == "inverse" else ""
            text = self(x, ATOM if x.op == "matmul" else FACTOR, last=False)
            return Piece(joined([text, up or rf"{sigma.text}^{{\top}}"]), FACTOR)
        return self.subscripted(x, [*([None] * axis), moved])

    def op_pick(self, t: Term) -> Piece:
        axis: Any = t.data
        return self.subscripted(t.args[0], [*([None] * axis), t.args[1]])

    def op_slice(self, t: Term) -> Piece:
        axis, step = t.data
        start = t.args[1]
        end = integer(add(start, mul(num(step), t.shape[axis])))
        whole = step != 1 or end is core(t.args[0]).shape[axis]
        span = f"{self(start)}:" + ("" if whole else self(end)) + (f":{step}" if step != 1 else "")
        at = ", ".join([*(":" for _ in range(axis)), span])
        return Piece(rf"{self(t.args[0], ATOM)}_{{{at}}}")

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

    def op_reduce(self, t: Term) -> Piece:
        (x,) = t.args
        axis: Any = t.data
        k = self.fresh(x.shape[axis], free(x))
        with self.within((k,)):
            at: list[Term | None] = [*([None] * axis), k]
            inner = self.subscripted(x, at) if t.ndim else self.piece(opened(x, (k,)))
        return Piece(rf"{self._sum_sign(k)} {wrap(inner, FACTOR)}", FACTOR, open=True)

    def _sum_sign(self, k: Term) -> str:
        return rf"\sum_{{{self(k)} < {self(k.args[0])}}}"

    def op_sum(self, t: Term) -> Piece:
        length, body = t.args
        k = self.fresh(length, free(t))
        with self.within((k,)):
            inner = self.piece(instantiate(body, k))
        return Piece(rf"{self._sum_sign(k)} {wrap(inner, FACTOR)}", FACTOR, open=True)

    def op_tabulate(self, t: Term) -> Piece:
        k = self.fresh(t.args[0], free(t))
        with self.within((k,)):
            body = self(instantiate(t.args[1], k))
        return Piece(rf"\left({body}\right)_{{{self(k)} < {self(t.args[0])}}}")

    def op_entry(self, t: Term) -> Piece:
        array, *at = t.args
        kind = array.args[0] if array.op == "inverse" else array
        if kind.op == "var" and kind.data[1] in _MAPS:
            return self.applied(self(array), at)
        if needs_entries(core(array)):
            return self.piece(opened(array, at))
        return self.subscripted(array, at)

    def op_row(self, t: Term) -> Piece:
        """A row of an array, without the axes along which it is only repeated."""
        x, at = t.args[0], list(t.args[1:])
        if len(at) == x.ndim:
            return self.piece(opened(x, at))
        while x.op in ("broadcast", "new axis", "gather"):
            axis: Any = x.data
            if x.op == "gather":
                if axis >= len(at):
                    break
                at[axis] = entry(x.args[1], at[axis])
                x = x.args[0]
                continue
            if x.op == "new axis":
                if axis >= len(at):
                    break
                del at[axis]
                x = x.args[0]
                continue
            inner = x.args[0]
            outer = x.ndim - inner.ndim
            at = at[outer:]
            if any(
                n is ONE and m is not ONE for n, m in zip(inner.shape, x.shape[outer:], strict=True)
            ):
                at = [i if n is not ONE else num(0) for i, n in zip(at, inner.shape, strict=False)]
            x = inner
        return self.subscripted(x, at)

    def op_iterate(self, t: Term) -> Piece:
        r"""A stack of layers as a composition; the layer function is told beside the formula."""
        depth, start, body = t.args
        name, _ = self.layers.get(body) or self._layer(t)
        level = self(depth)
        if not name.endswith("}"):
            power = level if len(level) == 1 or level.startswith("\\") else f"{{{level}}}"
            stack = rf"{name}^{{{power}}}"
        else:
            top = self(integer(add(depth, num(-1))))
            stack = rf"\left({name[:-3]}{{{top}}} \circ \cdots \circ {name[:-3]}{{0}}\right)"
        return Piece(stack + bracket(self(start)))

    def _layer(self, t: Term) -> tuple[str, str]:
        depth, _, body = t.args
        taken = {str(v.data[0]) for v in free(t) if v.op != "index"}
        taken |= {known[0][0] for known in self.layers.values()}
        letters = (c for c in "FGHLTUV" if c not in taken)
        name = next(letters)
        layer = self.fresh(depth, free(t))
        state = make("var", (), (next(c for c in "xyzuvw" if c not in taken), "real"), t.shape)
        filled = instantiate(body, layer, state)
        if layer in free(filled):
            name += f"_{{{self(layer)}}}"
        self.layers[body] = (name, "")
        with self.within((layer, state)):
            told = f"{name}({self(state)}) = {self(filled)}"
        self.layers[body] = (name, told)
        return name, told


def _block(cells: str) -> Piece:
    return Piece(rf"\left(\begin{{matrix}}{cells}\end{{matrix}}\right)")
