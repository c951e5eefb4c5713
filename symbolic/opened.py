"""Numbers with their arrays unfolded and nothing expanded: the form in which an author wrote them.

A sign, or that a number is not 0, is read off such a form; a normal form would have multiplied
out the squares.
"""

from __future__ import annotations

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
    if t in keep or (t.op == "entry" and t.args[0] in keep):
        return Reflexive(t)
    if t.op == "named":
        step = rewrite("definition", t)
        return chain(step, opened(step.right, keep))
    if t.op in READ or (t.op == "entry" and t.args[0].op not in ATOMS):
        try:
            step = rewrite("entry", t)
        except Refused:
            return Reflexive(t)
        return chain(step, opened(step.right, keep))
    if t.op == "sum":
        j = opened_index(t, t.args[0])
        return under(t, (j,), opened(instantiate(t.args[1], j), keep))
    if t.op in (*BINDERS, "entry", "call"):
        return Reflexive(t)
    return inside(t, [(k, opened(arg, keep)) for k, arg in enumerate(t.args)])
