r"""The LaTeX of a term, at the level it was written: matrices and names, not index soup.

Where matrix notation would hide something (a vector added to every row, exp of every entry, a
difference of all pairs) the array is written through its entry, as in ``(p_{i} - p_{j})_{ij}``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product

from ..scalars import num, number_of
from ..terms import Term, free, instantiate, make
from .names import ATOM, LOOSE, Piece, bracket, has_script, wrap
from .opening import core, folded, inner_axes, letter, needs_entries, opened, small

__all__ = ["BasePrinter"]


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
