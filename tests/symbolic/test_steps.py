"""The complete chain of a proof, step by step: in numbers, without a gap, each step by itself.

Nothing here asks the kernel whether the chain as a whole is right; the numbers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from attnproof.catalogue import load_catalogue
from attnproof.symbolic import Claim, Statement, boolean, equal, permutation, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.decision import LinkProof, Step
from attnproof.symbolic.derivation import Cases, Chain, Derivation, Induction, Reverse, Rewrite
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import replay
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.scalars import add, index, mul, num, unary
from attnproof.symbolic.statement import Theorem
from attnproof.symbolic.steps import flatten
from attnproof.symbolic.terms import Term, free, instantiate, make
from attnproof.theorems.definitions.rotary import rotation
from tests.symbolic.interpreter import Undefined, World, close_to

CATALOGUE = {entry.id: entry.theorem for entry in load_catalogue().entries}
LONG = {
    "block-rotations-compose-and-are-orthogonal",
    "rotary-attention-is-unchanged-when-all-positions-move",
    "the-transpose-of-a-rotation-is-its-inverse",
    "mean-pooling-after-self-attention-is-invariant",
}
SHORT = [name for name, t in CATALOGUE.items() if t.expected == "proved" and name not in LONG]


@cache
def links(theorem: Theorem) -> list[LinkProof]:
    """The proved links of every claim."""
    decided = decide(theorem.statement, refuting=False)
    return [link for claim in decided.claims for link in claim.links if link.derivation]


@cache
def steps(theorem: Theorem) -> list[list[Step]]:
    """The steps of every link."""
    return [list(flatten(d)) for link in links(theorem) if (d := link.derivation) is not None]


def a_world(theorem: Theorem, seed: int, *terms: Term) -> World:
    """A world in which what the statement assumes holds: two rows are one row."""
    world = World(seed, largest=2)
    assumed = [t for pair in theorem.statement.assume for side in pair for t in free(side)]
    named = {v for v in assumed if v.op == "index"} & set().union(*map(free, terms))
    world.drawn |= dict.fromkeys(named, 0)
    return world


@pytest.mark.parametrize("name", SHORT)
def test_every_step_keeps_the_value(name: str) -> None:
    theorem, counted = CATALOGUE[name], 0
    for seed, found in enumerate(steps(theorem)):
        world = a_world(theorem, seed + 1, *(side for s in found for side in (s.before, s.part)))
        for step in found:
            try:
                same = close_to(world(step.before), world(step.after))
                same &= close_to(world(step.part), world(step.becomes))
            except Undefined:
                continue
            counted += 1
            assert same, f"{step.rule}: {step.part!r} -> {step.becomes!r}"
    assert counted > 0.9 * sum(map(len, steps(theorem))) > 0


def at_path(t: Term, step: Step) -> Term:
    """The part of a term that a step rewrites, the indices on the way opened by name."""
    names = list(step.opened)
    for place in step.path:
        if t.op in ("sum", "tabulate") and place == 1:
            t = instantiate(t.args[1], index(names.pop(0), t.args[0]))
        elif t.op == "iterate" and place == 2:
            layer = index(names.pop(0), t.args[0])
            names.pop(0)
            state = next(v for v in free(step.part) | free(step.becomes) if v.op == "var")
            t = instantiate(t.args[2], layer, state)
        else:
            t = t.args[place]
    return t


@pytest.mark.parametrize("name", SHORT)
def test_every_step_is_one_rule_at_one_place(name: str) -> None:
    for found in steps(CATALOGUE[name]):
        for step in found:
            assert at_path(step.before, step) is step.part
            assert at_path(step.after, step) is step.becomes
            ends = (step.becomes, step.part) if step.reverse else (step.part, step.becomes)
            alone = replay(Rewrite(step.rule, ends[0], step.arguments, ends[1]))
            assert (alone.left, alone.right) == ends


def cases(d: Derivation) -> Iterator[tuple[Term, Term]]:
    """The two ends of every chain of steps without a gap."""
    if isinstance(d, Cases):
        for part in d.parts:
            yield from cases(part)
    elif isinstance(d, Induction):
        yield from cases(d.base)
        yield from cases(d.step)
    elif isinstance(d, Reverse):
        yield from ((right, left) for left, right in cases(d.part))
    elif isinstance(d, Chain) and any(isinstance(part, Induction) for part in d.parts):
        for part in d.parts:
            yield from cases(part)
    else:
        yield d.left, d.right


@pytest.mark.parametrize("name", SHORT)
def test_the_steps_leave_no_gap(name: str) -> None:
    theorem = CATALOGUE[name]
    for link, found in zip(links(theorem), steps(theorem), strict=True):
        assert link.derivation is not None
        wanted = {ends for ends in cases(link.derivation) if ends[0] is not ends[1]}
        seen, start = set(), 0
        for k, step in enumerate(found):
            if k + 1 == len(found) or found[k + 1].before is not step.after:
                seen.add((found[start].before, step.after))
                start = k + 1
        starts, ends = ({pair[k] for pair in seen} for k in (0, 1))
        assert starts <= {left for left, _ in wanted}
        assert ends <= {right for _, right in wanted}


# a broken rule flips a verdict, and the numbers of its steps tell


(N,) = sizes("n")
GIVEN: dict[str, Given] = {
    "x": real(N), "s": permutation(N), "M": boolean(N), "a": real(), "b": real(),
}  # fmt: skip
x, sigma, mask, a, b = (GIVEN[name].named(name) for name in GIVEN)
Faulty = Callable[..., tuple[Term, frozenset[tuple[str, Term]]]]


def even_sine(t: Term, angle: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return make(t.op, (angle,)), frozenset()


def no_sign(t: Term, u: Term, v: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    cu, su, cv, sv = (unary(op, z) for z in (u, v) for op in ("cos", "sin"))
    whole = add(mul(cu, cv), mul(su, sv)) if t.op == "cos" else add(mul(su, cv), mul(cu, sv))
    return whole, frozenset()


def any_two_maps(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return t.args[1].args[1], frozenset()


def swapped(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    c, u, v = t.args
    gate = unary("indicator", c)
    return add(mul(gate, v), u, mul(num(-1), gate, u)), frozenset()


def no_not(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return unary("indicator", t.args[0].args[0]), frozenset()


def no_count(_: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return num(1), frozenset()


BROKEN: list[tuple[str, Faulty, Claim]] = [
    ("parity", even_sine, equal(rotation(-a), rotation(a))),
    ("angle addition", no_sign,
     equal(xp.cos(a + b), xp.cos(a) * xp.cos(b) + xp.sin(a) * xp.sin(b))),
    ("permutation", any_two_maps, equal(x[sigma][sigma], x)),
    ("where", swapped, equal(xp.where(mask, 1, 0), 1 - xp.astype(mask, None))),
    ("indicator", no_not, equal(xp.astype(~mask, None), xp.astype(mask, None))),
    ("constant", no_count, equal(xp.sum(xp.ones(N)), 1)),
]  # fmt: skip


def wrong_steps(found: list[Step]) -> set[str]:
    """The rules of steps that change their value in some world."""
    wrong = set()
    for world in (World(seed, largest=3) for seed in range(8)):
        wrong |= {s.rule for s in found if not close_to(world(s.before), world(s.after))}
    return wrong


@pytest.mark.parametrize(("rule", "faulty", "claim"), BROKEN, ids=[rule for rule, *_ in BROKEN])
def test_a_broken_rule_is_found_by_the_numbers_of_its_steps(
    rule: str, faulty: Faulty, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = Statement(GIVEN, {"": claim})
    assert decide(statement, refuting=False).verdict == "undecided"
    monkeypatch.setitem(RULES, rule, faulty)
    decided = decide(statement, refuting=False)
    assert decided.verdict == "proved"
    (link,) = decided.claims[0].links
    assert link.derivation is not None
    assert wrong_steps(list(flatten(link.derivation))) == {rule}
