"""Values at which the laws that a statement assumes may help, where its author names none.

A side of a law is matched against what is written; nothing here is trusted, as the kernel asks of
each value whether the law speaks of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .claim import Claim, Instance, Law
from .derivation import Reflexive
from .derive import Equation, instance, turned
from .normal_form.equations import chain
from .terms import Term, postorder

ROUNDS = 2  # what a law says is matched again
MOST = 24  # equations: each is one more to read every term by
Values = dict[Term, Term]


def equations_of(laws: Iterable[Law], claim: Claim) -> tuple[Equation, ...]:
    """The laws at the values that occur in a claim, by which each term is the smallest it can be.

    So they cannot lead in a circle, as those of an operation that is commutative would.
    """
    told = [law for law in laws if law.claim.relation == "=" and law.claim.variables]
    terms = dict.fromkeys(t for side in claim.terms() for t in postorder(side))
    found: dict[tuple[Term, Term], Equation] = {}
    for _ in range(ROUNDS):
        for one in [one for law in told for one in _instances(law, terms)]:
            left, right = one.sides
            if left is not right and len(found) < MOST:
                found.setdefault((left, right), instance(one))
                terms |= dict.fromkeys(t for side in (left, right) for t in postorder(side))
    return tuple(_to_the_smallest(found.values()))


def _to_the_smallest(found: Iterable[Equation]) -> Iterator[Equation]:
    """For each term the equation, step by step, with the smallest of those that it is equal to."""
    near: dict[Term, list[Equation]] = {}
    for one in found:
        for way in (one, turned(one)):
            near.setdefault(way.right, []).append(way)
    weight = {t: (sum(1 for _ in postorder(t)), t.key) for t in near}
    reached: set[Term] = set()
    for smallest in sorted(near, key=weight.__getitem__):
        if smallest in reached:
            continue
        reached.add(smallest)
        steps = [Equation(smallest, smallest, Reflexive(smallest))]
        for known in steps:  # which grow as they are walked
            for way in near[known.left]:
                if way.left not in reached:
                    reached.add(way.left)
                    steps.append(Equation(way.left, smallest, chain(way.whole, known.whole)))
        yield from steps[1:]


def _instances(law: Law, terms: Iterable[Term]) -> Iterator[Instance]:
    claim = law.claim
    own = [given.named(name).term for name, given in claim.variables]
    assert claim.right is not None
    for side in (claim.left, claim.right):
        if side in own:
            continue  # anything is like it
        for t in terms:
            values = _matched(side, t, frozenset(own), {})
            if values is not None and len(values) == len(own):
                yield Instance(law, tuple(values[v] for v in own))


def _matched(pattern: Term, t: Term, own: frozenset[Term], known: Values) -> Values | None:
    """What the variables stand for where a term is like a pattern; None where it is not."""
    if pattern in own:
        if t.loose or t.shape != pattern.shape or known.get(pattern, t) is not t:
            return None
        return {**known, pattern: t}
    if pattern is t:
        return known
    alike = (pattern.op, pattern.data, pattern.shape) == (t.op, t.data, t.shape)
    if not alike or len(pattern.args) != len(t.args) or not pattern.args:
        return None
    values: Values | None = known
    for inner, part in zip(pattern.args, t.args, strict=True):
        values = None if values is None else _matched(inner, part, own, values)
    return values
