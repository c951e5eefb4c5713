"""The complete chain of a proof, step by step: in numbers, without a gap, each step by itself.

Nothing here asks the kernel whether the chain as a whole is right; the numbers do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby, islice
from typing import Any

import pytest

from attnproof.symbolic import Claim, Statement
from attnproof.symbolic.decision import LinkProof, Step
from attnproof.symbolic.derivation import (
    Assume,
    Cases,
    Chain,
    Derivation,
    Differ,
    Induction,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reverse,
    Rewrite,
    SumOfSquares,
    Witness,
)
from attnproof.symbolic.kernel import replay
from attnproof.symbolic.prove import decide
from attnproof.symbolic.steps import flatten
from attnproof.symbolic.terms import BINDERS, Term, free, instantiate
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.spread import CATALOGUE, part

LEFT_OUT = {
    "rotary-attention-is-equivariant-when-tokens-carry-their-positions": "its chains are long",
    "a-product-through-a-smaller-width-is-not-invertible": "small worlds have no room for its maps",
    "rotary-attention-is-unchanged-when-all-positions-move": "its chains are long",
    "the-hermitian-constraint-leaves-one-rotation": "nearly all its chains are long",
}
PROVED = [name for name in part(0, LEFT_OUT) if CATALOGUE[name].expected == "proved"]
EACH, LONG = 12, 150
OF_THEIR_OWN = (Cases, Induction, NaturalInduction, Differ, SumOfSquares, LeftInverse)
Checked = tuple[Claim, LinkProof, list[Step]]


def checked(statement: Statement) -> list[Checked]:
    """The links of every claim, with their steps; a long chain has the rules of others."""
    decision = decide(statement, refuting=False)
    assert decision.verdict == "proved"
    return [
        (decided.claim, link, list(flatten(link.derivation)))
        for decided in decision.claims
        for link in decided.links
        if link.derivation is not None and link.steps <= LONG
    ]


def inner(d: Derivation) -> list[Derivation]:
    """The derivations that a derivation is made of."""
    kinds: Any = Derivation
    found: list[Derivation] = []
    pending: list[Any] = [getattr(d, f.name) for f in fields(d)]
    while pending:
        value = pending.pop(0)
        if isinstance(value, kinds):
            found.append(value)
        elif isinstance(value, tuple):
            pending = [*value, *pending]
    return found


# each step is one rule at one place


def at_path(t: Term, step: Step) -> Term:
    """The part of a term that a step rewrites, what is bound on the way opened."""
    at = iter(step.opened)
    for place in step.path:
        bound = BINDERS.get(t.op, 0) if place == len(t.args) - 1 else 0
        t = instantiate(t.args[place], *islice(at, bound)) if bound else t.args[place]
    return t


def is_one_rule(step: Step, laws: list[Assume]) -> None:
    ends = (step.becomes, step.part) if step.reverse else (step.part, step.becomes)
    assumed = [law for law in laws if (law.left, law.right, law.values) == (*ends, step.arguments)]
    one = Rewrite(step.rule, ends[0], step.arguments, ends[1], step.signs)
    alone = replay(assumed[0] if assumed else one)
    assert (alone.left, alone.right) == ends


def laws_in(d: Derivation) -> list[Assume]:
    """The assumed equations of a derivation, those of its lemmas left out."""
    if isinstance(d, Assume):
        return [d]
    parts = [d.part] if isinstance(d, Lemma) else inner(d)
    return [law for part in parts for law in laws_in(part)]


# no step is left out


def in_pieces(d: Derivation) -> bool:
    """Whether equations of their own are part of it, so that its steps form several chains."""
    if isinstance(d, OF_THEIR_OWN):
        return True
    return any(map(in_pieces, [d.part] if isinstance(d, Lemma) else inner(d)))


def pieces(d: Derivation) -> Iterator[tuple[Term, Term]]:
    """The two ends of every chain of steps without a gap."""
    if not in_pieces(d):
        yield d.left, d.right
    elif isinstance(d, Reverse):
        yield from ((right, left) for left, right in pieces(d.part))
    elif isinstance(d, Chain):
        for several, group in groupby(d.parts, in_pieces):
            run = list(group)
            for piece in run if several else []:
                yield from pieces(piece)
            if not several:
                yield run[0].left, run[-1].right
    else:
        for part in [d.part] if isinstance(d, Lemma | Witness) else inner(d):
            yield from pieces(part)


def leaves_no_gap(d: Derivation, found: list[Step]) -> None:
    wanted = {ends for ends in pieces(d) if ends[0] is not ends[1]}
    seen, start = set(), 0
    for k, step in enumerate(found):
        if k + 1 == len(found) or found[k + 1].before is not step.after:
            seen.add((found[start].before, step.after))
            start = k + 1
    starts, ends = ({pair[k] for pair in seen} for k in (0, 1))
    assert starts <= {left for left, _ in wanted}
    assert ends <= {right for _, right in wanted}


# no step changes the value


def a_world(statement: Statement, seed: int, *terms: Term) -> World:
    """A world in which two rows that are assumed to be equal are one row."""
    world = World(seed, largest=2)
    assumed = [t for pair in statement.assume for side in pair for t in free(side)]
    named = {v for v in assumed if v.op == "index"} & set().union(*map(free, terms))
    world.drawn |= dict.fromkeys(named, 0)
    return world


def obeys(world: World, statement: Statement, claim: Claim) -> bool:
    """Whether the hypotheses hold in the world, and nothing is assumed to be contradicted."""
    if claim.relation == "!=" or statement.laws or claim.using:
        return False
    try:
        return all(close_to(world(left), world(right)) for left, right in statement.assume)
    except Undefined:
        return False


def keeps_the_value(step: Step, worlds: list[tuple[World, bool]]) -> bool | None:
    """Whether both ends have one value; None where no world gives them any."""
    for world, obeying in worlds:
        if step.rule == "hypothesis" and not obeying:
            continue
        try:
            same = close_to(world(step.before), world(step.after))
            return same and close_to(world(step.part), world(step.becomes))
        except Undefined:
            continue
    return None


def some(steps: list[Step]) -> list[Step]:
    """A few steps, spread over a long chain."""
    return steps if len(steps) <= EACH else random.Random(0).sample(steps, EACH)


@pytest.mark.parametrize("name", PROVED)
def test_the_steps_are_complete_and_right(name: str) -> None:
    statement, valued = CATALOGUE[name].statement, []
    for claim, link, found in checked(statement):
        assert link.derivation is not None
        leaves_no_gap(link.derivation, found)
        terms = [side for step in found for side in (step.before, step.part)]
        worlds = [a_world(statement, seed, *terms) for seed in range(1, 5)]
        both = [(world, obeys(world, statement, claim)) for world in worlds]
        laws = laws_in(link.derivation)
        for step in some(found):
            assert at_path(step.before, step) is step.part
            assert at_path(step.after, step) is step.becomes
            is_one_rule(step, laws)
            kept = keeps_the_value(step, both)
            assert kept is not False, f"{step.rule}: {step.part!r} -> {step.becomes!r}"
            if step.rule != "hypothesis":
                valued.append(kept is not None)
    assert sum(valued) >= 0.9 * len(valued)
