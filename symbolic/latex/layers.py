r"""The LaTeX of stacks of layers: powers, and compositions of functions that are told beside."""

from __future__ import annotations

from ..scalars import ZERO, add, integer, num
from ..stacks import power_base
from ..terms import Term, free, instantiate, make
from .expectations import ExpectationPrinter
from .names import Piece, bracket, name_latex, raised
from .opening import letter_of, names_of

__all__ = ["StackPrinter"]


class StackPrinter(ExpectationPrinter):
    """Prints stacks of layers."""

    def op_iterate(self, t: Term) -> Piece:
        r"""A stack of layers: a power, or a composition whose layer is told beside the formula."""
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
        """The name of a layer, its index if it depends on that, and what it does."""
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
            told = f"{head}({self(state)}) = {self(filled)}"
        self.layers[body] = (name, index, told)
        return name, index, told
