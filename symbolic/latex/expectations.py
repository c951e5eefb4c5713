r"""The LaTeX of random arrays: an axis of outcomes is not printed, a sum over it is E[..].

``z[ω, a]`` is z_a, as everywhere in probability.  Where two outcomes of one space meet, the
second is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..terms import Term, free, instantiate, make, postorder
from .names import TIGHT, Piece, name_latex
from .opening import core, names_of, opened
from .truth import TruthPrinter

__all__ = ["ExpectationPrinter"]

OUTCOME = "the outcome"


class ExpectationPrinter(TruthPrinter):
    """Prints expectations, and random arrays without their outcomes."""

    def fresh(self, length: Term, taken: Iterable[Term]) -> Term:
        """An index not used there nor around it; the first outcome of a space stays unseen."""
        if length.op != "space":
            return super().fresh(length, taken)
        around = {*taken, *self.avoid}
        used = names_of(around) - {OUTCOME}
        if any(v.op == "index" and v.data == OUTCOME and v.args == (length,) for v in around):
            used.add(OUTCOME)
        names = (OUTCOME, "omega", *(f"omega{k}" for k in range(1, 99)))
        return make("index", (length,), next(name for name in names if name not in used))

    def subscripts(self, at: Sequence[Term | None], whole: str = ":") -> str:
        """The indices but for unseen outcomes."""
        return super().subscripts([i for i in at if not _unseen(i)], whole)

    def listed(self, at: Iterable[Term]) -> str:
        """Indices with commas between them, but for unseen outcomes."""
        return super().listed(i for i in at if not _unseen(i))

    def subscripted(self, array: Term, at: Sequence[Term | None]) -> Piece:
        """An array with indices, none of them an unseen outcome."""
        whole = [n.op == "space" for n in array.shape]
        seen = [i for i, hid in zip(at, whole, strict=False) if not (_unseen(i) or (hid and not i))]
        return super().subscripted(array, seen)

    def op_space(self, t: Term) -> Piece:
        """The name of a probability space."""
        return Piece(name_latex(t.data[0]))

    def expectation(self, body: Term, outcome: Term) -> Piece:
        """E[body], over several independent experiments at once where it is written so."""
        outcomes, around = [outcome], self._around()
        while (inner := self._inner(body, outcomes)) is not None:
            outcomes.append(inner[0])
            body = inner[1]
        with self.within(outcomes):
            text = self(body)
        return self._expected(text, body, outcomes, around)

    def mean_array(self, array: Term, space: Term) -> Piece:
        """E[array], entry by entry, for an array with an axis of outcomes."""
        outcome = make("index", (space,), OUTCOME)
        return self._expected(self(array), array, [outcome], self._around())

    def _expected(self, text: str, body: Term, outcomes: list[Term], around: bool) -> Piece:
        """The spaces are named if something random over another one stands inside or around."""
        spaces = [k.args[0] for k in outcomes]
        parts = {n for p in postorder(body) for n in (p, *p.shape)}
        others = any(p.op == "space" and p not in spaces for p in parts)
        names = ", ".join(self(k.args[0] if _unseen(k) else k) for k in outcomes)
        sign = rf"\mathbb{{E}}_{{{names}}}" if around or others else r"\mathbb{E}"
        return Piece(rf"{sign}\left[{text}\right]", TIGHT)

    def _around(self) -> bool:
        return any(v.op == "index" and v.args[0].op == "space" for v in self.avoid)

    def _inner(self, body: Term, outcomes: list[Term]) -> tuple[Term, Term] | None:
        """The outcome and the body of an expectation over another space directly inside."""
        t = core(body)
        if t.op == "sum":
            length, inside = t.args
        elif t.op == "reduce" and not t.ndim:
            length, inside = t.args[0].shape[0], t.args[0]
        else:
            return None
        if length.op != "space" or length in [k.args[0] for k in outcomes]:
            return None
        k = self.fresh(length, free(t).union(outcomes))
        return k, instantiate(inside, k) if t.op == "sum" else opened(inside, (k,))


def _unseen(at: Term | None) -> bool:
    return at is not None and at.op == "index" and at.data == OUTCOME
