"""Small builders of derivations, which leave out the steps that change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ..derivation import Chain, Derivation, Inside, Reflexive, Reverse, Rewrite, Under
from ..rules import RULES
from ..terms import Term, bind, make

__all__ = ["chain", "inside", "reverse", "rewrite", "under"]


def rewrite(rule: str, term: Term, *arguments: object) -> Derivation:
    """One rule at the root of a term; raises ``Refused`` if the rule does not apply."""
    after, _ = RULES[rule](term, *arguments)
    return Reflexive(term) if after is term else Rewrite(rule, term, arguments, after)


def chain(*parts: Derivation) -> Derivation:
    """The equations one after the other."""
    flat: list[Derivation] = []
    for part in parts:
        if isinstance(part, Chain):
            flat.extend(part.parts)
        elif not isinstance(part, Reflexive):
            flat.append(part)
    if not flat or flat[0].left is flat[-1].right:
        return Reflexive(parts[0].left)
    for a, b in pairwise(flat):
        assert a.right is b.left, (a.right, b.left)
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def inside(term: Term, parts: Iterable[tuple[int, Derivation]]) -> Derivation:
    """Equations for some arguments of a term, as an equation of the term."""
    kept = tuple((place, part) for place, part in parts if not isinstance(part, Reflexive))
    if not kept:
        return Reflexive(term)
    args = list(term.args)
    for place, part in kept:
        args[place] = part.right
    return Inside(term, kept, make(term.op, tuple(args), term.data, term.shape))


def under(term: Term, variables: tuple[Term, ...], part: Derivation) -> Derivation:
    """An equation of the opened body, as an equation of the binder."""
    if isinstance(part, Reflexive):
        return Reflexive(term)
    body = bind(part.right, *variables)
    return Under(
        term, variables, part, make(term.op, (*term.args[:-1], body), term.data, term.shape)
    )


def reverse(part: Derivation) -> Derivation:
    """The equation read backwards."""
    if isinstance(part, Reflexive):
        return part
    return part.part if isinstance(part, Reverse) else Reverse(part)
