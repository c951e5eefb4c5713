"""Numbers with their arrays unfolded and nothing expanded: the form in which an author wrote them.

A sign, or that a number is not 0, is read off such a form; a normal form would have multiplied
out the squares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .budget import spend
from .derivation import Derivation, Reflexive
from .normal_form.equations import chain, inside, rewrite, under
from .normal_form.nests import opened_index
from .rules import Refused
from .terms import BINDERS, Term, instantiate

__all__ = ["opened"]

ATOMS = ("var", "inverse", "iterate", "call")
READ = ("matmul", "reduce", "pick", "permute", "broadcast", "reshape", "gather", "slice", "row")


def opened(t: Term, keep: frozenset[Term] = frozenset()) -> Derivation:
    """The derivation of t = t with every entry of a computed array unfolded.

    Entries of the arrays in ``keep`` stay as they are: something is known of them.
    """
    return _Opening(keep)(t)


@dataclass
class _Opening:
    """One unfolding; a part that occurs in several places is unfolded once."""

    keep: frozenset[Term]
    known: dict[Term, Derivation] = field(default_factory=dict)

    def __call__(self, t: Term) -> Derivation:
        found = self.known.get(t)
        if found is None:
            spend()
            found = self.known[t] = self._opened(t)
        return found

    def _opened(self, t: Term) -> Derivation:
        if t in self.keep or (t.op == "entry" and t.args[0] in self.keep):
            return Reflexive(t)
        if t.op == "named":
            step = rewrite("definition", t)
            return chain(step, self(step.right))
        if t.op in READ or (t.op == "entry" and t.args[0].op not in ATOMS):
            try:
                step = rewrite("entry", t)
            except Refused:
                return Reflexive(t)
            return chain(step, self(step.right))
        if t.op == "sum":
            j = opened_index(t, t.args[0])
            return under(t, (j,), self(instantiate(t.args[1], j)))
        if t.op in (*BINDERS, "entry", "call"):
            return Reflexive(t)
        return inside(t, [(k, self(arg)) for k, arg in enumerate(t.args)])
