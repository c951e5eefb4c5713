"""A derivation as the ordered list of its kernel steps, each with the whole term around it.

``flatten`` lists the steps, which certificates print; ``rule_counts`` counts them by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from .decision import Step
from .derivation import (
    Assume,
    Cases,
    Chain,
    Derivation,
    Differ,
    Induction,
    Inside,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reflexive,
    Reverse,
    Rewrite,
    SumOfSquares,
    Under,
    Witness,
)
from .terms import Term, bind, make

Around = Callable[[Term], Term]


def rule_counts(derivation: Derivation) -> Counter[str]:
    """Count the uses of each kernel rule; a shared part counts once for each of its places."""
    order: list[tuple[Derivation, str, tuple[Derivation, ...]]] = []  # parts before the whole
    begun: set[int] = set()
    stack: list[tuple[Derivation, str, tuple[Derivation, ...]] | Derivation] = [derivation]
    while stack:
        d = stack.pop()
        if isinstance(d, tuple):
            order.append(d)
        elif id(d) not in begun:
            begun.add(id(d))
            name, parts = _rule_and_parts(d)
            stack.append((d, name, parts))
            stack.extend(part for part in parts if id(part) not in begun)
    times = Counter({id(derivation): 1})
    counted = Counter[str]()
    for d, name, parts in reversed(order):
        n = times[id(d)]
        if name:
            counted[name] += n
        for part in parts:
            times[id(part)] += n
    return counted


def _rule_and_parts(d: Derivation) -> tuple[str, tuple[Derivation, ...]]:
    """Return the rule that a derivation is counted under ("" for none) and its parts."""
    if isinstance(d, Rewrite):
        return d.rule, ()
    if isinstance(d, Assume):
        return "hypothesis", ()
    if isinstance(d, Reverse | Under | Witness | Lemma):
        return "", (d.part,)
    if isinstance(d, Chain | Cases):
        return "", d.parts
    if isinstance(d, Inside):
        return "", tuple(part for _, part in d.parts)
    if isinstance(d, Induction | NaturalInduction):
        return "induction", (d.base, d.step)
    if isinstance(d, SumOfSquares | LeftInverse):
        return "sum of squares" if isinstance(d, SumOfSquares) else "left inverse", (d.part,)
    return "", (d.part, d.apart) if isinstance(d, Differ) else ()


def flatten(derivation: Derivation) -> Iterator[Step]:
    """Yield every kernel step in order; within one case, each starts where the last one ended."""
    yield from _steps(derivation, (), (), lambda t: t, False)


def _steps(
    d: Derivation, path: tuple[int, ...], opened: tuple[Term, ...], around: Around, back: bool
) -> Iterator[Step]:
    if isinstance(d, Rewrite):
        part, becomes = (d.right, d.left) if back else (d.left, d.right)
        yield Step(path, opened, d.rule, d.arguments, part, becomes, around, back, d.signs)
    elif isinstance(d, Reverse):
        yield from _steps(d.part, path, opened, around, not back)
    elif isinstance(d, Chain):
        for link in reversed(d.parts) if back else d.parts:
            yield from _steps(link, path, opened, around, back)
    elif isinstance(d, Inside):
        yield from _inside(d, path, opened, around, back)
    elif isinstance(d, Under):
        last = len(d.left.args) - 1

        def closed(body: Term, d: Under = d) -> Term:
            args = (*d.left.args[:-1], bind(body, *d.variables))
            return around(make(d.left.op, args, d.left.data, d.left.shape))

        yield from _steps(d.part, (*path, last), (*opened, *d.variables), closed, back)
    elif isinstance(d, Assume):
        part, becomes = (d.right, d.left) if back else (d.left, d.right)
        yield Step(path, opened, "hypothesis", d.values, part, becomes, around, back)
    elif isinstance(d, Lemma | Witness):
        yield from _steps(d.part, path, opened, around, back)
    elif not isinstance(d, Reflexive):
        for equation in _separate_equations(d):
            yield from _steps(equation, (), (), lambda t: t, back)


def _separate_equations(d: Derivation) -> tuple[Derivation, ...]:
    """Return the parts of a derivation that are separate equations, not rewrites of its term."""
    if isinstance(d, Cases):
        return d.parts
    if isinstance(d, Differ):
        return d.part, d.apart
    if isinstance(d, Induction | NaturalInduction):
        return d.base, d.step
    assert isinstance(d, SumOfSquares | LeftInverse), d
    return (d.part,)


def _inside(
    d: Inside, path: tuple[int, ...], opened: tuple[Term, ...], around: Around, back: bool
) -> Iterator[Step]:
    args = list((d.right if back else d.left).args)
    for place, part in reversed(d.parts) if back else d.parts:
        held = tuple(args)

        def whole(t: Term, held: tuple[Term, ...] = held, place: int = place) -> Term:
            new = (*held[:place], t, *held[place + 1 :])
            return around(make(d.left.op, new, d.left.data, d.left.shape))

        yield from _steps(part, (*path, place), opened, whole, back)
        args[place] = part.left if back else part.right
