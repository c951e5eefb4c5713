"""Mutants of theorems, made by a machine, are not proved.

A mutant changes one thing on one side of a claim: another permutation, a transpose dropped, a
sign, a scale, the direction of a mask.  Only mutants that the numbers show to be false count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from attnproof.symbolic import Array, Claim, Statement, permutation
from attnproof.symbolic.claim import Link
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import ONE, add, mul, num
from attnproof.symbolic.statement import Theorem
from attnproof.symbolic.terms import Term, free, make, postorder, substitute
from attnproof.theorem_runs.catalogue import load_catalogue
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.spread import CATALOGUE
from tests.symbolic.spread import part as third
from tests.symbolic.stating import means_something

LEFT_OUT = {
    "rotary-attention-is-equivariant-when-tokens-carry-their-positions": "slow",
    "least-squares-maps-keys-to-values": "slow",
}
PROVED = [name for name in third(2, LEFT_OUT) if CATALOGUE[name].expected == "proved"]
EACH = 4


def test_the_catalogue_is_whole() -> None:
    assert not load_catalogue().broken
    assert len(CATALOGUE) >= 100


def constant(value: int, t: Term) -> Term:
    return make("broadcast", (num(value),), shape=t.shape) if t.shape else num(value)


def other_map(length: Term) -> Term:
    return make("var", (length,), ("another", "permutation"), (length,))


def of_a_gather(t: Term) -> Iterator[tuple[str, Term]]:
    x, s = t.args
    if s.op == "var" and s.data[1] == "permutation":
        for map_ in (make("inverse", (s,), shape=s.shape), other_map(s.args[0])):
            yield "another permutation", make("gather", (x, map_), t.data, t.shape)
        yield "a permutation dropped", x


def of_a_transpose(t: Term) -> Iterator[tuple[str, Term]]:
    if t.shape == t.args[0].shape:
        yield "a transpose dropped", t.args[0]


def of_a_sum(t: Term) -> Iterator[tuple[str, Term]]:
    yield "a sign", add(*t.args[:-1], mul(t.args[-1], constant(-1, t)))
    yield "an addend dropped", add(*t.args[:-1])


def of_a_product(t: Term) -> Iterator[tuple[str, Term]]:
    yield "a factor dropped", mul(*t.args[:-1])
    yield "another factor dropped", mul(*t.args[1:])


def of_a_comparison(t: Term) -> Iterator[tuple[str, Term]]:
    yield "the direction of a mask", make(t.op, t.args[::-1], shape=t.shape)
    shifted = add(t.args[0], constant(1, t))
    yield "an index shifted", make(t.op, (shifted, t.args[1]), shape=t.shape)


def of_an_angle(t: Term) -> Iterator[tuple[str, Term]]:
    yield "sine for cosine", make("sin" if t.op == "cos" else "cos", t.args, shape=t.shape)


def of_a_stack(t: Term) -> Iterator[tuple[str, Term]]:
    yield "the order of a stack", make("stack", t.args[::-1], t.data, t.shape)


def of_a_choice(t: Term) -> Iterator[tuple[str, Term]]:
    yield "the branches", make("where", (t.args[0], *t.args[:0:-1]), shape=t.shape)


def of_an_exponential(t: Term) -> Iterator[tuple[str, Term]]:
    yield "a temperature", make("exp", (mul(t.args[0], constant(2, t)),), shape=t.shape)


def of_a_range(t: Term) -> Iterator[tuple[str, Term]]:
    yield "positions from 1", add(t, constant(1, t))


def of_a_maximum(t: Term) -> Iterator[tuple[str, Term]]:
    yield "a maximum dropped", t.args[0]


def of_an_array(t: Term) -> Iterator[tuple[str, Term]]:
    if t.shape and t.data[1] in ("real", "position", "frequency"):
        yield "a scale", mul(t, constant(2, t))


CHANGES: dict[str, Callable[[Term], Iterator[tuple[str, Term]]]] = {
    "gather": of_a_gather,
    "permute": of_a_transpose,
    "add": of_a_sum,
    "mul": of_a_product,
    "less_equal": of_a_comparison,
    "less": of_a_comparison,
    "cos": of_an_angle,
    "sin": of_an_angle,
    "stack": of_a_stack,
    "where": of_a_choice,
    "exp": of_an_exponential,
    "arange": of_a_range,
    "maximum": of_a_maximum,
    "var": of_an_array,
}


def mutants(claim: Claim) -> list[tuple[str, Claim]]:
    """Claims with one part of one side changed, in an order that looks random."""
    assert claim.right is not None
    found = []
    for part in postorder(claim.right):
        if part.op in CHANGES and not part.loose:
            for says, new in CHANGES[part.op](part):
                changed = substitute(claim.right, part, new)
                if changed is claim.right or changed.shape != claim.right.shape:
                    continue
                if means_something(changed):
                    link = (Link("", changed),)
                    found.append((says, Claim("=", claim.left, changed, link)))
    random.Random(0).shuffle(found)
    return found


def holds_in_numbers(claim: Claim, theorem: Theorem) -> bool:
    """Whether the two sides agree in every world tried."""
    for seed in range(12):
        world = World(seed)
        assert claim.right is not None
        for pair in theorem.statement.assume:
            world.drawn |= {v: 0 for t in pair for v in free(t) if v.op == "index"}
        try:
            if not close_to(world(claim.left), world(claim.right)):
                return False
        except Undefined:
            continue
    return True


def is_plain(theorem: Theorem) -> bool:
    """Whether numbers can tell: no law about functions that a world would have to obey."""
    return not theorem.statement.laws


@cache
def false_mutants(name: str) -> list[tuple[str, Claim]]:
    theorem = CATALOGUE[name]
    kept: list[tuple[str, Claim]] = []
    if not is_plain(theorem):
        return []
    for claim in theorem.statement.claims.values():
        if claim.relation == "=" and len(kept) < EACH:
            fresh = (pair for pair in mutants(claim) if not holds_in_numbers(pair[1], theorem))
            kept.extend(pair for pair, _ in zip(fresh, range(EACH), strict=False))
    return kept[:EACH]


@pytest.mark.parametrize("name", PROVED)
def test_a_mutant_that_is_false_is_not_proved(name: str) -> None:
    theorem = CATALOGUE[name]
    for says, claim in false_mutants(name):
        givens: dict[str, Given] = dict(theorem.statement.givens)
        for v in free(claim.right or ONE):
            if v.data == ("another", "permutation"):
                givens["another"] = permutation(Array(v.args[0]))
        statement = Statement(givens, {"": claim}, theorem.statement.assume, theorem.statement.laws)
        assert decide(statement, refuting=False).verdict == "undecided", says


def test_there_are_many_mutants_of_many_kinds() -> None:
    every = [says for name in PROVED for says, _ in false_mutants(name)]
    assert len(every) >= 80
    assert len(set(every)) >= 10
