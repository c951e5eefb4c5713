r"""LaTeX of matrices: products, transposes, permuted rows, blocks, sums, functions, stacks.

An index map stands for its matrix: row i of σX is row σ(i) of X, column j of Sσᵀ is column σ(j) of
S.  So σ(τX) and (στ)X agree, and no brackets are needed.

A power M^m is an ``iterate`` term in the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..definition import DEFINITIONS
from ..scalars import ONE, ZERO, add, entry, integer, mul, num, number_of, subtract
from ..terms import Term, free, instantiate, make, names
from .general_entries import constant, core, folded, letter_of, names_of, needs_entries, opened
from .numbers import ExpectationPrinter
from .printer import (
    ATOM,
    FACTOR,
    SUM,
    TIGHT,
    Piece,
    bracket,
    has_script,
    joined,
    name_latex,
    raised,
    wrap,
)

# Stacks of layers that are powers: they start from 1, and each layer multiplies by one factor


def power_base(stack: Term) -> Term | None:
    """Return the base if a stack of layers is a power, else None.

    Only Y ↦ M Y from the identity counts, not Y ↦ Y M or a start other than 1: that these are
    powers too is a theorem, whose two sides must not print equally.

    >>> from attnproof.symbolic.claim import iterate
    >>> from attnproof.symbolic.givens import natural, real, sizes
    >>> from attnproof.symbolic.namespace import eye
    >>> (d,) = sizes("d")
    >>> M, x, m = real(d, d).named("M"), real(d).named("x"), natural().named("m")
    >>> power_base(iterate(m, eye(d), lambda t, Y: M @ Y).term)
    M
    >>> power_base(iterate(m, eye(d), lambda t, Y: Y @ M).term) is None
    True
    >>> power_base(iterate(m, x, lambda t, y: M @ y).term) is None
    True
    """
    depth, start, body = stack.args
    while start.op == "broadcast":
        start = start.args[0]
    if body.loose > 2 or not (start.op == "eye" if stack.ndim else start is ONE):
        return None
    layer = make("index", (depth,), "the layer")
    state = make("var", (), ("the state", "real"), stack.shape)
    filled = instantiate(body, layer, state)
    base = _factor(filled, state)
    return None if base is None or free(base) & {layer, state} else base


def _factor(t: Term, state: Term) -> Term | None:
    """Return A if the term is A Y (or c y for numbers), else None."""
    if t.op == "matmul" and t.args[1] is state:
        return t.args[0]
    if t.op == "mul" and not t.ndim and state in t.args:
        others = list(t.args)
        others.remove(state)
        return mul(*others)
    if t.op == "matmul":
        inner = _factor(t.args[1], state)
        if inner is not None and inner.ndim:
            return make("matmul", (t.args[0], inner), shape=t.shape)
    return None


# LaTeX of stacks of layers: powers, and compositions of functions defined beside the formula


class StackPrinter(ExpectationPrinter):
    """Prints stacks of layers."""

    def op_iterate(self, t: Term) -> Piece:
        r"""Print a power, or a composition whose layer is defined beside the formula."""
        base, depth = power_base(t), self(t.args[0])
        if base is not None and self.strict < 2:
            return raised(self.piece(base), depth)
        if t.args[0] is ZERO and not self.strict:
            return self.piece(t.args[1])
        start = bracket(self(t.args[1]))
        known = self.layers.get(t.args[2]) or self._layer(t)
        name, index = known[:2]
        if not index:
            return Piece(rf"{name}^{{{depth}}}{start}")
        top = self(integer(add(t.args[0], num(-1))))
        return Piece(rf"\left({name}_{{{top}}} \circ \cdots \circ {name}_{{0}}\right){start}")

    def _layer(self, t: Term) -> tuple[str, str, str]:
        """Return the name of a layer, its index if it depends on it, and its definition."""
        depth, _, body = t.args
        taken = names_of({*self.avoid, *free(t)}) | {known[0] for known in self.layers.values()}
        layer = make("index", (depth,), letter_of("tsijk", taken))
        state = make("var", (), (letter_of("xyzuvw", taken), "real"), t.shape)
        filled = instantiate(body, layer, state)
        if filled.op == "call" and filled.args == (state,):
            return name_latex(filled.data[0]), "", ""
        name = letter_of("FGHLTUV", taken)
        index = self(layer) if layer in free(filled) else ""
        self.layers[body] = (name, index, "")
        with self.within((layer, state)):
            head = f"{name}_{{{index}}}" if index else name
            definition = f"{head}({self(state)}) = {self(filled)}"
        self.layers[body] = (name, index, definition)
        return name, index, definition


# LaTeX of matrices


class BlockPrinter(StackPrinter):
    """Prints blocks, and arrays with merged or split axes."""

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
        """Print heads side by side: Concat over h of x_h."""
        h = self.fresh(x.shape[0], free(x))
        with self.within((h,)):
            head = self.subscripted(x, [h])
        span = f"{self(h)} < {self(x.shape[0])}"
        return Piece(rf"\operatorname{{Concat}}_{{{span}}}{bracket(head.text)}")

    def op_concat(self, t: Term) -> Piece:
        axis: Any = t.data
        between = " & " if axis == t.ndim - 1 and t.ndim > 1 else r" \\ "
        if t.ndim > 2 and axis < t.ndim - 2:
            return self.applied(rf"\operatorname{{concat}}_{{{axis}}}", t.args)
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
        if t.ndim > 2:
            return self.applied(rf"\operatorname{{stack}}_{{{axis}}}", t.args)
        if axis:
            return _block(" & ".join(self(a) for a in t.args))
        rows = (rf"{self(a, ATOM)}^{{\top}}" if a.ndim else self(a) for a in t.args)
        return _block(r" \\ ".join(rows))


def _block(cells: str) -> Piece:
    return Piece(rf"\left(\begin{{matrix}}{cells}\end{{matrix}}\right)")


_HOLE = re.compile(r"(?P<brace>\{)?#(?P<number>\d)(?(brace)\})(?:\^\{(?P<power>[^{}]*)\})?")
_MAPS = ("permutation", "injection", "index map")


class Printer(BlockPrinter):
    """Prints every term, arrays included."""

    def op_named(self, t: Term) -> Piece:
        (name,) = t.data
        known = DEFINITIONS.get(name)
        if known is not None and "#" in known.latex:
            holes = {int(found["number"]) for found in _HOLE.finditer(known.latex)}
            if max(holes) >= len(t.args):  # a plain number is no argument of the term
                return self.piece(t.args[0])
            return self._written(known.latex, t.args[1:])
        shown = ", ".join(self.factor(a).text for a in t.args[1:])
        return Piece((known.latex if known else name_latex(name)) + bracket(shown))

    def _written(self, form: str, args: Sequence[Term]) -> Piece:
        r"""Print a definition with its own notation: #1 \cdot #2, #1^{*}, \left|{#1}\right|."""

        def filled(found: re.Match[str]) -> str:
            arg = args[int(found["number"]) - 1]
            if found["power"]:
                return raised(self.piece(arg), found["power"]).text
            return f"{{{self(arg)}}}" if found["brace"] else self(arg, FACTOR)

        text = _HOLE.sub(filled, form)
        level = SUM if r"\cdot" in form else FACTOR if form.startswith("#") else TIGHT
        return Piece(text, level)

    def op_call(self, t: Term) -> Piece:
        return self.applied(name_latex(t.data[0]), t.args)

    def op_matmul(self, t: Term) -> Piece:
        left, right = t.args
        part = self.factor(right)
        if self.strict and right.op == "matmul":
            part = Piece(bracket(part.text))
        close = ATOM if left.op == "gather" else FACTOR  # (σX)W is not σ(XW)
        first = self.factor(left)
        row = rf"{wrap(first, ATOM)}^{{\top}}" if left.ndim == 1 else wrap(first, close, last=False)
        return Piece(joined([row, wrap(part, FACTOR)]), FACTOR, open=part.open)

    def factor(self, t: Term) -> Piece:
        """Return a factor of a matrix product; one with equal entries is printed with its shape."""
        many = any(n is not ONE for n in t.shape)
        return self.repeated(t) if many and constant(t) else self.piece(t)

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
        """Print an entry or a slice of an array, merging nested picks."""
        base, at = t, list[Term | None]([None] * t.ndim)
        while base.op == "pick":
            axis: Any = base.data
            at.insert(axis, base.args[1])
            base = core(base.args[0]) if not at.count(None) else base.args[0]
        first = next((i for i in at if i is not None), None)
        if base.op == "tabulate" and first is at[0] and first is not None and not self.strict:
            row = instantiate(base.args[1], first)
            for axis, i in reversed([*enumerate(at[1:])]):
                if i is not None:
                    row = _picked(row, axis, i)
            return self.piece(row)
        if base.op == "eye" and at[0] is not None and at[1:] == [None]:
            return (
                Piece(rf"e_{{{self(at[0])}}}")
                if "e" not in names_of(self.avoid)
                else (self.subscripted(base, at))
            )
        opens = base.op == "stack" or (base.op == "tabulate" and not self.strict)
        if None not in at and (opens or needs_entries(base)):
            found = opened(base, [i for i in at if i is not None])
            literal = all(i is not None and i.op == "num" for i in at)
            return self.piece(folded(found) if literal else found)
        return self.subscripted(base, at)

    def op_slice(self, t: Term) -> Piece:
        axis, step = t.data
        start = t.args[1]
        end = integer(add(start, mul(num(step), t.shape[axis])))
        array, inner = t.args[0], core(t.args[0])
        beyond = number_of(integer(subtract(end, array.shape[axis])))
        whole = beyond is not None and 0 <= beyond < step
        span = f"{self(start)}:" + ("" if whole else self(end)) + (f":{step}" if step != 1 else "")
        added = array.ndim - inner.ndim  # unprinted leading axes, added by broadcasting
        unseen = added if axis >= added and array.shape[added:] == inner.shape else 0
        at = ", ".join([*(":" for _ in range(axis - unseen)), span])
        text = self(t.args[0], ATOM)
        return Piece(rf"{bracket(text) if has_script(text, '_') else text}_{{{at}}}")

    def op_reduce(self, t: Term) -> Piece:
        (x,) = t.args
        axis: Any = t.data
        if x.shape[axis].op == "space" and t.ndim:
            return self.mean_array(x, x.shape[axis])
        k = self.fresh(x.shape[axis], free(x))
        if x.shape[axis].op == "space":
            return self.expectation(opened(x, (k,)), k)
        with self.within((k,)):
            at: list[Term | None] = [*([None] * axis), k]
            inner = self.subscripted(x, at) if t.ndim else self.piece(opened(x, (k,)))
        return Piece(rf"{self._sum_sign(k)} {wrap(inner, FACTOR)}", FACTOR, open=True)

    def _sum_sign(self, k: Term) -> str:
        return rf"\sum_{{{self(k)} < {self(k.args[0])}}}"

    def op_sum(self, t: Term) -> Piece:
        length, body = t.args
        k = self.fresh(length, free(t))
        if length.op == "space":
            return self.expectation(instantiate(body, k), k)
        with self.within((k,)):
            inner = self.piece(instantiate(body, k))
        return Piece(rf"{self._sum_sign(k)} {wrap(inner, FACTOR)}", FACTOR, open=True)

    def op_tabulate(self, t: Term) -> Piece:
        k = self.fresh(t.args[0], free(t))
        inner = instantiate(t.args[1], k)
        if inner.op == "entry" and inner.args[-1] is k and k not in names(*inner.args[:-1]):
            return self.subscripted(inner.args[0], inner.args[1:-1])
        row = inner.op == "pick" and not inner.data and inner.args[1] is k
        if row and k not in free(inner.args[0]):
            return self.piece(inner.args[0])
        basis = unit_vector(inner, k)
        if basis is not None and "e" not in names_of(self.avoid):
            return Piece(rf"e_{{{self(basis)}}}")
        with self.within((k,)):
            body = self(inner)
        return Piece(rf"\left({body}\right)_{{{self(k)} < {self(t.args[0])}}}", TIGHT)

    def op_entry(self, t: Term) -> Piece:
        array, *at = t.args
        kind = array.args[0] if array.op == "inverse" else array
        if kind.op == "var" and kind.data[1] in _MAPS:
            return self.applied(self(array), at)
        if needs_entries(core(array)):
            return self.piece(opened(array, at))
        return self.subscripted(array, at)

    def op_row(self, t: Term) -> Piece:
        """Print a row of an array, without the axes along which it is only repeated."""
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


def unit_vector(entry_: Term, at: Term) -> Term | None:
    """Return i if the entry at k is [k = i], as for a basis vector, else None."""
    if entry_.op != "indicator" or entry_.args[0].op != "equal" or at not in entry_.args[0].args:
        return None
    left, right = entry_.args[0].args
    other = right if left is at else left
    return None if at in free(other) else other


def _picked(t: Term, axis: int, at: Term) -> Term:
    return make("pick", (t, at), axis, (*t.shape[:axis], *t.shape[axis + 1 :]))
